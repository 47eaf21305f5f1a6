"""What the control API lists of a fake RabbitMQ, by the names that a real server's tools have for it."""

from __future__ import annotations

from typing import Any

from fakebrokers.control.describe import Operation
from fakebrokers.rabbitmq_stream import rows
from fakebrokers.rabbitmq_stream.groups import GroupKey
from fakebrokers.rabbitmq_stream.server import RabbitMQStream


def stream_connections(server: RabbitMQStream) -> list[dict[str, Any]]:
    """The connections that are open, as the management API lists them; ``connection``: in the journal."""

    def look() -> list[dict[str, Any]]:
        listed = zip(rows.sessions(server), rows.connection_rows(server), strict=True)
        return [{"connection": connection.name, **row} for (connection, _), row in listed]

    return server.call(look)


def stream_publishers(server: RabbitMQStream) -> list[dict[str, Any]]:
    """The publishers of all connections."""
    return server.call(lambda: list(rows.publisher_rows(server)))


def stream_consumers(server: RabbitMQStream) -> list[dict[str, Any]]:
    """The subscriptions of all connections."""
    return server.call(lambda: list(rows.consumer_rows(server)))


def consumer_groups(server: RabbitMQStream) -> list[dict[str, Any]]:
    """The groups of single active consumers; ``partition_index`` is -1 outside super streams."""
    return server.call(lambda: list(rows.group_rows(server)))


def group_consumers(
    server: RabbitMQStream, stream: str, reference: str, virtual_host: str = "/"
) -> list[dict[str, Any]]:
    """The consumers of a group, in the order in which they came; one of them, or none, is ``active``."""
    key = GroupKey(virtual_host, stream, reference)
    return server.call(lambda: rows.group_consumer_rows(server, key))


OPERATIONS = (
    Operation(stream_connections, reads=True),
    Operation(stream_publishers, reads=True),
    Operation(stream_consumers, reads=True),
    Operation(consumer_groups, reads=True),
    Operation(group_consumers, reads=True),
)
