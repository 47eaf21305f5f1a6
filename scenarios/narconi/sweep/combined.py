"""Base scripts in which things meet: options of one op, two ends."""

from __future__ import annotations

from typing import Any

from conformance.run.bases import ScriptContext, base, text
from conformance.run.endings import endings, unsubscribe
from conformance.run.pairs import pairs
from scenarios.narconi.sweep._shared import EVENTS, PROBE, put, queues, watched
from scenarios.narconi.sweep.varied import ENCODINGS, HEADERS

#: The options of each op.
OPTIONS: dict[str, dict[str, Any]] = {
    "publish": {"headers": HEADERS[1:5], "wait": (True, False)},
    "narc.post": {"headers": HEADERS[1:5]},
    "subscribe": {
        "options.ack": (True, False),
        "options.limit": (1, 3),
        "options.encoding": ENCODINGS,
        "on_message.auto_settle": ("ack",),
        "on_message.sleep_ms": (20,),
    },
}
BODIES = ("plain", "äöü€", "x" * 300)


@base(role="http", injections=False)
async def published_with(context: ScriptContext) -> None:
    """Messages over a WebSocket and over HTTP, each option with each."""
    queues(context)
    await context.connect()
    number = 0
    for op in ("publish", "narc.post"):
        for args in pairs(OPTIONS[op], {"target": ("P", "nowhere")}):
            number += 1
            await context.op(op, body=text(f"m{number}"), **args)
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def consumed_with(context: ScriptContext) -> None:
    """Subscriptions with each option with each, and messages of every kind for all of them."""
    needed = {"on_message.mode": ("event",)}
    options = pairs(OPTIONS["subscribe"], needed)
    names = [f"C{number}" for number in range(len(options))]
    queues(context, "P", *names)
    await context.connect()
    for name, args in zip(names, options, strict=True):
        put(context, name, f"first of {name}")
        await context.op("subscribe", sub=name, target=name, **args)
    await context.sleep(1)
    for name in names:
        put(context, name, *[f"{body} of {name}" for body in BODIES])
    await context.sleep(1)
    await watched(context, names[0], "last")
    await context.finale("publish", **PROBE)


async def _half_settled(context: ScriptContext) -> None:
    """Two subscriptions with messages that the application leaves, so that a graceful end cannot end."""
    queues(context, "C", "D")
    await context.connect()
    for sub, target in (("c1", "C"), ("d1", "D")):
        put(context, target, "m0", "m1")
        await context.op("subscribe", sub=sub, target=target, options={"ack": True}, on_message=EVENTS)
    await context.sleep(0.5)


ENDINGS = endings(
    _half_settled,
    [unsubscribe("c1", "drain", drain=True), unsubscribe("d1", "drain-other", drain=True), unsubscribe("c1")],
    role="consumer",
    loses=False,
)
