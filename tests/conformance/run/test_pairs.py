"""Options of one op, each value with each value of the others; and that no option of an op is left out."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import pytest

from conformance.clients.adapter.profile import optional_arguments
from conformance.run.pairs import LEFT_OUT, pairs
from scenarios.blazingmq.sweep import combined as blazingmq
from scenarios.moleculer.sweep import combined as moleculer
from scenarios.mqtt.sweep import combined as mqtt
from scenarios.narconi.sweep import combined as narconi
from scenarios.nats.sweep import combined as nats
from scenarios.pzq.sweep import combined as pzq
from scenarios.rabbitmq_stream.sweep import combined as rabbitmq_stream
from scenarios.redis.sweep import combined as redis

OPTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "blazingmq": blazingmq.OPTIONS,
    "moleculer": moleculer.OPTIONS,
    "mqtt": mqtt.OPTIONS,
    "narconi": narconi.OPTIONS,
    "nats": nats.OPTIONS,
    "pzq": pzq.OPTIONS,
    "rabbitmq-stream": rabbitmq_stream.OPTIONS,
    "redis": redis.OPTIONS,
}
#: Why an option meets no other one there: by op and option, in all protocols or in one.
ELSEWHERE = {
    "next": "for those whose messages wait; no base does that",
    "raise_next": "the harness's own",
    "unsubscribe.drain": "bases of their own, and those of two ends",
    "publish_many.wait": "its only one; RabbitMQ Stream has more",
    "moleculer publish": "its nodes send events",
    "connect": "a session each: the bases about logins, hosts, beats and wills",
    "publish.headers": "only Narconi has them",
    "publish.properties": "only BlazingMQ has them",
    "publish.key": "only those whose users give ids, in the bases about ids",
    "publish.routing": "its target is a super stream: the bases about super streams",
    "publish.filtered": "`WITH_FILTERS`, for clients that can",
    "subscribe.filter": "`WITH_FILTERS`, for clients that can",
    "subscribe.properties": "of single active consumers: bases of their own",
    "subscribe.super_stream": "the bases about super streams",
    "subscribe.tracking": "`tracked`, for clients that can",
    "subscribe.max": "`WITH_MAX`, for clients that can",
    "subscribe.pending_limit": "it drops messages",
    "rmqs.create.arguments": "`created-with`",
    "rmqs.create_super_stream.partitions": "one of them is needed: `super-streams-made-with`",
    "rmqs.create_super_stream.keys": "one of them is needed: `super-streams-made-with`",
    "rmqs.declare_publisher.name": "its only one",
    "rmqs.delete_publisher.name": "its only one",
    "mol.call.stream": "what calls stream has bases of its own",
    "mol.call.chunk": "what calls stream has bases of its own",
    "mol.call.every_ms": "what calls stream has bases of its own",
    "mol.call.breaks": "what calls stream has bases of its own",
    "mol.call.objects": "what calls stream has bases of its own",
    "mol.serve.start_delay_ms": "its only one",
    "mol.listen.sub": "a name",
    "mol.ping.node": "its only one",
    "narc.ensure_queue.options": "its only one",
}


@pytest.mark.parametrize("sizes", [(2, 2), (1, 3, 2), (2, 2, 2, 2), (1, 1, 1, 1, 1, 1), (3,)])
def test_each_value_meets_each_value_of_another_option(sizes: tuple[int, ...]) -> None:
    values = {f"o{number}": [LEFT_OUT, *range(size)] for number, size in enumerate(sizes)}
    rows = pairs({name: given[1:] for name, given in values.items()})
    for one, other in combinations(values, 2):
        met = {(row.get(one, LEFT_OUT), row.get(other, LEFT_OUT)) for row in rows}
        assert met == set(product(values[one], values[other]))
    assert len(sizes) > 1 or len(rows) == sizes[0] + 1


def test_there_are_fewer_rows_than_combinations() -> None:
    assert len(pairs(dict.fromkeys("abcdef", (1, 2)))) < 25


def test_what_is_needed_is_always_there_and_paths_lead_inside() -> None:
    rows = pairs({"options.limit": (1,), "options.ack": (True,)}, {"target": ("a", "b")})
    assert all(row["target"] in "ab" for row in rows)
    assert {"limit": 1, "ack": True} in [row.get("options") for row in rows]
    assert rows == pairs({"options.limit": (1,), "options.ack": (True,)}, {"target": ("a", "b")})


@pytest.mark.parametrize("protocol", OPTIONS)
def test_no_option_is_left_out(protocol: str) -> None:
    there = {
        f"{op}.{name.removeprefix('options.')}"
        for op, options in OPTIONS[protocol].items()
        for name in options
    }
    missing = optional_arguments(protocol) - there
    known = {one: {one, one.rpartition(".")[0], f"{protocol} {one.rpartition('.')[0]}"} for one in missing}
    assert sorted(one for one, names in known.items() if not names & ELSEWHERE.keys()) == []
