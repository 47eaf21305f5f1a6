"""The loop of a simulation: time that costs nothing, and an error for whatever would be real."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import multiprocessing
import os
import queue
import random
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from socket import socketpair as imported_socketpair
from threading import Lock as imported_lock
from time import sleep as imported_sleep
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


def test_timers_for_one_time_come_in_the_order_in_which_they_were_set() -> None:
    async def work() -> list[int]:
        loop, seen = asyncio.get_running_loop(), list[int]()
        for number in range(20):
            loop.call_at(2.0, seen.append, number)
            loop.call_at(1.0 - number / 100, int)  # each comes to the top of the heap
        await asyncio.sleep(3)
        return seen

    assert run(work()) == list(range(20))


def test_what_ends_the_program_leaves_the_rest_of_the_turn_for_the_next() -> None:
    seen: list[object] = []

    def leave() -> None:
        raise SystemExit(3)

    def fail(what: str) -> None:
        raise ValueError(what)

    loop = SimulationLoop()
    loop.set_exception_handler(
        lambda _, about: seen.append((about["message"][:27], repr(about["exception"])))
    )
    with contextlib.closing(loop):
        loop.call_soon(fail, "first")
        loop.call_soon(leave)
        loop.call_soon(seen.append, "after")
        cancelled = loop.call_soon(seen.append, "never")
        cancelled.cancel()
        with pytest.raises(SystemExit):
            loop.run_forever()
        reported = [("Exception in callback test_", "ValueError('first')")]
        assert seen == reported
        loop.call_soon(loop.stop)
        loop.run_forever()
        assert seen == [*reported, "after"]
        assert cancelled.cancelled()


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


async def imported_real_sleep() -> None:
    imported_sleep(3600)


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
    ProcessPoolExecutor()


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


async def pair() -> None:
    socket.socketpair()


async def imported_pair() -> None:
    imported_socketpair()


async def pipe() -> None:
    os.pipe()


async def polled() -> None:
    select.poll()


async def person() -> None:
    input()


async def second_loop() -> None:
    asyncio.new_event_loop()


async def second_loop_by_its_class() -> None:
    asyncio.SelectorEventLoop()


async def second_loop_in_a_thread() -> None:
    with contextlib.closing(asyncio.sleep(0)) as work:
        await asyncio.to_thread(lambda: asyncio.run(work))


async def lock() -> None:
    taken = threading.Lock()
    taken.acquire()
    taken.acquire()


async def lock_with_a_limit() -> None:
    taken = imported_lock()
    taken.acquire()
    taken.acquire(timeout=3600)


async def event_from_before() -> None:
    EVENT.wait()


async def condition() -> None:
    with CONDITION:
        CONDITION.wait(3600)


async def semaphore() -> None:
    threading.Semaphore(0).acquire()


async def barrier() -> None:
    threading.Barrier(2).wait()


async def queue_from_before() -> None:
    QUEUE.get()


async def full_queue() -> None:
    full: queue.Queue[int] = queue.Queue(1)
    full.put(1)
    full.put(2, timeout=3600)


async def simple_queue() -> None:
    queue.SimpleQueue().get()


async def result_of_a_thread() -> None:
    Future().result()


async def wait_in_a_thread() -> None:
    await asyncio.to_thread(lambda: EVENT.wait(3600))


EVENT, CONDITION, QUEUE = threading.Event(), threading.Condition(), queue.Queue[int]()

REAL: list[Callable[[], Coroutine[Any, Any, None]]] = [
    thread,
    blocking_socket,
    blocking_name,
    server_socket,
    real_sleep,
    imported_real_sleep,
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
    pair,
    imported_pair,
    pipe,
    polled,
    person,
    second_loop,
    second_loop_by_its_class,
    second_loop_in_a_thread,
    lock,
    lock_with_a_limit,
    event_from_before,
    condition,
    semaphore,
    barrier,
    queue_from_before,
    full_queue,
    simple_queue,
    result_of_a_thread,
    wait_in_a_thread,
]


@pytest.mark.parametrize("work", REAL, ids=lambda each: each.__name__)
def test_what_is_real_is_refused_and_says_who_asked(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    lines, first = inspect.getsourcelines(work)
    with pytest.raises(NotSimulated, match="which is not simulated") as caught:
        run(work())
    assert str(caught.value).startswith(f"{__file__}:{first + len(lines) - 1} asks for a")


def test_processes_of_an_executor_from_before_are_refused() -> None:
    async def work() -> None:
        await asyncio.get_running_loop().run_in_executor(pool, print)

    with ProcessPoolExecutor() as pool, pytest.raises(NotSimulated, match="asks for a child process"):
        run(work())


def needs(name: str) -> Any:
    return pytest.importorskip(name, reason=f"missing: {name} (pip install {name})")


def test_libzmq_is_refused_though_it_asks_python_for_nothing() -> None:
    zmq = needs("zmq")

    async def context() -> None:
        zmq.Context()

    async def context_from_before() -> None:
        before.socket(zmq.REQ)

    with zmq.Context() as before:
        for work in (context, context_from_before):
            with pytest.raises(NotSimulated, match=rf"{__file__}:\d+ asks for libzmq"):
                run(work())
        before.socket(zmq.REQ).close()  # outside it is what it was


def test_a_library_that_is_imported_in_a_simulation_is_refused_too(tmp_path: Path) -> None:
    needs("zmq")
    script = tmp_path / "late.py"
    script.write_text(LATE)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"NotSimulated: {script}:6 asks for libzmq" in done.stderr


LATE = """
from fakebrokers.simulation import Simulation

async def main():
    import zmq
    zmq.Context()

with Simulation() as simulation:
    simulation.run(main())
"""


def test_a_loop_in_c_is_refused() -> None:
    uvloop = needs("uvloop")

    async def work() -> None:
        uvloop.new_event_loop()

    with pytest.raises(NotSimulated, match="asks for a second event loop"):
        run(work())
    uvloop.new_event_loop().close()


def test_locks_and_queues_that_need_not_wait_work() -> None:
    async def work() -> list[object]:
        taken, event, items = threading.Lock(), threading.Event(), queue.Queue[str]()
        simple = queue.SimpleQueue[str]()
        with taken:
            held = [taken.locked(), taken.acquire(blocking=False), taken.acquire(timeout=0)]
        event.set()
        items.put("tea")
        simple.put("milk")
        with pytest.raises(queue.Empty):
            queue.Queue[str]().get(block=False)
        condition, again = threading.Condition(taken), threading.RLock()
        with condition, again:
            await asyncio.to_thread(event.wait)
        return [*held, event.wait(), items.get(), simple.get(), taken.locked()]

    assert run(work()) == [True, False, False, True, "tea", "milk", False]


def test_what_is_made_in_a_simulation_is_real_outside() -> None:
    async def make() -> tuple[Any, Any]:
        return threading.Lock(), queue.SimpleQueue[str]()

    taken, items = run(make())
    taken.acquire()
    giver = threading.Timer(0, lambda: (taken.release(), items.put("tea")))
    giver.start()
    assert taken.acquire()
    assert items.get() == "tea"
    giver.join()
    assert type(threading.Lock()) is LOCK
    assert type(queue.SimpleQueue()) is SIMPLE


LOCK, SIMPLE = type(threading.Lock()), queue.SimpleQueue


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
