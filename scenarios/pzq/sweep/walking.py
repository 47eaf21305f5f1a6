"""Walks of PZQ; see `conformance.run.walks`."""

from __future__ import annotations

from conformance.run.bases import text
from conformance.run.walks import LOSSY, Walk, walks
from scenarios.pzq.sweep._shared import ACKING, EVENTS, PROBE, PUBLISH, QUICK, put, subscribed, watched


async def begin(walk: Walk) -> None:
    """A consumer that settles by itself, or one for which the script settles."""
    await walk.context.connect()
    walk.state["settles"] = walk.pick(True, False)
    walk.state["settled"] = set()
    plan = ACKING if walk.state["settles"] else EVENTS
    await subscribed(walk.context, {**plan, "sleep_ms": walk.pick(0, 0, 20)})


async def end(walk: Walk) -> None:
    """See that messages still come, then the finale."""
    await watched(walk.context, "last")
    await walk.context.finale("publish", **PROBE)


async def publish(walk: Walk) -> None:
    """One message of one part or more."""
    body = walk.pick(walk.body(), [walk.body(), walk.body()], [walk.body(), text("")])
    if walk.pick(True, True, False):
        walk.begin("publish", walk.pick(2.0, 8.0), body=body, **PUBLISH)
    else:
        walk.begin("publish", 8.0, target="", wait=False, body=body)


async def ask(walk: Walk) -> None:
    """A question to the monitor."""
    walk.begin("pzq.monitor", 8.0)


async def others(walk: Walk) -> None:
    """Messages of another producer."""
    put(walk.context, *[f"m{walk.number}" for _ in range(walk.pick(1, 3))])


async def settle(walk: Walk) -> None:
    """One of the messages that came is settled."""
    done = walk.state["settled"]
    came = [event["ref"] for event in walk.context.adapter.events if event.event == "message"]
    left = [ref for ref in came if ref not in done]
    if left and not walk.state["settles"]:
        ref = walk.pick(*left)
        done.add(ref)
        await walk.context.op("settle", sub="c1", ref=ref, how=walk.pick("ack", "ack", "nack"))


STEPS = (
    (6, publish), (2, ask), (4, others), (6, settle), (1, Walk.kill), (1, Walk.rest), (2, Walk.ended),
)  # fmt: skip
WALKS = (
    walks(15, STEPS, begin, end, role="publisher")
    + walks(15, STEPS, begin, end, role="publisher", name="brisk-walk", server=QUICK)
    + walks(15, (*STEPS, *LOSSY), begin, end, role="publisher", name="rough-walk")
)
