"""Base scripts in which things meet: options of one op, several filters that one topic fits, two ends."""

from __future__ import annotations

from typing import Any

from conformance.run.bases import ScriptContext, base, text
from conformance.run.endings import endings, unsubscribe
from conformance.run.pairs import pairs
from scenarios.mqtt.sweep._shared import EVENTS, PROBE, R, put, subscribed, watched

#: The options of each op; a publish with QoS 0 is not waited for.
OPTIONS: dict[str, dict[str, Any]] = {
    "publish": {"qos": (1, 2), "retain": (True, False), "wait": (True, False)},
    "subscribe": {"options.qos": (0, 1, 2), "on_message.sleep_ms": (20,)},
}


@base(role="publisher", injections=False)
async def published_with(context: ScriptContext) -> None:
    """Messages to two topics, with and without somebody who listens, each option with each."""
    await context.connect()
    await subscribed(context, "c1", "jobs/heard")
    topics = {"target": ("jobs/heard", "jobs/unheard")}
    at_most_once = pairs({"retain": (True, False)}, {**topics, "qos": (0,), "wait": (False,)})
    for number, args in enumerate([*pairs(OPTIONS["publish"], topics), *at_most_once]):
        await context.op("publish", body=text(f"m{number}"), **args)
    await context.sleep(3)
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def consumed_with(context: ScriptContext) -> None:
    """Subscriptions with each option with each, and messages of each QoS for all of them."""
    await context.connect()
    options = pairs(OPTIONS["subscribe"], {"on_message.mode": ("event",)})
    for number, args in enumerate(options):
        await context.op("subscribe", sub=f"c{number}", target=f"orders/{number}", **args)
    for qos in (0, 1, 2):
        for number in range(len(options)):
            put(context, f"m{qos} of {number}", topic=f"orders/{number}", qos=qos)
        await context.sleep(0.5)
    await watched(context, "last", "orders/0")
    await context.finale()


@base(role="consumer", needs=["callback_raise"], injections=False)
async def one_raises(context: ScriptContext) -> None:
    """Several filters that one topic fits, and the callbacks of some raise at each message."""
    context.notes.raises = True
    await context.connect()
    raising = {**EVENTS, "raise_on": [1, 2, 3]}
    for name, plan in (("orders/+", raising), ("orders/a", EVENTS), ("+/a", raising), ("orders/#", EVENTS)):
        await subscribed(context, name, name, plan)
    for number in range(3):
        put(context, f"m{number}", topic="orders/a")
        await context.sleep(0.5)
    await watched(context, "last", "orders/a")
    await context.finale()


async def _busy(context: ScriptContext) -> None:
    """Two subscriptions, one in a slow callback with more messages behind it."""
    await context.connect()
    await subscribed(context, "c1", R, {**EVENTS, "sleep_ms": 900})
    await subscribed(context, "c2", "orders/other")
    put(context, "m0", "m1", "m2")
    await context.sleep(0.5)


ENDINGS = endings(_busy, [unsubscribe("c1"), unsubscribe("c2", "unsubscribe-other")], role="consumer")
