"""Base scripts in which things meet: options of one op, several subscriptions of one subject, two ends."""

from __future__ import annotations

from typing import Any

from conformance.run.bases import ScriptContext, base, text
from conformance.run.endings import Ending, endings, unsubscribe
from conformance.run.pairs import pairs
from scenarios.nats.sweep._shared import EVENTS, PROBE, put, subscribed, watched

#: The options of each op.
OPTIONS: dict[str, dict[str, Any]] = {
    "publish": {"wait": (True, False)},
    "subscribe": {"options.queue": ("workers", "others"), "on_message.sleep_ms": (20,)},
}
WITH_MAX = {"options.max": (2, 5)}


@base(role="publisher", injections=False)
async def published_with(context: ScriptContext) -> None:
    """Messages with bodies and without, each option with each."""
    await context.connect()
    for number, args in enumerate(pairs(OPTIONS["publish"], {"target": ("jobs", "other.a")})):
        await context.op("publish", body=text(f"m{number}"), **args)
    await context.sleep(3)
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def consumed_with(context: ScriptContext) -> None:
    """Subscriptions with each option with each, of subjects of their own; messages for all of them."""
    await context.connect()
    more = WITH_MAX if context.adapter.hello.can("max_messages") else {}
    options = pairs({**OPTIONS["subscribe"], **more}, {"on_message.mode": ("event",)})
    for number, args in enumerate(options):
        await context.op("subscribe", sub=f"c{number}", target=f"orders.{number}", **args)
    for turn in range(4):
        for number in range(len(options)):
            put(context, f"orders.{number}", f"m{turn} of {number}")
        await context.sleep(0.5)
    for number, args in enumerate(options):
        if "max" in args.get("options", {}):
            await context.op("unsubscribe", sub=f"c{number}")
    await watched(context, "orders.0")
    await context.finale("publish", **PROBE)


@base(role="consumer", needs=["callback_raise"], injections=False)
async def one_raises(context: ScriptContext) -> None:
    """Several subscriptions of one subject, some of which raise at each message."""
    context.notes.raises = True
    await context.connect()
    raising = {**EVENTS, "raise_on": [1, 2, 3]}
    for sub, plan in (("one", raising), ("two", EVENTS), ("three", raising), ("four", EVENTS)):
        await subscribed(context, "orders", sub, plan)
    for number in range(3):
        put(context, "orders", f"m{number}")
        await context.sleep(0.5)
    await watched(context, "orders")
    await context.finale("publish", **PROBE)


async def _busy(context: ScriptContext) -> None:
    """Two subscriptions, one in a slow callback with more messages behind it."""
    await context.connect()
    await subscribed(context, "orders", "c1", {**EVENTS, "sleep_ms": 900})
    await subscribed(context, "stock", "c2")
    put(context, "orders", "m0", "m1", "m2")
    put(context, "stock", "s0")
    await context.sleep(0.5)


ENDINGS = endings(
    _busy,
    [
        unsubscribe("c1", "drain", drain=True),
        unsubscribe("c1"),
        unsubscribe("c2", "unsubscribe-other"),
        Ending("drain-all", "nats.drain"),
    ],
    role="consumer",
)
