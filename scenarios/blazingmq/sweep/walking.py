"""Walks of BlazingMQ; see `conformance.run.walks`."""

from __future__ import annotations

from typing import Any

from conformance.run.walks import LOSSY, Walk, walks
from scenarios.blazingmq.sweep._shared import (
    FANOUT,
    PRIORITY,
    PROPERTIES,
    RARELY,
    SETTLED,
    K,
    finale,
    put,
    reader,
    watched,
    writer,
)

READ = (PRIORITY + "r0", PRIORITY + "r1", FANOUT + "news?id=foo")
WRITTEN = (K, PRIORITY + "second-kept")
EVENTS = {"mode": "event"}


async def begin(walk: Walk) -> None:
    """Connect, and open two queues to write."""
    await walk.context.connect()
    for uri in WRITTEN:
        await writer(walk.context, uri)
    walk.state["readers"] = {}
    walk.state["settled"] = set()


async def end(walk: Walk) -> None:
    """See that messages still come, then the finale."""
    await watched(walk.context, "last", READ[0])
    await finale(walk.context)


async def publish(walk: Walk) -> None:
    """One message, with or without properties."""
    more: dict[str, Any] = walk.pick({}, {"properties": PROPERTIES})
    to = {"target": walk.pick(*WRITTEN), "wait": walk.pick(True, True, True, False)}
    walk.begin("publish", walk.pick(2.0, 8.0), body=walk.body(), **to, **more)


async def packed(walk: Walk) -> None:
    """One large message, compressed or not."""
    body = {"gen": "zero", "len": 2000 + walk.number}
    walk.begin("publish", 8.0, body=body, compression=walk.pick("zlib", "none"), target=K, wait=True)


async def open_reader(walk: Walk) -> None:
    """A queue to read that is not open, once for each."""
    readers = walk.state["readers"]
    free = [uri for uri in READ if uri not in readers]
    if free:
        uri, sub = walk.pick(*free), f"c{walk.number}"
        plan = walk.pick(SETTLED, EVENTS)
        result = await reader(walk.context, sub, uri, plan, max_unconfirmed_messages=walk.pick(3, 20))
        readers[uri] = (sub, plan) if result.ok else None


async def configure(walk: Walk) -> None:
    """Other limits and another priority for a reader."""
    live = [uri for uri, found in walk.state["readers"].items() if found]
    if live:
        options = {"max_unconfirmed_messages": walk.pick(5, 50), "consumer_priority": walk.pick(0, 1)}
        await walk.context.op("bmq.configure_queue", 8.0, target=walk.pick(*live), options=options)


async def close_reader(walk: Walk) -> None:
    """A queue is closed, and stays so."""
    live = [uri for uri, found in walk.state["readers"].items() if found]
    if live:
        uri = walk.pick(*live)
        walk.state["readers"][uri] = None
        await walk.context.op("bmq.close_queue", 8.0, target=uri)


async def open_others(walk: Walk) -> None:
    """Queues that open, and one that does not; closed again or not."""
    uri = walk.pick(PRIORITY + f"n{walk.number}", "bmq://nowhere/q")
    result = await walk.context.op("bmq.open_queue", 8.0, target=uri, uri=uri, flags=["write"])
    if result.ok and walk.pick(True, False):
        await walk.context.op("bmq.close_queue", 8.0, target=uri)


async def others(walk: Walk) -> None:
    """Messages of another publisher."""
    uri = walk.pick(*READ).partition("?")[0]
    put(walk.context, *[f"m{walk.number}" for _ in range(walk.pick(1, 2, 6))], uri=uri)


async def settle(walk: Walk) -> None:
    """One of the messages that came is confirmed."""
    by_hand = [found[0] for found in walk.state["readers"].values() if found and found[1] is EVENTS]
    done = walk.state["settled"]
    left = [
        (event["sub"], event["ref"])
        for event in walk.context.adapter.events
        if event.event == "message" and event["sub"] in by_hand and (event["sub"], event["ref"]) not in done
    ]
    if left:
        sub, ref = walk.pick(*left)
        done.add((sub, ref))
        await walk.context.op("settle", sub=sub, ref=ref, how="ack")


async def configure_bytes(walk: Walk) -> None:
    """Another limit of bytes for a reader."""
    live = [uri for uri, found in walk.state["readers"].items() if found]
    if live:
        options = {"max_unconfirmed_messages": 50, "max_unconfirmed_bytes": walk.pick(300, 2**33)}
        await walk.context.op("bmq.configure_queue", 8.0, target=walk.pick(*live), options=options)


STEPS = (
    (8, publish), (1, packed), (3, open_reader), (2, configure), (1, close_reader), (3, open_others),
    (4, others), (4, settle), (2, Walk.kill), (1, Walk.rest), (3, Walk.ended),
)  # fmt: skip
WALKS = (
    walks(30, STEPS, begin, end, role="publisher", server=RARELY)
    + walks(15, (*STEPS, *LOSSY), begin, end, role="publisher", server=RARELY, name="rough-walk")
    + walks(
        5, (*STEPS, (4, configure_bytes)), begin, end, role="publisher", server=RARELY, name="varied-walk"
    )
)
