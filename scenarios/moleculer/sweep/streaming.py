"""Base scripts with streams that go otherwise than they should."""

from __future__ import annotations

from typing import Any

from conformance.clients.adapter.base import Call
from conformance.run.bases import ScriptContext, base
from fakebrokers.faults import stall
from fakebrokers.moleculer.node import Node
from scenarios.moleculer.sweep._shared import NODE, begin, joined, offer, peer, probed
from scenarios.moleculer.sweep.contents import OBJECTS, OLD, STREAM_ERROR
from scenarios.moleculer.sweep.serving import ACTIONS

ERROR = {"name": "Error", "message": "broken off", "code": 507, "type": "E", "nodeID": "peer"}
PIECES: tuple[list[int], ...] = ([0, 1, 255], [], [50] * 300)
LAST = len(PIECES) + 1
UNREAD_S = 5.0


def packet(seq: int) -> dict[str, Any]:
    """One packet of the answer: its opening, a piece, or its end."""
    data = {"type": "Buffer", "data": PIECES[seq - 1]} if 0 < seq < LAST else None
    return {"success": True, "data": data, "stream": seq < LAST, "seq": seq, "meta": {}, "headers": {}}


def answer(node: Node, number: int, *order: int, **changed: Any) -> None:
    """Answer the request of that number, from the last one, with packets in this order."""
    if len(node.requests) < -number:
        return  # it was never asked
    id = node.requests[number].id
    for seq in order:
        more = changed if seq == order[-1] else {}
        node.send("RES", NODE, id=id, **{**packet(seq), **more})


def marked(node: Node, **marks: Any) -> dict[str, Any]:
    """Fields that say more about a stream for the client: in version 4 they are in its meta."""
    client = node.peers.get(NODE)
    where = "meta" if client is not None and client.version in OLD else "headers"
    return {"meta": {}, "headers": {}} | {where: marks}


async def asked(context: ScriptContext, count: int, timeout: float = 2.0) -> list[Call]:
    """Calls that only the script answers."""
    calls = [begin(context, "p.wait", {"n": len(context.ops) + number}, timeout) for number in range(count)]
    await context.sleep(0.2)
    return calls


@base(role="caller", needs=["streams"])
async def downloads(context: ScriptContext) -> None:
    """Answers whose packets come out of order, twice, and after the end."""
    node = peer(context)
    await joined(context)
    orders = [
        (0, 1, 2, 3, 4),
        (0, 2, 1, 4, 3),
        (1, 0, 3, 2, 4),
        (4, 3, 2, 1, 0),
        (0, 1, 1, 2, 0, 3, 2, 4, 4, 1),
    ]
    calls = await asked(context, len(orders) + 2)
    for number, order in enumerate(orders):
        answer(node, number - len(calls), *order)
    answer(node, -2, 0, 4, seq=1)  # a stream of nothing
    id = node.requests[-1].id if node.requests else ""
    for seq, data in enumerate((None, {"a": 1}, [2], "three", None)):
        marks = marked(node, **{OBJECTS: True})
        node.send("RES", NODE, id=id, success=True, data=data, stream=seq < 4, seq=seq, **marks)
    await context.ended(calls)
    await probed(context)


@base(role="caller", needs=["streams"])
async def broken_off(context: ScriptContext) -> None:
    """Answers that break off: with an error, without an end, refused, and because their sender is gone."""
    node = peer(context)
    other = peer(context, "second")
    await joined(context)
    calls = await asked(context, 4, 3.0)
    mine = [one for one in (node, other) for _ in one.requests]
    spots = {node: -len(node.requests), other: -len(other.requests)}
    for number, one in enumerate(mine):
        at = spots[one] = spots[one]
        spots[one] += 1
        if number == 0:
            answer(one, at, 0, 1, 2, success=False, error=ERROR, stream=False, data=None)
        elif number == 1:
            answer(one, at, 0, 1, 2)
        elif number == 2:
            answer(one, at, 0, stream=False, seq=None, success=False, error=ERROR, data=None)
        else:
            answer(one, at, 0, 1)
    await context.sleep(0.5)
    other.stop()
    node.stop()
    await context.ended(calls)
    peer(context, "third")
    await context.sleep(1)
    await probed(context)


@base(role="caller", needs=["streams"])
async def sent_up(context: ScriptContext) -> None:
    """Uploads of several sizes, slow ones, objects, and one to an action that has answered before the end."""
    peer(context)
    await joined(context)
    context.notes.early = True
    calls = [
        begin(context, "p.up", {"n": 1}, stream={"text": "äöü€" * 5}, chunk=3),
        begin(context, "p.up", {"n": 2}, stream={"text": "abcdef"}, chunk=1, every_ms=50),
        begin(context, "p.up", {"n": 3}, stream={"text": ""}),
        begin(context, "p.up", {"n": 6}, objects=[{"a": 1}, [2], "three"]),
        begin(context, "p.fail", {"n": 4, "code": 400}, stream={"text": "abcdef"}, chunk=1, every_ms=100),
        begin(context, "p.down", {"n": 5}),
    ]
    await context.ended(calls)
    await context.sleep(1)
    await probed(context)


@base(role="caller", needs=["streams", "cancel"])
async def called_off(context: ScriptContext) -> None:
    """Uploads whose calls end before all of them is sent: they run into their deadlines, or are cancelled."""
    peer(context)
    await joined(context)
    slow: dict[str, Any] = {"stream": {"text": "abcdefgh"}, "chunk": 1, "every_ms": 100}
    for number in range(2):
        calls = [
            begin(context, "p.wait", {"n": number}, 0.35, **slow),
            begin(context, "p.up", {"n": number}, **slow),
            begin(context, "p.echo", {"n": number}),
        ]
        await context.sleep(0.25)
        await context.adapter.cancel(calls[1])
        await context.ended(calls)
        await context.sleep(1)
    await probed(context)


@base(role="caller", needs=["streams.broken"], injections=False)
async def sources_fail(context: ScriptContext) -> None:
    """Uploads whose sources fail: in the middle, before the first piece, and beside one that does not."""
    peer(context)
    await joined(context)
    calls = [
        begin(context, "p.up", {"n": 1}, stream={"text": "abcdef"}, chunk=2, breaks="the disk is gone"),
        begin(context, "p.up", {"n": 2}, stream={"text": ""}, breaks="no such file"),
        begin(context, "p.up", {"n": 3}, stream={"text": "abcdef"}, chunk=2),
        begin(context, "p.wait", {"n": 4}, stream={"text": "äöü€"}, every_ms=50, breaks="größer als erlaubt"),
    ]
    await context.ended(calls)
    await context.sleep(1)
    await probed(context)


@base(role="service", needs=["streams.broken"], injections=False)
async def answers_fail(context: ScriptContext) -> None:
    """Answers of the client with streams whose sources fail, and with one that does not."""
    node = peer(context)
    sources = {
        "half": {"stream": {"text": "abcdef"}, "chunk": 2, "breaks": "the disk is gone"},
        "nothing": {"stream": {"text": ""}, "breaks": "no such file"},
        "down": {"stream": {"text": "abcdef"}, "chunk": 2},
    }
    await joined(context, offer("mol.serve", service="s", actions={**ACTIONS, **sources}))
    await context.sleep(1)
    for number in range(2):
        for action in sources:
            node.start_call(f"s.{action}", {"n": number}, target=NODE, timeout=5.0)
        await context.sleep(1)
    await probed(context)


@base(role="caller", needs=["streams"], injections=False)
async def long_upload(context: ScriptContext) -> None:
    """An upload that takes much longer than its call has time."""
    peer(context)
    await joined(context)
    slow: dict[str, Any] = {"stream": {"text": "x" * 120}, "chunk": 1, "every_ms": 100}
    await begin(context, "p.wait", {"n": 1}, 1.0, **slow)
    await context.sleep(15)
    await probed(context)


@base(role="caller", needs=["streams"], injections=False)
async def large_streams(context: ScriptContext) -> None:
    """Streams in pieces that no message takes, which have to be cut."""
    peer(context)
    await joined(context)
    context.notes.fits = [(len(context.ops), True)]
    await begin(context, "p.up", {"n": 0}, 5.0, stream={"gen": "rand", "seed": 3, "len": 600_000})
    await probed(context)


@base(role="caller", needs=["streams"], injections=False)
async def unread(context: ScriptContext) -> None:
    """A large upload, and a server that does not read for a while."""
    peer(context)
    await joined(context)
    context.broker.faults.add(stall(UNREAD_S, kind="Request", direction="in", nth=1))
    context.notes.unread = (context.now, context.now + UNREAD_S)
    size = 2 << 20  # about twice as much on the wire
    await begin(context, "p.up", {"n": 0}, 20.0, stream={"gen": "zero", "len": size})
    await probed(context)


@base(role="service", needs=["streams"], injections=False)
async def sent_to(context: ScriptContext) -> None:
    """Uploads to the client that break off, and streams of it that no caller reads to the end."""
    node = peer(context)
    reading = {"read": {"read_stream": True}, "down": {"stream": {"text": "abcdef"}, "chunk": 2}}
    await joined(context, offer("mol.serve", service="s", actions={**ACTIONS, **reading}))
    await context.sleep(0.5)
    usual = {"action": "s.read", "timeout": 0, "params": None}
    for number in range(2):
        for seq, marks in ((0, {}), (1, {}), (2, {STREAM_ERROR: ERROR})):
            chunk = {"type": "Buffer", "data": [seq]} if seq == 1 else None
            fields = {**usual, **marked(node, **marks), "params": chunk, "stream": seq < 2, "seq": seq}
            node.send("REQ", NODE, id=f"broken-{number}", **fields)
        node.send("REQ", NODE, id=f"endless-{number}", **usual, **marked(node), stream=True, seq=0)
        node.start_call("s.down", {"n": number}, target=NODE, timeout=5.0)
        node.start_call("s.echo", {"n": number}, target=NODE, timeout=5.0)
        await context.sleep(0.5)
    node.stop()
    await context.sleep(1)
    peer(context, "second")
    await probed(context)


@base(role="caller", needs=["streams"], injections=False)
async def falsy_objects(context: ScriptContext) -> None:
    """A stream of objects among which are 0, "", false and empty ones."""
    node = peer(context)
    await joined(context)
    [call] = await asked(context, 1)
    id = node.requests[-1].id if node.requests else ""
    objects: tuple[Any, ...] = (None, 1, 0, "", False, [], {}, "last", None)
    for seq, data in enumerate(objects):
        more = {"stream": seq < len(objects) - 1, "seq": seq}
        node.send("RES", NODE, id=id, success=True, data=data, **more, **marked(node, **{OBJECTS: True}))
    await call
    await probed(context)
