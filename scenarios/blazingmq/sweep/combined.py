"""Base scripts in which things meet: options of one op, several apps of one queue, two ends."""

from __future__ import annotations

from typing import Any

from conformance.run.bases import ScriptContext, base
from conformance.run.endings import Ending, endings, unsubscribe
from conformance.run.pairs import pairs
from scenarios.blazingmq.sweep._shared import (
    EVENTS,
    FANOUT,
    PRIORITY,
    PROPERTIES,
    RARELY,
    SETTLED,
    K,
    R,
    finale,
    put,
    reader,
    subscribed,
    watched,
    writer,
)

LIMITS: dict[str, Any] = {
    "options.max_unconfirmed_messages": (1, 7),
    "options.max_unconfirmed_bytes": (1000,),
    "options.consumer_priority": (-5, 3),
}
#: The options of each op.
OPTIONS: dict[str, dict[str, Any]] = {
    "publish": {
        "properties": ({"s": PROPERTIES["s"]}, PROPERTIES, {}),
        "compression": ("none", "zlib"),
        "wait": (True, False),
    },
    "bmq.open_queue": LIMITS,
    "bmq.configure_queue": LIMITS,
}
APPS = ("foo", "bar", "baz")


@base(role="publisher", server=RARELY, injections=False)
async def published_with(context: ScriptContext) -> None:
    """Messages, short and long, each option with each."""
    await context.connect()
    await writer(context)
    for number, args in enumerate(pairs(OPTIONS["publish"], {"len": (10, 3000)})):
        body = {"gen": "rand", "seed": number, "len": args.pop("len")}
        await context.op("publish", 8.0, target=K, body=body, **args)
    await context.sleep(3)
    await finale(context)


@base(role="consumer", server=RARELY, injections=False)
async def opened_with(context: ScriptContext) -> None:
    """Queues that are opened, and configured, with each option with each; messages for all of them."""
    await context.connect()
    await writer(context)
    opened = pairs(OPTIONS["bmq.open_queue"])
    uris = [PRIORITY + f"r{number}" for number in range(len(opened))]
    for number, (uri, args) in enumerate(zip(uris, opened, strict=True)):
        await context.op("bmq.open_queue", 5.0, target=uri, uri=uri, flags=["read"], **args)
        await subscribed(context, f"c{number}", uri, SETTLED)
    for uri, args in zip(uris, reversed(pairs(OPTIONS["bmq.configure_queue"])), strict=True):
        put(context, "before", uri=uri)
        await context.op("bmq.configure_queue", 5.0, target=uri, **{"options": {}, **args})
        put(context, "after", uri=uri)
    await context.sleep(1)
    await watched(context, "last", uris[0])
    await finale(context)


@base(role="consumer", server=RARELY, needs=["callback_raise"], injections=False)
async def one_raises(context: ScriptContext) -> None:
    """Several apps of one queue, each of which gets each message; one raises at each."""
    context.notes.raises = True
    await context.connect()
    await writer(context)
    for app, plan in zip(APPS, ({**EVENTS, "raise_on": [1, 2, 3]}, EVENTS, EVENTS), strict=True):
        await reader(context, app, f"{FANOUT}news?id={app}", plan)
    for number in range(3):
        put(context, f"m{number}", uri=FANOUT + "news")
        await context.sleep(0.5)
    context.calm()
    await finale(context)


async def _busy(context: ScriptContext) -> None:
    """Two queues with callbacks, one of them slow, and one to write."""
    put(context, "m0", "m1", "m2")
    await context.connect()
    await writer(context)
    await reader(context, "c1", R, {**EVENTS, "sleep_ms": 900})
    await reader(context, "c2", PRIORITY + "other", EVENTS)
    await context.sleep(0.5)


def _close_queue(name: str, uri: str) -> Ending:
    return Ending(name, "bmq.close_queue", {"target": uri})


ENDINGS = endings(
    _busy,
    [unsubscribe("c1"), _close_queue("close-queue", R), _close_queue("close-other", PRIORITY + "other")],
    role="consumer",
    server=RARELY,
)
