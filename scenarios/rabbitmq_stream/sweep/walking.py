"""Walks of RabbitMQ Stream; see `conformance.run.walks`."""

from __future__ import annotations

from conformance.run.concurrent_actions import pass_turns
from conformance.run.walks import LOSSY, Walk, walks
from scenarios.rabbitmq_stream.sweep._shared import PROBE, record, watched
from scenarios.rabbitmq_stream.traits import UNASKED

STREAMS = ("S", "S2")
READ = ("R0", "R1", "R2")  #: each has one subscription at a time
MOST_READ = 6


async def begin(walk: Walk) -> None:
    """Streams to write, and others to read."""
    context = walk.context
    for name in (*STREAMS, *READ):
        context.broker.create_stream(name)
    for name in READ:
        context.broker.publish(name, [record(context, f"{name}-{i}") for i in range(4)])
    context.broker.store_offset("S", "r", 7)
    walk.state["subs"] = {}
    await context.connect()


async def end(walk: Walk) -> None:
    """See that messages still come, then the finale."""
    await watched(walk.context, "last")
    await walk.context.finale("publish", **PROBE)


async def publish(walk: Walk) -> None:
    """One message, with or without a publisher's name."""
    to = {"target": walk.pick(*STREAMS), "name": walk.pick(None, None, "p", "q")}
    walk.begin("publish", walk.pick(2.0, 8.0), body=walk.body(), wait=walk.pick(True, True, False), **to)


async def publish_many(walk: Walk) -> None:
    """Up to seven messages in one op."""
    many = [{"body": walk.body()} for _ in range(walk.pick(1, 3, 7))]
    walk.begin("publish_many", 8.0, messages=many, target="S", wait=walk.pick(True, False))


async def ask(walk: Walk) -> None:
    """A question to the server, or a stream created or deleted."""
    stream, number = walk.pick(*STREAMS), walk.number
    op, args = walk.pick(
        ("rmqs.query_offset", {"target": "S", "name": walk.pick("r", "none")}),
        ("rmqs.query_sequence", {"target": stream, "name": walk.pick("p", "q", "none")}),
        ("rmqs.metadata", {"targets": [stream, *walk.pick((), ("nowhere",))]}),
        ("rmqs.create", {"target": walk.pick(f"N{number}", stream)}),
        ("rmqs.delete", {"target": f"X{number}"}),
    )
    walk.begin(op, 8.0, **args)


async def subscribe(walk: Walk) -> None:
    """A subscription of a stream that has none."""
    subs, number = walk.state["subs"], walk.number
    free = [name for name in READ if name not in subs.values()]
    if not free or number > 200:
        return
    target = walk.pick(*free)
    start = walk.pick({"type": "first"}, {"type": "next"}, {"type": "last"}, {"type": "offset", "value": 2})
    options = {"offset": start, "credit": walk.pick(1, 2, 10), "name": f"n{number}"}
    plan = {"mode": "event", "sleep_ms": walk.pick(0, 0, 30)}
    result = await walk.context.op(
        "subscribe", 8.0, sub=f"c{number}", target=target, options=options, on_message=plan
    )
    if result.ok:
        subs[f"c{number}"] = target
    else:
        subs[f"lost{number}"] = target  # its outcome is not known: it is left alone


async def unsubscribe(walk: Walk) -> None:
    """The end of a subscription; its stream is not read again: what was under way is not delivered."""
    live = [sub for sub in walk.state["subs"] if sub.startswith("c")]
    if live:
        sub = walk.pick(*live)
        walk.state["subs"][f"lost-{sub}"] = walk.state["subs"].pop(sub)
        await walk.context.op("unsubscribe", 8.0, sub=sub, drain=walk.pick(True, False))


async def put(walk: Walk) -> None:
    """Messages of another publisher."""
    bodies = [record(walk.context, f"m{walk.number}") for _ in range(walk.pick(1, 2, MOST_READ))]
    walk.context.broker.publish(walk.pick(*READ), bodies)


async def store(walk: Walk) -> None:
    """Store an offset."""
    walk.begin("rmqs.store_offset", 8.0, target="S", name="w", offset=walk.number)


async def flush(walk: Walk) -> None:
    """Wait for all confirms."""
    await walk.context.op("flush", 8.0)


async def drop(walk: Walk) -> None:
    """The end of a publisher, once its messages have their outcomes."""
    await walk.ended()
    await walk.context.op("rmqs.delete_publisher", 8.0, target="S", name=walk.pick(None, "p", "q"))


async def move(walk: Walk) -> None:
    """The leader of a stream moves: to the one node that there is."""
    walk.context.broker.move_leader(walk.pick(*STREAMS, *READ), 1)


async def chatter(walk: Walk) -> None:
    """The server says something that the client has not asked for while questions are on their way."""
    context = walk.context
    context.notes.lies = True
    for _ in range(3):
        await ask(walk)
    await pass_turns(walk.pick(*range(6)))
    said = walk.pick(*UNASKED.values())
    for name, connection in list(context.broker.engine.connections.items()):
        if connection.session.describe()["state"] == "open":
            context.broker.say(name, said)


async def begin_with_supers(walk: Walk) -> None:
    """A super stream, too."""
    walk.context.broker.create_super_stream("P", ("P-0", "P-1"), ("a", "b"))
    await begin(walk)


async def credit(walk: Walk) -> None:
    """A subscription may have more chunks under way from now on."""
    live = [sub for sub in walk.state["subs"] if sub.startswith("c")]
    if live:
        await walk.context.op("rmqs.credit", 8.0, sub=walk.pick(*live), credit=walk.pick(1, 3))


async def locate(walk: Walk) -> None:
    """The partitions of a super stream, or the way of a key; of one that is not there, too."""
    target = walk.pick("P", "P", "nowhere")
    if walk.pick(True, False):
        walk.begin("rmqs.partitions", 8.0, target=target)
    else:
        walk.begin("rmqs.route", 8.0, target=target, key=walk.pick("a", "b", "c"))


async def route(walk: Walk) -> None:
    """A message for a partition of a super stream."""
    routing = {"by": walk.pick("key", "hash"), "key": walk.pick("a", "b")}
    more = {"name": walk.pick(None, "p"), "wait": walk.pick(True, False)}
    walk.begin("publish", 8.0, body=walk.body(), target="P", routing=routing, **more)


async def create_with(walk: Walk) -> None:
    """A stream with arguments; at times one that is there, with others."""
    arguments = {"max-age": f"{walk.pick(1, 2)}h", "max-length-bytes": str(walk.pick(10**6, 10**10))}
    walk.begin("rmqs.create", 8.0, target=f"A{walk.pick(1, 2, 3)}", arguments=arguments)


STEPS = (
    (8, publish), (3, publish_many), (4, ask), (4, subscribe), (2, unsubscribe), (4, put), (1, store),
    (1, drop), (1, flush), (2, move), (2, Walk.kill), (1, Walk.rest), (3, Walk.ended),
)  # fmt: skip
VARIED = (*STEPS, (3, credit), (3, locate), (4, route), (2, create_with))
CHATTERING = (*STEPS, (8, chatter))
WALKS = (
    walks(30, STEPS, begin, end, role="publisher")
    + walks(10, CHATTERING, begin, end, role="publisher", name="chattering-walk")
    + walks(15, (*STEPS, *LOSSY), begin, end, role="publisher", name="rough-walk")
    + walks(10, VARIED, begin_with_supers, end, role="publisher", name="varied-walk")
)
