"""The loop of a simulation: time that costs nothing, and an error for whatever would be real."""

from __future__ import annotations

import asyncio
import inspect
import multiprocessing
import os
import random
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

from fakebrokers.errors import Deadlock, NotSimulated
from fakebrokers.simulation import SimulationLoop


def run(work: Coroutine[Any, Any, Any], **options: Any) -> Any:
    with asyncio.Runner(loop_factory=lambda: SimulationLoop(**options)) as runner:
        return runner.run(work)


def test_hours_take_no_time() -> None:
    async def work() -> float:
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time()

    assert run(work()) == 3600


def test_timers_come_in_their_order_and_not_when_they_are_cancelled() -> None:
    async def work() -> list[str]:
        loop, seen = asyncio.get_running_loop(), list[str]()
        for name, pause in (("b", 2.0), ("never", 1.5), ("a", 1.0)):
            timer = loop.call_later(pause, seen.append, name)
            if name == "never":
                timer.cancel()
        for _ in range(1000):
            loop.call_later(9, seen.append, "never").cancel()
        await asyncio.sleep(10)
        return seen

    assert run(work()) == ["a", "b"]


def test_a_deadlock_names_who_waits_and_where() -> None:
    async def waits() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Deadlock) as caught:
        run(waits())
    line = inspect.getsourcelines(waits)[1] + 1
    assert f"test: Task-1 at {__file__}:{line}" in str(caught.value)


def test_a_run_that_takes_too_long_is_an_error() -> None:
    async def beats() -> None:
        while True:
            await asyncio.sleep(30)

    with pytest.raises(Deadlock, match="7200 virtual seconds have passed"):
        run(beats(), longest_s=7_200)


def test_sets_of_tasks_have_the_same_order_in_each_run() -> None:
    async def work() -> list[int]:
        waste = [object() for _ in range(random.Random().randrange(999))]

        async def number(value: int) -> int:
            return value

        done, _ = await asyncio.wait({asyncio.ensure_future(number(each)) for each in range(50)})
        del waste
        return [task.result() for task in done]

    assert len({tuple(run(work())) for _ in range(5)}) == 1


def order(seed: int | None) -> list[int]:
    async def work() -> list[int]:
        seen: list[int] = []

        async def note(value: int) -> None:
            for _ in range(3):
                await asyncio.sleep(0)
                seen.append(value)

        await asyncio.gather(*[note(each) for each in range(4)])
        return seen

    result: list[int] = run(work(), random=None if seed is None else random.Random(seed))
    return result


def test_the_order_of_ready_tasks_is_drawn_from_the_seed() -> None:
    assert order(None) == [0, 1, 2, 3] * 3
    orders = {seed: order(seed) for seed in range(20)}
    assert len({tuple(each) for each in orders.values()}) > 10
    assert all(order(seed) == each for seed, each in orders.items())


def test_callbacks_keep_their_order() -> None:
    async def work() -> list[int]:
        seen: list[int] = []
        for each in range(50):
            asyncio.get_running_loop().call_soon(seen.append, each)
        await asyncio.sleep(1)
        return seen

    assert run(work(), random=random.Random(1)) == [*range(50)]


def test_threads_work_in_an_order_that_is_drawn_from_the_seed() -> None:
    async def work() -> list[int]:
        seen: list[int] = []
        await asyncio.gather(*[asyncio.to_thread(seen.append, each) for each in range(9)])
        return seen

    runs = [run(work(), random=random.Random(seed)) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]
    assert run(work()) == [*range(9)]


# what would be real


async def thread() -> None:
    threading.Thread(target=print).start()


async def blocking_socket() -> None:
    with socket.socket() as sock:
        sock.connect(("127.0.0.1", 9))


async def blocking_name() -> None:
    socket.create_connection(("broker.test", 9))


async def server_socket() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))


async def real_sleep() -> None:
    time.sleep(3600)


async def child() -> None:
    subprocess.run(["true"], check=True)


async def async_child() -> None:
    await asyncio.create_subprocess_exec("true")


async def fork() -> None:
    os.fork()


async def descriptor() -> None:
    asyncio.get_running_loop().add_reader(0, print)


async def unix_socket() -> None:
    await asyncio.open_unix_connection("/run/broker.sock")


async def handler() -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, print)


async def other_processes() -> None:
    with ProcessPoolExecutor() as pool:
        await asyncio.get_running_loop().run_in_executor(pool, print)


async def foreign_socket() -> None:
    with socket.socket() as sock:
        await asyncio.get_running_loop().sock_recv(sock, 9)


async def datagram() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendmsg([b"x"], [], 0, ("127.0.0.1", 9))


async def address() -> None:
    socket.gethostbyaddr("127.0.0.1")


async def selecting() -> None:
    select.select([], [], [], 3600)


async def spawned() -> None:
    multiprocessing.get_context("spawn").Process(target=print).start()


REAL: list[Callable[[], Coroutine[Any, Any, None]]] = [
    thread,
    blocking_socket,
    blocking_name,
    server_socket,
    real_sleep,
    child,
    async_child,
    fork,
    descriptor,
    unix_socket,
    handler,
    other_processes,
    foreign_socket,
    datagram,
    address,
    selecting,
    spawned,
]


@pytest.mark.parametrize("work", REAL, ids=lambda each: each.__name__)
def test_what_is_real_is_refused_and_says_who_asked(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    lines, first = inspect.getsourcelines(work)
    with pytest.raises(NotSimulated, match="which is not simulated") as caught:
        run(work())
    assert str(caught.value).startswith(f"{__file__}:{first + len(lines) - 1} asks for a")


def test_outside_of_a_simulation_nothing_is_refused() -> None:
    SimulationLoop().close()
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
    assert subprocess.run(["true"], check=True).returncode == 0


def test_another_thread_may_not_call_in() -> None:
    errors: list[NotSimulated] = []
    begin = threading.Event()

    def call(loop: asyncio.AbstractEventLoop) -> None:
        begin.wait()
        try:
            loop.call_soon_threadsafe(print)
        except NotSimulated as error:
            errors.append(error)

    async def work() -> None:
        begin.set()
        caller.join()

    with asyncio.Runner(loop_factory=SimulationLoop) as runner:
        caller = threading.Thread(target=call, args=(runner.get_loop(),))
        caller.start()
        runner.run(work())
    assert "a call from a thread" in str(errors[0])
