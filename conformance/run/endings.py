"""Base scripts of two ends at a time: while one op that ends something is under way, another one begins.

An op that ends something waits: for the server's answer, for a callback, for the application's word on
messages. Each is begun while each of them waits, so that one which waits for another is met.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, NamedTuple

from conformance.clients.adapter.call import Call
from conformance.run.bases import Base, ScriptContext, base
from fakebrokers.faults import drop

SOON_S = 0.3  #: after which the second one begins
FIRST_S, SECOND_S = 15.0, 5.0  #: the second has less time than the first: it may not wait for its end
OF_THE_SESSION = ("close", "abort")


class Ending(NamedTuple):
    """An op that ends something.

    Attributes:
        name: For the name of the base.
    """

    name: str
    op: str
    args: Mapping[str, Any] = {}


CLOSE = Ending("close", "close")
ABORT = Ending("abort", "abort")


def unsubscribe(sub: str, name: str = "unsubscribe", **more: Any) -> Ending:
    """The end of a subscription."""
    return Ending(name, "unsubscribe", {"sub": sub, **more})


def endings(
    prepare: Callable[[ScriptContext], Awaitable[None]],
    ends: Iterable[Ending],
    *,
    role: str,
    server: Mapping[str, Any] | None = None,
    loses: bool = True,
) -> list[Base]:
    """Bases in which each of some ends comes while each of them is under way.

    Args:
        prepare: Connects, and does what gives the ends something to wait for.
        loses: Whether what the server answers to the first is lost, where that is what it waits for.
    """
    each = [*ends, CLOSE]
    return [_pair(prepare, first, second, role, server, loses) for first in each for second in (*each, ABORT)]


def _pair(
    prepare: Callable[[ScriptContext], Awaitable[None]],
    first: Ending,
    second: Ending,
    role: str,
    server: Mapping[str, Any] | None,
    loses: bool,
) -> Base:
    async def script(context: ScriptContext) -> None:
        """Something is ended while an end is under way."""
        await prepare(context)
        context.notes.silent = loses
        context.notes.abandons = second.op == "abort"
        name = context.broker.faults.add(drop(direction="out")) if loses else ""
        calls = [_begin(context, first, FIRST_S)]
        await context.sleep(SOON_S)
        if loses:
            context.broker.faults.remove(name)
        calls.append(_begin(context, second, SECOND_S))
        await context.ended(calls)
        if {first.op, second.op}.isdisjoint(OF_THE_SESSION):
            await context.close()
        else:
            await context.closed()

    needs = [end.op for end in (first, second) if end.op not in ("close", "unsubscribe")]
    name = f"{second.name}-during-{first.name}"
    return base(role=role, needs=needs, server=server, injections=False, name=name)(script)


def _begin(context: ScriptContext, end: Ending, timeout: float) -> Call:
    if end.op == "close" and context.phase != "close":
        context.mark("close")
    return context.begin(end.op, timeout, **end.args)
