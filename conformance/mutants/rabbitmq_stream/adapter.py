"""The reference client, or a mutant of it, behind the adapter protocol."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any, ClassVar
from weakref import WeakSet

from conformance.adapter import kit
from conformance.mutants.rabbitmq_stream.client import StreamClient
from conformance.mutants.rabbitmq_stream.connection import Connection
from conformance.mutants.rabbitmq_stream.errors import ClientError
from conformance.mutants.rabbitmq_stream.link import Link
from conformance.mutants.rabbitmq_stream.network import Connect, memory, sockets
from conformance.mutants.rabbitmq_stream.producing import Receipt
from conformance.mutants.rabbitmq_stream.publisher import Publisher
from conformance.mutants.rabbitmq_stream.settings import Settings
from conformance.mutants.rabbitmq_stream.subscription import Message, Start, Subscription
from fakebrokers.rabbitmq_stream.codes import Compression, OffsetType

Json = dict[str, Any]

COMPRESSIONS = {"none": Compression.NONE, "gzip": Compression.GZIP}
OPTIONS = ("user", "password", "vhost", "mechanism", "frame_max", "heartbeat_s", "auto_reconnect")


class StreamAdapter(kit.AdapterBase):
    """Runs in the suite's process or in one of its own; `client` and `connect` are replaced by subclasses.

    Attributes:
        client: The reference client or a mutant of it.
        connect_with: How servers are reached; None: over sockets.
    """

    client: ClassVar[type[StreamClient]] = StreamClient
    connect_with: ClassVar[Connect | None] = None

    adapter = library = "reference-rabbitmq-stream"
    library_version = "1"
    protocols = ("rabbitmq-stream",)
    roles = ("publisher", "consumer", "admin")
    formats = ("raw",)
    callbacks = ("message", "confirm", "session", "error")
    caps = (
        "ack_timeout auto_reconnect callback_raise callback_sleep cancel clock_offset counter_seed crc "
        "dedup endpoints named_publisher offset_without_consumer reentrant retry sac sasl.challenge stats "
        "stop_in_callback subentry tls"
    )

    def __init__(self) -> None:
        super().__init__()
        self._made = 0
        self._clients: WeakSet[StreamClient] = WeakSet()  # those that were replaced may have left something

    # sessions

    @kit.op("connect")
    async def connect(
        self, session: str, endpoints: list[str], options: Any = None, timeout_ms: float | None = None
    ) -> None:
        given: Json = options or {}
        settings = Settings(**{name: given[name] for name in OPTIONS if given.get(name) is not None})
        self._made += 1
        is_heard = given.get("listen", True)
        new = self.client(
            endpoints,
            settings,
            self.connector(given),
            on_session=lambda *what: self.happened(session, is_heard, *what),
            on_error=lambda where, error: self.failed(session, is_heard, where, error),
            on_note=lambda text: self.emit("note", session=session, text=shown(text)),
            seed=self._made,
        )
        self._clients.add(new)
        former = self.sessions.get(session)
        self.sessions[session] = new
        if former is not None and not former.is_closed:
            former.abort()
        await new.connect(seconds(timeout_ms))

    def connector(self, options: Mapping[str, Any]) -> Connect:
        """How to reach servers, with TLS if the options say so."""
        if type(self).connect_with is not None:
            return type(self).connect_with  # type: ignore[return-value]
        tls = options.get("tls")
        if not tls:
            return sockets()
        return sockets(self.client.tls_context(tls.get("ca_file")), tls.get("server_name"))

    @kit.op("close")
    async def close(self, session: str, timeout_ms: float | None = None) -> None:
        await self.session(session).close(seconds(timeout_ms))

    @kit.op("abort")
    async def abort(self, session: str) -> None:
        self.session(session).abort()

    @kit.op("state")
    async def state(self, session: str) -> Json:
        found: StreamClient | None = self.sessions.get(session)
        if found is None:
            return {"open": False, "pending": None}
        return {"open": found.is_open, "pending": found.pending}

    async def clear(self) -> None:
        for client in list(self._clients):
            client.abort()
        self._clients.clear()

    def happened(
        self, session: str, is_heard: bool, what: str, text: str, code: int | None, stream: str | None
    ) -> None:
        """The client's session callback."""
        if is_heard:
            more = {"targets": [shown(stream)]} if stream is not None else {}
            self.emit("session", session=session, what=what, text=shown(text), code=code, **more)
            self.trip("session")

    def failed(self, session: str, is_heard: bool, where: str, error: ClientError) -> None:
        """The client's error callback."""
        if is_heard:
            self.emit("error", session=session, where=where, error=self.classify(error).report())
            self.trip("error")

    # publishing

    @kit.op("publish")
    async def publish(
        self, session: str, target: str, body: Json, request_id: int | None = None, key: Any = None,
        name: str | None = None, wait: bool = True, timeout_ms: float | None = None,
    ) -> Json:  # fmt: skip
        [receipt] = await self.send(
            session, target, [{"body": body, "key": key}], request_id, name, None, wait, timeout_ms
        )
        if not wait:
            return {"outcome": "sent", "key": kit.number(receipt.publishing_id), "meta": {}}
        await receipt.confirmed()
        return {"outcome": "acked", "key": kit.number(receipt.publishing_id), "meta": {}}

    @kit.op("publish_many")
    async def publish_many(
        self, session: str, target: str, messages: list[Json], request_id: int | None = None,
        name: str | None = None, wait: bool = True, subentry: str | None = None,
        timeout_ms: float | None = None,
    ) -> Json:  # fmt: skip
        receipts = await self.send(session, target, messages, request_id, name, subentry, False, timeout_ms)
        if wait:
            await asyncio.wait([receipt.outcome for receipt in receipts])
        outcomes = []
        for receipt in receipts:
            end = outcome(receipt.publishing_id, receipt.outcome.result()) if wait else {"outcome": "sent"}
            outcomes += [end] * receipt.entry.records
        return {"outcomes": outcomes}

    async def send(
        self, session: str, target: str, messages: list[Json], request_id: int | None,
        name: str | None, subentry: str | None, is_quiet: bool, timeout_ms: float | None,
    ) -> list[Receipt]:  # fmt: skip
        """Publish; unless `is_quiet`, each outcome becomes an event."""

        def ended(publishing_id: int, error: ClientError | None) -> None:
            if not is_quiet:
                self.emit("outcome", id=request_id, **outcome(publishing_id, error))
            self.trip("confirm")

        keys = [message.get("key") for message in messages]
        client: StreamClient = self.session(session)
        return await client.publish(
            target,
            [kit.body_bytes(message["body"]) for message in messages],
            name=name,
            ids=[None if key is None else int(key) for key in keys],
            compression=COMPRESSIONS[subentry] if subentry else None,
            timeout=seconds(timeout_ms),
            on_outcome=ended,
        )

    @kit.op("flush")
    async def flush(self, session: str, timeout_ms: float | None = None) -> None:
        await self.session(session).flush(seconds(timeout_ms))

    @kit.op("rmqs.declare_publisher")
    async def declare_publisher(
        self, session: str, target: str, name: str | None = None, timeout_ms: float | None = None
    ) -> None:
        client: StreamClient = self.session(session)
        await client.declared(client.publisher(target, name), client.deadline(seconds(timeout_ms)))

    @kit.op("rmqs.delete_publisher")
    async def delete_publisher(
        self, session: str, target: str, name: str | None = None, timeout_ms: float | None = None
    ) -> None:
        await self.session(session).delete_publisher(target, name, seconds(timeout_ms))

    @kit.op("rmqs.query_sequence")
    async def query_sequence(
        self, session: str, target: str, name: str, timeout_ms: float | None = None
    ) -> Json:
        found = await self.session(session).query_sequence(target, name, seconds(timeout_ms))
        return {"sequence": kit.number(found)}

    # consuming

    @kit.op("subscribe")
    async def subscribe(
        self, session: str, sub: str, target: str, options: Any = None, on_message: Any = None,
        timeout_ms: float | None = None,
    ) -> None:  # fmt: skip
        given: Json = options or {}
        client: StreamClient = self.session(session)
        subscription = kit.Subscription(self, sub, target, on_message)

        async def surfaced(message: Message) -> None:
            at = {"position": str(message.offset), "ts": kit.number(message.timestamp_ms)}
            await subscription.deliver(message.body, **at)

        start = given.get("offset") or {"type": "first"}
        value = None if start.get("value") is None else int(start["value"])
        properties = dict(given.get("properties") or {})
        if given.get("name") is not None:
            properties["name"] = given["name"]
        handle = await client.subscribe(
            target,
            surfaced,
            start=Start(OffsetType[start["type"].upper()], value),
            credit=int(given.get("credit", 10)),
            properties=properties,
            timeout=seconds(timeout_ms),
        )
        subscription.handle = (client, handle)
        self.subs[sub] = subscription

    @kit.op("unsubscribe")
    async def unsubscribe(self, sub: str, drain: bool = False, timeout_ms: float | None = None) -> None:
        client, handle = self.subscription(sub).handle
        await client.unsubscribe(handle, drain=drain, timeout=seconds(timeout_ms))

    @kit.op("rmqs.credit")
    async def credit(self, sub: str, credit: int) -> None:
        client, handle = self.subscription(sub).handle
        client.give_credit(handle, credit)

    @kit.op("rmqs.store_offset")
    async def store_offset(
        self, session: str, target: str, name: str, offset: int | str, timeout_ms: float | None = None
    ) -> None:
        await self.session(session).store_offset(target, name, int(offset), seconds(timeout_ms))

    @kit.op("rmqs.query_offset")
    async def query_offset(
        self, session: str, target: str, name: str, timeout_ms: float | None = None
    ) -> Json:
        found = await self.session(session).query_offset(target, name, seconds(timeout_ms))
        return {"offset": kit.number(found)}

    # streams

    @kit.op("rmqs.create")
    async def create(
        self, session: str, target: str, arguments: Any = None, timeout_ms: float | None = None
    ) -> None:
        await self.session(session).create(target, arguments, seconds(timeout_ms))

    @kit.op("rmqs.delete")
    async def delete(self, session: str, target: str, timeout_ms: float | None = None) -> None:
        await self.session(session).delete(target, seconds(timeout_ms))

    @kit.op("rmqs.metadata")
    async def metadata(self, session: str, targets: list[str], timeout_ms: float | None = None) -> Json:
        client: StreamClient = self.session(session)
        answer = await client.metadata(targets, client.deadline(seconds(timeout_ms)))
        nodes = {broker.reference: f"{broker.host}:{broker.port}" for broker in answer.brokers}
        streams = []
        for name in targets:
            entry = client.entry_of(answer, name)
            row = {"name": name, "exists": entry.code == 1, "code": entry.code}
            replicas = [nodes.get(reference) for reference in entry.replicas]
            streams.append({**row, "leader": nodes.get(entry.leader), "replicas": replicas})
        return {"streams": streams}

    # what tests turn

    @kit.op("set_clock")
    async def set_clock(self, offset_ms: float) -> None:
        for client in self.sessions.values():
            client.wall_offset_s = offset_ms / 1000

    @kit.op("set_counter")
    async def set_counter(self, session: str, which: str, value: int | str) -> None:
        self.session(session).set_counter(which, int(value))

    @kit.op("stats")
    async def stats(self) -> Json:
        clients = list(self._clients)
        return {
            "threads": threading.active_count(),
            "tasks": sum(len(client.tasks) + len(client.subscriptions) for client in clients),
            "timers": sum(client.timers for client in clients),
            "pending": sum(client.pending for client in clients),
            "buffered_bytes": sum(client.buffered_bytes for client in clients),
        }

    def classify(self, error: Exception) -> kit.Failure:
        if isinstance(error, ClientError):
            text = shown(error.text)
            return kit.Failure(error.kind, text, code=error.code, definite=error.definite)
        return super().classify(error)


def outcome(publishing_id: int, error: ClientError | None) -> Json:
    """The end of one message."""
    word = "acked" if error is None else "nacked" if error.definite else "unknown"
    code = None if error is None else error.code
    return {"outcome": word, "key": kit.number(publishing_id), "code": code}


def seconds(timeout_ms: float | None) -> float | None:
    """A time-out as the client wants it."""
    return None if timeout_ms is None else timeout_ms / 1000


def shown(text: str) -> str:
    """Text that fits into a line: what was no UTF-8 on the wire is replaced."""
    return text.encode(errors="replace").decode()


#: What `conformance.mutants.registry` asks for.
REFERENCE = StreamAdapter

PARTS: Mapping[str, type] = {
    "connection_type": Connection,
    "link_type": Link,
    "publisher_type": Publisher,
    "subscription_type": Subscription,
}


def adapter_with(part: type) -> type[StreamAdapter]:
    """The adapter of a client in which one part is replaced; `part` may also be the client itself."""
    client = part
    if not issubclass(part, StreamClient):
        [name] = [name for name, original in PARTS.items() if issubclass(part, original)]
        client = type(part.__name__, (StreamClient,), {name: part})
    return type(part.__name__, (StreamAdapter,), {"client": client})


def in_memory(adapter: type[StreamAdapter]) -> type[StreamAdapter]:
    """The same, for fakes without sockets."""
    return type(adapter.__name__, (adapter,), {"connect_with": memory})
