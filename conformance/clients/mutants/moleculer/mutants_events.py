"""Nodes that send events to the wrong ones, or run the wrong handlers."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from fnmatch import fnmatchcase
from typing import Any

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import Feed
from conformance.clients.reference.moleculer.events import Events, Listener
from conformance.clients.reference.moleculer.registry import Registry

Json = dict[str, Any]


@mutant("emits-to-all", tag="data", breaks=["M6"])
class EmitsToAll(Events):
    """Emits to all listeners of a group."""

    def emit(self, event: str, data: Any, groups: list[str] | None = None) -> None:
        for group, nodes in self._registry.listeners(event).items():
            for node in nodes if groups is None or group in groups else ():
                self._post.send("EVENT", node, self.packet(event, data, groups=[group], broadcast=False))


@mutant("broadcasts-to-one-of-each-group", tag="data", breaks=["M6"])
class BroadcastsToOneOfEachGroup(Events):
    """Broadcasts to one listener of each group."""

    def broadcast(self, event: str, data: Any, groups: list[str] | None = None) -> None:
        for nodes in self._registry.listeners(event).values():
            self._post.send("EVENT", nodes[0], self.packet(event, data, broadcast=True))


@mutant("demands-groups", tag="data", breaks=["M6"])
class DemandsGroups(Events):
    """Drops events without groups."""

    def concerns(self, listener: Listener, name: str, groups: Any) -> bool:
        return isinstance(groups, list) and super().concerns(listener, name, groups)


@mutant("ignores-groups", tag="data", breaks=["M6"])
class IgnoresGroups(Events):
    """Runs handlers whatever the groups are."""

    def concerns(self, listener: Listener, name: str, groups: Any) -> bool:
        return super().concerns(listener, name, None)


@mutant("duplicates-end-the-handlers", tag="life-cycle", breaks=["M6"])
class DuplicatesEndTheHandlers(Events):
    """Handles nothing any more once an event has come twice."""

    last: Any = None

    def event(self, packet: Json) -> None:
        if packet.get("id") == self.last:
            self.listeners.clear()
        self.last = packet.get("id")
        super().event(packet)


@mutant("handler-errors-end-the-handler", tag="life-cycle", breaks=["M6"])
class HandlerErrorsEndTheHandler(Events):
    """Calls a handler never again once it has raised."""

    def listen(self, pattern: str, group: str, handle: Callable[[Json], Awaitable[None]]) -> None:
        async def once(packet: Json) -> None:
            try:
                await handle(packet)
            except Exception:
                self.listeners = [each for each in self.listeners if each.pattern != pattern]

        self.listeners.append(Listener(pattern, group, Feed(self._runtime.feeds, once)))


@mutant("demands-need-ack", tag="wire", breaks=["M9"])
class DemandsNeedAck(Events):
    """Drops events that do not say whether they want an answer."""

    def event(self, packet: Json) -> None:
        if packet["needAck"] is not ...:
            super().event(packet)


@mutant("star-is-greedy", tag="data", breaks=["M6"])
class StarIsGreedy(Events):
    """Lets a star match any number of segments."""

    def concerns(self, listener: Listener, name: str, groups: Any) -> bool:
        return fnmatchcase(name, listener.pattern)


@mutant("broadcasts-over-the-balancer", tag="data", breaks=["M14"])
class BroadcastsOverTheBalancer(Events):
    """Broadcasts to groups where the bus balances, so that one node of each hears it."""

    def broadcast(self, event: str, data: Any, groups: list[str] | None = None) -> None:
        for group in self._registry.listeners(event):
            packet = self.packet(event, data, groups=[group], broadcast=True)
            self._post.send("EVENTB", f"{group}.{event}", packet)


@mutant("dots-fit-everything", tag="data", breaks=["M6"])
class DotsFitEverything(Registry):
    """Takes a dot in the name of an event for any character, when it looks for those who listen to it."""

    def listeners(self, event: str) -> dict[str, list[str]]:
        found = super().listeners(event)
        for peer in self:
            for service in peer.services if peer.available else ():
                for pattern, what in (service.get("events") or {}).items():
                    nodes = found.setdefault((what or {}).get("group") or service["name"], [])
                    if "*" not in pattern and re.fullmatch(pattern, event) and peer.id not in nodes:
                        nodes.append(peer.id)
        return {group: nodes for group, nodes in found.items() if nodes}


@mutant("broadcasts-forget-their-groups", tag="data", breaks=["M6"])
class BroadcastsForgetTheirGroups(Events):
    """Sends a broadcast for some groups to their nodes, and does not say for which groups it is."""

    def packet(self, event: str, data: Any, **fields: Any) -> Json:
        if fields["broadcast"]:
            fields.pop("groups", None)
        return super().packet(event, data, **fields)
