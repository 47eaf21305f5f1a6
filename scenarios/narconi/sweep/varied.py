"""Base scripts with bodies, metadata and names of every kind, and with many messages."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from conformance.run.bases import Base, ScriptContext, base, text
from scenarios.narconi.sweep._shared import EVENTS, PROBE, PUBLISH, SETTLING, put, queues, watched
from scenarios.narconi.traits import PROJECT

BODIES = (
    b"",
    b"\x00",
    bytes(range(256)),
    "äöü€😀".encode(),
    b'{"code":500,"error":"x"}',
    b"a\r\n\r\nb",
    b"x" * 3000,
)
HEADERS: tuple[dict[str, Any], ...] = (
    {},
    {"Content-Type": "text/plain; charset=utf-8"},
    {"x-msg-x-a": "1", "x-msg-x-b": "", "content-type": "a/b"},
    {"X-Msg-X-Upper": "Value", "x-msg-x-long": "y" * 300},
    {"x-msg-x-n": 7, "x-msg-x-zero": 0, "x-msg-x-on": True, "x-msg-x-off": False, "x-msg-x-list": [1, "2"]},
    {"x-msg-x-city": "Zürich"},
    {"x-msg-x-quote": 'a"b\\c', "x-msg-x-umlaut": "äß"},
)
STRANGE: tuple[dict[str, Any], ...] = (
    {"x-other": "1"},
    {"x-msg-y": "1"},
    {"Content-Type": 5},
    {"timestamp": 1},
)
#: What would be further lines of a request, were it sent as it is.
LINES = (
    *("1\r\nx-msg-x-b: 2", "1\nx-msg-x-b: 2", "1\rx-msg-x-b: 2", "1\0x-msg-x-b: 2"),
    *("1\r\n\r\n", "\r1", "1\n"),
)
NAMES = ("a b", "ä", "a%2Fb", "a+b", "a:b", "a.b-c_d~", "a?b", "a#b", "a&b=c", "a;b", "100%")
MANY = 150  #: messages at a time
FLOOD = 1200
ENCODINGS = ("utf8", "base64", "hex")


def body(data: bytes) -> dict[str, str]:
    """A body of the adapter protocol."""
    return {"b64": b64encode(data).decode()}


def stored(context: ScriptContext, queue: str) -> None:
    """Messages of another publisher, of every kind; the server keeps names in lower case."""
    for number, data in enumerate(BODIES):
        headers = HEADERS[number % len(HEADERS)]
        more = {name.lower(): value for name, value in headers.items() if name.lower() != "content-type"}
        kind = str(headers.get("Content-Type", "application/octet-stream"))
        context.broker.publish(PROJECT, queue, data, content_type=kind, headers=more, redelivered=number == 3)


@base(role="publisher")
async def messages(context: ScriptContext) -> None:
    """Bodies and metadata of every kind, over a WebSocket; some that cannot be sent."""
    queues(context)
    await context.connect(auto_reconnect=True)
    for number, data in enumerate(BODIES):
        await context.op("publish", body=body(data), headers=HEADERS[number % len(HEADERS)], **PUBLISH)
    for headers in STRANGE:
        await context.op("publish", body=text(f"s{headers}"), headers=headers, **PUBLISH)
    await context.finale("publish", **PROBE)


@base(role="http")
async def posts(context: ScriptContext) -> None:
    """The same over HTTP, and messages of every kind are taken."""
    context.notes.oversized = True  # and some have metadata that cannot be sent
    queues(context, "P")
    stored(context, "C")
    await context.connect(auto_reconnect=True)
    for number, data in enumerate(BODIES):
        await context.op("narc.post", target="P", body=body(data), headers=HEADERS[number % len(HEADERS)])
        await context.op("narc.take", target="C")
    for headers in STRANGE:
        await context.op("narc.post", target="P", body=text(f"s{headers}"), headers=headers)
    for number, value in enumerate(LINES):
        await context.op("narc.post", target="P", body=text(f"l{number}"), headers={"x-msg-x-a": value})
    for _ in range(3):
        await context.op("narc.take", target="P")
    await context.finale("narc.ensure_queue", target="P")


def kinds(encoding: str) -> Base:
    """Deliveries of every kind, in one encoding or in messages of their own."""

    async def script(context: ScriptContext) -> None:
        """Messages of every kind are consumed."""
        queues(context, "P", "C")
        stored(context, "C")
        await context.connect(auto_reconnect=True)
        options = {"ack": True, **({"encoding": encoding} if encoding else {})}
        await context.op("subscribe", sub="c1", target="C", options=options, on_message=SETTLING)
        await context.sleep(0.5)
        stored(context, "C")
        await watched(context, "C", "last")
        await context.finale("publish", **PROBE)

    needs = ["encoding"] if encoding else []
    return base(role="consumer", needs=needs, injections=not encoding, name=f"kinds-{encoding or 'plain'}")(
        script
    )


KINDS = [kinds(encoding) for encoding in ("", *ENCODINGS)]


@base(role="http", injections=False)
async def names(context: ScriptContext) -> None:
    """Queues whose names have to be escaped in a path."""
    queues(context)
    await context.connect(auto_reconnect=True)
    for name in NAMES:
        await context.op("narc.ensure_queue", target=name)
        await context.op("narc.post", target=name, body=text(f"m {name}"))
        await context.op("publish", target=name, body=text(f"w {name}"), wait=True)
        await context.op("narc.take", target=name)
        await context.op("subscribe", sub=name, target=name, on_message=EVENTS)
        await context.op("narc.delete_queue", target=name)
    await context.finale("narc.ensure_queue", target="P")


@base(role="publisher", injections=False)
async def many_messages(context: ScriptContext) -> None:
    """Many messages wait for their confirms at the same time."""
    queues(context)
    await context.connect(auto_reconnect=True)
    await context.op("publish", body=text("first"), **PUBLISH)
    calls = [context.begin("publish", body=text(f"m{number}"), **PUBLISH) for number in range(MANY)]
    await context.ended(calls)
    for number in range(MANY):
        context.begin("publish", target="P", body=text(f"u{number}"), wait=False)
    await context.sleep(3)
    await context.finale("publish", **PROBE)


@base(role="consumer", injections=False)
async def flood(context: ScriptContext) -> None:
    """More messages at a time than any buffer has places."""
    queues(context, "P", "C", "D")
    for number in range(FLOOD):
        put(context, "C", f"c{number}")
    for number in range(MANY):
        put(context, "D", f"d{number}")
    await context.connect(auto_reconnect=True)
    await context.op("subscribe", sub="c1", target="C", on_message=EVENTS)
    options = {"ack": True, "limit": 100}
    await context.op("subscribe", sub="c2", target="D", options=options, on_message=SETTLING)
    await context.sleep(2)
    await watched(context, "C", "last")
    await context.finale("publish", **PROBE)


def other_server(profile: str) -> Base:
    """A server of another version."""

    async def script(context: ScriptContext) -> None:
        """All that a session can do, with a server of another version."""
        queues(context, "P", "C")
        put(context, "C", "m0", "m1")
        await context.connect(auto_reconnect=True)
        options = {"ack": True, "limit": 2}
        await context.op("subscribe", sub="c1", target="C", options=options, on_message=SETTLING)
        for number in range(2):
            calls = [context.begin("publish", body=text(f"a{number}{i}"), **PUBLISH) for i in range(2)]
            await context.ended(calls)
            await context.op("publish", target="nowhere", body=text(f"n{number}"), wait=True)
            await context.op("narc.post", target="P", body=text(f"h{number}"), headers=HEADERS[2])
            await context.op("narc.take", target="P")
            await context.op("narc.take", target="empty")
            await context.sleep(7)
        await watched(context, "C", "last")
        await context.finale("publish", **PROBE)

    return base(role="publisher", injections=False, server={"profile": profile}, name=f"server-{profile}")(
        script
    )


SERVERS = [other_server(profile) for profile in ("node20", "0.2.0-pre", "seed")]
