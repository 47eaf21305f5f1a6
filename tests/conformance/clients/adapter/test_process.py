"""An adapter as a child process: its lines, its end, and its traces."""

from __future__ import annotations

import asyncio
import mmap
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from conformance.clients.adapter.base import AdapterFailed
from conformance.clients.adapter.messages import LINE_BYTES_MAX
from conformance.clients.adapter.process import ProcessAdapter, _Tail, forget_peak, process_facts
from tests.eventually import PATIENCE_S, QUIET_S, eventually_async

HERE = Path(__file__).parent
TOY = [sys.executable, str(HERE / "toy_adapter.py")]
ENV = {"PYTHONPATH": str(HERE.parents[3])}

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process groups are POSIX")


@asynccontextmanager
async def started(*defect: str) -> AsyncIterator[ProcessAdapter]:
    adapter = ProcessAdapter([*TOY, *defect], "rabbitmq-stream", env=ENV)
    await adapter.start()
    try:
        yield adapter
    finally:
        await adapter.kill()


def asynchronous(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def run() -> None:
        asyncio.run(test())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def exists(pid: int) -> bool:
    """Whether the process runs; one that only waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@asynchronous
async def test_hello_ops_and_shutdown() -> None:
    async with started() as adapter:
        assert adapter.hello.library == "toy"
        assert (await adapter.call("echo", {"body": {"text": "hi"}})).value == {"body": {"b64": "aGk="}}
        assert abs(adapter.now_ns() / 1e6 - adapter.clock_offset_ms) < 60_000
        assert await adapter.shutdown() == 0
        assert not adapter.alive
        assert adapter.violations == []


@asynchronous
async def test_a_backtrace_is_not_taken_for_a_leak() -> None:
    async with started() as adapter:
        said = Path(f"/proc/{adapter.pid}/environ")
        if said.exists():
            assert b"RUST_BACKTRACE=0" in said.read_bytes().split(b"\0")


@asynchronous
async def test_end_of_input_ends_it() -> None:
    async with started() as adapter:
        assert await adapter.end_of_input() == 0


@asynchronous
async def test_an_adapter_that_ignores_the_end_of_its_input_is_killed() -> None:
    async with started("Stubborn") as adapter:
        assert await adapter.end_of_input() is None
        assert adapter.exit_code == -signal.SIGKILL


@pytest.mark.parametrize(
    ("defect", "target", "last"),
    [
        ("Confused", "lost", "AttributeError: module 'mylib' has no attribute 'Refused'"),
        ("Raw", "q", "TypeError: Object of type bytes is not JSON serializable"),
    ],
)
def test_a_bug_of_its_own_breaks_the_protocol(defect: str, target: str, last: str) -> None:
    async def work() -> None:
        async with started(defect) as adapter:
            message = {"session": "s", "target": target, "body": {"text": "hi"}}
            assert (await adapter.call("publish", message)).word == "crashed"
            assert adapter.exit_code == 3
            assert adapter.violations == [f"it ended with exit code 3, for a bug of its own: {last}"]

    asyncio.run(work())


@asynchronous
async def test_a_crash_ends_every_open_op() -> None:
    async with started() as adapter:
        waiting = adapter.begin("publish", {"session": "s", "target": "forever", "body": {"text": ""}})
        result = await adapter.call("toy.exit", {"code": 7})
        assert (result.word, (await waiting).word) == ("crashed", "crashed")
        assert adapter.exit_code == 7
        assert (await adapter.call("state", {"session": "s"})).word == "crashed"
        assert await adapter.event("note", timeout_s=60) is None  # at once: nothing can come any more
        assert (await adapter.restart()).library == "toy"


@asynchronous
async def test_what_the_library_prints_goes_to_stderr() -> None:
    async with started() as adapter:
        mark = adapter.stderr_mark
        await adapter.call("toy.print", {"text": "deep thought"})
        assert await adapter.shutdown() == 0
        assert adapter.stderr(mark) == "deep thought\n"
        assert adapter.stderr(adapter.stderr_mark) == ""
        [(at_s, line)] = adapter.stderr_lines(mark)
        assert line == "deep thought"
        assert adapter.transcript.lines[0].at_ns / 1e9 <= at_s <= adapter.now_ns() / 1e9
        assert adapter.stderr_lines(adapter.stderr_mark) == []
        assert adapter.violations == []


def test_a_line_has_the_time_of_the_piece_that_it_begins_in() -> None:
    tail = _Tail(8)
    for at_s, piece in enumerate((b"one\ntw", b"o\n\n", b"three\n", b"4")):
        tail.add(piece, float(at_s))
    assert tail.lines(0) == [(0.0, "one"), (0.0, "two"), (2.0, "three"), (3.0, "4")]
    assert tail.lines(4) == [(0.0, "two"), (2.0, "three"), (3.0, "4")]
    assert tail.lines(tail.size) == []
    tail.add(b"x" * 20 + b"\nlast\n", 4.0)  # what came before is not kept
    assert tail.lines(0)[-1] == (4.0, "last")


@asynchronous
async def test_text_that_is_no_unicode_is_answered_all_the_same() -> None:
    async with started() as adapter:
        assert (await adapter.call("toy.bytes")).value == {"text": "caf?"}


@asynchronous
async def test_nothing_stays_behind() -> None:
    async with started() as adapter:
        child = (await adapter.call("toy.child")).value["pid"]
        assert exists(child)
    await eventually_async(lambda: not exists(child))


@asynchronous
async def test_blocking_ops_do_not_hold_up_the_others() -> None:
    async with started() as adapter:
        calls = [adapter.begin("toy.meet", {"count": 20}, PATIENCE_S * 1000) for _ in range(19)]
        assert (await adapter.call("state", {"session": "s"})).ok
        assert not any(call.done for call in calls)
        calls.append(adapter.begin("toy.meet", {"count": 20}, PATIENCE_S * 1000))
        assert all([(await call).ok for call in calls])


@asynchronous
async def test_stopping_and_continuing() -> None:
    async with started() as adapter:
        adapter.pause()
        call = adapter.begin("state", {"session": "s"}, timeout_ms=PATIENCE_S * 1000)
        await asyncio.sleep(QUIET_S)
        assert not call.done
        adapter.resume()
        assert (await call).ok


@asynchronous
async def test_a_line_above_the_limit_is_a_violation() -> None:
    async with started() as adapter:
        result = await adapter.call("toy.line", {"size": LINE_BYTES_MAX + 1})
        assert result.word == "crashed"
        assert adapter.violations == [f"a line of more than {LINE_BYTES_MAX} bytes"]


@asynchronous
async def test_gaps_in_n_are_violations() -> None:
    async with started("Miscounting") as adapter:
        await adapter.call("state", {"session": "s"})
        await adapter.call("state", {"session": "s"})
        assert adapter.violations == ["line 5 has n 6"]


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="no /proc with clear_refs")
def test_the_peak_of_a_process_can_be_forgotten() -> None:
    size = 32 << 20
    with mmap.mmap(-1, size) as held:
        held.write(bytes(size))
    high = process_facts(os.getpid()).peak_bytes
    forget_peak(os.getpid())
    low = process_facts(os.getpid()).peak_bytes
    assert high is not None and low is not None
    assert high >= low + size // 2


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")
@asynchronous
async def test_facts_from_outside() -> None:
    async with started() as adapter:
        facts = adapter.facts()
        assert facts is not None
        assert facts.exit_code is None
        assert facts.rss_bytes is not None
        assert facts.rss_bytes > 1 << 20
        assert facts.fds is not None
        assert facts.fds >= 3
        assert facts.threads == 1
        assert facts.cpu_s is not None
        before = facts.cpu_s
        await adapter.call("echo", {"body": {"gen": "rand", "seed": 1, "len": 20 << 20}})
        after = adapter.facts()
        assert after is not None
        assert (after.cpu_s or 0) > before
        await adapter.shutdown()
        assert adapter.facts() == process_facts(facts.pid, 0)


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(AdapterFailed, match="cannot start no-such-program --now: no such program"):
        asyncio.run(ProcessAdapter("no-such-program --now", "rabbitmq-stream").start())


def test_a_program_that_is_no_adapter() -> None:
    command = [sys.executable, "-c", "import sys; print('Hello!'); sys.exit('I am no adapter')"]
    with pytest.raises(AdapterFailed, match=r"(?s)hello crashed .*I am no adapter"):
        asyncio.run(ProcessAdapter(command, "rabbitmq-stream").start())


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's parent-death signal")
def test_it_dies_with_a_runner_that_is_killed(tmp_path: Path) -> None:
    script = f"""
import asyncio, os, signal
from conformance.clients.adapter.process import ProcessAdapter
async def main():
    adapter = ProcessAdapter({[*TOY, "Stubborn"]!r}, "rabbitmq-stream")
    await adapter.start()
    print(adapter.facts().pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""

    async def main() -> None:
        runner = await asyncio.create_subprocess_exec(
            sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE, env={**os.environ, **ENV}
        )
        output, _ = await runner.communicate()
        pid = int(output)
        await eventually_async(lambda: not exists(pid), "the adapter ends with its runner")

    asyncio.run(main())
