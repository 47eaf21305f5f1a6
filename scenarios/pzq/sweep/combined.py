"""Base scripts in which things meet: options of one op, two ends."""

from __future__ import annotations

from typing import Any

from conformance.run.bases import ScriptContext, base, text
from conformance.run.endings import endings, unsubscribe
from conformance.run.pairs import pairs
from scenarios.pzq.sweep._shared import ACKING, EVENTS, PATIENT, PROBE, put, subscribed, watched

#: The options of each op.
OPTIONS: dict[str, dict[str, Any]] = {
    "publish": {"wait": (True, False)},
    "subscribe": {
        "options.filter_expired": (True, False),
        "on_message.auto_settle": ("ack",),
        "on_message.sleep_ms": (300,),
    },
}


@base(role="publisher", injections=False)
async def published_with(context: ScriptContext) -> None:
    """Messages of one part and of several, large and empty, each option with each."""
    await context.connect()
    tails: tuple[list[Any], ...] = ([], [text("")], [text("b"), text("c")], [{"gen": "zero", "len": 70_000}])
    for number, args in enumerate(pairs(OPTIONS["publish"], {"tail": tails})):
        parts = [text(f"m{number}"), *args.pop("tail")]
        await context.op("publish", target="", body=parts if parts[1:] else parts[0], **args)
    await context.sleep(3)
    await context.finale("publish", **PROBE)


@base(role="consumer", server=PATIENT, injections=False)
async def consumed_with(context: ScriptContext) -> None:
    """Subscriptions one after the other, each option with each, and messages for each."""
    await context.connect()
    context.notes.forgets = True
    for number, args in enumerate(pairs(OPTIONS["subscribe"], {"on_message.mode": ("event",)})):
        put(context, f"m{number}", f"n{number}")
        await context.op("subscribe", sub=f"c{number}", target="", **args)
        await context.sleep(3)
        await context.op("unsubscribe", sub=f"c{number}")
    await subscribed(context, ACKING, "last")
    await watched(context, "last")
    await context.finale("publish", **PROBE)


async def _busy(context: ScriptContext) -> None:
    """Messages in a slow callback, and others that nobody has settled."""
    put(context, "m0", "m1", "m2")
    await context.connect()
    await subscribed(context, {**EVENTS, "sleep_ms": 900})
    await context.sleep(0.5)


ENDINGS = endings(_busy, [unsubscribe("c1")], role="consumer")
