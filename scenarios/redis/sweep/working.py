"""Base scripts of what clients do all day: publish, ask, wait for lists, listen."""

from __future__ import annotations

from conformance.run.bases import ScriptContext, base, text
from fakebrokers.faults import reply
from scenarios.redis.sweep._shared import (
    EVENTS,
    GET,
    INCR,
    POP,
    PROBE,
    PUBLISH,
    SET,
    put,
    subscribed,
    watched,
)


@base(role="publisher", handshake=True)
async def publish(context: ScriptContext) -> None:
    """Publishes that wait for their outcomes, one after the other and some at a time."""
    await context.connect(auto_reconnect=True)
    await context.op("publish", body=text("a"), **PUBLISH)
    await context.ended([context.begin("publish", body=text(f"b{i}"), **PUBLISH) for i in range(3)])
    await context.op("publish", body=text("c"), **PUBLISH)
    await context.finale("publish", **PROBE)


@base(role="publisher")
async def unwaited(context: ScriptContext) -> None:
    """Publishes whose outcomes come as events; no reconnect."""
    await context.connect(auto_reconnect=False)
    for number in range(4):
        await context.op("publish", target="P", wait=False, body=text(f"a{number}"))
    await context.sleep(3)
    await context.finale("publish", **PROBE)


@base(role="publisher")
async def bodies(context: ScriptContext) -> None:
    """Bodies that look like RESP, empty ones, bytes that are no text, and large ones, there and back."""
    await context.connect(auto_reconnect=True)
    await subscribed(context, "P")
    large = {"gen": "rand", "seed": 1, "len": 100_000}
    for body in (text(""), text("\r\n$1\r\n"), {"b64": "/wD+AA=="}, text("+OK"), text("äö"), large):
        await context.op("publish", body=body, **PUBLISH)
    await context.sleep(1)
    await context.finale("publish", **PROBE)


@base(role="publisher")
async def refused(context: ScriptContext) -> None:
    """Publishes of which some are refused."""
    await context.connect(auto_reconnect=True)
    context.broker.faults.add(reply(1, kind="Publish", nth=2, scope="run"))
    calls = [context.begin("publish", body=text(f"a{i}"), **PUBLISH) for i in range(4)]
    await context.ended(calls)
    await context.finale("publish", **PROBE)


@base(role="caller")
async def ask(context: ScriptContext) -> None:
    """Commands with replies of all kinds, some at a time, errors among them."""
    await context.connect(auto_reconnect=True)
    for words in (SET, GET, INCR, ["RPUSH", "L", "x", "y"], ["LRANGE", "L", "0", "-1"]):
        await context.op("redis.call", words=words)
    asked = (INCR, GET, ["INCR", "K"], ["GET", "none"], ["MGET", "K", "none"], ["LPOP", "L"])
    await context.ended([context.begin("redis.call", words=words) for words in asked])
    await context.finale("redis.call", words=["ECHO", "probe"])


@base(role="caller")
async def pop(context: ScriptContext) -> None:
    """Pops that wait for an element, beside commands that do not wait; one comes, one does not."""
    await context.connect(auto_reconnect=True)
    waiting = context.begin("redis.call", words=POP)
    await context.sleep(0.2)
    await context.op("redis.call", words=SET)
    context.broker.push("L", "element")
    await context.ended([waiting])
    await context.ended([context.begin("redis.call", words=POP), context.begin("redis.call", words=GET)])
    await context.finale("redis.call", words=["ECHO", "probe"])


@base(role="consumer", handshake=True)
async def consume(context: ScriptContext) -> None:
    """Messages one by one and at once."""
    await context.connect(auto_reconnect=True)
    await subscribed(context)
    put(context, "C", "m0", "m1", "m2")
    await context.sleep(1)
    put(context, "C", "m3")
    await watched(context, "last")
    await context.finale("publish", **PROBE)


@base(role="consumer")
async def patterns(context: ScriptContext) -> None:
    """A channel, a pattern and a sharded channel of one session."""
    await context.connect(auto_reconnect=True)
    await subscribed(context)
    await subscribed(context, "D*", "c2", options={"way": "pattern"})
    await subscribed(context, "S", "c3", options={"way": "shard"})
    put(context, "C", "m0")
    put(context, "D1", "m1")
    put(context, "D2", "m2")
    await watched(context, "last")
    await context.finale("publish", **PROBE)


@base(role="consumer")
async def several(context: ScriptContext) -> None:
    """Two channels, and a session that subscribes while messages come."""
    await context.connect(auto_reconnect=True)
    await subscribed(context, "C1", "c1")
    for number in range(3):
        put(context, "C1", f"m{number}")
    await subscribed(context, "C2", "c2")
    put(context, "C2", "n0")
    put(context, "C1", "m3")
    await watched(context, "last", "C1")
    await context.finale("publish", **PROBE)


@base(role="consumer")
async def unsubscribed(context: ScriptContext) -> None:
    """A subscription that ends while messages come, and one that goes on; then the first one again."""
    await context.connect(auto_reconnect=True)
    await subscribed(context, "C1", "c1")
    await subscribed(context, "C2", "c2")
    put(context, "C1", "m0")
    ending = context.begin("unsubscribe", sub="c1")
    put(context, "C1", "m1")
    put(context, "C2", "n0")
    await context.ended([ending])
    await context.sleep(3)
    await subscribed(context, "C1", "c3")
    await watched(context, "last", "C1")
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def slow(context: ScriptContext) -> None:
    """Callbacks that take their time, while the application publishes."""
    await context.connect(auto_reconnect=True)
    await subscribed(context, on_message={**EVENTS, "sleep_ms": 1500})
    put(context, "C", "m0", "m1", "m2")
    for number in range(3):
        await context.op("publish", body=text(f"a{number}"), **PUBLISH)
        await context.sleep(1)
    await context.sleep(5)
    await watched(context, "last")
    await context.finale("publish", **PROBE)
