"""The ops of BlazingMQ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.clients.adapter import kit
from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Delivery
from conformance.clients.reference.kit import (
    DEFAULT_TIMEOUT_S,
    ClientError,
    Reference,
    ReferenceAdapter,
    Runtime,
    seconds,
)
from fakebrokers.blazingmq.properties import Property, PropertyType

Json = dict[str, Any]
#: The options of a queue, and the numbers that fit.
OPTIONS = {
    "max_unconfirmed_messages": range(2**63),
    "max_unconfirmed_bytes": range(2**63),
    "consumer_priority": range(-(2**31), 2**31),
}


class BlazingOps:
    """What the adapter does for BlazingMQ only."""

    def __init__(self, adapter: ReferenceAdapter) -> None:
        self.adapter = adapter

    def client(self, runtime: Runtime, endpoints: Any, options: Mapping[str, Any]) -> BlazingClient:
        reconnects = options.get("auto_reconnect", True)
        return runtime.part(BlazingClient)(runtime, endpoints[0], reconnects=reconnects)

    def session(self, name: str) -> BlazingClient:
        """The client of a session."""
        found: BlazingClient = self.adapter.session(name)
        return found

    @kit.op("connect")
    async def connect(
        self, session: str, endpoints: Any, options: Any = None, timeout_ms: float | None = None
    ) -> None:
        """A session connects once."""
        there: BlazingClient | None = self.adapter.sessions.get(session)
        if there is not None and (there.is_starting or there.is_open):
            raise ClientError("invalid", "the session is connected")
        await self.adapter.connect(session, endpoints, options, timeout_ms)

    # queues

    @kit.op("bmq.open_queue")
    async def open_queue(
        self, session: str, target: str, uri: str, flags: list[str], options: Any = None,
        timeout_ms: float | None = None,
    ) -> None:  # fmt: skip
        queues = self.session(session).queues
        await queues.open(target, uri, frozenset(flags), limits(options), deadline_s(timeout_ms))

    @kit.op("bmq.configure_queue")
    async def configure_queue(
        self, session: str, target: str, options: Any = None, timeout_ms: float | None = None
    ) -> None:
        await self.session(session).queues.configure(target, limits(options), deadline_s(timeout_ms))

    @kit.op("bmq.close_queue")
    async def close_queue(self, session: str, target: str, timeout_ms: float | None = None) -> None:
        await self.session(session).queues.close(target, deadline_s(timeout_ms))

    # messages

    @kit.op("publish")
    async def publish(
        self, session: str, target: str, body: Json, properties: Any = None, compression: str = "none",
        wait: bool = True, request_id: int | None = None, timeout_ms: float | None = None,
    ) -> Json:  # fmt: skip
        given = {name: native(one) for name, one in (properties or {}).items()}
        found = await self.session(session).posts.post(
            target,
            kit.body_bytes(body),
            given,
            zlib_wanted=compression == "zlib",
            wait=wait,
            timeout=deadline_s(timeout_ms),
        )
        return {"outcome": "acked" if wait else "sent", "key": None, "meta": {}, **found}

    @kit.op("subscribe")
    async def subscribe(self, session: str, sub: str, target: str, on_message: Any = None) -> None:
        client = self.session(session)
        queue = client.queues.find(target)
        subscription = self.adapter.surfacing(sub, target, on_message)

        async def deliver_message(delivery: Delivery) -> None:
            properties = {name: shown(one) for name, one in delivery.properties.items()}
            await subscription.deliver(
                delivery.payload,
                native=delivery,
                position=delivery.guid.hex().upper(),
                meta={"uri": queue.uri, "properties": properties},
            )

        subscription.handle = (client, queue)
        queue.callback = deliver_message
        client.deliveries.subscribe(queue)

    @kit.op("unsubscribe")
    async def unsubscribe(self, sub: str) -> None:
        _, queue = self.adapter.handle_of(sub)
        queue.callback = None

    @kit.op("settle")
    async def settle(self, sub: str, ref: str, how: str) -> None:
        subscription = self.adapter.subscription(sub)
        if how != "ack":
            raise ClientError("unsupported", "BlazingMQ only has confirms")
        client, _ = subscription.handle
        client.deliveries.confirm(subscription.native[ref])

    @kit.op("set_counter")
    async def set_counter(self, session: str, which: str, value: int | str) -> None:
        if which != "correlation":
            raise ClientError("unsupported", f"no counter {which}")
        self.session(session).posts.last_id = int(value) - 1


def limits(options: Any) -> dict[str, int]:
    """The options of a queue. Raises `ClientError` (invalid) for what does not fit the wire."""
    found = {name: int(options[name]) for name in OPTIONS if name in (options or {})}
    for name, value in found.items():
        if value not in OPTIONS[name]:
            raise ClientError("invalid", f"{name} {value} does not fit")
    return found


def deadline_s(timeout_ms: float | None) -> float:
    """How long an op may take."""
    found = seconds(timeout_ms)
    return DEFAULT_TIMEOUT_S if found is None else found


def native(given: Mapping[str, Any]) -> Property:
    """A property of the script."""
    kind, value = PropertyType[given["type"].upper()], given["value"]
    if kind is PropertyType.BOOL:
        return Property(kind, str(value) == "true")
    if kind is PropertyType.CHAR:
        return Property(kind, kit.body_bytes(value)[0])
    if kind is PropertyType.BINARY:
        return Property(kind, kit.body_bytes(value))
    return Property(kind, str(value) if kind is PropertyType.STRING else int(value))


def shown(found: Property) -> Json:
    """A property for the script."""
    kind, value = found
    if kind is PropertyType.CHAR:
        return {"type": "char", "value": kit.report_body(bytes([int(value)]))}
    if isinstance(value, bytes):
        return {"type": kind.name.lower(), "value": kit.report_body(value)}
    text = str(value).lower() if kind is PropertyType.BOOL else str(value)
    return {"type": kind.name.lower(), "value": text}


REFERENCE = Reference(
    protocol="blazingmq",
    ops=BlazingOps,
    roles=("publisher", "consumer"),
    caps=(
        "ack_timeout auto_reconnect callback_raise callback_sleep cancel clock_offset compression.zlib "
        "counter_seed properties reentrant stats stop_in_callback"
    ),
    settles="manual",
)
