"""Walks of Narconi; see `conformance.run.walks`."""

from __future__ import annotations

from conformance.run.walks import ROUGH, Walk, walks
from scenarios.narconi.sweep._shared import EVENTS, PROBE, SETTLING, put, queues, watched

WRITTEN = ("W", "W1", "w")  #: names that contain each other, or differ in one letter only
READ = ("R", "R1", "R11")  #: each has one subscription at a time
TAKEN = "T"
FEW_S, MANY_S = 2.0, 8.0


async def begin(walk: Walk) -> None:
    """Queues to write, others to read, and one from which single messages are taken."""
    context = walk.context
    queues(context, "P", *WRITTEN, *READ, TAKEN)
    for name in (*READ, TAKEN):
        put(context, name, f"{name}-0", f"{name}-1")
    walk.state["subs"] = {}
    walk.state["by hand"] = set()  # subscriptions of which the script settles
    walk.state["settled"] = set()
    await context.connect(auto_reconnect=True)


async def end(walk: Walk) -> None:
    """See that messages still come, then the finale."""
    left = [target for sub, target in walk.state["subs"].items() if sub.startswith("c")]
    await watched(walk.context, walk.pick(*left) if left else READ[0], "last")
    await walk.context.finale("publish", **PROBE)


async def publish(walk: Walk) -> None:
    """One message over a WebSocket, with headers or without."""
    headers = walk.pick({}, {}, {"x-msg-x-n": f"h{walk.number}"}, {"Content-Type": "text/plain"})
    to = {"target": walk.pick(*WRITTEN), "headers": headers}
    walk.begin("publish", walk.pick(FEW_S, MANY_S), body=walk.body(), wait=walk.pick(True, True, False), **to)


async def post(walk: Walk) -> None:
    """One message over HTTP."""
    headers = walk.pick({}, {"x-msg-x-n": f"h{walk.number}"})
    walk.begin("narc.post", MANY_S, target=walk.pick(*WRITTEN), body=walk.body("h"), headers=headers)


async def ask(walk: Walk) -> None:
    """A message is taken, or a queue is made or deleted."""
    number = walk.number
    op, target = walk.pick(
        ("narc.take", TAKEN),
        ("narc.take", "nowhere"),
        ("narc.ensure_queue", f"N{number}"),
        ("narc.ensure_queue", walk.pick(*WRITTEN)),
        ("narc.delete_queue", f"X{number}"),
    )
    walk.begin(op, MANY_S, target=target)


async def subscribe(walk: Walk) -> None:
    """A subscription of a queue that has none."""
    subs, number = walk.state["subs"], walk.number
    free = [name for name in READ if name not in subs.values()]
    if not free:
        return
    options = walk.pick({}, {"ack": True}, {"ack": True, "limit": 2}, {"ack": True, "limit": 1})
    plan = {**walk.pick(SETTLING, EVENTS), "sleep_ms": walk.pick(0, 0, 30)}
    given = {"target": walk.pick(*free), "options": options, "on_message": plan}
    result = await walk.context.op("subscribe", MANY_S, sub=f"c{number}", **given)
    name = f"c{number}" if result.ok else f"lost{number}"  # its outcome is not known: it is left alone
    subs[name] = given["target"]
    if "auto_settle" not in plan:
        walk.state["by hand"].add(name)


async def unsubscribe(walk: Walk) -> None:
    """The end of a subscription, graceful or not; its queue is not read again."""
    live = [sub for sub in walk.state["subs"] if sub.startswith("c")]
    if live:
        sub = walk.pick(*live)
        walk.state["subs"][f"lost-{sub}"] = walk.state["subs"].pop(sub)
        await walk.context.op("unsubscribe", MANY_S, sub=sub, drain=walk.pick(True, False))


async def others(walk: Walk) -> None:
    """Messages of another publisher."""
    put(walk.context, walk.pick(*READ, TAKEN), *[f"m{walk.number}" for _ in range(walk.pick(1, 3))])


async def settle(walk: Walk) -> None:
    """One of the messages that came is settled, or all up to it."""
    done = walk.state["settled"]
    came = [event for event in walk.context.adapter.events if event.event == "message"]
    live = walk.state["by hand"] & set(walk.state["subs"])
    left = [event for event in came if event["ref"] not in done and event["sub"] in live]
    if left:
        event = walk.pick(*left)
        done.add(event["ref"])
        how = walk.pick("ack", "ack", "ack_to")
        await walk.context.op("settle", sub=event["sub"], ref=event["ref"], how=how)


STEPS = (
    (8, publish), (3, post), (4, ask), (4, subscribe), (2, unsubscribe), (5, others), (4, settle),
    (2, Walk.kill), (1, Walk.rest), (3, Walk.ended),
)  # fmt: skip
WALKS = walks(15, STEPS, begin, end, role="publisher") + walks(
    15, (*STEPS, *ROUGH), begin, end, role="publisher", name="rough-walk"
)
