"""Base scripts of nodes that answer: requests, pings, events."""

from __future__ import annotations

from conformance.run.bases import ScriptContext, base
from fakebrokers.moleculer.services import Stream
from scenarios.moleculer.sweep._shared import NODE, begin, joined, peer, probed
from scenarios.moleculer.sweep.serving import ACTIONS


@base(role="service", handshake=True)
async def serve(stage: ScriptContext) -> None:
    """Answers what others ask, well and with errors."""
    node = peer(stage)
    await joined(stage)
    await stage.op("mol.serve", service="s", actions=ACTIONS)
    await stage.sleep(0.5)
    for number in range(3):
        for action in ("s.echo", "s.fail", "s.slow", "s.value", "s.nowhere"):
            node.start_call(action, {"n": number}, target=NODE, timeout=5.0)
        node.start_call("s.slow", {"patient": number}, target=NODE, timeout=0.0)  # without a limit
        node.send("PING", NODE, time=1_700_000_000_000 + number, id=f"ping-{number}")
        await stage.sleep(0.4)
    await stage.op("mol.unserve", service="s")
    await stage.sleep(0.5)
    node.start_call("s.echo", {"n": "gone"}, target=NODE, timeout=5.0)
    await probed(stage)


@base(role="service", needs=["streams"])
async def uploads(stage: ScriptContext) -> None:
    """Others upload streams, and ask with little patience."""
    node = peer(stage)
    await joined(stage)
    reading = {"read": {"read_stream": True}, "down": {"stream": {"text": "abcdef"}, "chunk": 2}}
    await stage.op("mol.serve", service="s", actions={**ACTIONS, **reading})
    await stage.sleep(0.5)
    for number in range(2):
        node.start_call("s.read", {"n": number}, target=NODE, stream=Stream([b"one", b"two", b"\xff\0"]))
        node.start_call("s.down", {"n": number}, target=NODE)
        node.start_call("s.slow", {"n": number}, target=NODE, timeout=0.1)
        await stage.sleep(0.5)
    await probed(stage)


@base(role="listener")
async def events(stage: ScriptContext) -> None:
    """Listens to events of others and of its own, and sends some."""
    node = peer(stage)
    await joined(stage)
    for sub, pattern, group in (("one", "mine.*", ""), ("all", "mine.**", "g"), ("x", "mine.a?", "g")):
        await stage.op("mol.listen", sub=sub, event=pattern, group=group, on_message={"mode": "event"})
    await stage.sleep(1)
    for number in range(3):
        node.emit("mine.ab", {"n": number})
        node.broadcast("mine.ab.c", {"n": number})
        node.emit("mine.z", {"n": number}, ["g"])
        await stage.op("mol.emit", event="news.a", data={"n": number})
        await stage.op("mol.broadcast", event="news.b", data={"n": number})
        await stage.sleep(0.3)
    await probed(stage)


@base(role="service")
async def joining(stage: ScriptContext) -> None:
    """Nodes come and go, beat without a word, and have the same name."""
    await joined(stage, heartbeat_s=2.0, heartbeat_timeout_s=6.0)
    first = peer(stage, heartbeat_s=2.0, announces=False)
    await stage.op("mol.serve", service="s", actions=ACTIONS)
    first.heartbeat()
    await stage.sleep(1)
    first.discover(NODE)
    first.send("PING", "", time=5, id="for-all")
    first.discover()
    await stage.sleep(1)
    bare = {"services": [{"name": "b", "actions": {"b.x": {}}}], "instanceID": "b", "seq": 1}
    first.send("INFO", "", sender="bare", **bare)
    await stage.sleep(0.2)
    await stage.op("mol.registry")
    second = peer(stage, "second", 2.0)
    await stage.sleep(5)
    await stage.op("mol.registry")
    second.restart()
    await stage.sleep(0.5)
    second.kill()
    await stage.sleep(12)
    await stage.op("mol.registry")
    await probed(stage)


@base(role="service", server={"namespace": "blue"})
async def namespaces(stage: ScriptContext) -> None:
    """Nodes of two networks on one server, with the same names."""
    node = peer(stage)
    peer(stage, namespace="red")
    await joined(stage, namespace="blue")
    await stage.op("mol.serve", service="s", actions=ACTIONS)
    await stage.sleep(0.5)
    for number in range(2):
        node.start_call("s.echo", {"n": number}, target=NODE, timeout=5.0)
        await begin(stage, "p.echo", {"n": number})
    await probed(stage)


@base(role="service", needs=["streams"])
async def chunks(stage: ScriptContext) -> None:
    """Uploads whose chunks come out of order, twice, and after the end."""
    node = peer(stage)
    await joined(stage)
    await stage.op("mol.serve", service="s", actions={**ACTIONS, "read": {"read_stream": True}})
    await stage.sleep(0.5)
    for order in ((0, 1, 2, 3), (0, 2, 1, 3), (1, 0, 3, 2), (0, 1, 1, 2, 3, 1, 3)):
        id = "-".join(map(str, order))
        for seq in order:
            chunk = {"type": "Buffer", "data": [seq, 0, 255]} if 0 < seq < 3 else None
            fields = {"id": id, "action": "s.read", "params": chunk, "timeout": 0, "meta": {}, "headers": {}}
            node.send("REQ", NODE, stream=seq < 3, seq=seq, **fields)
        await stage.sleep(0.3)
    for packet in ({"id": "no-params", "action": "s.value"}, {"id": "no-action"}, {"id": "odd", "action": 7}):
        node.send("REQ", NODE, **packet)
    await stage.sleep(0.5)
    await probed(stage)
