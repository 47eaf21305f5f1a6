"""Everything that was declared, in one document: given out, and read back in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from fakebrokers.rabbitmq_stream.management.asked import (
    DONE,
    Answer,
    Asked,
    Route,
    bad,
    read_object,
    virtual_host_of,
)
from fakebrokers.rabbitmq_stream.management.policies import NewPolicy, policy_rows, put_policy
from fakebrokers.rabbitmq_stream.management.queues import (
    NewBinding,
    NewExchange,
    NewQueue,
    binding_from,
    binding_rows,
    create_stream,
    declare_exchange,
    exchange_rows,
    queue_rows,
)
from fakebrokers.rabbitmq_stream.management.users import (
    NewUser,
    Rights,
    add_virtual_host,
    permission_rows,
    put_permission,
    put_user,
    user_rows,
    virtual_host_rows,
)
from fakebrokers.rabbitmq_stream.rows import Row

_QUEUE = ("name", "vhost", "durable", "auto_delete", "arguments")
_EXCHANGE = ("name", "vhost", "type", "durable", "auto_delete", "internal", "arguments")
_BINDING = ("source", "vhost", "destination", "destination_type", "routing_key", "arguments")


def _definitions(asked: Asked) -> Answer:
    """Of all virtual hosts with users and rights, or of one without."""
    parts: dict[str, list[Row]] = {
        "policies": list(policy_rows(asked)),
        "queues": _only(_QUEUE, queue_rows(asked)),
        "exchanges": _only(_EXCHANGE, exchange_rows(asked)),
        "bindings": _only(_BINDING, (row for row in binding_rows(asked) if row["source"])),
    }
    version = asked.broker.profile.version
    about: Row = {"rabbit_version": version, "parameters": []}
    if "vhost" in asked.at:
        name = asked.virtual_host()
        here = {
            part: [
                {key: value for key, value in row.items() if key != "vhost"}
                for row in rows
                if virtual_host_of(row) == name
            ]
            for part, rows in parts.items()
        }
        return 200, about | here
    whole = {
        "rabbitmq_version": version,
        "product_name": "RabbitMQ",
        "product_version": version,
        "users": list(user_rows(asked)),
        "vhosts": [{"name": row["name"]} for row in virtual_host_rows(asked)],
        "permissions": list(permission_rows(asked)),
        "topic_permissions": [],
        "global_parameters": [],
    }
    return 200, about | whole | parts


def _only(names: tuple[str, ...], rows: Iterable[Row]) -> list[Row]:
    return [{name: row[name] for name in names} for row in rows]


class _Named(msgspec.Struct, frozen=True):
    """What all parts have."""

    name: str = ""
    vhost: str = "/"
    user: str = ""
    source: str = ""
    destination: str = ""


def _import(asked: Asked) -> Answer:
    """Make what a document names; what is there already stays."""
    document = asked.body
    if not isinstance(document, dict):
        raise bad("body", f"expected an object, got {type(document).__name__}")
    try:
        _make(asked, document)
    finally:
        asked.broker.apply_policies()  # once, however many there are
    return DONE


def _make(asked: Asked, document: dict[str, Any]) -> None:
    for part, make in _PARTS.items():
        rows = document.get(part, [])
        if not isinstance(rows, list):
            raise bad(f"body.{part}", f"expected a list, got {type(rows).__name__}")
        for number, row in enumerate(rows):
            where = f"body.{part}[{number}]"
            named = read_object(row, _Named, where)
            if "vhost" in asked.at:
                named = msgspec.structs.replace(named, vhost=asked.virtual_host())
            if part not in ("users", "vhosts") and named.vhost not in asked.broker.access.virtual_hosts:
                raise bad(f"{where}.vhost", f"expected a virtual host that exists, got {named.vhost[:100]!r}")
            make(asked, named, row, where)


def _user(asked: Asked, named: _Named, row: Any, where: str) -> None:
    known = asked.broker.access.users.get(named.name)
    if row.get("password_hash") and not row.get("password"):
        if known is None:
            problem = "expected one, as the fake keeps passwords in clear and cannot use a hash, got none"
            raise bad(f"{where}.password", problem)
        row = {**row, "password": known.password}
    put_user(asked, named.name, read_object(row, NewUser, where))


def _virtual_host(asked: Asked, named: _Named, row: Any, where: str) -> None:
    add_virtual_host(asked, named.name)


def _permission(asked: Asked, named: _Named, row: Any, where: str) -> None:
    put_permission(asked, named.vhost, named.user, read_object(row, Rights, where), where)


def _policy(asked: Asked, named: _Named, row: Any, where: str) -> None:
    put_policy(asked, named.vhost, named.name, read_object(row, NewPolicy, where), where)


def _queue(asked: Asked, named: _Named, row: Any, where: str) -> None:
    create_stream(asked, named.vhost, named.name, read_object(row, NewQueue, where), where)


def _exchange(asked: Asked, named: _Named, row: Any, where: str) -> None:
    declare_exchange(asked, named.vhost, named.name, read_object(row, NewExchange, where), where)


def _binding(asked: Asked, named: _Named, row: Any, where: str) -> None:
    exchange = asked.broker.super_streams.get((named.vhost, named.source))
    if exchange is None or (named.vhost, named.destination) not in asked.broker.streams:
        problem = (
            f"expected an exchange and a queue that exist, got {named.source!r} and {named.destination!r}"
        )
        raise bad(where, problem)
    binding_from(read_object(row, NewBinding, where), exchange, named.destination, where)


#: In the order in which they need each other.
_PARTS: dict[str, Callable[[Asked, _Named, Any, str], None]] = {
    "users": _user,
    "vhosts": _virtual_host,
    "permissions": _permission,
    "policies": _policy,
    "queues": _queue,
    "exchanges": _exchange,
    "bindings": _binding,
}

ROUTES = (
    Route("GET", "/definitions", _definitions, administrator=True),
    Route("GET", "/definitions/{vhost}", _definitions),
    Route("POST", "/definitions", _import, administrator=True),
    Route("POST", "/definitions/{vhost}", _import),
)
