"""Base scripts of producers."""

from __future__ import annotations

from base64 import b64encode

from conformance.run.bases import Base, ScriptContext, base, text
from fakebrokers.pzq.faults import refuse_message
from scenarios.pzq.sweep._shared import PROBE, PUBLISH

#: Pairs that are one for whoever takes them for UTF-8, ends them at a NUL, normalizes or cuts them.
ALIKE = {
    "bytes": (b"\x80\x01", b"\x81\x01"),
    "nul": (b"a\x00b", b"a\x00c"),
    "accent": ("\u00e9".encode(), "e\u0301".encode()),
    "end": (b"x" * 300 + b"1", b"x" * 300 + b"2"),
}


@base(role="publisher")
async def waited(context: ScriptContext) -> None:
    """Publishes that wait for their outcomes, one after the other and some at a time."""
    await context.connect()
    await context.op("publish", body=text("a"), **PUBLISH)
    await context.ended([context.begin("publish", body=text(f"b{i}"), **PUBLISH) for i in range(4)])
    await context.op("publish", body=text("c"), key="own", **PUBLISH)
    await context.finale("publish", **PROBE)


@base(role="publisher")
async def unwaited(context: ScriptContext) -> None:
    """Publishes whose outcomes come as events."""
    await context.connect()
    for number in range(5):
        await context.op("publish", target="", wait=False, body=text(f"a{number}"))
    await context.sleep(3)
    await context.finale("publish", **PROBE)


@base(role="publisher")
async def bodies(context: ScriptContext) -> None:
    """Bodies of several parts, of empty ones, of bytes that are no text, and large ones."""
    await context.connect()
    large = {"gen": "rand", "seed": 1, "len": 100_000}
    for body in (
        [text("a"), text("b")],
        [text("c"), text(""), text("")],
        [text(""), text("d")],
        text(""),
        {"b64": "/wD+AA=="},
        [text("REPLICA:e")],
        large,
    ):
        await context.op("publish", body=body, **PUBLISH)
    await context.finale("publish", **PROBE)


@base(role="publisher", needs=["caller_key"])
async def ids(context: ScriptContext) -> None:
    """Ids of all shapes that the application gives, the same one again too."""
    await context.connect()
    for number, key in enumerate(("k1", "", {"b64": "/wD+"}, "x" * 300, "k1", {"b64": "AA=="}, "äö", "1")):
        await context.op("publish", body=text(f"a{number}"), key=key, **PUBLISH)
    calls = [context.begin("publish", body=text(f"b{key}"), key=key, **PUBLISH) for key in ("p", "q", "pq")]
    await context.ended(calls)
    await context.finale("publish", **PROBE)


@base(role="publisher", needs=["caller_key"], injections=False)
async def not_to_be_sent(context: ScriptContext) -> None:
    """An id that another message waits under, and a body without any part, between messages that can go."""
    await context.connect()
    for number in range(2):
        keys = ("k", "k", f"own{number}")
        calls = [
            context.begin("publish", body=text(f"a{number}/{i}"), key=key, **PUBLISH)
            for i, key in enumerate(keys)
        ]
        await context.ended(calls)
        await context.op("publish", body=[], **PUBLISH)
    await context.finale("publish", **PROBE)


@base(role="publisher", needs=["caller_key"], injections=False)
async def blank_ids(context: ScriptContext) -> None:
    """Ids that begin or end with white space, or that differ in nothing else."""
    await context.connect()
    keys = ("order 7\n", "\torder", " order ", "order", "order\r\n", {"b64": "AG8A"}, "Order")
    for number, key in enumerate(keys):
        await context.op("publish", body=text(f"a{number}"), key=key, **PUBLISH)
    calls = [context.begin("publish", body=text(f"b{key}"), key=key, **PUBLISH) for key in ("q", "q ", "Q")]
    await context.ended(calls)
    await context.finale("publish", **PROBE)


def alike_ids(what: str) -> Base:
    """Messages under way at once whose ids are told apart only by their bytes."""
    pair = [{"b64": b64encode(id).decode()} for id in ALIKE[what]]

    async def script(context: ScriptContext) -> None:
        """Messages under way at once whose ids differ in a byte that is easily overlooked."""
        await context.connect()
        for number in range(2):
            calls = [
                context.begin("publish", body=text(f"a{number}/{i}"), key=key, **PUBLISH)
                for i, key in enumerate(pair)
            ]
            await context.ended(calls)
        await context.finale("publish", **PROBE)

    return base(role="publisher", needs=["caller_key"], injections=False, name=f"alike-ids-{what}")(script)


ALIKE_IDS = [alike_ids(what) for what in ALIKE]


@base(role="publisher")
async def refused(context: ScriptContext) -> None:
    """Messages that the broker does not store, between some that it does."""
    context.broker.faults.add(refuse_message("disk full", every=2))
    await context.connect()
    await context.ended([context.begin("publish", body=text(f"a{i}"), **PUBLISH) for i in range(4)])
    for number in range(3):
        await context.op("publish", body=text(f"b{number}"), **PUBLISH)
    await context.finale("publish", **PROBE)


@base(role="publisher", needs=["cancel"])
async def cancelled(context: ScriptContext) -> None:
    """Ops that are cancelled while they are open; the next ones get the answers that are theirs."""
    await context.connect()
    for number in range(2):
        call = context.begin("publish", body=text(f"a{number}"), key=f"k{number}", **PUBLISH)
        await context.adapter.cancel(call)
        await context.op("publish", body=text(f"b{number}"), **PUBLISH)
    asked = context.begin("pzq.monitor")
    await context.adapter.cancel(asked)
    await context.op("pzq.monitor")
    await context.finale("publish", **PROBE)


@base(role="publisher", injections=False, costly=True)
async def bulk(context: ScriptContext) -> None:
    """Many messages at a time."""
    await context.connect()
    calls = [context.begin("publish", 10.0, body=text(f"a{i}"), **PUBLISH) for i in range(200)]
    await context.ended(calls)
    await context.finale("publish", **PROBE)
