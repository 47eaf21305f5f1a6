"""What an application does besides its base: it closes, cancels, asks twice, loses its connection meanwhile.

A base says what is done one after the other. Defects of clients live where one thing meets another, so each
of these comes at each op of a base, some turns of the loop after its beginning.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Protocol

from conformance.clients.adapter.base import Adapter
from conformance.clients.adapter.call import Call
from conformance.run.notes import Notes
from fakebrokers.errors import PlanError
from fakebrokers.faults import latency

HURRY_S, ANSWER_S = 0.1, 0.3  #: an op that takes less time than its answer
#: Ops that are not begun twice: an invariant tells their messages and subscriptions apart by their names.
UNIQUE = ("publish", "publish_many", "subscribe", "connect")


class BegunOp(Protocol):
    """The op that something comes at: a `RunOp`."""

    call: Call
    op: str
    args: Mapping[str, Any]
    timeout_s: float


class Application(Protocol):
    """What the application has: a `ScriptContext`."""

    broker: Any
    adapter: Adapter
    notes: Notes

    def take(self, op: str, args: Mapping[str, Any], timeout: float) -> object:
        """Begin an op."""

    def begin(self, op: str, timeout: float = ..., **args: Any) -> Call:
        """Begin an op, as a base does."""

    def besides(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something besides."""

    def kill(self, how: str = "rst") -> None:
        """End all connections."""


class EarlyClose(Exception):
    """A base ends here: the application closes its session while the last op is under way.

    Attributes:
        turns: Of the loop, until it does.
    """

    def __init__(self, turns: int) -> None:
        super().__init__()
        self.turns = turns


async def pass_turns(turns: int) -> None:
    """Let everybody else go on for a while, without any time passing."""
    for _ in range(turns):
        await asyncio.sleep(0)


def close(context: Application, done: BegunOp, turns: int) -> None:
    """The session is closed."""
    raise EarlyClose(turns)


def cancel(context: Application, done: BegunOp, turns: int) -> None:
    """The op is cancelled."""

    async def work() -> None:
        await pass_turns(turns)
        await context.adapter.cancel(done.call)

    if done.op == "connect":
        context.notes.abandons = True
    context.besides(work())


def twice(context: Application, done: BegunOp, turns: int) -> None:
    """The same op is begun once more."""

    async def work() -> None:
        await pass_turns(turns)
        context.take(done.op, done.args, done.timeout_s)

    if turns:
        context.besides(work())
    else:
        context.take(done.op, done.args, done.timeout_s)


def loss(context: Application, done: BegunOp, turns: int) -> None:
    """All connections are lost."""

    async def work() -> None:
        await pass_turns(turns)
        context.kill("rst")

    if turns:
        context.besides(work())
    else:
        context.kill("rst")


CONCURRENT: dict[str, Callable[[Application, BegunOp, int], None]] = {
    "close": close,
    "cancel": cancel,
    "twice": twice,
    "loss": loss,
}
HURRIED = "hurried"  #: the op has less time than its answer takes


def hurry(context: Application) -> float:
    """Answers take their time from now on, for a while. Returns what the op is given, seconds."""
    name = context.broker.faults.add(latency(ANSWER_S, direction="out"))

    async def work() -> None:
        await asyncio.sleep(HURRY_S)
        with suppress(PlanError):  # the base may have cleared all faults
            context.broker.faults.remove(name)

    context.besides(work())
    return HURRY_S


async def give_up_connect(context: Application, **options: Any) -> None:
    """Connect where answers take their time, and cancel that before any has come."""
    context.notes.abandons = True
    name = context.broker.faults.add(latency(ANSWER_S, direction="out"))
    own = context.broker.where
    given = {"session": "s1", "endpoints": own if isinstance(own, dict) else [own], "options": options}
    call = context.begin("connect", 5.0, **given)
    await asyncio.sleep(HURRY_S)
    await context.adapter.cancel(call)
    await call
    with suppress(PlanError):  # what was disturbed before may have cleared all faults
        context.broker.faults.remove(name)
    await asyncio.sleep(2 * ANSWER_S)
