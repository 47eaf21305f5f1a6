"""Base scripts in which things meet: options of one op, several who listen to one channel, two ends."""

from __future__ import annotations

from typing import Any

from conformance.run.bases import ScriptContext, base, text
from conformance.run.endings import endings, unsubscribe
from conformance.run.pairs import pairs
from scenarios.redis.sweep._shared import EVENTS, PROBE, put, subscribed, watched

#: The options of each op.
OPTIONS: dict[str, dict[str, Any]] = {
    "publish": {"wait": (True, False)},
    "subscribe": {"options.way": ("channel", "pattern", "shard"), "on_message.sleep_ms": (20,)},
}


@base(role="publisher", injections=False)
async def published_with(context: ScriptContext) -> None:
    """Messages to channels with somebody who listens and without, waited for or not."""
    await context.connect(auto_reconnect=True)
    await subscribed(context, "heard")
    for number, args in enumerate(pairs(OPTIONS["publish"], {"target": ("heard", "unheard")})):
        await context.op("publish", body=text(f"m{number}"), **args)
    await context.sleep(3)
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def consumed_with(context: ScriptContext) -> None:
    """Subscriptions with each option with each, of channels of their own; messages for all of them."""
    await context.connect(auto_reconnect=True)
    options = pairs(OPTIONS["subscribe"], {"on_message.mode": ("event",)})
    for number, args in enumerate(options):
        await context.op("subscribe", sub=f"c{number}", target=f"C{number}", **args)
    for turn in range(3):
        for number in range(len(options)):
            put(context, f"C{number}", f"m{turn} of {number}")
        await context.sleep(0.5)
    await watched(context, "last", "C0")
    await context.finale("publish", **PROBE)


@base(role="consumer", needs=["callback_raise"], injections=False)
async def one_raises(context: ScriptContext) -> None:
    """Several who listen to one channel, and the callbacks of some raise at each message."""
    context.notes.raises = True
    await context.connect(auto_reconnect=True)
    raising = {**EVENTS, "raise_on": [1, 2, 3]}
    for sub, plan in (("one", raising), ("two", EVENTS), ("three", raising), ("four", EVENTS)):
        await subscribed(context, "C", sub, on_message=plan)
    for number in range(3):
        put(context, "C", f"m{number}")
        await context.sleep(0.5)
    await watched(context, "last", "C")
    await context.finale("publish", **PROBE)


async def _busy(context: ScriptContext) -> None:
    """Two subscriptions, one in a slow callback with more messages behind it."""
    await context.connect(auto_reconnect=True)
    await subscribed(context, "C", "c1", on_message={**EVENTS, "sleep_ms": 900})
    await subscribed(context, "D", "c2")
    put(context, "C", "m0", "m1", "m2")
    await context.sleep(0.5)


ENDINGS = endings(_busy, [unsubscribe("c1"), unsubscribe("c2", "unsubscribe-other")], role="consumer")
