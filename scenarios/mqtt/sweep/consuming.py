"""Base scripts of applications that subscribe."""

from __future__ import annotations

from conformance.run.bases import ScriptContext, base, text
from fakebrokers.faults import latency
from fakebrokers.mqtt.faults import refuse_subscription
from scenarios.mqtt.sweep._shared import EVENTS, LASTING, PROBE, PUBLISH, put, subscribed, watched


@base(role="consumer", handshake=True)
async def consume(context: ScriptContext) -> None:
    """Messages with QoS 1 as they come."""
    await context.connect()
    await subscribed(context)
    for number in range(3):
        put(context, f"m{number}", f"n{number}")
        await context.sleep(0.3)
    await watched(context, "last")
    await context.finale()


@base(role="consumer", needs=["at_release"])
async def consume_once(context: ScriptContext) -> None:
    """Messages with QoS 2: each is delivered once, when it is released."""
    await context.connect()
    await subscribed(context, qos=2)
    for number in range(3):
        put(context, f"m{number}", f"n{number}", qos=2)
        await context.sleep(0.3)
    await watched(context, "last")
    await context.finale()


@base(role="consumer")
async def unreliable(context: ScriptContext) -> None:
    """A subscription with QoS 0, and one with a wildcard."""
    await context.connect()
    await subscribed(context, qos=0)
    await subscribed(context, "c2", "stock/+/left", qos=2)
    for number in range(3):
        put(context, f"m{number}")
        put(context, f"s{number}", topic=f"stock/{number}/left", qos=1)
        put(context, f"t{number}", topic=f"stock/{number}/sold")
        await context.sleep(0.3)
    await watched(context, "last")
    await context.finale()


@base(role="consumer", needs=["lasting"])
async def consume_lasting(context: ScriptContext) -> None:
    """A session that lasts: what comes while the client is away comes when it is back."""
    await context.connect(**LASTING)
    await subscribed(context)
    for number in range(2):
        put(context, f"m{number}")
        await context.sleep(0.3)
        context.kill("rst" if number else "fin")
        put(context, f"away{number}", f"still{number}")
        await context.sleep(4)
    await watched(context, "last")
    await context.finale()


@base(role="consumer")
async def resubscribed(context: ScriptContext) -> None:
    """Subscriptions that end and begin again, and one that nobody ends."""
    await context.connect()
    await subscribed(context, "kept", "kept/a")
    for number in range(3):
        await subscribed(context, f"c{number}")
        put(context, f"m{number}")
        put(context, f"k{number}", topic="kept/a")
        await context.sleep(0.5)
        await context.op("unsubscribe", sub=f"c{number}")
        put(context, f"nobody{number}")
        await context.sleep(0.2)
    await watched(context, "last", "kept/a")
    await context.finale()


@base(role="consumer", injections=False)
async def refused(context: ScriptContext) -> None:
    """A server that refuses a filter, and takes the next one."""
    await context.connect()
    name = context.broker.faults.add(refuse_subscription(nth=1))
    await subscribed(context, "c1", "secret/a")
    context.broker.faults.remove(name)
    await subscribed(context, "c2")
    put(context, "m0")
    await watched(context, "last")
    await context.finale()


@base(role="consumer", injections=False)
async def refused_again(context: ScriptContext) -> None:
    """A filter that the server refuses after a reconnect."""
    await context.connect()
    await subscribed(context, "c1", "kept/a")
    put(context, "k0", topic="kept/a")
    await context.sleep(0.5)
    name = context.broker.faults.add(refuse_subscription(scope="run"))
    context.kill()
    await context.sleep(10)
    context.broker.faults.remove(name)
    await subscribed(context, "c2")
    await watched(context, "last")
    await context.finale()


@base(role="consumer", injections=False, needs=["callback_sleep"])
async def slow(context: ScriptContext) -> None:
    """Callbacks that take longer than messages take to come; then a close in the middle."""
    await context.connect()
    await subscribed(context, on_message={**EVENTS, "sleep_ms": 200})
    put(context, *[f"m{i}" for i in range(30)])
    await context.sleep(1)
    await context.finale()


@base(role="consumer", injections=False, needs=["reentrant"])
async def inside(context: ScriptContext) -> None:
    """Callbacks that publish, and one that ends its own subscription."""
    await context.connect()
    inner = {"session": "s1", "body": text("inner"), **PUBLISH}
    await subscribed(
        context, on_message={**EVENTS, "do": [{"op": "publish", "args": inner, "timeout_ms": 2000}]}
    )
    put(context, "m0", "m1")
    await context.sleep(1)
    end = {"op": "unsubscribe", "args": {"sub": "c2"}, "timeout_ms": 2000}
    await subscribed(context, "c2", "other/a", {**EVENTS, "do": [end]})
    put(context, "o0", topic="other/a")
    await context.sleep(1)
    await watched(context, "last")
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def hasty(context: ScriptContext) -> None:
    """Subscriptions that get no time, or nearly none, between others that get enough."""
    context.notes.abandons = True
    await context.connect()
    context.broker.faults.add(latency(1.0, direction="out"))
    for number, timeout in enumerate((0.0, 0.001, 3.0, 0.0)):
        await context.op(
            "subscribe", timeout, sub=f"c{number}", target=f"h/{number}", options={}, on_message=EVENTS
        )
        put(context, f"m{number}", topic=f"h/{number}")
        await context.sleep(2)
    await watched(context, "last", "h/2")
    await context.finale()


@base(role="consumer", needs=["abort", "lasting"])
async def taken_over(context: ScriptContext) -> None:
    """The application drops its session, and connects anew under the same client id."""
    await context.connect(**LASTING)
    await subscribed(context)
    put(context, "m0")
    await context.sleep(0.5)
    await context.op("abort")
    put(context, "away")
    await context.sleep(2)
    await context.connect(**LASTING)
    await subscribed(context, "c2")
    put(context, "m1")
    await context.sleep(2)
    await context.finale()
