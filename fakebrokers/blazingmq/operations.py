"""What a fake BlazingMQ can be told over the control API, and the options that it is started with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from fakebrokers.blazingmq.codes import Compression
from fakebrokers.blazingmq.domains import Domain
from fakebrokers.blazingmq.message import Message
from fakebrokers.blazingmq.properties import Content, Property, PropertyType
from fakebrokers.blazingmq.server import BlazingMQ
from fakebrokers.control.describe import BrokerOptions, Control, Operation
from fakebrokers.control.values import Body
from fakebrokers.errors import UsageError, WireError
from fakebrokers.options import Seconds, in_seconds

_U31 = Annotated[int, Meta(ge=0, lt=1 << 31)]


class BlazingMQOptions(BrokerOptions, frozen=True, kw_only=True):
    """Options of a fake BlazingMQ.

    Attributes:
        nodes: Brokers of the cluster.
        domains: By name; or the path of a TOML file with tables ``[domains.NAME]``.
        heartbeats: Ask silent clients for a sign of life.
        heartbeat_s, max_missed: What brokerResponse sends clients.
        heartbeat_ms: Old name of `heartbeat_s`, in milliseconds.
    """

    nodes: Annotated[int, Meta(ge=1, le=100)] = 1
    domains: dict[str, Domain] | str | None = None
    heartbeats: bool | None = None
    heartbeat_s: Seconds | None = None
    heartbeat_ms: _U31 | None = None
    max_missed: _U31 | None = None

    def keywords(self) -> dict[str, Any]:
        return in_seconds(super().keywords(), BlazingMQ)


class PropertyRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A property of a message: its type, and the value in `text` or `number` (BOOL: 0 or 1)."""

    type: Literal["BOOL", "CHAR", "SHORT", "INT32", "INT64", "STRING", "BINARY"] = "STRING"
    text: Body | None = None
    number: int | None = None


class MessageRow(msgspec.Struct, frozen=True):
    """A message in a queue.

    Attributes:
        guid: In hexadecimal digits.
        payload: Inflated.
        waiting: The apps that have not confirmed it.
    """

    guid: str
    payload: bytes
    properties: dict[str, PropertyRow]
    waiting: list[str]


class QueueRow(msgspec.Struct, frozen=True):
    """A queue.

    Attributes:
        messages, bytes: What it holds.
        apps: What each app has not confirmed.
        handles: How many clients have it open.
    """

    uri: str
    mode: str
    messages: int
    bytes: int
    apps: dict[str, int]
    handles: int


class NodeRow(msgspec.Struct, frozen=True):
    """A broker of the cluster; `number` is what other operations call it."""

    number: int
    name: str
    host: str
    port: int
    up: bool
    stopping: bool


def publish(
    server: BlazingMQ,
    uri: str,
    payload: bytes,
    properties: dict[str, PropertyRow] | None = None,
    compression: Literal["NONE", "ZLIB"] = "NONE",
) -> str:
    """Put a message into a queue, which is made if it is not there; the message's GUID."""
    given = {name: _property(name, row) for name, row in (properties or {}).items()}
    try:
        return server.publish(uri, payload, given, compression=Compression[compression]).hex()
    except WireError as error:
        raise UsageError(f"properties: {error}") from None


def _property(name: str, row: PropertyRow) -> Property:
    kind = PropertyType[row.type]
    of_text = kind in (PropertyType.STRING, PropertyType.BINARY)
    if (row.text if of_text else row.number) is None or (row.number if of_text else row.text) is not None:
        raise UsageError(f"properties.{name}: expected {'text' if of_text else 'number'} and nothing else")
    if of_text:
        data = bytes(row.text or b"")
        return Property(
            kind, data if kind is PropertyType.BINARY else data.decode("utf-8", "surrogateescape")
        )
    number = row.number or 0
    return Property(kind, bool(number) if kind is PropertyType.BOOL else number)


def messages(server: BlazingMQ, uri: str, app_id: str | None = None) -> list[MessageRow]:
    """What a queue holds, delivered or not, in order; with `app_id` what that app has not confirmed."""
    return [_message_row(each) for each in server.messages(uri, app_id)]


def _message_row(message: Message) -> MessageRow:
    try:
        content = message.content
    except WireError:
        content = Content(message.data)
    rows = {name: _property_row(each) for name, each in content.properties.items()}
    return MessageRow(message.guid.hex(), content.payload, rows, sorted(message.waiting))


def _property_row(given: Property) -> PropertyRow:
    kind: Any = given.type.name
    if isinstance(given.value, int):
        return PropertyRow(kind, number=int(given.value))
    data = given.value if isinstance(given.value, bytes) else given.value.encode(errors="surrogateescape")
    return PropertyRow(kind, text=Body(data))


def queue(server: BlazingMQ, uri: str) -> QueueRow:
    """A queue: what it holds, and for which apps."""

    def look() -> QueueRow:
        found = server.broker.queue(uri)
        stored = found.messages.values()
        apps = {name: sum(1 for each in stored if name in each.waiting) for name in found.apps}
        return QueueRow(
            found.uri, found.domain.mode, len(stored), found.store.bytes, apps, len(found.handles)
        )

    return server.call(look)


def configure_domain(server: BlazingMQ, name: str, fields: Mapping[str, Any]) -> None:
    """Add a domain, or change one; fields as of `Domain`."""
    server.call(lambda: server.broker.configure_domain(name, fields))


def nodes(server: BlazingMQ) -> list[NodeRow]:
    """The brokers of the cluster."""
    return server.call(
        lambda: [
            NodeRow(number, node.name, node.host, node.port, node.up, node.stopping)
            for number, node in enumerate(server.nodes, 1)
        ]
    )


def shut_down(server: BlazingMQ, node: int = 1, timeout_s: float = 5.0) -> None:
    """A broker goes down in order: each connection ends once its deliveries are confirmed."""
    server.shut_down(node, timeout_s)


CONTROL = Control(
    BlazingMQOptions,
    (
        Operation(publish, old="post"),
        Operation(messages, reads=True),
        Operation("queues"),
        Operation(queue, reads=True),
        Operation("purge"),
        Operation("redeliver"),
        Operation(configure_domain),
        Operation(nodes, reads=True),
        Operation("stop_node"),
        Operation("start_node"),
        Operation(shut_down),
    ),
)
