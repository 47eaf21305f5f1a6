"""Base scripts about where things are: the nodes of a stream, the partitions of a super stream."""

from __future__ import annotations

from conformance.run.bases import Base, ScriptContext, base, text
from scenarios._servers import in_turns, second_server
from scenarios.rabbitmq_stream.sweep._shared import ASK, EVENTS, PROBE, PUBLISH, put, watched

NEXT = {"offset": {"type": "next"}, "credit": 3}
NOBODY = 0xFFFF  #: a port at which nobody listens; fakes in memory have small ones


@base(role="consumer", injections=False)
async def together(context: ScriptContext) -> None:
    """Several consumers and publishers of one stream, which gets another leader again and again."""
    context.broker.create_stream("S")
    await context.connect()
    names = (None, "p", "q")
    for number in range(3):
        await context.op("subscribe", sub=f"c{number}", target="S", options=NEXT, on_message=EVENTS)
    for number in range(3):
        calls = [
            context.begin("publish", 8.0, body=text(f"a{number}{name}"), target="S", name=name, wait=True)
            for name in names
        ]
        await context.ended(calls)
        context.broker.restart_stream("S")
        await context.sleep(10)
        put(context, f"m{number}")
        await context.sleep(2)
    await watched(context, "last")
    await context.finale("publish", **PROBE)


SUPERS = {"orders": ("orders-0", "orders-1", "orders-2"), "bills": ("bills-0", "bills-1", "bills-2")}


@base(role="publisher", injections=False, needs=["super_streams"])
async def two_super_streams(context: ScriptContext) -> None:
    """Messages of the same keys for two super streams, by their hash and by the key itself, in turns."""
    context.broker.create_stream("S")
    for name, partitions in SUPERS.items():
        context.broker.create_super_stream(name, partitions, ["a", "b", "c"])
    await context.connect()
    for number, by in enumerate(("hash", "key", "hash")):
        for key in ("a", "b", "c"):
            for name in SUPERS:
                routing = {"by": by, "key": key}
                body = text(f"{name}{key}{number}")
                await context.op("publish", target=name, body=body, routing=routing, wait=True)
        context.kill()
        await context.sleep(5)
    await context.finale("publish", **PROBE)


@base(role="consumer", server={"nodes": 3}, injections=False)
async def one_node_away(context: ScriptContext) -> None:
    """Each of the replicas in turn cannot be reached, while the others can."""
    context.broker.create_stream("S")
    context.notes.partly_unreachable = True
    await context.connect()
    for number, node in enumerate(context.broker.nodes[1:]):
        port, node.port = node.port, NOBODY
        for attempt in range(2):
            options = {"offset": {"type": "next"}, "credit": 2}
            sub = f"c{number}{attempt}"
            await context.op("subscribe", 8.0, sub=sub, target="S", options=options, on_message=EVENTS)
            put(context, f"m{number}{attempt}")
            await context.sleep(5)
            context.kill()
            await context.sleep(20)
        node.port = port
    await watched(context, "last")
    await context.finale("rmqs.query_sequence", **ASK)


@base(role="publisher", server={"nodes": 2}, injections=False)
async def one_link_for_both(context: ScriptContext) -> None:
    """A publisher and a consumer of a stream at another node, of which one goes and the other goes on."""
    context.broker.create_stream("S", initial_cluster_size=1)
    context.broker.create_stream("S2", initial_cluster_size=1)
    node = context.broker.nodes[1]
    await context.connect(endpoints=[f"{node.host}:{node.port}"])
    await context.op("subscribe", sub="c1", target="S2", options=NEXT, on_message=EVENTS)
    await context.op("publish", body=text("a"), **PUBLISH)
    await context.op("unsubscribe", sub="c1")
    await context.sleep(1)
    await context.op("publish", body=text("b"), **PUBLISH)
    await context.op("subscribe", sub="c2", target="S", options=NEXT, on_message=EVENTS)
    await context.op("rmqs.delete_publisher", target="S", name=None)
    await watched(context, "last")
    await context.finale("publish", **PROBE)


def servers_in_turn(turns: int) -> Base:
    """Two servers that are away by turns; see `in_turns`."""

    async def script(context: ScriptContext) -> None:
        """Two servers are away by turns, and share nothing; messages go to the one that is there."""
        context.notes.forgets = True
        with second_server(context) as other:
            for server in (context.broker, other):
                server.create_stream("S")
            await context.connect(endpoints=[context.endpoint, other.where])
            await context.op("publish", body=text("a"), **PUBLISH)
            async for turn in in_turns(context, other, turns):
                await context.op("publish", 8.0, body=text(f"b{turn}"), **PUBLISH)
                await context.op("rmqs.query_sequence", **ASK)
            await context.finale("publish", **PROBE)

    needs = ["auto_reconnect", "endpoints"]
    return base(role="publisher", needs=needs, injections=False, name=f"servers-in-turn-{turns}")(script)


IN_TURN = [servers_in_turn(2), servers_in_turn(3)]
