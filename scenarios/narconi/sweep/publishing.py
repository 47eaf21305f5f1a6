"""Base scripts of applications that publish over WebSockets."""

from __future__ import annotations

from conformance.run.bases import ScriptContext, base, text
from scenarios.narconi.sweep._shared import PROBE, PUBLISH, queues

HEADERS = {"Content-Type": "text/plain", "x-msg-x-trace": "ä1"}


@base(role="publisher", handshake=True)
async def publish(context: ScriptContext) -> None:
    """Several messages at a time that wait for their confirms, with metadata and without."""
    queues(context)
    await context.connect(auto_reconnect=True)
    for window in range(2):
        await context.ended(
            [
                context.begin("publish", body=text(f"{window}{number}"), headers=headers, **PUBLISH)
                for number, headers in enumerate(({}, HEADERS, {}, HEADERS))
            ]
        )
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def newcomers(context: ScriptContext) -> None:
    """Messages that come at every moment of the way on which the first one gets its connection."""
    queues(context)
    await context.connect(auto_reconnect=True)
    await context.publish_each_turn(30, **PUBLISH)
    await context.finale("publish", **PROBE)


@base(role="publisher")
async def unwaited(context: ScriptContext) -> None:
    """Messages whose outcomes are reported later, to two queues."""
    queues(context, "P", "R")
    await context.connect(auto_reconnect=True)
    for number in range(4):
        for target in ("P", "R"):
            context.begin("publish", target=target, body=text(f"{target}{number}"), wait=False)
    await context.sleep(3)
    await context.finale("publish", **PROBE)


@base(role="publisher")
async def alone(context: ScriptContext) -> None:
    """Without reconnecting: the next message makes the next connection."""
    queues(context)
    await context.connect(auto_reconnect=False)
    await context.ended([context.begin("publish", body=text(f"a{i}"), **PUBLISH) for i in range(3)])
    await context.op("state")
    context.kill("fin")
    await context.sleep(0.5)
    for number in range(2):
        await context.op("publish", body=text(f"z{number}"), **PUBLISH)
    await context.finale("publish", **PROBE)


@base(role="publisher")
async def refused(context: ScriptContext) -> None:
    """Queues that are not there, messages that are too large, and good ones in between."""
    queues(context)
    context.notes.oversized = True
    await context.connect(auto_reconnect=True)
    large = {"gen": "rand", "seed": 1, "len": 65_537}
    for number in range(2):
        await context.op("publish", target="nowhere", body=text(f"n{number}"), wait=True)
        await context.op("publish", body=text(f"g{number}"), **PUBLISH)
    context.begin("publish", body=text("before"), **PUBLISH)
    context.begin("publish", body=large, **PUBLISH)
    await context.op("publish", body=text("behind"), **PUBLISH)
    await context.sleep(3)
    await context.finale("publish", **PROBE)


@base(role="publisher")
async def sizes(context: ScriptContext) -> None:
    """Bodies at the ends of every length that a frame can have."""
    queues(context)
    await context.connect(auto_reconnect=True)
    for size in (0, 1, 125, 126, 127, 65_535, 65_536):
        await context.op("publish", body={"gen": "rand", "seed": size, "len": size}, **PUBLISH)
    await context.op("publish", body={"b64": "AP+AfwoN"}, **PUBLISH)
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def largest_sent(context: ScriptContext) -> None:
    """Messages of the largest size that the server takes, and of one byte less."""
    queues(context)
    await context.connect(auto_reconnect=True)
    most = context.broker.config.max_message_size
    for size in (most - 1, most):
        for op, args in (("publish", PUBLISH), ("narc.post", {"target": "P"})):
            context.notes.fits.append((len(context.ops), True))
            await context.op(op, body={"gen": "rand", "seed": len(context.ops), "len": size}, **args)
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def longer_in_bytes(context: ScriptContext) -> None:
    """Metadata whose length as a frame has one form in letters and another one in bytes, and a body of the
    largest size that has half as many letters."""
    queues(context)
    context.notes.oversized = True  # for a client that writes each letter as an escape of six bytes
    await context.connect(auto_reconnect=True)
    for count in (60, 90, 40_000):
        headers = {"x-msg-x-a": "é" * count}
        await context.op("publish", body=text(f"of {count}"), headers=headers, **PUBLISH)
    most = context.broker.config.max_message_size
    for op, args in (("publish", PUBLISH), ("narc.post", {"target": "P"})):
        context.notes.fits.append((len(context.ops), True))
        await context.op(op, body=text("é" * (most // 2 - len(op)) + "e" * 2 * len(op)), **args)
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def near_names(context: ScriptContext) -> None:
    """Queues whose names differ little: each gets what is for it, over both ways."""
    near = ("orders", "Orders", "orders ", "orders-1", "orders_1", "orders.1", "order")
    queues(context, "P", *near)
    await context.connect(auto_reconnect=True)
    for number in range(2):
        for name in near:
            await context.op("publish", target=name, body=text(f"w{number} {name}"), wait=True)
            await context.op("narc.post", target=name, body=text(f"h{number} {name}"))
    for name in near[:2]:
        await context.op("subscribe", sub=name, target=name, on_message={"mode": "event"})
    await context.sleep(1)
    await context.finale("publish", **PROBE)
