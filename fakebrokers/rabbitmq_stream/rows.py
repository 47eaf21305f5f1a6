"""Connections, publishers, consumers and groups as rows, as a real server's tools list them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from fakebrokers.core.connection import Connection
from fakebrokers.core.engine import Engine
from fakebrokers.rabbitmq_stream.broker import StreamBroker
from fakebrokers.rabbitmq_stream.groups import GroupKey
from fakebrokers.rabbitmq_stream.session import StreamSession
from fakebrokers.rabbitmq_stream.subscription import Subscription

Row = dict[str, Any]


class Listed(Protocol):
    """A fake as its rows show it, see `server.RabbitMQStream`."""

    @property
    def host(self) -> str:
        """The address that it listens on."""

    @property
    def engine(self) -> Engine:
        """Has the connections."""

    @property
    def broker(self) -> StreamBroker:
        """The model of what they share."""


def sessions(server: Listed) -> Iterable[tuple[Connection, StreamSession]]:
    """The connections that are open, each with its session."""
    for connection in list(server.engine.connections.values()):
        session = connection.session
        if isinstance(session, StreamSession) and session.virtual_host is not None and connection.alive:
            yield connection, session


def name_of(server: Listed, connection: Connection, session: StreamSession) -> str:
    """The name of a connection: both ends of its socket."""
    return f"{connection.address} -> {server.host}:{session.address_of(session.node)[1]}"


def connection_rows(server: Listed) -> Iterable[Row]:
    """The connections."""
    for connection, session in sessions(server):
        peer_host, _, peer_port = connection.address.rpartition(":")
        user = session.user.name if session.user else ""
        yield {
            "name": name_of(server, connection, session),
            "node": session.node.name,
            "protocol": "stream",
            "type": "network",
            "state": "running",
            "user": user,
            "user_who_performed_action": user,
            "vhost": session.virtual_host,
            "auth_mechanism": session.mechanism,
            "client_properties": session.client_properties,
            "frame_max": session.frame_max,
            "timeout": session.heartbeat_s,
            "channels": 0,
            "channel_max": 0,
            "host": server.host,
            "port": session.address_of(session.node)[1],
            "peer_host": peer_host,
            "peer_port": int(peer_port) if peer_port.isdecimal() else 0,
            "ssl": session.tls,
            "recv_oct": connection.received_bytes,
            "send_oct": connection.sent_bytes,
            "connected_at": int(server.engine.clock.wall(connection.opened_at) * 1000),
        }


def _peer(server: Listed, connection: Connection, session: StreamSession) -> Row:
    peer_host, _, peer_port = connection.address.rpartition(":")
    return {
        "name": name_of(server, connection, session),
        "node": session.node.name,
        "peer_host": peer_host,
        "peer_port": int(peer_port) if peer_port.isdecimal() else 0,
        "user": session.user.name if session.user else "",
    }


def publisher_rows(server: Listed) -> Iterable[Row]:
    """The declared publishers of all connections."""
    for connection, session in sessions(server):
        for number, publisher in session.publishing.publishers.items():
            yield {
                "publisher_id": number,
                "reference": publisher.reference,
                "queue": {"name": publisher.stream.name, "vhost": session.virtual_host},
                "connection_details": _peer(server, connection, session),
            }


def consumer_rows(server: Listed) -> Iterable[Row]:
    """The subscriptions of all connections, as the stream plug-in lists them."""
    for connection, session in sessions(server):
        for number, subscription in session.consuming.subscriptions.items():
            position = subscription.position
            yield {
                "subscription_id": number,
                "credits": subscription.credit,
                "offset": position or 0,
                "offset_lag": max(0, subscription.stream.committed_offset - (position or 0)),
                "active": subscription.active,
                "properties": subscription.properties,
                "queue": {"name": subscription.stream.name, "vhost": session.virtual_host},
                "connection_details": _peer(server, connection, session),
            }


def tag_rows(server: Listed) -> Iterable[Row]:
    """The same as the broker itself lists consumers of queues."""
    for connection, session in sessions(server):
        peer = _peer(server, connection, session)
        channel = {**peer, "name": "", "number": 0, "connection_name": peer["name"]}
        for number, subscription in session.consuming.subscriptions.items():
            yield {
                "consumer_tag": f"stream.subid-{number}",
                "ack_required": False,
                "active": subscription.active,
                "activity_status": activity_of(subscription),
                "arguments": subscription.properties,
                "channel_details": channel,
                "exclusive": False,
                "prefetch_count": 0,
                "queue": {"name": subscription.stream.name, "vhost": session.virtual_host},
            }


def activity_of(subscription: Subscription) -> str:
    """``up``; of a single active consumer ``single_active`` or ``waiting``."""
    if subscription.properties.get("single-active-consumer") != "true":
        return "up"
    return "single_active" if subscription.active else "waiting"


def group_rows(server: Listed) -> Iterable[Row]:
    """The groups of single active consumers."""
    for key, group in server.broker.coordinator.groups.items():
        yield {
            "stream": key.stream,
            "vhost": key.virtual_host,
            "reference": key.name,
            "partition_index": -1 if group.partition is None else group.partition,
            "consumers": len(group.members),
        }


def group_consumer_rows(server: Listed, key: GroupKey) -> list[Row]:
    """The consumers of a group, in the order in which they came; none if there is no such group."""
    places = {}
    for connection, session in sessions(server):
        name = name_of(server, connection, session)
        for number, member in session.consuming.members.items():
            places[member] = {
                "subscription_id": number,
                "connection_name": name,
                "state": "active" if member.active else "inactive",
            }
    group = server.broker.coordinator.groups.get(key)
    return [] if group is None else [places[member] for member in group.members if member in places]
