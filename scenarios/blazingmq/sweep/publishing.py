"""Base scripts of applications that publish."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from conformance.run.bases import ScriptContext, base, text
from fakebrokers.faults import delay, join, latency
from scenarios.blazingmq.sweep._shared import (
    PRIORITY,
    PROPERTIES,
    PUBLISH,
    RARELY,
    SETTLED,
    K,
    R,
    finale,
    put,
    reader,
    watched,
    writer,
)

MOST = 0xFFFFFF  #: of a correlation id
NAME_MAX = 4095  #: bytes of a property's name (docs/protocols/blazingmq.md, 2.2)


@base(role="publisher", server=RARELY, handshake=True)
async def publish(context: ScriptContext) -> None:
    """Publishes that wait for their ACKs, several at a time, with properties and compressed."""
    await context.connect()
    await writer(context)
    for number in range(3):
        calls = [context.begin("publish", body=text(f"a{number}/{i}"), **PUBLISH) for i in range(3)]
        calls.append(context.begin("publish", body=text(f"p{number}"), properties=PROPERTIES, **PUBLISH))
        big = {"gen": "zero", "len": 3000 + number}
        calls.append(context.begin("publish", body=big, compression="zlib", **PUBLISH))
        await context.ended(calls)
        await context.op("publish", target=K, body=text(f"u{number}"), wait=False)
    await finale(context)


@base(role="publisher", server=RARELY)
async def unwaited(context: ScriptContext) -> None:
    """Publishes that ask for no ACK, between some that do."""
    await context.connect()
    await writer(context)
    for number in range(6):
        await context.op("publish", target=K, body=text(f"u{number}"), wait=False)
        await context.op("publish", 8.0, body=text(f"w{number}"), **PUBLISH)
        await context.sleep(0.3)
    await finale(context)


FULL = "bmq://full/queue-kept"


@base(role="publisher", server={**RARELY, "domains": {"full": {"queue_messages": 2}}})
async def full(context: ScriptContext) -> None:
    """A queue that takes three messages, and refuses the others."""
    await context.connect()
    await writer(context, FULL)
    await writer(context)
    for number in range(3):
        calls = [
            context.begin("publish", target=uri, body=text(f"{uri[6:7]}{number}/{i}"), wait=True)
            for i in range(2)
            for uri in (FULL, K)
        ]
        await context.ended(calls)
    await finale(context)


@base(role="publisher", server={**RARELY, "domains": {"full": {"queue_messages": 2}}}, injections=False)
async def full_unasked(context: ScriptContext) -> None:
    """A queue that refuses what does not fit, and an application that wants no outcomes."""
    await context.connect()
    await writer(context, FULL)
    await writer(context)
    for number in range(5):
        await context.op("publish", target=FULL, body=text(f"u{number}"), wait=False)
        await context.op("publish", body=text(f"w{number}"), **PUBLISH)
    await finale(context)


@base(role="publisher", server=RARELY, needs=["counter_seed"])
async def wraps(context: ScriptContext) -> None:
    """Correlation ids at the end of their range, while one of the first is still open."""
    await context.connect()
    await writer(context)
    context.broker.faults.add(delay(1.0, kind="ACK", direction="out", nth=1))
    first = context.begin("publish", body=text("first"), **PUBLISH)
    await context.sleep(0.1)
    await context.op("set_counter", which="correlation", value=MOST - 2)
    for number in range(2):
        calls = [context.begin("publish", body=text(f"a{number}/{i}"), **PUBLISH) for i in range(4)]
        await context.ended(calls)
    await context.ended([first])
    await finale(context)


@base(role="publisher", server=RARELY, needs=["cancel"])
async def batched(context: ScriptContext) -> None:
    """The ACKs of several posts come in one event; one of those who posted waits no more."""
    await context.connect()
    await writer(context)
    context.broker.faults.add(join(within_s=0.5, kind="ACK", direction="out"))
    for number in range(3):
        calls = [context.begin("publish", body=text(f"a{number}/{i}"), **PUBLISH) for i in range(3)]
        await context.sleep(0.1)
        await context.adapter.cancel(calls[number])
        await context.ended(calls)
    await finale(context)


@base(role="publisher", server=RARELY, injections=False)
async def crowd(context: ScriptContext) -> None:
    """Hundreds of posts at a time, ACKs that come late, and large messages."""
    await context.connect()
    await writer(context)
    context.broker.faults.add(latency(1.0, kind="ACK", direction="out"))
    calls = [context.begin("publish", 8.0, body=text(f"a{i}"), **PUBLISH) for i in range(250)]
    sizes = (1, 3, 4, 5, 8191, 70_000, 300_000)
    for size in sizes:
        body = {"gen": "rand", "seed": size, "len": size}
        calls.append(context.begin("publish", 8.0, body=body, **PUBLISH))
    await context.ended(calls)
    await finale(context)


@base(role="publisher", server=RARELY, injections=False)
async def bodies(context: ScriptContext) -> None:
    """Bodies and properties at the ends of their ranges, there and back."""
    await context.connect()
    uri = PRIORITY + "both"
    await context.op("bmq.open_queue", target=uri, uri=uri, flags=["read", "write"])
    await context.op("subscribe", sub="c1", target=uri, on_message=SETTLED)
    given: dict[str, Any] = {"target": uri, "wait": True}
    for octets in (b"\0", b"\xff\xfe\x80", bytes(range(256)), "aä€".encode()):
        await context.op("publish", body={"b64": b64encode(octets).decode()}, **given)
    for number, value in enumerate((0, -1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63))):
        properties = {"l": {"type": "int64", "value": str(value)}}
        for packed in ("none", "zlib"):
            body = {"gen": "zero", "len": 2000 + 2 * number + (packed == "zlib")}
            await context.op("publish", body=body, properties=properties, compression=packed, **given)
    await context.op("publish", body=text(""), **given)
    for count in (255, 256):
        many = {f"p{i}": {"type": "short", "value": str(i)} for i in range(count)}
        await context.op("publish", body=text(f"many{count}"), properties=many, **given)
    for size in (4095, 4096):
        long = {"n" * size: {"type": "string", "value": "v"}}
        await context.op("publish", body=text(f"long{size}"), properties=long, **given)
    await context.finale("publish", body=text("probe"), **given)


@base(role="publisher", server=RARELY, injections=False)
async def longer_in_bytes(context: ScriptContext) -> None:
    """Properties whose names, of letters of two bytes, have as many bytes as a name may have, and more."""
    await context.connect()
    await writer(context)
    context.notes.oversized = True
    for name in ("é" * 2047 + "e", "é" * 2048, "é" * 3000, "é" * 4095, "é" * 1024):
        context.notes.fits.append((len(context.ops), len(name.encode()) <= NAME_MAX))
        properties = {name: {"type": "string", "value": "ü" * 300}}
        await context.op("publish", body=text(f"of {len(name)}"), properties=properties, **PUBLISH)
    await finale(context)


HOLLOW: dict[str, Any] = {
    "b": {"type": "bool", "value": "false"},
    "c": {"type": "char", "value": {"b64": "AA=="}},
    "h": {"type": "short", "value": "0"},
    "i": {"type": "int32", "value": "0"},
    "l": {"type": "int64", "value": "0"},
    "s": {"type": "string", "value": ""},
    "x": {"type": "binary", "value": {"text": ""}},
}


@base(role="publisher", server=RARELY, injections=False)
async def hollow(context: ScriptContext) -> None:
    """Properties that are 0, false or empty, singly and together, there and back."""
    await context.connect()
    uri = PRIORITY + "both"
    await context.op("bmq.open_queue", target=uri, uri=uri, flags=["read", "write"])
    await context.op("subscribe", sub="c1", target=uri, on_message=SETTLED)
    given: dict[str, Any] = {"target": uri, "wait": True}
    for name, value in HOLLOW.items():
        await context.op("publish", body=text(name), properties={name: value}, **given)
    await context.op("publish", body=text("all"), properties=HOLLOW, **given)
    await context.op("publish", body=text("mixed"), properties={**PROPERTIES, "s": HOLLOW["s"]}, **given)
    packed = {"gen": "zero", "len": 3000}
    await context.op("publish", body=packed, properties=HOLLOW, compression="zlib", **given)
    await context.finale("publish", body=text("probe"), **given)


@base(role="consumer", server=RARELY)
async def both(context: ScriptContext) -> None:
    """Publishes and consumes on one session, whose connection the server resets once."""
    put(context, *[f"m{i}" for i in range(5)])
    await context.connect()
    await writer(context)
    await reader(context, "c1", R, {**SETTLED, "sleep_ms": 30})
    calls = [context.begin("publish", body=text(f"a{i}"), **PUBLISH) for i in range(3)]
    await context.sleep(0.06)
    context.kill()
    calls += [context.begin("publish", 8.0, body=text(f"k{i}"), **PUBLISH) for i in range(4)]
    await context.ended(calls)
    await context.sleep(3)
    await watched(context, "m16")
    await finale(context)
