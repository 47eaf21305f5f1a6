"""Events: sent to those who listen, and handed to the node's own listeners."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from conformance.clients.reference.kit import Feed, Runtime
from conformance.clients.reference.moleculer.post import Post
from conformance.clients.reference.moleculer.registry import Registry, fits
from conformance.clients.reference.moleculer.settings import Settings

Json = dict[str, Any]


@dataclass
class Listener:
    """A handler of the node's own."""

    pattern: str
    group: str
    feed: Feed[Json]


class Events:
    """Both ways of events."""

    def __init__(self, runtime: Runtime, settings: Settings, post: Post, registry: Registry) -> None:
        self.listeners: list[Listener] = []
        self._runtime = runtime
        self._settings = settings
        self._post = post
        self._registry = registry

    def listen(self, pattern: str, group: str, handle: Callable[[Json], Awaitable[None]]) -> None:
        """Hand the packets of events that fit to `handle`, one after the other."""

        async def contained(packet: Json) -> None:
            await self._runtime.callbacks.contain_async("message", lambda: handle(packet))

        self.listeners.append(Listener(pattern, group, Feed(self._runtime.feeds, contained)))

    # sending

    def emit(self, event: str, data: Any, groups: list[str] | None = None) -> None:
        """To one listener of each group."""
        there = self._registry.listeners(event)
        wanted = [group for group in there if groups is None or group in groups]
        if self._settings.disable_balancer:
            id = self._post.new_id()
            for group in wanted:
                packet = self.packet(event, data, groups=[group], broadcast=False, id=id)
                self._post.send("EVENTB", f"{group}.{event}", packet)
            return
        chosen: dict[str, list[str]] = {}
        for group in wanted:
            node = self._registry.next_of(f"{group}/{event}", there[group])
            if node is not None:
                chosen.setdefault(node, []).append(group)
        for node, own in chosen.items():
            self._post.send("EVENT", node, self.packet(event, data, groups=own, broadcast=False))

    def broadcast(self, event: str, data: Any, groups: list[str] | None = None) -> None:
        """To all listeners."""
        there = self._registry.listeners(event)
        nodes = dict.fromkeys(
            node for group, ids in there.items() for node in ids if groups is None or group in groups
        )
        more: Json = {} if groups is None else {"groups": groups}
        for node in nodes:
            self._post.send("EVENT", node, self.packet(event, data, broadcast=True, **more))

    def packet(self, event: str, data: Any, **fields: Any) -> Json:
        """The EVENT."""
        id = self._post.new_id()
        return {
            "id": id,
            "event": event,
            "data": data,
            "meta": {},
            "headers": {},
            "level": 1,
            "tracing": None,
            "parentID": None,
            "requestID": id,
            "caller": None,
            "needAck": None,
            **fields,
        }

    # receiving

    def event(self, packet: Json) -> None:
        """An event came: every handler that fits gets it."""
        name, groups = packet.get("event"), packet.get("groups")
        if not isinstance(name, str):
            return
        for listener in self.listeners:
            if self.concerns(listener, name, groups):
                listener.feed.put(packet)

    def concerns(self, listener: Listener, name: str, groups: Any) -> bool:
        """Whether a handler gets an event."""
        in_group = not isinstance(groups, list) or not groups or listener.group in groups
        return in_group and fits(listener.pattern, name)
