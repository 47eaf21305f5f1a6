"""Calls of other nodes, and the answers to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

from conformance.clients.reference.kit import ClientError, Runtime
from conformance.clients.reference.moleculer.context import Context
from conformance.clients.reference.moleculer.post import Post
from conformance.clients.reference.moleculer.registry import Registry
from conformance.clients.reference.moleculer.settings import Settings
from conformance.clients.reference.moleculer.streams import Incoming, cut, remote

Json = dict[str, Any]


class Upload:
    """What goes up with a call.

    Attributes:
        object_mode: Whether the chunks are objects.
    """

    def __init__(self, chunks: AsyncIterator[Any], *, object_mode: bool = False) -> None:
        self.chunks = chunks
        self.object_mode = object_mode


class Pending:
    """A call without its answer.

    Attributes:
        target: The node that was asked; "" if the bus chose.
        meta: Of the caller, and what answers add to it.
        answered_by: The node that answered.
        incoming: The stream that is the answer, if it is one.
    """

    def __init__(self, target: str, meta: Json) -> None:
        self.target = target
        self.meta = meta
        self.answered_by: str | None = None
        self.incoming: Incoming | None = None
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def succeed(self, data: Any) -> None:
        """It is answered."""
        if not self.answer.done():
            self.answer.set_result(data)

    def fail(self, error: ClientError) -> None:
        """It is not, or its stream breaks."""
        if not self.answer.done():
            self.answer.set_exception(error)
            self.answer.exception()
        if self.incoming is not None:
            self.incoming.end(error)


class Caller:
    """All calls of the node.

    Attributes:
        pending: Those on the wire, by id.
        streams: Answers that still come, by id.
    """

    def __init__(self, runtime: Runtime, settings: Settings, post: Post, registry: Registry) -> None:
        self.pending: dict[str, Pending] = {}
        self.streams: dict[str, Pending] = {}
        self._runtime = runtime
        self._settings = settings
        self._post = post
        self._registry = registry

    async def call(
        self,
        action: str,
        params: Any = None,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        node: str = "",
        upload: Upload | None = None,
        parent: Context | None = None,
    ) -> tuple[Any, Pending]:
        """Call an action; the data (or an `Incoming`), and what is known of the call.

        Raises:
            ClientError: What the other node said, or ``timeout``, ``connection``; nothing is repeated.
        """
        command, rest = self.route(action, node)
        limit = self._settings.timeout_s if timeout is None else timeout
        pending = Pending("" if command == "REQB" else rest, dict(meta or {}))
        packet = self.request(action, params, pending.meta, limit, parent, upload)
        id = str(packet["id"])
        self.pending[id] = pending
        sending: asyncio.Task[None] | None = None
        try:
            self._post.send(command, rest, packet)
            if upload is not None:
                sending = self._runtime.tasks.spawn(self.send_up(command, rest, packet, upload))
            return await self.answer_of(pending, limit), pending
        finally:
            self.pending.pop(id, None)
            if sending is not None and not sending.done():
                sending.cancel()

    def route(self, action: str, node: str) -> tuple[str, str]:
        """Command and rest of the topic. Raises `ClientError` (refused, 404): nobody offers it."""
        known = self._registry.choose(action)
        if node:
            known = node if self._registry.reaches(node, action) else None
        if known is None:
            raise ClientError(
                "refused", f"Service '{action}' is not found.", code=404, type="SERVICE_NOT_FOUND"
            )
        if self._settings.disable_balancer and not node:
            return "REQB", action
        return "REQ", known

    def request(
        self,
        action: str,
        params: Any,
        meta: Json,
        limit_s: float,
        parent: Context | None,
        upload: Upload | None,
    ) -> Json:
        """The REQUEST, in the order in which nodes write it."""
        id = self._post.new_id()
        timeout_ms: float = round(limit_s * 1000)
        if parent is not None and parent.deadline is not None:
            left_ms = max(0.001, (parent.deadline - self._runtime.clock.now()) * 1000)
            timeout_ms = min(left_ms, timeout_ms) if timeout_ms else left_ms
        return {
            "id": id,
            "action": action,
            "params": {} if params is None else params,
            "meta": meta,
            "headers": {"$streamObjectMode": True} if upload is not None and upload.object_mode else {},
            "timeout": timeout_ms,
            "level": 1 if parent is None else parent.level + 1,
            "tracing": None,
            "parentID": None if parent is None else parent.id,
            "requestID": id if parent is None else parent.request_id,
            "caller": None if parent is None else parent.service,
            "stream": upload is not None,
            **({} if upload is None else {"seq": 0}),
        }

    async def answer_of(self, pending: Pending, limit_s: float) -> Any:
        """What comes. Raises `ClientError`."""
        try:
            async with asyncio.timeout(limit_s or None):
                return await asyncio.shield(pending.answer)
        except TimeoutError:
            raise ClientError("timeout", f"no answer within {limit_s:g} s", code=504) from None

    # uploads

    async def send_up(self, command: str, rest: str, opening: Json, upload: Upload) -> None:
        """The chunks, then the end packet, whatever stops them."""
        seq = 0
        later = {**opening, "meta": {}}
        problem = ""
        try:
            async for chunk in upload.chunks:
                for piece in cut(chunk, self._post.chunk_limit):
                    seq += 1
                    self._post.send(command, rest, {**later, "params": piece, "stream": True, "seq": seq})
                    await self._post.drained()
        except asyncio.CancelledError:
            problem = "the call has ended"
            raise
        except Exception as error:  # of the source, or of the connection
            problem = str(error) or "no more of it comes"
        finally:
            flags = dict(later["headers"])
            if problem:
                flags["$streamError"] = {"name": "Error", "message": problem, "code": 500}
            end = {**later, "headers": flags, "params": None, "stream": False, "seq": seq + 1}
            self.send_end(command, rest, end)

    def send_end(self, command: str, rest: str, packet: Json) -> None:
        """The end packet of an upload, if there is still a connection."""
        with suppress(ClientError):
            self._post.send(command, rest, packet)

    # answers

    def response(self, packet: Json) -> None:
        """An answer came, or a packet of a stream that is one."""
        id = str(packet.get("id"))
        streaming = self.streams.get(id)
        if streaming is not None:
            self.chunk(id, streaming, packet)
            return
        pending = self.waiting(id)
        if pending is None:
            self._runtime.callbacks.note("an answer to no open request was dropped")
            return
        self.merge(pending, packet)
        is_refused = packet.get("success") is not True and not packet.get("seq")
        if (packet.get("stream") is True or packet.get("seq")) and not is_refused:
            pending.incoming = self._runtime.part(Incoming)(packet["sender"], "data")
            self.streams[id] = pending
            self.chunk(id, pending, packet)
            return
        self.pending.pop(id, None)
        self.settle(pending, packet)

    def waiting(self, id: str) -> Pending | None:
        """The call that an answer is for."""
        return self.pending.get(id)

    def merge(self, pending: Pending, packet: Json) -> None:
        """Who answers, and the meta that goes back."""
        pending.answered_by = packet["sender"]
        meta = packet.get("meta")
        if isinstance(meta, dict):
            pending.meta.update(meta)

    def settle(self, pending: Pending, packet: Json) -> None:
        """One ordinary answer."""
        success = packet.get("success")
        if success is True:
            pending.succeed(packet.get("data"))
        elif success is False:
            pending.fail(remote(packet.get("error")))
        else:
            pending.fail(ClientError("protocol", f"an answer whose success is {success!r}"))

    def chunk(self, id: str, pending: Pending, packet: Json) -> None:
        """One packet of a stream."""
        assert pending.incoming is not None
        pending.incoming.add(packet)
        opening = pending.incoming.opening
        if opening is not None and opening.get("success") is not True:  # it came after packets of its stream
            pending.incoming.end()
            self.pending.pop(id, None)
            self.settle(pending, opening)
        elif opening is not None:
            pending.succeed(pending.incoming)
        if pending.incoming.is_ended:
            self.streams.pop(id, None)

    # others

    def lost(self, peer: str) -> None:
        """A node is gone: what it was asked fails, what it sends breaks off."""
        for id, pending in [*self.pending.items(), *self.streams.items()]:
            if self.concerns(pending, peer):
                self.pending.pop(id, None)
                self.streams.pop(id, None)
                pending.fail(ClientError("connection", f"the node {peer} is gone", code=503))

    def concerns(self, pending: Pending, peer: str) -> bool:
        """Whether a call waits for that node."""
        return peer in (pending.target, pending.answered_by)

    def end(self) -> None:
        """The node stops: nobody waits any more."""
        for pending in [*self.pending.values(), *self.streams.values()]:
            pending.fail(ClientError("closed", "the node was stopped"))
        self.pending.clear()
        self.streams.clear()
