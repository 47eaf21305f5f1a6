"""Several threads start and stop one fake: each call does its work or says why not; nothing is left."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest

from fakebrokers.errors import UsageError
from fakebrokers.protocol import find_protocol
from fakebrokers.server import FakeServer
from tests.eventually import PATIENCE_S
from tests.toy import Toy


def hammer(fake: FakeServer, rounds: int, threads: int = 4) -> list[BaseException]:
    """Errors of threads that stop and start the fake again and again."""
    errors: list[BaseException] = []

    def work() -> None:
        for _ in range(rounds):
            try:
                fake.stop()
                fake.start()
            except BaseException as error:
                errors.append(error)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(PATIENCE_S)
    assert not any(worker.is_alive() for worker in workers)
    return errors


@pytest.mark.parametrize(
    ("protocol", "options"),
    [
        ("rabbitmq-stream", {"management": True}),
        ("pzq", {"proxied": True}),
        ("narconi", {}),
        ("moleculer", {}),
    ],
    ids=str,
)
def test_four_threads_stop_and_start_one_fake(protocol: str, options: dict[str, Any]) -> None:
    fake = find_protocol(protocol).load()(**options).start()
    errors = hammer(fake, 15)
    assert {type(error) for error in errors} <= {UsageError}
    assert {str(error).partition(",")[0] for error in errors} <= {f"this {protocol} fake runs already"}
    if fake.runs:
        socket.create_connection(("127.0.0.1", fake.port), timeout=PATIENCE_S).close()
    fake.stop()
    fake.check()
    assert not fake.runs
    socket.create_server(("127.0.0.1", fake.port)).close()


def test_every_call_either_starts_it_or_says_that_it_runs() -> None:
    for _ in range(20):
        toy = Toy()
        said: list[str] = []
        barrier = threading.Barrier(4)

        def start(toy: Toy = toy, said: list[str] = said, barrier: threading.Barrier = barrier) -> None:
            barrier.wait(PATIENCE_S)
            try:
                toy.start()
                said.append("started")
            except UsageError as error:
                said.append(str(error).partition(",")[0])

        workers = [threading.Thread(target=start) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(PATIENCE_S)
        assert sorted(said) == ["started", *["this toy fake runs already"] * 3]
        toy.stop()


def test_a_fake_may_be_stopped_on_its_own_thread_while_another_thread_does_so() -> None:
    """The other one waits for that thread, which must not wait for the other one in turn."""
    toy = Toy().start()
    other = threading.Thread(target=toy.stop)

    def stop_here() -> None:
        other.start()
        other.join(0.1)  # it has its turn now, and waits
        toy.stop()

    done = threading.Thread(target=toy.call, args=(stop_here,), daemon=True)
    done.start()
    done.join(PATIENCE_S)
    other.join(PATIENCE_S)
    assert not (done.is_alive() or other.is_alive() or toy.runs)
    socket.create_server(("127.0.0.1", toy.port)).close()
