"""Base scripts of applications that publish."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from conformance.run.bases import ScriptContext, base, text
from fakebrokers.faults import latency
from scenarios.mqtt.sweep._shared import LASTING, PROBE, PUBLISH, W


@base(role="publisher", handshake=True)
async def publish(context: ScriptContext) -> None:
    """Messages with QoS 1 that wait for PUBACK, one after the other and some at a time."""
    await context.connect()
    await context.op("publish", body=text("a"), **PUBLISH)
    await context.ended([context.begin("publish", body=text(f"b{i}"), **PUBLISH) for i in range(3)])
    await context.finale("publish", **PROBE)


@base(role="publisher")
async def unwaited(context: ScriptContext) -> None:
    """Messages whose outcomes come as events, and some with QoS 0 between them."""
    await context.connect()
    for number in range(4):
        await context.op("publish", target=W, wait=False, body=text(f"u{number}"))
        await context.op("publish", target=W, wait=False, qos=0, body=text(f"z{number}"))
    await context.sleep(2)
    await context.finale("publish", **PROBE)


@base(role="publisher")
async def exactly_once(context: ScriptContext) -> None:
    """Messages with QoS 2: four steps each, several at a time, and with QoS 1 between them."""
    await context.connect()
    for number in range(2):
        calls = [context.begin("publish", body=text(f"x{number}/{i}"), qos=2, **PUBLISH) for i in range(2)]
        calls.append(context.begin("publish", body=text(f"y{number}"), **PUBLISH))
        await context.ended(calls)
    await context.finale("publish", **PROBE)


@base(role="publisher", needs=["lasting"])
async def lasting(context: ScriptContext) -> None:
    """A session that lasts: what is under way when its connection is lost goes on over the next one."""
    await context.connect(**LASTING)
    for number, late_s in enumerate((0.4, 0.2)):  # PUBACK and PUBREC, or PUBCOMP alone
        name = context.broker.faults.add(latency(late_s, direction="out"))
        calls = [
            context.begin("publish", 8.0, body=text(f"l{number}/{qos}"), qos=qos, **PUBLISH) for qos in (1, 2)
        ]
        await context.sleep(0.3)
        context.kill("rst" if number else "fin")
        context.broker.faults.remove(name)
        await context.ended(calls)
        await context.sleep(3)
    await context.finale("publish", **PROBE)


@base(role="publisher", needs=["counter_seed"])
async def wraps(context: ScriptContext) -> None:
    """Packet ids at the end of their range, while one of the first is still in use."""
    await context.connect()
    context.broker.faults.add(latency(0.5, kind="Puback", direction="out", nth=1))
    first = context.begin("publish", body=text("first"), **PUBLISH)
    await context.sleep(0.05)
    await context.op("set_counter", which="publishing", value=0xFFFE)
    await context.ended([context.begin("publish", body=text(f"w{i}"), **PUBLISH) for i in range(5)])
    await context.ended([first])
    await context.finale("publish", **PROBE)


@base(role="publisher", needs=["cancel"])
async def cancelled(context: ScriptContext) -> None:
    """Messages that nobody waits for any more, between others."""
    context.notes.abandons = True
    await context.connect()
    context.broker.faults.add(latency(0.3, direction="out"))
    for number in range(3):
        calls = [context.begin("publish", body=text(f"c{number}/{i}"), **PUBLISH) for i in range(3)]
        await context.sleep(0.1)
        await context.adapter.cancel(calls[number])
        await context.ended(calls)
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def bodies(context: ScriptContext) -> None:
    """Bodies of all sizes and bytes, topics of all shapes, retained or not, there and back."""
    await context.connect()
    topics = ("t/a", "/t", "t/", "t//b", "t/ä€", "t/ b", "t/$x")
    for number, topic in enumerate(topics):
        await context.op(
            "subscribe", sub=f"c{number}", target=topic, options={}, on_message={"mode": "event"}
        )
    for number, octets in enumerate((b"", b"\0", b"\xff\xfe\x80", bytes(range(256)), "aä€".encode())):
        for topic in topics:
            body = {"b64": b64encode(octets + topic.encode() * bool(octets)).decode()}
            await context.op("publish", target=topic, body=body, wait=True, qos=1 + number % 2)
    for size in (100, 128, 16_384, 2_097_152):
        large: dict[str, Any] = {"gen": "rand", "seed": size, "len": size}
        await context.op("publish", 8.0, target="t/a", body=large, wait=True, retain=size < 200)
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False)
async def not_to_be_sent(context: ScriptContext) -> None:
    """Topics that no message can go to, between good ones."""
    context.notes.oversized = True
    await context.connect()
    for number, topic in enumerate(("a/+", "#", "", "a\0b", "x" * 65_536)):
        await context.op("publish", target=topic, body=text(f"bad{number}"), wait=True)
        await context.op("publish", body=text(f"good{number}"), **PUBLISH)
    await context.finale("publish", **PROBE)
