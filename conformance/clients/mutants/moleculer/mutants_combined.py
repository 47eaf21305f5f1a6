"""Defects where two things meet: options of one event, listeners of which one raises."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import Feed
from conformance.clients.reference.moleculer.events import Events

Json = dict[str, Any]


@mutant("broadcasts-are-for-all-groups", tag="data", breaks=["M6"])
class BroadcastsAreForAllGroups(Events):
    """Runs all listeners at a broadcast, also at one that names groups."""

    def event(self, packet: Json) -> None:
        super().event({**packet, "groups": None} if packet.get("broadcast") is True else packet)


@mutant("first-failure-ends-an-event", tag="data", breaks=["M6", "X10"])
class FirstFailureEndsAnEvent(Events):
    """Runs the listeners of an event one after the other, up to the first that raises."""

    def listen(self, pattern: str, group: str, handle: Callable[[Json], Awaitable[None]]) -> None:
        super().listen(pattern, group, handle)
        self.__dict__.setdefault("handles", []).append((self.listeners[-1], handle))

    def event(self, packet: Json) -> None:
        async def run_all(packet: Json) -> None:
            for listener, handle in self.__dict__.get("handles", ()):
                if self.concerns(listener, packet["event"], packet.get("groups")):
                    await handle(packet)

        async def contained(packet: Json) -> None:
            await self._runtime.callbacks.contain_async("message", lambda: run_all(packet))

        feed = self.__dict__.setdefault("feed", Feed(self._runtime.feeds, contained))
        if isinstance(packet.get("event"), str):
            feed.put(packet)
