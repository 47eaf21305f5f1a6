"""Base scripts in which things meet: options of one op, several consumers of one stream, two ends."""

from __future__ import annotations

from typing import Any

from conformance.run.bases import ScriptContext, base, text
from conformance.run.endings import Ending, endings, unsubscribe
from conformance.run.pairs import pairs
from scenarios.rabbitmq_stream.sweep._shared import ASK, EVENTS, PROBE, put, record, watched
from scenarios.rabbitmq_stream.sweep.spread import PARTITIONS

FIRST = {"type": "first"}
#: The options of each op; some are only for clients with a capability.
OPTIONS: dict[str, dict[str, Any]] = {
    "publish": {"wait": (True, False), "name": ("p", "q")},
    "publish_many": {"wait": (True, False), "name": ("p", "q"), "subentry": ("none", "gzip")},
    "subscribe": {
        "options.offset": (FIRST, {"type": "next"}, {"type": "offset", "value": 2}),
        "options.credit": (1, 3),
        "options.name": ("app",),
        "on_message.sleep_ms": (20,),
    },
    "rmqs.create_super_stream": {"arguments": ({}, {"max-age": "2h"}, {"max-length-bytes": "5000000000"})},
}
WITH_FILTERS: dict[str, dict[str, Any]] = {
    "publish": {"filtered": (True, False)},
    "subscribe": {"options.filter": ({"values": ["a"]}, {"values": ["b"], "unfiltered": True})},
}


def _options(context: ScriptContext, op: str) -> dict[str, Any]:
    more = WITH_FILTERS.get(op, {}) if context.adapter.hello.can("filters") else {}
    return {**OPTIONS[op], **more}


def _fill(context: ScriptContext, stream: str, when: str) -> None:
    context.broker.publish(
        stream, [record(context, f"{value}: {when}{n}") for value in "ab" for n in range(2)]
    )


@base(role="publisher", injections=False)
async def published_with(context: ScriptContext) -> None:
    """Messages one by one and many at a time, each option with each."""
    for name in ("S", "S2"):
        context.broker.create_stream(name)
    await context.connect()
    number = 0
    for args in pairs(_options(context, "publish"), {"target": ("S", "S2")}):
        number += 1
        await context.op("publish", body=text(f"a: {number}"), **args)
    for args in pairs(_options(context, "publish_many"), {"target": ("S", "S2")}):
        number += 1
        many = [{"body": text(f"b: {number}/{i}")} for i in range(3)]
        await context.op("publish_many", messages=many, **args)
    await context.sleep(3)
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def consumed_with(context: ScriptContext) -> None:
    """Subscriptions of streams of their own, with each option with each, and messages for all of them."""
    await context.connect()
    context.broker.create_stream("S")
    for number, args in enumerate(pairs(_options(context, "subscribe"), {"on_message.mode": ("event",)})):
        name = f"C{number}"
        context.broker.create_stream(name)
        _fill(context, name, "early")
        await context.op("subscribe", sub=name, target=name, **args)
        _fill(context, name, "late")
    await watched(context, "a: last")
    await context.finale("rmqs.query_sequence", **ASK)


@base(needs=["rmqs.create_super_stream", "rmqs.delete_super_stream"], injections=False)
async def super_streams_made_with(context: ScriptContext) -> None:
    """Super streams of partitions and of keys, with each of several arguments."""
    context.broker.create_stream("S")
    await context.connect()
    parts: tuple[dict[str, Any], ...] = ({"partitions": 2}, {"keys": ["b", "a"]}, {"partitions": 1})
    for number, args in enumerate(
        pairs(OPTIONS["rmqs.create_super_stream"], {"of": parts}),
    ):
        await context.op("rmqs.create_super_stream", target=f"P{number}", **args.pop("of"), **args)
    await context.finale("rmqs.query_sequence", **ASK)


@base(role="consumer", needs=["callback_raise"], injections=False)
async def one_raises(context: ScriptContext) -> None:
    """Several consumers of one stream, some of which raise at each message."""
    context.broker.create_stream("S")
    context.notes.raises = True
    await context.connect()
    raising = {**EVENTS, "raise_on": [1, 2, 3]}
    for sub, plan in (("one", raising), ("two", EVENTS), ("three", raising), ("four", EVENTS)):
        await context.op("subscribe", sub=sub, target="S", options={"offset": FIRST}, on_message=plan)
    for number in range(3):
        put(context, f"m{number}")
        await context.sleep(0.5)
    await watched(context, "last")
    await context.finale("rmqs.query_sequence", **ASK)


async def _busy(context: ScriptContext) -> None:
    """Two consumers, one in a slow callback, and a publisher."""
    for name in ("S", *PARTITIONS):
        context.broker.create_stream(name)
    put(context, "m0", "m1", "m2")
    await context.connect()
    await context.op("publish", target=PARTITIONS[0], body=text("a"), name="p", wait=True)
    for sub, plan in (("c1", {**EVENTS, "sleep_ms": 900}), ("c2", EVENTS)):
        await context.op("subscribe", sub=sub, target="S", options={"offset": FIRST}, on_message=plan)
    await context.sleep(0.5)


ENDINGS = endings(
    _busy,
    [
        unsubscribe("c1"),
        unsubscribe("c2", "unsubscribe-other"),
        Ending("delete-publisher", "rmqs.delete_publisher", {"target": PARTITIONS[0], "name": "p"}),
    ],
    role="consumer",
)
