"""What a fake RabbitMQ can be told over the control API, and the options that it is started with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from fakebrokers.control.describe import (
    BrokerOptions,
    Control,
    Operation,
    Switch,
    TlsOption,
    name_and_password,
)
from fakebrokers.errors import UsageError
from fakebrokers.options import Count
from fakebrokers.rabbitmq_stream import operations_access as access
from fakebrokers.rabbitmq_stream import operations_listed as listed
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.server import RabbitMQStream
from fakebrokers.rabbitmq_stream.stream import Message

_U32 = Annotated[int, Meta(ge=0, lt=1 << 32)]


class RabbitMQStreamOptions(BrokerOptions, frozen=True, kw_only=True):
    """Options of a fake RabbitMQ; see also `RabbitMQStream`.

    Attributes:
        nodes: Brokers of the cluster.
        load_balancer: Connections go to the nodes in turn.
        advertised_host: Host that clients get to connect to.
        heartbeat_s, frame_max: What the server's Tune offers.
        tls: Listen for TLS too: true, or which bad certificate to show.
        management: Serve the management API: true, or at which port.
        real_delays: Hold back the answer to a failed login as the real one does.
        chunking: Where chunks end, by hand.
        users: Besides guest, as NAME:PASSWORD; they may do everything in the virtual host "/".
    """

    nodes: Annotated[int, Meta(ge=1, le=100)] = 1
    load_balancer: bool = False
    advertised_host: str | None = None
    heartbeat_s: _U32 | None = None
    frame_max: _U32 | None = None
    tls: TlsOption = False
    management: Switch = False
    real_delays: bool = False
    chunking: Literal["publish", "step", "whole", "message"] | None = None
    users: tuple[str, ...] = ()

    def keywords(self) -> dict[str, Any]:
        return {name: value for name, value in super().keywords().items() if name != "users"}

    def prepare(self, server: RabbitMQStream) -> None:
        for user in self.users:
            access.add_user(server, *name_and_password(user))


class StreamRow(msgspec.Struct, frozen=True):
    """A stream.

    Attributes:
        messages: How many it holds.
        leader: Node that leads it; None if none does.
        members: Nodes that have it, the leader first.
        offsets: Stored, by consumer reference.
        sequences: Highest publishing ids, by publisher reference.
    """

    name: str
    messages: int
    leader: str | None
    members: list[str]
    offsets: dict[str, int]
    sequences: dict[str, int]


class NodeRow(msgspec.Struct, frozen=True):
    """A broker of the cluster; `number` is what other operations call it."""

    number: int
    name: str
    host: str
    port: int
    up: bool


def publish(server: RabbitMQStream, name: str, bodies: Sequence[bytes]) -> None:
    """Append messages to a stream as a client's Publish does: up to 32 of them are one chunk."""
    server.publish(name, bodies)


def messages(server: RabbitMQStream, name: str) -> list[Message]:
    """All messages of a stream."""
    return server.messages(name)


def stream_named(server: RabbitMQStream, name: str) -> StreamRow:
    """A stream: its members, stored offsets and sequences."""

    def look() -> StreamRow:
        found = server.broker.stream(name)
        place, tracking = found.membership, found.tracking
        return StreamRow(
            found.name,
            len(found),
            place.leader.name if place.leader else None,
            [node.name for node in place.members],
            dict(tracking.offsets),
            dict(tracking.sequences),
        )

    return server.call(look)


def store_offset(server: RabbitMQStream, name: str, reference: str, offset: Count) -> None:
    """Store an offset of a stream, as a consumer does."""
    server.store_offset(name, _reference(reference), offset)


def store_sequence(server: RabbitMQStream, name: str, reference: str, publishing_id: Count) -> None:
    """Note the highest publishing id of a publisher reference, as if it had published before."""
    server.store_sequence(name, _reference(reference), publishing_id)


def _reference(text: str) -> str:
    if len(text.encode()) > 255:
        raise UsageError(f"expected a reference of at most 255 bytes, got {len(text.encode())}")
    return text


def nodes(server: RabbitMQStream) -> list[NodeRow]:
    """The brokers of the cluster."""
    return server.call(
        lambda: [
            NodeRow(i, node.name, node.host, node.port, node.up) for i, node in enumerate(server.nodes, 1)
        ]
    )


def create_super_stream(
    server: RabbitMQStream,
    name: str,
    partitions: Sequence[str],
    keys: Sequence[str],
    **arguments: str | int,
) -> None:
    """Create a super stream, its partitions, and a routing key for each."""
    server.create_super_stream(name, partitions, keys, **arguments)


def delete_super_stream(server: RabbitMQStream, name: str) -> None:
    """Delete a super stream and its partitions; their users get a MetadataUpdate."""
    server.delete_super_stream(name)


def say_close(
    server: RabbitMQStream,
    connection: str,
    code: Code = Code.UNKNOWN_FRAME,
    reason: Annotated[str, Meta(max_length=1000)] = "unknown frame",
) -> None:
    """Close a connection as the server does after a bad frame: Close, and the end with its answer."""
    server.say_close(connection, code, reason)


def set_disk_alarm(server: RabbitMQStream, on: bool = True) -> None:
    """Whether publishers are refused because the disk is full."""
    server.call(lambda: setattr(server.broker, "disk_alarm", on))


CONTROL = Control(
    RabbitMQStreamOptions,
    (
        Operation("create_stream"),
        Operation("delete_stream"),
        Operation("streams", old="stream_names"),
        Operation(stream_named, reads=True),
        Operation(create_super_stream),
        Operation(delete_super_stream),
        Operation(publish),
        Operation(messages, reads=True),
        Operation(store_offset),
        Operation(store_sequence),
        Operation("move_leader"),
        Operation("restart_stream"),
        Operation(nodes, reads=True),
        Operation("stop_node"),
        Operation("start_node"),
        Operation(say_close),
        Operation(set_disk_alarm),
        *access.OPERATIONS,
        *listed.OPERATIONS,
    ),
)
