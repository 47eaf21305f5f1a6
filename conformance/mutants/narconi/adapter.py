"""The reference client, or a mutant of it, behind the adapter protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar

from conformance.adapter import kit
from conformance.mutants.narconi.base import Settings
from conformance.mutants.narconi.client import NarconiClient
from conformance.mutants.narconi.connection import HttpConnection
from conformance.mutants.narconi.consumer import Consumer, Delivery
from conformance.mutants.narconi.errors import ClientError
from conformance.mutants.narconi.http import ResponseReader
from conformance.mutants.narconi.publisher import Publisher
from conformance.mutants.narconi.socket import Socket
from conformance.mutants.narconi.websocket import MessageReader
from conformance.mutants.rabbitmq_stream.network import Connect, memory, sockets

Json = dict[str, Any]


class NarconiAdapter(kit.AdapterBase):
    """Runs in the suite's process or in one of its own; `client` is replaced by subclasses.

    Attributes:
        client: The reference client or a mutant of it.
        connect_with: How servers are reached; None: over sockets.
    """

    client: ClassVar[type[NarconiClient]] = NarconiClient
    connect_with: ClassVar[Connect | None] = None

    adapter = library = "reference-narconi"
    library_version = "1"
    protocols = ("narconi",)
    roles = ("publisher", "consumer", "admin", "http")
    callbacks = ("message", "session", "error")
    settles = "manual"
    caps = (
        "ack_timeout ack_to auto_reconnect callback_raise callback_sleep cancel clock_offset encoding "
        "keepalive reentrant tls"
    )

    def __init__(self) -> None:
        super().__init__()
        self._made = 0
        self._unwatched: set[asyncio.Task[None]] = set()

    # sessions

    @kit.op("connect")
    async def connect(self, session: str, endpoints: list[str], options: Any = None) -> None:
        given: Json = options or {}
        base = str(given.get("base") or endpoints[0])
        settings = Settings(
            endpoint=base.removeprefix("http://").rstrip("/"),
            project=given.get("project", "test"),
            keepalive_s=given.get("keepalive_s"),
            auto_reconnect=bool(given.get("auto_reconnect")),
        )
        is_heard = given.get("listen", True)
        self._made += 1
        former = self.sessions.get(session)
        if former is not None:
            former.abort()
        self.sessions[session] = self.client(
            settings,
            self.connecting(given.get("tls")),
            on_session=lambda *what: self.happened(session, is_heard, *what),
            on_error=lambda where, error: self.failed(session, is_heard, where, error),
            on_note=lambda text: self.emit("note", session=session, text=text),
            seed=self._made,
        )

    def connecting(self, tls: Json | None) -> Connect:
        """How this session reaches its server."""
        if tls:
            return sockets(self.client.tls_context(tls.get("ca_file")), tls.get("server_name"))
        return type(self).connect_with or sockets()

    @kit.op("close")
    async def close(self, session: str, timeout_ms: float | None = None) -> None:
        await self.session(session).close(seconds(timeout_ms))

    @kit.op("abort")
    async def abort(self, session: str) -> None:
        self.session(session).abort()

    @kit.op("state")
    async def state(self, session: str) -> Json:
        found: NarconiClient | None = self.sessions.get(session)
        if found is None:
            return {"open": False, "pending": None}
        return {"open": not found.is_closed, "pending": found.pending}

    async def clear(self) -> None:
        for client in self.sessions.values():
            client.abort()
        for task in self._unwatched:
            task.cancel()

    @kit.op("set_clock")
    async def set_clock(self, offset_ms: float) -> None:
        for client in self.sessions.values():
            client.wall_offset_s = offset_ms / 1000

    def happened(self, session: str, is_heard: bool, what: str, text: str, code: int | None) -> None:
        """The client's session callback."""
        if is_heard:
            self.emit("session", session=session, what=what, text=text, code=code)
            self.trip("session")

    def failed(self, session: str, is_heard: bool, where: str, error: ClientError) -> None:
        """The client's error callback."""
        if is_heard:
            self.emit("error", session=session, where=where, error=self.classify(error).report())
            self.trip("error")

    # HTTP

    @kit.op("narc.ensure_queue")
    async def ensure_queue(self, session: str, target: str, timeout_ms: float | None = None) -> None:
        client: NarconiClient = self.session(session)
        await client.within(seconds(timeout_ms), client.ensure(target))

    @kit.op("narc.delete_queue")
    async def delete_queue(self, session: str, target: str, timeout_ms: float | None = None) -> None:
        client: NarconiClient = self.session(session)
        await client.within(seconds(timeout_ms), client.delete(target))

    @kit.op("narc.post")
    async def post(
        self, session: str, target: str, body: Json, headers: Any = None, timeout_ms: float | None = None
    ) -> Json:
        client: NarconiClient = self.session(session)
        work = client.post(target, kit.body_bytes(body), headers or {})
        await client.within(seconds(timeout_ms), work)
        return {"outcome": "acked", "key": None, "meta": {}}

    @kit.op("narc.take")
    async def take(self, session: str, target: str, timeout_ms: float | None = None) -> Json:
        client: NarconiClient = self.session(session)
        delivery = await client.within(seconds(timeout_ms), client.take(target))
        if delivery is None:
            return {"message": None}
        shape = {"ref": self.next_ref(), "sub": "", "target": target, "body": kit.report_body(delivery.body)}
        return {"message": {**shape, **details(delivery), "meta": {}}}

    # WebSockets

    @kit.op("publish")
    async def publish(
        self, session: str, target: str, body: Json, headers: Any = None, timeout_ms: float | None = None,
        wait: bool = True, request_id: int | None = None,
    ) -> Json:  # fmt: skip
        client: NarconiClient = self.session(session)
        work = client.within(seconds(timeout_ms), client.publish(target, kit.body_bytes(body), headers or {}))
        if not wait:
            task = asyncio.get_running_loop().create_task(self._later(work, request_id))
            self._unwatched.add(task)
            task.add_done_callback(self._unwatched.discard)
            return {"outcome": "sent", "key": None, "meta": {}}
        await work
        return {"outcome": "acked", "key": None, "meta": {}}

    async def _later(self, work: Any, request_id: int | None) -> None:
        try:
            await work
        except ClientError as error:
            word = "nacked" if error.definite else "unknown"
            self.emit("outcome", id=request_id, outcome=word, key=None, code=error.code)
        else:
            self.emit("outcome", id=request_id, outcome="acked", key=None, code=None)

    @kit.op("subscribe")
    async def subscribe(
        self, session: str, sub: str, target: str, options: Any = None, on_message: Any = None,
        timeout_ms: float | None = None,
    ) -> None:  # fmt: skip
        given: Json = options or {}
        client: NarconiClient = self.session(session)
        subscription = kit.Subscription(self, sub, target, on_message)

        async def surfaced(delivery: Delivery) -> None:
            await subscription.deliver(delivery.body, native=delivery, **details(delivery))

        self.subs[sub] = subscription
        work = client.subscribe(
            target,
            surfaced,
            ack=bool(given.get("ack")),
            limit=given.get("limit"),
            encoding=given.get("encoding"),
        )
        subscription.handle = await client.within(seconds(timeout_ms), work)

    @kit.op("settle")
    async def settle(self, sub: str, ref: str, how: str = "ack") -> None:
        subscription = self.subscription(sub)
        delivery: Delivery | None = subscription.native.get(ref)
        if delivery is None or delivery.source is None or not delivery.ack_id or how == "nack":
            raise kit.Failure("invalid", f"nothing to {how}")
        if how == "ack_to":
            delivery.source.settle_to(delivery.ack_id)
        else:
            delivery.source.settle(delivery.ack_id)

    @kit.op("unsubscribe")
    async def unsubscribe(self, sub: str, drain: bool = False, timeout_ms: float | None = None) -> None:
        handle = self.subscription(sub).handle
        if drain and handle.socket.is_open:
            try:
                await asyncio.wait_for(handle.drain(), seconds(timeout_ms))
            except TimeoutError:
                handle.abort()
                raise ClientError("timeout", "deliveries wait for their acknowledgement") from None
        await handle.close()

    def classify(self, error: Exception) -> kit.Failure:
        if isinstance(error, ClientError):
            return kit.Failure(error.kind, error.text, code=error.code, definite=error.definite)
        return super().classify(error)


def details(delivery: Delivery) -> Json:
    """A delivery as the runner wants it."""
    return {
        "headers": delivery.headers,
        "redelivered": delivery.redelivered,
        "ts": delivery.timestamp,
        "position": delivery.ack_id,
    }


def seconds(timeout_ms: float | None) -> float | None:
    """A time-out as the client wants it."""
    return None if timeout_ms is None else timeout_ms / 1000


#: What `conformance.mutants.registry` asks for.
REFERENCE = NarconiAdapter

PARTS: Mapping[str, type] = {
    "http_part": HttpConnection,
    "socket_part": Socket,
    "publisher_part": Publisher,
    "consumer_part": Consumer,
}


def adapter_with(part: type) -> type[NarconiAdapter]:
    """The adapter of a client in which one part is replaced; `part` may also be the client itself."""
    client = part
    if issubclass(part, ResponseReader):
        part = type(part.__name__, (HttpConnection,), {"reader_part": part})
    elif issubclass(part, MessageReader):
        part = type(part.__name__, (Socket,), {"reader_part": part})
    if not issubclass(part, NarconiClient):
        [name] = [name for name, original in PARTS.items() if issubclass(part, original)]
        client = type(part.__name__, (NarconiClient,), {name: part})
    return type(part.__name__, (NarconiAdapter,), {"client": client})


def in_memory(adapter: type[NarconiAdapter]) -> type[NarconiAdapter]:
    """The same, for fakes without sockets."""
    return type(adapter.__name__, (adapter,), {"connect_with": staticmethod(memory)})
