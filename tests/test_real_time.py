"""No test but those on the list sleeps, has a time-out below a minute, or looks at a clock on the wall."""

from __future__ import annotations

import asyncio

import pytest

from fakebrokers.core import virtual
from tests.real_time import SEEN_WHILE_TESTS_RUN, Use, file_of, listed, sources, uses_in


@pytest.fixture(scope="module")
def uses() -> list[Use]:
    return [use for path in sources() for use in uses_in(path.read_text(encoding="utf-8"), file_of(path))]


def test_who_uses_real_time_says_why(uses: list[Use]) -> None:
    rows = listed()
    missing = [
        f"tests/{use.file}:{use.line}: {use.what} in {use.name}"
        for use in uses
        if use.what not in SEEN_WHILE_TESTS_RUN and not any(row in rows for row in use.rows)
    ]
    assert missing == [], "wait for what happens (tests/eventually.py), or say why in tests/real_time.toml"


def test_no_row_of_the_list_is_left_over(uses: list[Use]) -> None:
    needed = {row for use in uses for row in use.rows}
    assert [row for row in listed() if row not in needed] == []


def test_every_row_has_a_reason() -> None:
    assert [row for row, reason in listed().items() if len(reason.split()) < 4] == []


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("def f():\n    time.sleep(0.1)", ["time.sleep"]),
        ("def f():\n    threading.Timer(1, g).start()", ["threading.Timer"]),
        ("def f():\n    assert time.monotonic() - x < 4", ["time.monotonic"]),
        ("def f():\n    time.perf_counter_ns()", ["time.perf_counter_ns"]),
        ("def f():\n    time.process_time()", []),
        ("def f():\n    sock.settimeout(2)", ["timeout of 2"]),
        ("def f():\n    sock.settimeout(PATIENCE_S)", []),
        ("LIMIT_S = 0.5\ndef f():\n    sock.settimeout(2 * LIMIT_S)", ["timeout of 2 * LIMIT_S"]),
        ("def f():\n    create_connection(('', 1), 0.1)", ["timeout of 0.1"]),
        ("def f():\n    ', '.join(3)", ["timeout of 3"]),
        ("def f():\n    select.select([x], [], [], 1)", ["timeout of 1"]),
        ("def f():\n    run(x, timeout=59)", ["timeout of 59"]),
        ("def f():\n    run(x, timeout=60)", []),
        ("def f():\n    run(x, timeout=1 if y else 90)", ["timeout of 1 if y else 90"]),
        ("def f():\n    call(timeout_ms=59_999)", ["timeout_ms of 59999"]),
        ("def f():\n    ask({'timeout': 0.05})", ["timeout of 0.05"]),
        ("def f():\n    socket.rcvtimeo = 100", ["rcvtimeo of 100"]),
        ("def f(a, timeout=1.0):\n    pass", ["timeout of 1.0"]),
        ("def f(a, *, b, timeout=1.0):\n    pass", ["timeout of 1.0"]),
        ("def f():\n    child('import time; time.sleep(9)')", ["sleep in a program"]),
        ("async def f():\n    await asyncio.sleep(1)", ["asyncio.sleep"]),
        ("async def f():\n    return asyncio.get_running_loop().time() - t", ["loop.time"]),
        ("async def f(loop):\n    return loop.time() - t", ["loop.time"]),
    ],
)
def test_what_is_found_in_a_source(source: str, what: list[str]) -> None:
    assert [use.what for use in uses_in(source, "x.py")] == what


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("await new Promise((resolve) => setTimeout(resolve, 100))", ["setTimeout"]),
        ("Thread.sleep(20);", ["Thread.sleep"]),
        ("case <-time.After(time.Minute):", ["time.After"]),
        ("tokio::time::sleep(Duration::from_secs(3)).await;", ["sleep(Duration"]),
        ("tokio::time::timeout(Duration::from_secs(3), x).await;", ["timeout(Duration"]),
        ("got.await();", []),
    ],
)
def test_what_is_found_in_a_program_in_another_language(source: str, what: list[str]) -> None:
    assert [use.what for use in uses_in(source, "findings/x.rs")] == what


def test_a_use_belongs_to_a_function_or_a_class_of_the_module() -> None:
    source = "class A:\n    def g(self):\n        def h():\n            time.sleep(1)"
    assert [use.rows for use in uses_in(source, "a/x.py")] == [("a/x.py::A", "a/x.py")]


async def short_wait() -> None:
    await asyncio.wait_for(asyncio.get_running_loop().create_future(), 0.5)


async def long_sleep() -> None:
    await asyncio.sleep(10.0)


async def short_timeout() -> None:
    async with asyncio.timeout(1):
        pass


async def the_time() -> None:
    asyncio.get_running_loop().time()


@pytest.mark.parametrize("work", [short_wait, long_sleep, short_timeout, the_time])
def test_who_waits_on_a_real_loop_is_caught_while_it_runs(work) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(AssertionError, match=rf"test_real_time\.py::{work.__name__}: .* on a real loop"):
        asyncio.run(work())


async def on_virtual_time() -> None:
    await asyncio.sleep(10.0)
    with pytest.raises(TimeoutError):
        await short_wait()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await asyncio.sleep(2)
    await the_time()


def test_virtual_time_is_free() -> None:
    virtual.run(on_virtual_time())


def test_what_gives_others_their_turn_is_no_sleep() -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        async with asyncio.timeout(60):
            await asyncio.sleep(0)

    asyncio.run(work())
