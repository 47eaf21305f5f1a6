"""The loop thread: one per process, and a forked child has its own."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
import traceback
from collections.abc import Callable

import pytest

from fakebrokers import Moleculer
from fakebrokers.core.loop import InsideLoop, loop_thread
from fakebrokers.errors import UnmetExpectation, UsageError
from fakebrokers.moleculer.node import Node
from fakebrokers.server import FakeServer
from tests.eventually import PATIENCE_S
from tests.toy import Toy


def test_one_thread_carries_all() -> None:
    home = loop_thread()
    assert loop_thread() is home
    assert home.thread.daemon
    with Toy() as first, Toy() as second:
        assert first._loop is second._loop is home
    assert [thread.name for thread in threading.enumerate()].count("fakebrokers") == 1


def test_results_and_errors_come_back() -> None:
    home = loop_thread()
    assert home.call(lambda a, b: a + b, 1, 2) == 3
    assert home.call(threading.get_ident) == home.thread.ident
    assert home.call(lambda: home.call(threading.get_ident)) == home.thread.ident
    with pytest.raises(ZeroDivisionError):
        home.call(lambda: 1 / 0)

    async def twice(value: int) -> int:
        await asyncio.sleep(0)
        return value * 2

    assert home.run(twice(4)) == 8
    done = threading.Event()
    home.post(done.set)
    assert done.wait(PATIENCE_S)


@pytest.mark.parametrize(
    ("wait", "sentence"),
    [
        (lambda toy: toy.wait_for(role="confirm"), "wait_for would block .*: await wait_for_async"),
        (lambda toy: toy.check(timeout=90.0), "check would block .*: await check_async"),
    ],
)
def test_a_wait_in_a_running_loop_is_refused_at_once(wait: Callable[[Toy], object], sentence: str) -> None:
    """The client's own loop: what the wait is for could not happen."""

    async def work(toy: Toy) -> None:
        with pytest.raises(UsageError, match=sentence):
            wait(toy)

    with Toy() as toy:
        asyncio.run(work(toy))
        toy.check()


def test_the_waits_of_a_node_are_refused_in_a_running_loop_too() -> None:
    async def work(node: Node) -> None:
        with pytest.raises(UsageError, match=r"call would block .*: await call_async"):
            node.call("math.add")
        with pytest.raises(UsageError, match=r"ping would block .*: await ping_async"):
            node.ping("other")

    with Moleculer() as broker:
        asyncio.run(work(broker.node("one")))
        assert broker.journal.select(kind="Request") == []


def test_a_check_with_patience_for_async_code() -> None:
    async def work(toy: Toy) -> None:
        toy.expect(role="confirm", count=2)
        _, writer = await asyncio.open_connection(toy.host, toy.port)
        writer.write(b"hello me\nput a\nput b\n")
        await toy.check_async(timeout=PATIENCE_S)
        toy.expect(role="confirm", count=3)
        with pytest.raises(UnmetExpectation, match="expected 3 x confirm, got 2"):
            await toy.check_async()
        writer.close()
        await writer.wait_closed()

    with Toy() as toy:
        asyncio.run(work(toy))


def test_the_loop_thread_cannot_wait_for_itself() -> None:
    home = loop_thread()

    async def at_once() -> int:
        return 7

    async def waits() -> None:
        await asyncio.Event().wait()

    assert home.call(lambda: home.run(at_once())) == 7
    with pytest.raises(RuntimeError, match="would wait on the loop that it runs on"):
        home.call(lambda: home.run(waits()))


def test_inside_a_loop_of_the_caller() -> None:
    async def main() -> None:
        home = InsideLoop(asyncio.get_running_loop())
        assert home.call(lambda: 5) == 5

        async def at_once() -> int:
            return 6

        async def waits() -> None:
            await asyncio.Event().wait()

        assert home.run(at_once()) == 6
        with pytest.raises(RuntimeError, match="would wait"):
            home.run(waits())
        seen: list[int] = []
        home.post(lambda: seen.append(1))
        await asyncio.sleep(0)
        assert seen == [1]

    asyncio.run(main())


def in_child(work: Callable[[], None]) -> int:
    """Run `work` in a forked child; its exit status."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def ask(server: FakeServer, line: bytes = b"put a\n") -> bytes:
    with socket.create_connection((server.host, server.port), PATIENCE_S) as client:
        client.settimeout(PATIENCE_S)
        client.sendall(line)
        return client.recv(100)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_starts_its_own() -> None:
    parent = loop_thread()

    def work() -> None:
        assert loop_thread() is not parent
        with Toy() as toy:
            assert ask(toy) == b"stored a\n"

    assert in_child(work) == 0
    assert parent.call(lambda: 1) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_keeps_no_port_and_no_connection_open() -> None:
    with Toy() as toy:
        client = socket.create_connection((toy.host, toy.port), PATIENCE_S)
        client.sendall(b"put a\n")
        assert client.recv(100) == b"stored a\n"
        told, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.read(told, 1)
            os._exit(0)
        try:
            toy.kill("c1")
            client.settimeout(PATIENCE_S)
            assert client.recv(100) == b""  # the end arrives although the child lives
            port = toy.port
            toy.stop()
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((toy.host, port), PATIENCE_S)
        finally:
            client.close()
            os.write(tell, b"x")
            os.close(told)
            os.close(tell)
            assert os.waitpid(pid, 0)[1] == 0


def test_python_ends_although_a_fake_runs() -> None:
    import subprocess

    code = "from tests.toy import Toy; Toy().start(); print('done')"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("done\n", "")
