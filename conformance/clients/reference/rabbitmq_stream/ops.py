"""The ops of RabbitMQ Stream."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from conformance.clients.adapter import kit
from conformance.clients.reference.kit import ClientError, Reference, ReferenceAdapter, Runtime, seconds
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.publisher import FilterValue
from conformance.clients.reference.rabbitmq_stream.publishing import Receipt
from conformance.clients.reference.rabbitmq_stream.settings import Settings
from conformance.clients.reference.rabbitmq_stream.subscription import (
    Accepts,
    Message,
    Start,
    Subscription,
    Track,
)
from fakebrokers.rabbitmq_stream.codes import Compression, OffsetType

Json = dict[str, Any]

COMPRESSIONS = {"none": Compression.NONE, "gzip": Compression.GZIP}
EVERY = 10_000  #: messages between two offsets that the library stores
OPTIONS = ("user", "password", "vhost", "mechanism", "frame_max", "heartbeat_s", "auto_reconnect")


class StreamOps:
    """What the adapter does for RabbitMQ Stream only."""

    def __init__(self, adapter: ReferenceAdapter) -> None:
        self.adapter = adapter

    def client(self, runtime: Runtime, endpoints: Any, options: Mapping[str, Any]) -> StreamClient:
        given = {name: options[name] for name in OPTIONS if options.get(name) is not None}
        return runtime.part(StreamClient)(runtime, endpoints, Settings(**given))

    def session(self, name: str) -> StreamClient:
        """The client of a session."""
        found: StreamClient = self.adapter.session(name)
        return found

    # publishing

    @kit.op("publish")
    async def publish(
        self, session: str, target: str, body: Json, request_id: int | None = None, key: Any = None,
        name: str | None = None, wait: bool = True, timeout_ms: float | None = None,
        routing: Json | None = None, filtered: bool = False,
    ) -> Json:  # fmt: skip
        value = kit.filter_value(kit.body_bytes(body)) if filtered else UNSET
        clock = self.session(session).runtime.clock
        deadline = clock.deadline(seconds(timeout_ms))
        messages = [{"body": body, "key": key}]
        receipts: list[Receipt] = []
        for stream in await self.streams(session, target, routing, timeout_ms):
            left_ms = (deadline - clock.now()) * 1000
            receipts += await self.send(
                session, stream, messages, request_id, name, None, wait, left_ms, value
            )
        for receipt in receipts if wait else ():
            await receipt.confirmed()
        word = "acked" if wait else "sent"
        return {"outcome": word, "key": kit.number(receipts[0].publishing_id), "meta": {}}

    async def streams(
        self, session: str, target: str, routing: Json | None, timeout_ms: float | None
    ) -> list[str]:
        """The streams that a message goes to."""
        if routing is None:
            return [target]
        client = self.session(session)
        deadline = client.runtime.clock.deadline(seconds(timeout_ms))
        return await client.super_streams.targets(target, routing["by"], routing["key"], deadline)

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
        filter_value: FilterValue = UNSET,
    ) -> list[Receipt]:  # fmt: skip
        """Publish; unless `is_quiet`, each outcome becomes an event."""

        def ended(publishing_id: int, error: ClientError | None) -> None:
            if not is_quiet:
                self.adapter.emit("outcome", id=request_id, **outcome(publishing_id, error))
            self.adapter.trip("confirm")

        keys = [message.get("key") for message in messages]
        return await self.session(session).publishing.publish(
            target,
            [kit.body_bytes(message["body"]) for message in messages],
            name=name,
            ids=[None if key is None else int(key) for key in keys],
            compression=COMPRESSIONS[subentry] if subentry else None,
            timeout=seconds(timeout_ms),
            on_outcome=ended,
            filter_value=filter_value,
        )

    @kit.op("flush")
    async def flush(self, session: str, timeout_ms: float | None = None) -> None:
        await self.session(session).publishing.flush(seconds(timeout_ms))

    @kit.op("rmqs.declare_publisher")
    async def declare_publisher(
        self, session: str, target: str, name: str | None = None, timeout_ms: float | None = None
    ) -> None:
        client = self.session(session)
        publisher = client.publishing.publisher(target, name)
        await client.publishing.declared(publisher, client.runtime.clock.deadline(seconds(timeout_ms)))

    @kit.op("rmqs.delete_publisher")
    async def delete_publisher(
        self, session: str, target: str, name: str | None = None, timeout_ms: float | None = None
    ) -> None:
        await self.session(session).publishing.delete_publisher(target, name, seconds(timeout_ms))

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
        client = self.session(session)
        subscription = kit.Subscription(self.adapter, sub, target, on_message)

        async def delivered(partition: str, message: Message) -> None:
            meta = {"partition": partition} if partition else {}
            at = {"position": str(message.offset), "ts": kit.number(message.timestamp_ms), "meta": meta}
            await subscription.deliver(message.body, **at)

        start = given.get("offset") or {"type": "first"}
        value = None if start.get("value") is None else int(start["value"])
        properties = dict(given.get("properties") or {})
        if given.get("name") is not None:
            properties["name"] = given["name"]
        more: Json = {
            "start": Start(OffsetType[start["type"].upper()], value),
            "credit": int(given.get("credit", 10)),
            "properties": properties | filter_properties(given.get("filter")),
            "accepts": accepts(given.get("filter")),
            "timeout": seconds(timeout_ms),
        }
        if given.get("super_stream"):
            handles = await client.super_streams.subscribe(target, delivered, **more)
        else:
            handles = [
                await client.consuming.subscribe(
                    target, lambda one: delivered("", one), track=track(given), **more
                )
            ]
        subscription.handle = (client, handles)
        self.adapter.subs[sub] = subscription

    def subscribed(self, sub: str) -> tuple[StreamClient, list[Subscription]]:
        """A subscription, of each partition where the target is a super stream, and whose it is."""
        found: tuple[StreamClient, list[Subscription]] = self.adapter.handle_of(sub)
        return found

    @kit.op("unsubscribe")
    async def unsubscribe(self, sub: str, drain: bool = False, timeout_ms: float | None = None) -> None:
        client, handles = self.subscribed(sub)
        await client.super_streams.unsubscribe(handles, drain=drain, timeout=seconds(timeout_ms))

    @kit.op("rmqs.credit")
    async def credit(self, sub: str, credit: int) -> None:
        client, handles = self.subscribed(sub)
        for handle in handles:
            client.consuming.give_credit(handle, credit)

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
        client = self.session(session)
        deadline = client.runtime.clock.deadline(seconds(timeout_ms))
        answer = await client.locator.metadata(targets, deadline)
        nodes = {broker.reference: f"{broker.host}:{broker.port}" for broker in answer.brokers}
        streams = []
        for name in targets:
            entry = client.locator.entry_of(answer, name)
            row = {"name": name, "exists": entry.code == 1, "code": entry.code}
            replicas = [nodes.get(reference) for reference in entry.replicas]
            streams.append({**row, "leader": nodes.get(entry.leader), "replicas": replicas})
        return {"streams": streams}

    @kit.op("rmqs.partitions")
    async def partitions(self, session: str, target: str, timeout_ms: float | None = None) -> Json:
        client = self.session(session)
        deadline = client.runtime.clock.deadline(seconds(timeout_ms))
        return {"streams": await client.super_streams.partitions(target, deadline)}

    @kit.op("rmqs.route")
    async def route(self, session: str, target: str, key: str, timeout_ms: float | None = None) -> Json:
        client = self.session(session)
        deadline = client.runtime.clock.deadline(seconds(timeout_ms))
        return {"streams": await client.super_streams.route(target, key, deadline)}

    @kit.op("rmqs.create_super_stream")
    async def create_super_stream(
        self, session: str, target: str, partitions: int = 0, keys: Any = None, arguments: Any = None,
        timeout_ms: float | None = None,
    ) -> None:  # fmt: skip
        wanted = keys or [str(number) for number in range(partitions)]
        await self.session(session).super_streams.create(target, wanted, arguments, seconds(timeout_ms))

    @kit.op("rmqs.delete_super_stream")
    async def delete_super_stream(self, session: str, target: str, timeout_ms: float | None = None) -> None:
        await self.session(session).super_streams.delete(target, seconds(timeout_ms))

    @kit.op("rmqs.stream_stats")
    async def stream_stats(self, session: str, target: str, timeout_ms: float | None = None) -> Json:
        found = await self.session(session).stats(target, seconds(timeout_ms))
        chunks = {name: found.get(f"{name}_chunk_id", -1) for name in ("first", "committed")}
        return {name: None if value == -1 else kit.number(value) for name, value in chunks.items()}

    # what tests turn

    @kit.op("set_counter")
    async def set_counter(self, session: str, which: str, value: int | str) -> None:
        self.session(session).set_counter(which, int(value))


def filter_properties(wanted: Json | None) -> dict[str, str]:
    """What Subscribe says of a filter."""
    if wanted is None:
        return {}
    unfiltered = {"match-unfiltered": "true"} if wanted.get("unfiltered") else {}
    return {f"filter.{number}": value for number, value in enumerate(wanted["values"])} | unfiltered


def accepts(wanted: Json | None) -> Accepts | None:
    """Which bodies a filter means."""
    if wanted is None:
        return None
    return lambda body: kit.is_wanted(body, wanted)


def track(options: Json) -> Track | None:
    """What the library stores of a subscription by itself."""
    wanted = options.get("tracking") or {}
    if wanted.get("by") != "library":
        return None
    return Track(options["name"], wanted.get("every", EVERY))


def outcome(publishing_id: int, error: ClientError | None) -> Json:
    """The end of one message."""
    word = "acked" if error is None else error.outcome
    code = None if error is None else error.code
    return {"outcome": word, "key": kit.number(publishing_id), "code": code}


REFERENCE = Reference(
    protocol="rabbitmq-stream",
    ops=StreamOps,
    roles=("publisher", "consumer", "admin"),
    callbacks=("message", "confirm", "session", "error"),
    formats=("raw",),
    caps=(
        "ack_timeout auto_reconnect callback_raise callback_sleep cancel clock_offset counter_seed crc "
        "dedup endpoints filters named_publisher offset_without_consumer reentrant retry sac sasl.challenge "
        "stats stop_in_callback subentry super_streams tls tracking"
    ),
)
