"""What a fake NATS server does over the control API, and the options that it is started with."""

from __future__ import annotations

from typing import Annotated, Any

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
from fakebrokers.nats.server import NATS


class NatsOptions(BrokerOptions, frozen=True, kw_only=True):
    """Options of a fake NATS server; see also `NATS`.

    Attributes:
        nodes: Servers of the cluster.
        advertised_host: Host that INFO names.
        users: NAME:PASSWORD of those who may come in; none: everybody may.
        token: What clients may show instead.
        nkeys: Public keys of users who sign what the server asks them to.
        tls: Listen for TLS too: true, or which bad certificate to show.
        management: Serve the monitoring pages: true, or at which port.
    """

    nodes: Annotated[int, Meta(ge=1, le=100)] = 1
    advertised_host: str | None = None
    users: tuple[str, ...] = ()
    token: str = ""
    nkeys: tuple[str, ...] = ()
    tls: TlsOption = False
    management: Switch = False

    def keywords(self) -> dict[str, Any]:
        found = super().keywords()
        if self.users:
            found["users"] = dict(map(name_and_password, self.users))
        return found


class SubscriptionRow(msgspec.Struct, frozen=True):
    """Who listens: to which subject, and as one of which queue group ("" for none)."""

    subject: str
    queue: str


class NodeRow(msgspec.Struct, frozen=True):
    """A server of the cluster; `number` is what other operations call it."""

    number: int
    id: str
    host: str
    port: int
    up: bool
    leaving: bool


def publish(
    server: NATS,
    subject: str,
    payload: bytes,
    reply: str = "",
    headers: dict[str, str] = {},  # noqa: B006 - a description of arguments
) -> int:
    """A message of nobody's; how many subscriptions got it."""
    return server.publish(subject, payload, reply=reply, headers=headers)


def subscriptions(server: NATS) -> list[SubscriptionRow]:
    """Who listens to what."""
    return [SubscriptionRow(*each) for each in server.subscriptions]


def nodes(server: NATS) -> list[NodeRow]:
    """The servers of the cluster."""
    return [
        NodeRow(number, node.id, node.host, node.port, node.up, node.leaving)
        for number, node in enumerate(server.nodes, 1)
    ]


def lame_duck(server: NATS, node: int = 1) -> None:
    """A node takes no new clients, warns those that it has, and ends them some seconds later."""
    server.lame_duck(node)


def say_error(server: NATS, connection: str, error: str) -> None:
    """Say ``-ERR`` with this text, and end the connection."""
    server.say_error(connection, error)


CONTROL = Control(
    NatsOptions,
    (
        Operation(publish),
        Operation(subscriptions, reads=True),
        Operation(nodes, reads=True),
        Operation("stop_node"),
        Operation("start_node"),
        Operation("node_of", reads=True),
        Operation(lame_duck),
        Operation(say_error),
    ),
)
