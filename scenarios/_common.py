"""Small steps and questions that all scenarios share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from conformance.suite import Client, Expect
from fakebrokers.core.onlooking import watch_wire
from fakebrokers.core.watch import Watcher
from fakebrokers.faults.match import Direction
from fakebrokers.journal import Record, Tap
from fakebrokers.server import FakeServer

T = TypeVar("T")

DIRECTIONS: tuple[Direction, ...] = ("in", "out")
#: Words of session events that report a loss, or of what a loss leads to.
LOSSES = ("connection_lost", "reconnecting", "reconnected", "disconnected", "target_closed")
#: What runtimes print when no code handles an error.
UNHANDLED = ("unhandled", "uncaught", "panic", "never retrieved")


# the fake


@contextmanager
def second_fake(broker: FakeServer, watcher: Watcher | None = None, **settings: Any) -> Iterator[Any]:
    """Another fake of the same protocol, joined to clients in the same way.

    What it says is in its own journal only; that of `broker` notes that there is such a one.

    Args:
        watcher: Gets what passes between it and its clients.
    """
    broker.call(broker.journal.state, broker.now, "", "second fake")
    other = type(broker)(memory=broker.in_memory, **settings)
    watch_wire(other, watcher)
    other.start()
    try:
        yield other
    finally:
        other.stop()


def address(broker: FakeServer) -> str:
    """Host and port that clients connect to."""
    return f"{broker.host}:{broker.port}"


def received(broker: FakeServer, kind: str, *, since: int = 0, connection: str | None = None) -> list[Record]:
    """Frames of that kind that came from the client after that record of the journal."""
    return broker.journal.select(kind=kind, tap=Tap.RECEIVED, since=since, connection=connection)


def sent(broker: FakeServer, kind: str, *, since: int = 0, connection: str | None = None) -> list[Record]:
    """Frames of that kind that left for the client."""
    return broker.journal.select(kind=kind, tap=Tap.SENT, since=since, connection=connection)


# the client


def maybe_reconnecting(client: Client) -> dict[str, Any]:
    """Options of a connect that reconnects by itself if the library can; some do so only when asked."""
    return {"auto_reconnect": True} if client.can("auto_reconnect") else {}


def outcomes(client: Client, since: int) -> dict[int, str]:
    """The outcomes that came as events after so many events, by the id of the publish."""
    return {e["id"]: e["outcome"] for e in client.events[since:] if e.event == "outcome"}


# time


async def until(condition: Callable[[], object], within_s: float) -> bool:
    """Wait for something that no event reports; returns whether it came."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within_s
    while not condition():
        if loop.time() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True


async def came(expect: Expect, found: Callable[[], Sequence[T]], count: int) -> Sequence[T]:
    """So many messages came in 4 s, by what `found` returns; otherwise the verdict is ``inconclusive``."""
    await until(lambda: len(found()) >= count, 4.0)
    there = found()
    expect.exercised(
        len(there) >= count, f"{len(there)} of {count} messages came in 4 s", id="n-of-n-messages-came-in-n-s"
    )
    return there


def limit_s(deadline_s: float) -> float:
    """How late something that should end after that time may end."""
    return deadline_s * 1.2 + 0.25


async def side_by_side(jobs: Sequence[Callable[[], Awaitable[None]]], width: int = 8) -> None:
    """Run coroutines, so many at once; the first failure ends them all."""
    waiting = list(reversed(jobs))

    async def work() -> None:
        while waiting:
            await waiting.pop()()

    tasks = [asyncio.ensure_future(work()) for _ in range(min(width, len(jobs)))]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
