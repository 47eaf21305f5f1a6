"""Streams as queues; super streams as exchanges with bindings (docs/protocols/rabbitmq-stream.md, 9)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

import msgspec

from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.management.asked import (
    CREATED,
    DONE,
    Answer,
    Asked,
    Failure,
    Route,
    bad,
    listing,
    not_found,
)
from fakebrokers.rabbitmq_stream.refusals import Crashed, Refused
from fakebrokers.rabbitmq_stream.rows import Row, tag_rows
from fakebrokers.rabbitmq_stream.stream import Stream
from fakebrokers.rabbitmq_stream.superstreams import Binding, SuperStream

_ORDER = "x-stream-partition-order"
_LARGEST_ORDER = 1 << 31


class NewQueue(msgspec.Struct, frozen=True):
    """What a stream is declared with."""

    durable: bool = True
    auto_delete: bool = False
    arguments: dict[str, Any] = {}


class NewExchange(msgspec.Struct, frozen=True):
    """What an exchange is declared with."""

    type: str = "direct"
    durable: bool = True
    auto_delete: bool = False
    internal: bool = False
    arguments: dict[str, Any] = {}


class NewBinding(msgspec.Struct, frozen=True):
    """A key that leads from an exchange to a queue."""

    routing_key: str = ""
    arguments: dict[str, Any] = {}


# queues


def queue_rows(asked: Asked) -> Iterable[Row]:
    """The streams, as queues."""
    readers = [(row["queue"]["vhost"], row["queue"]["name"]) for row in tag_rows(asked.server)]
    for key, stream in asked.broker.streams.items():
        yield _queue_row(asked, stream, readers.count(key))


def _queue_row(asked: Asked, stream: Stream, consumers: int) -> Row:
    place = stream.membership
    leader = place.leader.name if place.leader else None
    policy = asked.broker.policies.of(stream.virtual_host, stream.name)
    return {
        "name": stream.name,
        "vhost": stream.virtual_host,
        "type": "stream",
        "durable": True,
        "auto_delete": False,
        "exclusive": False,
        "arguments": arguments_of(stream),
        "policy": policy.name if policy else None,
        "effective_policy_definition": policy.definition if policy else {},
        "operator_policy": None,
        "consumers": consumers,
        "messages": len(stream),
        "messages_ready": len(stream),
        "messages_unacknowledged": 0,
        "state": "running" if place.can_write else "down",
        "leader": leader,
        "node": leader or place.members[0].name,
        "members": [member.name for member in place.members],
        "online": [member.name for member in place.members if member.up],
    }


def arguments_of(stream: Stream) -> Row:
    """What the stream was declared with, by the names that queues have for it."""
    return {"x-queue-type": "stream"} | {f"x-{name}": v for name, v in stream.arguments.declared.items()}


def _queue(asked: Asked) -> Answer:
    stream = asked.stream()
    wanted = {"name": stream.name, "vhost": stream.virtual_host}
    readers = [row for row in tag_rows(asked.server) if row["queue"] == wanted]
    return 200, _queue_row(asked, stream, len(readers)) | {"consumer_details": readers}


def _create(asked: Asked) -> Answer:
    return create_stream(asked, asked.owned_virtual_host(), asked.at["name"], asked.read(NewQueue), "body")


def create_stream(asked: Asked, virtual_host: str, name: str, new: NewQueue, where: str) -> Answer:
    """Declare a stream; 204 if it is there already with the same arguments."""
    kind = new.arguments.get("x-queue-type")
    if kind != "stream":
        problem = f"expected 'stream', as this fake has queues of no other type, got {kind!r}"
        raise bad(f"{where}.arguments.x-queue-type", problem)
    for field, right in (("durable", True), ("auto_delete", False)):
        if getattr(new, field) is not right:
            raise bad(f"{where}.{field}", f"expected {str(right).lower()}, as streams are, got the opposite")
    wire = {key.removeprefix("x-"): str(v) for key, v in new.arguments.items() if key != "x-queue-type"}
    try:
        asked.broker.create(virtual_host, name, wire, asked.broker.cluster.nodes[0])
    except Refused as refused:
        if refused.code == Code.STREAM_ALREADY_EXISTS:
            return DONE
        present = asked.broker.streams.get((virtual_host, name))
        if present is None:
            raise bad(where, f"expected a name and arguments that a stream can have, got {name!r}") from None
        problem = f"inequivalent arg for queue '{name}': current is {arguments_of(present)}"
        raise bad(f"{where}.arguments", problem) from None
    except Crashed as problem_:
        raise bad(f"{where}.arguments", str(problem_)) from None
    return CREATED


def _delete(asked: Asked) -> Answer:
    stream = asked.stream()
    asked.broker.delete(stream.name, asked.now, stream.virtual_host)
    return DONE


# exchanges


def exchange_rows(asked: Asked) -> Iterable[Row]:
    """The exchanges that were declared, as super streams or by themselves."""
    return [_exchange_row(found) for found in asked.broker.super_streams.values()]


def _exchange_row(found: SuperStream) -> Row:
    return {
        "name": found.name,
        "vhost": found.virtual_host,
        "type": "direct",
        "durable": True,
        "auto_delete": False,
        "internal": False,
        "arguments": found.arguments,
    }


def _exchange(asked: Asked) -> Answer:
    return 200, _exchange_row(asked.exchange())


def _declare(asked: Asked) -> Answer:
    virtual_host = asked.owned_virtual_host()
    return declare_exchange(asked, virtual_host, asked.at["name"], asked.read(NewExchange), "body")


def declare_exchange(asked: Asked, virtual_host: str, name: str, new: NewExchange, where: str) -> Answer:
    """Declare an exchange; 204 if it is there already."""
    if new.type != "direct":
        problem = f"expected 'direct', as super streams of this fake have no other, got {new.type!r}"
        raise bad(f"{where}.type", problem)
    if name.startswith("amq.") or not name:
        raise Failure(401, "not_authorised", "Access refused.")
    there = asked.broker.super_streams
    if (virtual_host, name) in there:
        return DONE
    made = there[virtual_host, name] = SuperStream(virtual_host, name, [])
    made.arguments = dict(new.arguments)
    return CREATED


def _remove(asked: Asked) -> Answer:
    """Delete an exchange with its bindings; the streams stay."""
    found = asked.exchange()
    del asked.broker.super_streams[found.virtual_host, found.name]
    return DONE


# bindings


def binding_rows(asked: Asked) -> Iterable[Row]:
    """The bindings of all exchanges, and the one that every queue has to the default exchange."""
    for virtual_host, name in asked.broker.streams:
        yield _binding_row("", virtual_host, Binding(name, name, None))
    for found in asked.broker.super_streams.values():
        for binding in found.bindings:
            yield _binding_row(found.name, found.virtual_host, binding)


def _binding_row(source: str, virtual_host: str, binding: Binding) -> Row:
    return {
        "source": source,
        "vhost": virtual_host,
        "destination": binding.partition,
        "destination_type": "queue",
        "routing_key": binding.key,
        "arguments": {} if binding.order is None else {_ORDER: binding.order},
        "properties_key": properties_key(binding),
    }


def properties_key(binding: Binding) -> str:
    """What a binding is called in paths: its key, with its order where it has one."""
    key = quote_plus(binding.key) or "~"
    return key if binding.order is None else f"{key}~{binding.order}"


def _bindings_of(side: str) -> Callable[[Asked], Answer]:
    """The bindings with this exchange as ``source``, or this queue as ``destination``."""

    def act(asked: Asked) -> Answer:
        (asked.exchange if side == "source" else asked.stream)()
        here = asked.at["vhost"], asked.at["name"]
        return 200, [row for row in binding_rows(asked) if (row["vhost"], row[side]) == here]

    return act


def _bindings_to_exchange(asked: Asked) -> Answer:
    asked.exchange()
    return 200, []  # nothing binds an exchange to another here


def _between(asked: Asked) -> tuple[SuperStream, Stream]:
    """Exchange and queue in the path; `Failure` 404 in the words that makers of bindings get."""
    virtual_host = asked.owned_virtual_host()
    found = asked.broker.super_streams.get((virtual_host, asked.at["source"]))
    if found is None:
        raise Failure(404, "not_found", f"no exchange '{asked.at['source']}' in vhost '{virtual_host}'")
    stream = asked.broker.streams.get((virtual_host, asked.at["destination"]))
    if stream is None:
        raise Failure(404, "not_found", f"no queue '{asked.at['destination']}' in vhost '{virtual_host}'")
    return found, stream


def _bindings_between(asked: Asked) -> Answer:
    found, stream = _between(asked)
    between = [one for one in found.bindings if one.partition == stream.name]
    return 200, [_binding_row(found.name, found.virtual_host, one) for one in between]


def _bind(asked: Asked) -> Answer:
    found, stream = _between(asked)
    made = binding_from(asked.read(NewBinding), found, stream.name, "body")
    return 201, None, f"{quote(stream.name, safe='')}/{quote(properties_key(made), safe='')}"


def binding_from(new: NewBinding, found: SuperStream, partition: str, where: str) -> Binding:
    """Add a binding."""
    order = _order_of(new.arguments, f"{where}.arguments.{_ORDER}")
    made = Binding(partition, new.routing_key, order)
    found.bind(made)
    return made


def _order_of(arguments: Mapping[str, Any], where: str) -> int | None:
    """The order that a binding asks for; a server takes text too, as long as it is a number."""
    given = arguments.get(_ORDER)
    if given is None:
        return None
    text = str(given) if isinstance(given, int | str) and not isinstance(given, bool) else ""
    if not (text.isascii() and text.isdecimal() and len(text) < 11 and int(text) < _LARGEST_ORDER):
        raise bad(where, f"expected a number from 0, got {str(given)[:100]!r}")
    return int(text)


def _named_binding(asked: Asked) -> tuple[SuperStream, Binding]:
    found, stream = _between(asked)
    for each in found.bindings:
        if each.partition == stream.name and properties_key(each) == asked.at["properties"]:
            return found, each
    raise not_found()


def _binding(asked: Asked) -> Answer:
    found, binding = _named_binding(asked)
    return 200, _binding_row(found.name, found.virtual_host, binding)


def _unbind(asked: Asked) -> Answer:
    found, binding = _named_binding(asked)
    found.unbind(binding.partition, binding.key)
    return DONE


_BETWEEN = "/bindings/{vhost}/e/{source}/q/{destination}"

ROUTES = (
    Route("GET", "/queues", lambda asked: listing(asked, queue_rows(asked))),
    Route("GET", "/queues/{vhost}", lambda asked: listing(asked, queue_rows(asked))),
    Route("GET", "/queues/{vhost}/{name}", _queue),
    Route("PUT", "/queues/{vhost}/{name}", _create),
    Route("DELETE", "/queues/{vhost}/{name}", _delete),
    Route("GET", "/queues/{vhost}/{name}/bindings", _bindings_of("destination")),
    Route("GET", "/exchanges", lambda asked: listing(asked, exchange_rows(asked))),
    Route("GET", "/exchanges/{vhost}", lambda asked: listing(asked, exchange_rows(asked))),
    Route("GET", "/exchanges/{vhost}/{name}", _exchange),
    Route("PUT", "/exchanges/{vhost}/{name}", _declare),
    Route("DELETE", "/exchanges/{vhost}/{name}", _remove),
    Route("GET", "/exchanges/{vhost}/{name}/bindings/source", _bindings_of("source")),
    Route("GET", "/exchanges/{vhost}/{name}/bindings/destination", _bindings_to_exchange),
    Route("GET", "/bindings", lambda asked: listing(asked, binding_rows(asked))),
    Route("GET", "/bindings/{vhost}", lambda asked: listing(asked, binding_rows(asked))),
    Route("GET", _BETWEEN, _bindings_between),
    Route("POST", _BETWEEN, _bind),
    Route("GET", _BETWEEN + "/{properties}", _binding),
    Route("DELETE", _BETWEEN + "/{properties}", _unbind),
)
