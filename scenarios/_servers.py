"""Two servers of which the client knows both addresses, in the sweep."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

from conformance.run.bases import ScriptContext
from conformance.run.trace import Trace
from fakebrokers.core.watch import End
from scenarios._common import second_fake

SECOND = "second-"  #: what the names of connections of the second server begin with
AWAY_S = 60.0  #: in which a client has found the other server, or this one again


class SecondInTrace:
    """Notes a second server in the trace of a run, its connections under names of their own."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def accepted(self, connection: str, socket: str = "") -> None:
        self._trace.accepted(SECOND + connection, socket)

    def written(self, connection: str, data: Any) -> None:
        self._trace.written(SECOND + connection, data)

    def handed_over(self, connection: str, data: Any) -> None:
        self._trace.handed_over(SECOND + connection, data)

    def reads(self, connection: str, goes_on: bool) -> None:
        self._trace.reads(SECOND + connection, goes_on)

    def ended(self, connection: str, by: End, how: str) -> None:
        self._trace.ended(SECOND + connection, by, how)


@contextmanager
def second_server(context: ScriptContext, **settings: Any) -> Iterator[Any]:
    """Another server, which the trace has too."""
    with second_fake(context.broker, watcher=SecondInTrace(context.trace), **settings) as other:
        yield other


async def in_turns(context: ScriptContext, other: Any, turns: int) -> AsyncIterator[int]:
    """One server is away, then the other one, and so on, each back before the next one goes.

    The last one stays away: so a client that tries the addresses only from the last one on, only the first
    one, or only those that have worked, has none.

    Yields:
        The number of each turn, when the client had the time to find the server that is there.
    """
    context.notes.unreachable = True
    for turn in range(turns):
        server, prefix = (other, SECOND) if turn % 2 else (context.broker, "")
        context.killed.update(prefix + name for name in server.engine.connections)
        server.crash()
        await context.sleep(AWAY_S)
        yield turn
        if turn < turns - 1:
            server.restart()
            await context.sleep(1)
