"""Base scripts of what is spread: partitions that are read, filters, and more ids than a byte has."""

from __future__ import annotations

from typing import Any

from conformance.run.bases import ScriptContext, base, text
from fakebrokers.faults import reply
from fakebrokers.rabbitmq_stream.codes import Code
from scenarios.rabbitmq_stream.sweep._shared import ASK, EVENTS, PROBE, PUBLISH, put, record, watched
from scenarios.rabbitmq_stream.sweep.records import with_sections

PARTITIONS = ("P-0", "P-1")
IDS = 256  #: of the publishers or subscriptions of a connection: one byte (document, 6)


def _fill(context: ScriptContext, part: str) -> None:
    """Messages in each partition, which name it."""
    for name in PARTITIONS:
        context.broker.publish(name, [record(context, f"{name} {part}{i}") for i in range(3)])


@base(role="consumer", injections=False, needs=["super_streams", "sac"])
async def read_super_stream(context: ScriptContext) -> None:
    """Two single active consumers read a super stream, each with both of its partitions."""
    context.broker.create_stream("S")
    context.broker.create_super_stream("P", PARTITIONS, ["0", "1"])
    _fill(context, "a")
    await context.connect()
    await context.connect("s2")
    properties = {"single-active-consumer": "true", "name": "app"}
    options = {
        "offset": {"type": "first"}, "credit": 2, "name": "app", "super_stream": True,
        "properties": properties,
    }  # fmt: skip
    for number, session in enumerate(("s1", "s2")):
        sub = f"c{number}"
        await context.op("subscribe", 8.0, session=session, sub=sub, target="P", options=options,
                         on_message=EVENTS)  # fmt: skip
        await context.sleep(1)
    _fill(context, "b")
    await context.sleep(1)
    await context.op("unsubscribe", 8.0, sub="c0")
    await context.sleep(1)
    _fill(context, "c")
    await context.sleep(5)
    await context.op("close", session="s2")
    await context.finale("rmqs.query_sequence", **ASK)


@base(role="consumer", injections=False, needs=["super_streams"])
async def half_a_super_stream(context: ScriptContext) -> None:
    """The second partition of a super stream is refused: the application has no subscription of either."""
    context.broker.create_stream("S")
    context.broker.create_super_stream("P", PARTITIONS, ["0", "1"])
    await context.connect()
    name = context.broker.faults.add(reply(Code.ACCESS_REFUSED, kind="Subscribe", nth=2))
    options = {"offset": {"type": "first"}, "credit": 2, "super_stream": True}
    await context.op("subscribe", 8.0, sub="c1", target="P", options=options, on_message=EVENTS)
    context.broker.faults.remove(name)
    _fill(context, "a")
    await context.sleep(5)
    context.mark("subscribed")
    await context.finale("rmqs.query_sequence", **ASK)


@base(role="consumer", injections=False, needs=["filters"])
async def filtered(context: ScriptContext) -> None:
    """Filters of two subscriptions on one session, each with values of its own, also after a loss."""
    for name in ("S", "S2"):
        context.broker.create_stream(name)
    await context.connect()
    for name, wanted in (("S", {"values": ["a"]}), ("S2", {"values": ["b", "c"], "unfiltered": True})):
        options = {"offset": {"type": "first"}, "credit": 3, "filter": wanted}
        await context.op("subscribe", sub=name, target=name, options=options, on_message=EVENTS)
    for part in range(2):
        for value in ("a: ", "b: ", "c: ", ""):
            for name in ("S", "S2"):
                body = text(f"{value}{name}{part}")
                await context.op("publish", 8.0, body=body, target=name, wait=True, filtered=True)
        await context.sleep(1)
        context.kill()
        await context.sleep(20)
    await watched(context, "a: last")
    await context.finale("publish", **PROBE)


@base(role="consumer", server={"profile": "3.10"}, injections=False, needs=["filters"])
async def passed_over(context: ScriptContext) -> None:
    """A server that knows no filters sends chunks first of which the subscription wants nothing."""
    starts = {"S": {"type": "timestamp", "value": 1000}, "S2": {"type": "offset", "value": 1}}
    for name in starts:
        context.broker.create_stream(name)

    def store(*bodies: str) -> None:
        for name in starts:
            context.broker.publish(name, [record(context, body) for body in bodies])

    store("b: 0", "b: 1")
    await context.connect()
    for name, start in starts.items():
        options = {"offset": start, "credit": 2, "filter": {"values": ["a"]}}
        await context.op("subscribe", sub=name, target=name, options=options, on_message=EVENTS)
    await context.sleep(1)
    store("a: 2", "b: 3")
    await context.sleep(1)
    context.kill()
    await context.sleep(20)
    store("b: 4")
    await watched(context, "a: last")
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False, costly=True)
async def many_subscriptions(context: ScriptContext) -> None:
    """More subscriptions after each other than there are ids, besides one that stays."""
    for name in ("S", "S2"):
        context.broker.create_stream(name)
    await context.connect()
    options = {"offset": {"type": "next"}, "credit": 2}
    await context.op("subscribe", sub="stays", target="S", options=options, on_message=EVENTS)
    for number in range(IDS + 4):
        sub = f"c{number}"
        await context.op("subscribe", sub=sub, target="S2", options=options, on_message=EVENTS)
        await context.op("unsubscribe", sub=sub)
    put(context, "m0", "m1")
    await context.sleep(1)
    await watched(context, "last")
    await context.finale("rmqs.query_sequence", **ASK)


@base(role="publisher", injections=False, costly=True)
async def many_publishers(context: ScriptContext) -> None:
    """More publishers after each other than there are ids, besides one that stays."""
    context.broker.create_stream("S")
    await context.connect()
    await context.op("publish", body=text("stays"), **PUBLISH)
    for number in range(IDS + 4):
        name = f"p{number}"
        await context.op("publish", body=text(f"m{number}"), name=name, **PUBLISH)
        await context.op("rmqs.delete_publisher", target="S", name=name)
    await context.op("publish", body=text("still there"), **PUBLISH)
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def sections(context: ScriptContext) -> None:
    """Messages of AMQP 1.0 of another publisher, with a section of every kind around their data."""
    context.broker.create_stream("S")
    await context.connect()
    options = {"offset": {"type": "first"}, "credit": 3}
    await context.op("subscribe", sub="c1", target="S", options=options, on_message=EVENTS)
    for number, size in enumerate((0, 5, 300)):
        body = f"m{number}".ljust(size, "x").encode()
        context.broker.publish("S", [with_sections(body), with_sections(body + b"-")])
        await context.sleep(1)
    await watched(context, "last")
    await context.finale("rmqs.query_sequence", **ASK)


@base(role="consumer", injections=False, needs=["filters", "sac"])
async def each_its_own(context: ScriptContext) -> None:
    """Subscriptions with properties or a filter of their own, and one with neither, also after a loss."""
    options: dict[str, dict[str, Any]] = {
        "S": {"properties": {"single-active-consumer": "true"}, "name": "app"},
        "S2": {"filter": {"values": ["a"], "unfiltered": True}},
        "S3": {},
    }
    for name in options:
        context.broker.create_stream(name)
    await context.connect()
    for name, more in options.items():
        given = {"offset": {"type": "first"}, "credit": 3, **more}
        await context.op("subscribe", sub=name, target=name, options=given, on_message=EVENTS)
    for part in range(2):
        for name in options:
            context.broker.publish(name, [record(context, f"{name}{part}")])
        await context.sleep(1)
        context.kill()
        await context.sleep(20)
    await watched(context, "last")
    await context.finale("rmqs.query_sequence", **ASK)
