"""What an application does besides its base: it closes, cancels, asks twice, loses its connection meanwhile.

A base says what is done one after the other. Defects of clients live where one thing meets another, so each
of these comes at each op of a base, some turns of the loop after its beginning.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from conformance.run.specs import ConcurrentAction
from fakebrokers.errors import PlanError
from fakebrokers.faults import latency

if TYPE_CHECKING:
    from conformance.run.bases import RunOp, ScriptContext
    from conformance.run.case import Case

TURNS = (0, 1, 2, 4, 8)
HURRY_S, ANSWER_S = 0.1, 0.3  #: an op that takes less time than its answer
FEW_OF_A_KIND = 2  #: ops of the same name in a base
#: Ops that only look at the client, or prepare what it does later.
QUIET = ("state", "stats", "raise_next", "set_clock", "set_counter", "cancel")
#: Ops that are not begun twice: an invariant tells their messages and subscriptions apart by their names.
UNIQUE = ("publish", "publish_many", "subscribe", "connect")


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


def close(context: ScriptContext, done: RunOp, turns: int) -> None:
    """The session is closed."""
    raise EarlyClose(turns)


def cancel(context: ScriptContext, done: RunOp, turns: int) -> None:
    """The op is cancelled."""

    async def work() -> None:
        await pass_turns(turns)
        await context.adapter.cancel(done.call)

    if done.op == "connect":
        context.notes.abandons = True
    context.besides(work())


def twice(context: ScriptContext, done: RunOp, turns: int) -> None:
    """The same op is begun once more."""

    async def work() -> None:
        await pass_turns(turns)
        context.take(done.op, done.args, done.timeout_s)

    if turns:
        context.besides(work())
    else:
        context.take(done.op, done.args, done.timeout_s)


def loss(context: ScriptContext, done: RunOp, turns: int) -> None:
    """All connections are lost."""

    async def work() -> None:
        await pass_turns(turns)
        context.kill("rst")

    if turns:
        context.besides(work())
    else:
        context.kill("rst")


CONCURRENT: dict[str, Callable[[ScriptContext, RunOp, int], None]] = {
    "close": close,
    "cancel": cancel,
    "twice": twice,
    "loss": loss,
}
HURRIED = "hurried"  #: the op has less time than its answer takes


def hurry(context: ScriptContext) -> float:
    """Answers take their time from now on, for a while. Returns what the op is given, seconds."""
    name = context.broker.faults.add(latency(ANSWER_S, direction="out"))

    async def work() -> None:
        await asyncio.sleep(HURRY_S)
        with suppress(PlanError):  # the base may have cleared all faults
            context.broker.faults.remove(name)

    context.besides(work())
    return HURRY_S


def concurrent_actions(case: Case) -> Iterator[tuple[str, str, ConcurrentAction]]:
    """Concurrent actions of a run: what is done, the op that it comes to, and the concurrent action."""
    seen: dict[str, int] = {}
    for number, done in enumerate(case.ops, 1):
        seen[done.op] = seen.get(done.op, 0) + 1
        if done.phase or done.op in QUIET or seen[done.op] > FEW_OF_A_KIND:
            continue
        for what in case.traits.faults.concurrent:
            if what == "twice" and done.op in UNIQUE:
                continue
            for turns in (0,) if what == HURRIED else TURNS:
                yield what, done.op, ConcurrentAction(number, what, turns)
