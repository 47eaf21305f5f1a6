"""The services of the node, and the requests to them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from conformance.clients.reference.kit import ClientError, Runtime
from conformance.clients.reference.kit.ordered import OrderedSet
from conformance.clients.reference.moleculer.caller import Upload
from conformance.clients.reference.moleculer.context import Context, error_object, not_found, timed_out
from conformance.clients.reference.moleculer.post import Post
from conformance.clients.reference.moleculer.settings import Settings
from conformance.clients.reference.moleculer.streams import Incoming, cut, flags_of

Json = dict[str, Any]
Handler = Callable[[Context], Awaitable[Any]]
REMEMBERED = 1000  #: uploads that have ended


@dataclass
class Service:
    """What the node offers under one name.

    Attributes:
        events: By pattern, the group of the listener ("" for the service's name).
        stop_s: How long it takes to stop.
    """

    name: str
    actions: Mapping[str, Handler] = field(default_factory=dict)
    events: Mapping[str, str] = field(default_factory=dict)
    stop_s: float = 0.0

    def info(self) -> Json:
        """Its part of an INFO."""
        names = {f"{self.name}.{raw}": raw for raw in self.actions}
        events = {
            pattern: {"name": pattern, **({"group": group} if group else {})}
            for pattern, group in self.events.items()
        }
        return {
            "name": self.name,
            "fullName": self.name,
            "settings": {},
            "metadata": {},
            "actions": {name: {"rawName": raw, "name": name} for name, raw in names.items()},
            "events": events,
        }


class Server:
    """Answers requests.

    Attributes:
        services: By name.
        running: The requests that are being answered.
    """

    def __init__(self, runtime: Runtime, settings: Settings, post: Post) -> None:
        self.services: dict[str, Service] = {}
        self.running: OrderedSet[asyncio.Task[None]] = OrderedSet()
        self._runtime = runtime
        self._settings = settings
        self._post = post
        self._uploads: dict[str, Incoming] = {}
        self._ended: deque[str] = deque(maxlen=REMEMBERED)
        self.call: Callable[[Context, str, Any], Awaitable[Any]] | None = None

    def find(self, action: Any) -> tuple[Service, Handler] | None:
        """The service and the handler of an action."""
        if not isinstance(action, str):
            return None
        name, _, raw = action.rpartition(".")
        service = self.services.get(name)
        return None if service is None or raw not in service.actions else (service, service.actions[raw])

    # requests

    def request(self, packet: Json) -> None:
        """A request came, or a packet of an upload."""
        if not isinstance(packet.get("id"), str):
            raise ClientError("protocol", "a REQUEST without an id")
        if packet.get("stream") is True or packet.get("seq"):
            self.upload(packet)
        else:
            self.begin(packet, None)

    def upload(self, packet: Json) -> None:
        """One packet of an upload; the action begins with the opening one."""
        id = packet["id"]
        if self.has_ended(id):
            self._runtime.callbacks.note("a chunk after the end of its upload was dropped")
            return
        there = self._uploads.get(id)
        new = self._runtime.part(Incoming)
        incoming = there or self._uploads.setdefault(id, new(packet["sender"], "params"))
        was_open = incoming.opening is not None
        incoming.add(packet)
        if incoming.opening is not None and not was_open:
            self.begin(incoming.opening, incoming)
        if incoming.is_ended:
            del self._uploads[id]
            self._ended.append(id)

    def has_ended(self, id: str) -> bool:
        """Whether that upload is over."""
        return id in self._ended

    def begin(self, packet: Json, stream: Incoming | None) -> None:
        """Run the action in the background."""
        task = self._runtime.tasks.spawn(self.answer(packet, stream))
        self.running.add(task)
        task.add_done_callback(self.running.discard)

    async def answer(self, packet: Json, stream: Incoming | None) -> None:
        """Run the action and send what comes of it."""
        found = self.find(packet.get("action"))
        if found is None:
            error = error_object(
                not_found(packet.get("action"), self._settings.node_id), self._settings.node_id
            )
            self.reply(packet, {"meta": {}, "headers": None, "success": False, "data": None, "error": error})
            return
        service, handler = found
        context = self.context(packet, service, stream)
        try:
            result = await self.result_of(context, handler)
        except Exception as error:
            self.refuse(packet, context, error)
            return
        if isinstance(result, Upload):
            await self.send_down(packet, context, result)
        else:
            self.accept(packet, context, result)

    def context(self, packet: Json, service: Service, stream: Incoming | None) -> Context:
        """What the action gets."""
        meta, timeout = packet.get("meta"), packet.get("timeout")
        limited = isinstance(timeout, int | float) and timeout > 0
        level = packet.get("level")
        return Context(
            id=packet["id"],
            action=packet["action"],
            service=service.name,
            params=packet.get("params"),
            meta=dict(meta) if isinstance(meta, dict) else {},
            sender=packet["sender"],
            level=level if isinstance(level, int) else 1,
            request_id=str(packet.get("requestID") or packet["id"]),
            deadline=self._runtime.clock.now() + timeout / 1000 if limited and timeout else None,
            stream=stream,
            call=self.call,
            headers=dict(flags_of(packet)),
        )

    async def result_of(self, context: Context, handler: Handler) -> Any:
        """What the action gives, by the caller's deadline."""
        try:
            async with asyncio.timeout_at(self.deadline_of(context)):
                return await handler(context)
        except TimeoutError:
            raise timed_out(context.action, self._settings.node_id) from None

    def deadline_of(self, context: Context) -> float | None:
        """When nobody waits for the answer any more, on the loop's clock."""
        return None if context.deadline is None else self._runtime.clock.loop_time(context.deadline)

    # answers

    def accept(self, packet: Json, context: Context, data: Any) -> None:
        """The action has worked."""
        self.reply(packet, {"meta": context.meta, "headers": {}, "success": True, "data": data})

    def refuse(self, packet: Json, context: Context, error: Exception) -> None:
        """The action has failed."""
        shown = error_object(error, self._settings.node_id)
        fields = {"meta": context.meta, "headers": {}, "success": False, "data": None, "error": shown}
        self.reply(packet, fields)

    def reply(self, packet: Json, fields: Json) -> None:
        """Send a RESPONSE; one that does not fit becomes an error."""
        try:
            self._post.send("RES", packet["sender"], {"id": packet["id"], **fields})
        except ClientError as error:
            if error.kind != "invalid":
                self._runtime.callbacks.trouble("write", error)
                return
            shown = error_object(error, self._settings.node_id)
            short = {"meta": {}, "headers": {}, "success": False, "data": None, "error": shown}
            self._post.send("RES", packet["sender"], {"id": packet["id"], **short})

    async def send_down(self, packet: Json, context: Context, stream: Upload) -> None:
        """Answer with a stream."""
        headers = {"$streamObjectMode": True} if stream.object_mode else {}
        usual = {"meta": context.meta, "headers": headers, "success": True, "data": None}
        seq = 0
        self.reply(packet, {**usual, "stream": True, "seq": seq})
        end: Json = {"stream": False}
        try:
            async for piece in self.pieces(stream):
                seq += 1
                self.reply(packet, {**usual, "data": piece, "stream": True, "seq": seq})
                await self._post.drained()
        except Exception as error:
            end = {"stream": False, "success": False, "error": error_object(error, self._settings.node_id)}
        self.reply(packet, {**usual, **end, "seq": seq + 1})

    async def pieces(self, stream: Upload) -> AsyncIterator[Any]:
        """The chunks, none larger than a packet takes."""
        async for chunk in stream.chunks:
            for piece in cut(chunk, self._post.chunk_limit):
                yield piece

    # the end of others, and of the node

    def lost(self, peer: str) -> None:
        """A node is gone, and with it the rest of what it was sending."""
        for id, incoming in list(self._uploads.items()):
            if incoming.sender == peer:
                del self._uploads[id]
                self._ended.append(id)
                incoming.end(ClientError("connection", f"the node {peer} is gone"))

    async def finished(self, timeout_s: float) -> None:
        """What runs has been answered, or the time is up."""
        deadline = self._runtime.clock.now() + timeout_s
        while self.running and (left_s := deadline - self._runtime.clock.now()) > 0:
            await asyncio.wait(tuple(self.running), timeout=left_s)  # others may have come meanwhile

    async def stopped(self) -> None:
        """All services have stopped."""
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(max((service.stop_s for service in self.services.values()), default=0.0))
