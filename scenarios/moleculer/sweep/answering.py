"""Base scripts of nodes that answer: requests, pings, events."""

from __future__ import annotations

from conformance.run.bases import ScriptContext, base
from fakebrokers.moleculer.services import Service, Stream
from scenarios.moleculer.sweep._shared import NODE, begin, heard, joined, offer, peer, probed
from scenarios.moleculer.sweep.serving import ACTIONS

#: Patterns, and names of events that fit some of them, or none though they look like it.
NEAR = (
    *("order.created", "order.*", "a+b.c?"),
    *("order.created", "order-created", "order.created.at", "xorder.created", "order.a", "orders.a"),
    *("a+b.cd", "aab.cd", "a+b.c", "Order.created"),
)


@base(role="service", handshake=True)
async def serve(context: ScriptContext) -> None:
    """Answers what others ask, well and with errors."""
    node = peer(context)
    await joined(context, offer("mol.serve", service="s", actions=ACTIONS))
    await context.sleep(0.5)
    for number in range(3):
        for action in ("s.echo", "s.fail", "s.slow", "s.value", "s.nowhere"):
            node.start_call(action, {"n": number}, target=NODE, timeout=5.0)
        node.start_call("s.slow", {"patient": number}, target=NODE, timeout=0.0)  # without a limit
        node.send("PING", NODE, time=1_700_000_000_000 + number, id=f"ping-{number}")
        await context.sleep(0.4)
    await context.op("mol.unserve", service="s")
    await context.sleep(0.5)
    node.start_call("s.echo", {"n": "gone"}, target=NODE, timeout=5.0)
    await probed(context)


@base(role="service", needs=["streams"])
async def uploads(context: ScriptContext) -> None:
    """Others upload streams, ask with meta for one, and ask with little patience."""
    node = peer(context)
    reading = {"read": {"read_stream": True}, "down": {"stream": {"text": "abcdef"}, "chunk": 2}}
    await joined(context, offer("mol.serve", service="s", actions={**ACTIONS, **reading}))
    await context.sleep(0.5)
    for number in range(2):
        node.start_call("s.read", {"n": number}, target=NODE, stream=Stream([b"one", b"two", b"\xff\0"]))
        node.start_call("s.down", {"n": number}, target=NODE, meta={"trace": "ä", "n": number})
        node.start_call("s.slow", {"n": number}, target=NODE, timeout=0.1)
        await context.sleep(0.5)
    await probed(context)


@base(role="listener")
async def events(context: ScriptContext) -> None:
    """Listens to events of others and of its own, and sends some."""
    node = peer(context)
    listeners = (("one", "mine.*", ""), ("all", "mine.**", "g"), ("x", "mine.a?", "g"))
    offers = [
        offer("mol.listen", sub=sub, event=pattern, group=group, on_message={"mode": "event"})
        for sub, pattern, group in listeners
    ]
    await joined(context, *offers)
    await context.sleep(1)
    for number in range(3):
        node.emit("mine.ab", {"n": number})
        node.broadcast("mine.ab.c", {"n": number})
        node.emit("mine.z", {"n": number}, ["g"])
        await context.op("mol.emit", event="news.a", data={"n": number})
        await context.op("mol.broadcast", event="news.b", data={"n": number})
        await context.sleep(0.3)
    await probed(context)


@base(role="service")
async def joining(context: ScriptContext) -> None:
    """Nodes come and go, beat without a word, and have the same name."""
    await joined(context, heartbeat_s=2.0, heartbeat_timeout_s=6.0)
    first = peer(context, heartbeat_s=2.0, announces=False)
    await context.op("mol.serve", service="s", actions=ACTIONS)
    first.heartbeat()
    await context.sleep(1)
    first.discover(NODE)
    first.send("PING", "", time=5, id="for-all")
    first.discover()
    await context.sleep(1)
    bare = {"services": [{"name": "b", "actions": {"b.x": {}}}], "instanceID": "b", "seq": 1}
    first.send("INFO", "", sender="bare", **bare)
    await context.sleep(0.2)
    await context.op("mol.registry")
    second = peer(context, "second", 2.0)
    await context.sleep(5)
    await context.op("mol.registry")
    second.restart()
    await context.sleep(0.5)
    second.kill()
    await context.sleep(12)
    await context.op("mol.registry")
    await probed(context)


@base(role="service", server={"namespace": "blue"})
async def namespaces(context: ScriptContext) -> None:
    """Nodes of two networks on one server, with the same names."""
    node = peer(context)
    peer(context, namespace="red")
    await joined(context, offer("mol.serve", service="s", actions=ACTIONS), namespace="blue")
    await context.sleep(0.5)
    for number in range(2):
        node.start_call("s.echo", {"n": number}, target=NODE, timeout=5.0)
        await begin(context, "p.echo", {"n": number})
    await probed(context)


@base(role="service", server={"namespace": "größe東"}, injections=False)
async def foreign_letters(context: ScriptContext) -> None:
    """The names of the network, of a node, of a service and of an event have letters beyond ASCII."""
    node = peer(context, id="prüfer東")
    await joined(
        context,
        offer("mol.serve", service="größe", actions=ACTIONS),
        offer("mol.listen", sub="one", event="größe.*", on_message={"mode": "event"}),
        namespace="größe東",
    )
    await context.sleep(0.5)
    for number in range(2):
        node.start_call("größe.echo", {"n": number}, target=NODE, timeout=5.0)
        node.emit("größe.a", {"n": number})
        await begin(context, "p.echo", {"n": number})
        await context.op("mol.ping", node="prüfer東")
    await probed(context)


@base(role="service", needs=["streams"])
async def chunks(context: ScriptContext) -> None:
    """Uploads whose chunks come out of order, twice, and after the end."""
    node = peer(context)
    await joined(context, offer("mol.serve", service="s", actions={**ACTIONS, "read": {"read_stream": True}}))
    await context.sleep(0.5)
    for order in ((0, 1, 2, 3), (0, 2, 1, 3), (1, 0, 3, 2), (0, 1, 1, 2, 3, 1, 3)):
        id = "-".join(map(str, order))
        for seq in order:
            chunk = {"type": "Buffer", "data": [seq, 0, 255]} if 0 < seq < 3 else None
            fields = {"id": id, "action": "s.read", "params": chunk, "timeout": 0, "meta": {}, "headers": {}}
            node.send("REQ", NODE, stream=seq < 3, seq=seq, **fields)
        await context.sleep(0.3)
    for packet in ({"id": "no-params", "action": "s.value"}, {"id": "no-action"}, {"id": "odd", "action": 7}):
        node.send("REQ", NODE, **packet)
    await context.sleep(0.5)
    await probed(context)


@base(role="service", injections=False)
async def dotted(context: ScriptContext) -> None:
    """Services whose names have dots, such as those with a version, are called, and taken back."""
    node = peer(context)
    names = ("v2.s", "a.b.s")
    await joined(context, *[offer("mol.serve", service=name, actions=ACTIONS) for name in names])
    await context.sleep(1)
    for number in range(2):
        for name in names:
            for action in ("echo", "fail", "value", "nowhere"):
                node.start_call(f"{name}.{action}", {"n": number}, target=NODE, timeout=5.0)
        await context.sleep(1)
    await context.op("mol.unserve", service="a.b.s")
    await context.sleep(1)
    node.start_call("v2.s.echo", {"n": "left"}, target=NODE, timeout=5.0)
    await probed(context)


@base(role="service", server={"bus": {"max_payload": 8192}}, injections=False)
async def large_answers(context: ScriptContext) -> None:
    """Answers around the largest message that the server takes; one that is larger becomes an error."""
    node = peer(context)
    sizes = {f"of-{size}": {"return": "x" * size} for size in (7000, 8192, 20_000, 10)}
    await joined(context, offer("mol.serve", service="s", actions=sizes))
    await context.sleep(1)
    for action in sizes:
        node.start_call(f"s.{action}", {}, target=NODE, timeout=5.0)
        await context.sleep(0.5)
    await context.sleep(5)
    await probed(context)


@base(role="listener", injections=False)
async def near_events(context: ScriptContext) -> None:
    """Events whose names differ little from those that are listened to, on both sides."""
    node = context.broker.node("other", [Service("o", {}, dict.fromkeys(NEAR[:3], heard))], heartbeat_s=10.0)
    peer(context)
    offers = [offer("mol.listen", sub=each, event=each, on_message={"mode": "event"}) for each in NEAR[:3]]
    await joined(context, *offers)
    await context.sleep(1)
    for event in NEAR[3:]:
        await context.op("mol.emit", event=event, data={"of": event})
        await context.op("mol.broadcast", event=event, data={"to all": event})
        node.emit(event, {"other": event})
        node.send("EVENT", NODE, id=f"to-{event}", event=event, data={"sent": event}, broadcast=True)
        await context.sleep(0.3)
    await probed(context)


@base(role="listener", injections=False)
async def one_is_slow(context: ScriptContext) -> None:
    """Two listeners, one of which takes its time; the events of the other one come meanwhile."""
    node = peer(context)
    await joined(
        context,
        offer("mol.listen", sub="slow", event="slow.*", on_message={"mode": "event", "sleep_ms": 5000}),
        offer("mol.listen", sub="quick", event="quick.*", on_message={"mode": "event"}),
    )
    await context.sleep(1)
    node.emit("slow.a", {"n": "long"})
    for number in range(3):
        await context.sleep(0.5)
        node.emit("quick.a", {"n": number})
    await context.sleep(10)
    await probed(context)
