"""What a fake Moleculer network can be told over the control API, and the options that it is started with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from fakebrokers.control.describe import (
    LONGEST_WAIT_S,
    BrokerOptions,
    Control,
    Operation,
    Switch,
    name_and_password,
)
from fakebrokers.errors import UsageError, instead_of
from fakebrokers.moleculer.calls import RemoteError
from fakebrokers.moleculer.described import NodeOptionsRow, ServiceRow
from fakebrokers.moleculer.node import Node
from fakebrokers.moleculer.packets import BY_COMMAND, values_of
from fakebrokers.moleculer.serialization import find_serializer
from fakebrokers.moleculer.server import Moleculer
from fakebrokers.moleculer.services import Stream
from fakebrokers.options import Port, Seconds

#: Seconds for an answer to come in; 0 would be none, which is for ever.
Waiting = Annotated[float, Meta(gt=0, le=LONGEST_WAIT_S)]


class MoleculerOptions(BrokerOptions, frozen=True, kw_only=True):
    """Options of a fake Moleculer network; see also `Moleculer`.

    Attributes:
        transporter: What carries the packets.
        serializer, namespace: Of the fake nodes.
        users: NAME:PASSWORD of the one user that the bus lets in; none: it lets everybody in.
        token: What clients of NATS show instead.
        management: Serve the monitoring pages of NATS: true, or at which port.
        gossip_s: Seconds between two rounds of gossip (TCP).
        udp_port: Where nodes of the TCP transporter find each other; 0: they do not.
        nodes: So many fake nodes join at once, ``fake-1`` and so on, without services.
    """

    transporter: Literal["nats", "redis", "mqtt", "tcp"] = "nats"
    serializer: str = "JSON"
    namespace: str = ""
    users: tuple[str, ...] = ()
    token: str = ""
    management: Switch = False
    gossip_s: Seconds = 2.0
    udp_port: Port = 0
    nodes: Annotated[int, Meta(ge=0, le=100)] = 0

    def keywords(self) -> dict[str, Any]:
        find_serializer(self.serializer)
        found = {name: value for name, value in super().keywords().items() if name not in ("users", "nodes")}
        if len(self.users) > 1:
            raise UsageError(f"expected one user at most: the bus knows no more; got {len(self.users)}")
        for user in self.users:
            name, password = name_and_password(user)
            found |= {"user": name, "password": password}
        return found

    def prepare(self, server: Moleculer) -> None:
        for number in range(self.nodes):
            server.node(f"fake-{number + 1}")


class NodeRow(msgspec.Struct, frozen=True):
    """A fake node.

    Attributes:
        received: How many packets of others it remembers.
        broken: What was wrong with packets that it could not read.
        peers: The other nodes that it knows.
    """

    id: str
    alive: bool
    instance: str
    services: list[str]
    received: int
    broken: list[str]
    peers: list[str]


class PacketRow(msgspec.Struct, frozen=True):
    """A packet; `fields` as on the wire."""

    kind: str
    fields: dict[str, Any]


def node(
    server: Moleculer,
    id: str,
    services: list[ServiceRow] = [],  # noqa: B006 - a description of arguments
    namespace: str | None = None,
    serializer: str = "",
    separator: str = ".",
    options: NodeOptionsRow = NodeOptionsRow(),  # noqa: B008
) -> NodeRow:
    """A fake node that joins now."""
    if serializer:
        find_serializer(serializer)
    made = server.node(
        id,
        [row.service() for row in services],
        namespace=namespace,
        serializer=serializer,
        separator=separator,
        **msgspec.to_builtins(options),
    )
    return server.call(_row_of, made)


def _row_of(node: Node) -> NodeRow:
    core = node.core
    return NodeRow(
        core.id,
        core.alive,
        str(core.instance),
        [service.full_name for service in core.services],
        len(core.received),
        list(core.broken),
        [peer.id for peer in core.peers],
    )


def nodes(server: Moleculer) -> list[NodeRow]:
    """The fake nodes, those that are gone too."""
    return server.call(lambda: [_row_of(Node(server, core)) for core in server.broker.nodes.values()])


def _find(server: Moleculer, id: str) -> Node:
    """The fake node of that id; of several, the one that joined last and is alive."""
    found = [core for core in server.broker.nodes.values() if core.id == id]
    if not found:
        there = ", ".join(dict.fromkeys(core.id for core in server.broker.nodes.values())) or "none"
        raise UsageError(f"no fake node {id!r}; there are: {there}")
    return Node(server, sorted(found, key=lambda core: core.alive)[-1])


def node_received(server: Moleculer, node: str, kind: str | None = None) -> list[PacketRow]:
    """What a fake node has heard of others, oldest first; of one kind if that is given (``Request``)."""
    return [
        PacketRow(type(packet).__name__, values_of(packet))
        for packet in _find(server, node).received
        if kind in (None, type(packet).__name__)
    ]


async def node_call(
    server: Moleculer,
    node: str,
    action: str,
    params: Any = None,
    target: str = "",
    timeout: Waiting = 5.0,
    meta: dict[str, Any] | None = None,
    headers: dict[str, Any] | None = None,
) -> Any:
    """Let a fake node call an action of another node; the data that came back."""
    try:
        result = await _find(server, node).call_async(
            action, params, target=target, timeout=timeout, meta=meta, headers=headers
        )
    except RemoteError as error:
        raise UsageError(f"the call failed: {error}") from None
    return {"chunks": list(result.chunks)} if isinstance(result, Stream) else result


def node_emit(
    server: Moleculer, node: str, event: str, data: Any = None, groups: list[str] | None = None
) -> None:
    """An event of a fake node for one listener of each group, or of these groups."""
    _find(server, node).emit(event, data, groups)


def node_broadcast(
    server: Moleculer, node: str, event: str, data: Any = None, groups: list[str] | None = None
) -> None:
    """An event of a fake node for all listeners, or those in these groups."""
    _find(server, node).broadcast(event, data, groups)


async def node_ping(server: Moleculer, node: str, target: str, timeout: Waiting = 2.0) -> Any:
    """Let a fake node ask another one whether it answers; the fields of its PONG."""
    return values_of(await _find(server, node).ping_async(target, timeout))


def node_serve(server: Moleculer, node: str, services: list[ServiceRow]) -> None:
    """Let a fake node offer other services from now on; everybody is told."""
    _find(server, node).serve([row.service() for row in services])


def node_send(
    server: Moleculer, node: str, command: str, target: str = "", fields: Mapping[str, Any] = {}
) -> None:
    """Let a fake node send a packet with these fields to one node, or to all."""
    if command not in BY_COMMAND:
        raise UsageError(f"no packet {command!r}{instead_of(command, BY_COMMAND)}")
    _find(server, node).send(command, target, **{f"{name}": value for name, value in _fields(fields).items()})


def _fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    taken = {"command", "target", "self"} & fields.keys()
    if taken:
        raise UsageError(f"fields: no packet has a field {sorted(taken)[0]!r}")
    return dict(fields)


def node_send_raw(server: Moleculer, node: str, command: str, payload: bytes, target: str = "") -> None:
    """Let a fake node send bytes in place of a packet."""
    _find(server, node).send_raw(command, payload, target)


def node_restart(server: Moleculer, node: str, same_instance: bool = False) -> None:
    """Let a fake node join again, as a new instance unless told otherwise."""
    _find(server, node).restart(same_instance=same_instance)


def _simple(name: str) -> Operation:
    """An operation that is a method of `Node` without arguments."""
    method: Callable[[Node], None] = getattr(Node, name)

    def act(server: Moleculer, node: str) -> None:
        method(_find(server, node))

    act.__name__ = act.__qualname__ = f"node_{name}"
    act.__doc__ = f"A fake node. {method.__doc__}"
    return Operation(act)


def partition(
    server: Moleculer,
    senders: Iterable[str] = (),
    receivers: Iterable[str] = (),
    one_way: bool = False,
    for_s: Seconds | None = None,
) -> None:
    """Nodes do not hear each other any more; none means all others."""
    server.partition(senders, receivers, one_way=one_way, for_s=for_s)


def heal(server: Moleculer) -> None:
    """All nodes hear each other again."""
    server.heal()


def impersonate(server: Moleculer, node: str) -> None:
    """Another instance with the id of a node announces itself, and is gone again."""
    server.impersonate(node)


CONTROL = Control(
    MoleculerOptions,
    (
        Operation(node),
        Operation(nodes, reads=True),
        Operation("node_url", reads=True),
        Operation(node_received, reads=True),
        Operation(node_call),
        Operation(node_emit),
        Operation(node_broadcast),
        Operation(node_ping),
        Operation(node_serve),
        Operation(node_send),
        Operation(node_send_raw),
        Operation(node_restart),
        *map(_simple, ("stop", "kill", "stop_heartbeats", "resume_heartbeats", "heartbeat")),
        Operation(partition),
        Operation(heal),
        Operation(impersonate),
    ),
)
