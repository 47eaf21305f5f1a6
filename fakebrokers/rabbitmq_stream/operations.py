"""What a fake RabbitMQ can be told over the control API, and the options that it is started with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from fakebrokers.control.describe import BrokerOptions, Control, Count, Operation, Switch, TlsOption
from fakebrokers.errors import UsageError
from fakebrokers.rabbitmq_stream.access import Permission, User
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.server import RabbitMQStream
from fakebrokers.rabbitmq_stream.stream import Message

_U32 = Annotated[int, Meta(ge=0, lt=1 << 32)]


class RabbitMQStreamOptions(BrokerOptions, frozen=True, kw_only=True):
    """Options of a fake RabbitMQ; see also `RabbitMQStream`.

    Attributes:
        nodes: Brokers of the cluster.
        load_balancer: Connections go to the nodes in turn.
        advertised_host: Host that clients are told to connect to.
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
            name, colon, password = user.partition(":")
            if not (name and colon):
                raise UsageError(f"expected a user as NAME:PASSWORD, got {user!r}")
            add_user(server, name, password)


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


class PermissionRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a user may do in a virtual host: regular expressions; the empty one allows nothing."""

    configure: str = ".*"
    write: str = ".*"
    read: str = ".*"


class UserRow(msgspec.Struct, frozen=True):
    """A user with his rights, by virtual host."""

    name: str
    permissions: dict[str, PermissionRow]
    loopback_only: bool
    max_connections: int | None


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
    wire = {key.replace("_", "-"): str(value) for key, value in arguments.items()}
    server.call(lambda: server.broker.create_super_stream("/", name, partitions, keys, wire, server.nodes[0]))


def delete_super_stream(server: RabbitMQStream, name: str) -> None:
    """Delete a super stream and its partitions; their users get a MetadataUpdate."""

    def act() -> None:
        server.broker.announce(server.broker.remove_super_stream("/", name), server.engine.now)

    server.call(act)


def say_close(
    server: RabbitMQStream,
    connection: str,
    code: Code = Code.UNKNOWN_FRAME,
    reason: Annotated[str, Meta(max_length=1000)] = "unknown frame",
) -> None:
    """Close a connection as the server does after a bad frame: Close, and the end with its answer."""
    server.say_close(connection, code, reason)


# users and rights


def users(server: RabbitMQStream) -> list[UserRow]:
    """All users; without passwords."""
    return server.call(lambda: [_user_row(user) for user in server.broker.access.users.values()])


def _user_row(user: User) -> UserRow:
    rights = {host: PermissionRow(p.configure, p.write, p.read) for host, p in user.permissions.items()}
    return UserRow(user.name, rights, user.loopback_only, user.max_connections)


def add_user(
    server: RabbitMQStream,
    name: str,
    password: str,
    permissions: dict[str, PermissionRow] | None = None,
    loopback_only: bool = False,
    max_connections: Count | None = None,
) -> None:
    """Add or replace a user, who may do everything in the virtual host "/" unless told otherwise."""
    rights = None
    if permissions is not None:
        rights = {host: _permission(row) for host, row in permissions.items()}
    user = User(
        name, password, permissions=rights, loopback_only=loopback_only, max_connections=max_connections
    )
    server.call(lambda: server.broker.access.add_user(user))


def delete_user(server: RabbitMQStream, name: str) -> None:
    """Delete a user; his connections go on."""
    server.call(lambda: server.broker.access.users.pop(_user(server, name).name))


def set_permissions(
    server: RabbitMQStream,
    user: str,
    virtual_host: str = "/",
    configure: str = ".*",
    write: str = ".*",
    read: str = ".*",
) -> None:
    """What a user may do in a virtual host: regular expressions; the empty one allows nothing."""
    permission = _permission(PermissionRow(configure, write, read))

    def act() -> None:
        _virtual_host(server, virtual_host)
        _user(server, user).permissions[virtual_host] = permission

    server.call(act)


def clear_permissions(server: RabbitMQStream, user: str, virtual_host: str = "/") -> None:
    """Take from a user all access to a virtual host."""
    server.call(lambda: _user(server, user).permissions.pop(virtual_host, None))


def virtual_hosts(server: RabbitMQStream) -> dict[str, int | None]:
    """The virtual hosts, each with the largest number of connections; None for any number."""
    return server.call(lambda: dict(server.broker.access.virtual_hosts))


def add_virtual_host(server: RabbitMQStream, name: str, max_connections: Count | None = None) -> None:
    """Add a virtual host, or change how many connections it takes; nobody has rights there yet."""
    server.call(lambda: server.broker.access.virtual_hosts.__setitem__(name, max_connections))


def delete_virtual_host(server: RabbitMQStream, name: str) -> None:
    """Delete a virtual host; no connection can open it any more."""

    def act() -> None:
        _virtual_host(server, name)
        del server.broker.access.virtual_hosts[name]

    server.call(act)


def set_disk_alarm(server: RabbitMQStream, on: bool = True) -> None:
    """Whether publishers are refused because the disk is full."""
    server.call(lambda: setattr(server.broker, "disk_alarm", on))


def _permission(row: PermissionRow) -> Permission:
    import re

    for name in ("configure", "write", "read"):
        try:
            re.compile(getattr(row, name))
        except (re.error, OverflowError, RecursionError) as error:
            raise UsageError(f"{name}: expected a regular expression: {error}") from None
    return Permission(row.configure, row.write, row.read)


def _user(server: RabbitMQStream, name: str) -> User:
    found = server.broker.access.users.get(name)
    if found is None:
        raise UsageError(f"no user {name!r}; there are: {', '.join(server.broker.access.users) or 'none'}")
    return found


def _virtual_host(server: RabbitMQStream, name: str) -> None:
    there = server.broker.access.virtual_hosts
    if name not in there:
        raise UsageError(f"no virtual host {name!r}; there are: {', '.join(there) or 'none'}")


CONTROL = Control(
    RabbitMQStreamOptions,
    (
        Operation("create_stream"),
        Operation("delete_stream"),
        Operation("stream_names"),
        Operation(stream_named, reads=True),
        Operation(create_super_stream),
        Operation(delete_super_stream),
        Operation("publish"),
        Operation(messages, reads=True),
        Operation(store_offset),
        Operation(store_sequence),
        Operation("move_leader"),
        Operation(nodes, reads=True),
        Operation("stop_node"),
        Operation("start_node"),
        Operation(say_close),
        Operation(users, reads=True),
        Operation(add_user),
        Operation(delete_user),
        Operation(set_permissions),
        Operation(clear_permissions),
        Operation(virtual_hosts, reads=True),
        Operation(add_virtual_host),
        Operation(delete_virtual_host),
        Operation(set_disk_alarm),
    ),
)
