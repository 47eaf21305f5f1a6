"""Connections, publishers and consumers: listed, and ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fakebrokers.core.session import HangUp
from fakebrokers.rabbitmq_stream.management.asked import (
    DONE,
    Answer,
    Asked,
    Route,
    listing,
    not_found,
    one,
)
from fakebrokers.rabbitmq_stream.rows import (
    Listed,
    Row,
    connection_rows,
    consumer_rows,
    name_of,
    publisher_rows,
    sessions,
    tag_rows,
)

Rows = Callable[[Listed], Iterable[Row]]


def _all(found: Rows) -> Callable[[Asked], Answer]:
    return lambda asked: listing(asked, found(asked.server))


def _one(asked: Asked) -> Answer:
    if "vhost" in asked.at:
        asked.virtual_host()
    return one(row for row in connection_rows(asked.server) if _is_meant(asked, row))


def _is_meant(asked: Asked, row: Row) -> bool:
    return bool(row["name"] == asked.at["connection"] and row["vhost"] == asked.at.get("vhost", row["vhost"]))


def _of_connection(found: Rows) -> Callable[[Asked], Answer]:
    """The publishers or consumers of one connection."""

    def act(asked: Asked) -> Answer:
        _one(asked)
        name = asked.at["connection"]
        return 200, [row for row in found(asked.server) if row["connection_details"]["name"] == name]

    return act


def _of_stream(asked: Asked) -> Answer:
    """The publishers, or the consumers, of one stream."""
    stream = asked.stream()
    found = publisher_rows(asked.server) if asked.at["kind"] == "publishers" else consumer_rows(asked.server)
    wanted = {"name": stream.name, "vhost": stream.virtual_host}
    return 200, [row for row in found if row["queue"] == wanted]


def _no_channels(asked: Asked) -> Answer:
    if "connection" in asked.at:
        _one(asked)
    return 200, []


def _of_user(asked: Asked) -> Answer:
    if asked.at["user"] not in asked.broker.access.users:
        raise not_found()
    return 200, [row for row in connection_rows(asked.server) if row["user"] == asked.at["user"]]


def _end(asked: Asked) -> Answer:
    """End a connection as an operator does: FIN without a Close frame.

    Rule: docs/protocols/rabbitmq-stream.md, 5, what a real broker does then.
    """
    _one(asked)
    for connection, session in sessions(asked.server):
        if name_of(asked.server, connection, session) == asked.at["connection"]:
            asked.server.engine.kill(connection, HangUp.FIN, asked.now)
    return DONE


def _end_of_user(asked: Asked) -> Answer:
    _of_user(asked)
    for connection, session in sessions(asked.server):
        if session.user is not None and session.user.name == asked.at["user"]:
            asked.server.engine.kill(connection, HangUp.FIN, asked.now)
    return DONE


ROUTES = (
    Route("GET", "/connections", _all(connection_rows)),
    Route("GET", "/connections/username/{user}", _of_user),
    Route("DELETE", "/connections/username/{user}", _end_of_user),
    Route("GET", "/connections/{connection}", _one),
    Route("DELETE", "/connections/{connection}", _end),
    Route("GET", "/connections/{connection}/channels", _no_channels),
    Route("GET", "/vhosts/{vhost}/connections", _all(connection_rows)),
    Route("GET", "/channels", _no_channels),
    Route("GET", "/consumers", _all(tag_rows)),
    Route("GET", "/consumers/{vhost}", _all(tag_rows)),
    Route("GET", "/stream/connections", _all(connection_rows)),
    Route("GET", "/stream/connections/{vhost}", _all(connection_rows)),
    Route("GET", "/stream/connections/{vhost}/{connection}", _one),
    Route("DELETE", "/stream/connections/{vhost}/{connection}", _end),
    Route("GET", "/stream/connections/{vhost}/{connection}/publishers", _of_connection(publisher_rows)),
    Route("GET", "/stream/connections/{vhost}/{connection}/consumers", _of_connection(consumer_rows)),
    Route("GET", "/stream/publishers", _all(publisher_rows)),
    Route("GET", "/stream/publishers/{vhost}", _all(publisher_rows)),
    Route("GET", "/stream/consumers", _all(consumer_rows)),
    Route("GET", "/stream/consumers/{vhost}", _all(consumer_rows)),
    Route("GET", "/stream/{kind:publishers|consumers}/{vhost}/{name}", _of_stream),
)
