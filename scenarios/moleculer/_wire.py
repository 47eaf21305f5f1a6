"""What the journal shows of the client: its packets, their topics, what it listens to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect
from conformance.suite.expect import slug
from fakebrokers import Moleculer
from fakebrokers.errors import WaitTimeout
from fakebrokers.journal import Record, Tap
from fakebrokers.moleculer.node import Node
from fakebrokers.moleculer.packets import Packet, packet_in
from fakebrokers.moleculer.topics import Topic, topic_of
from scenarios.moleculer._steps import AT_ONCE_S, NODE, call, limit

Topical = tuple[Record, Packet]


def when(broker: Moleculer, record: Record) -> float:
    """When it happened, on the clock of the running loop and of results."""
    return record.at + broker.journal.started_at


def packet_of(record: Record) -> Packet | None:
    """The packet in a record; None if there is none, or a record of the message around it has it already."""
    if record.frame is None or record.envelope:
        return None
    return packet_in(record.frame)


def said(
    broker: Moleculer, kind: str, since: int = 0, where: Callable[[Any], bool] | None = None
) -> list[Topical]:
    """The packets of a kind that came from the client."""
    found = broker.packets(kind, since)
    return [(r, p) for r, p in found if r.tap & Tap.RECEIVED and (where is None or where(p))]


def packets(
    broker: Moleculer, kind: str, since: int = 0, where: Callable[[Any], bool] | None = None
) -> list[Any]:
    """The packets that `said` finds, without their records."""
    return [packet for _, packet in said(broker, kind, since, where)]


async def came(
    broker: Moleculer,
    kind: str,
    *,
    since: int = 0,
    count: int = 1,
    within_s: float = AT_ONCE_S,
    where: Callable[[Any], bool] | None = None,
) -> list[Topical]:
    """The packets of a kind from the client, as soon as there are `count`, or what there is in the end."""

    def fits(record: Record) -> bool:
        packet = packet_of(record)
        return type(packet).__name__ == kind and (where is None or where(packet))

    with suppress(WaitTimeout):
        await broker.wait_for_async(fits, tap=Tap.RECEIVED, count=count, since=since, timeout=within_s)
    return said(broker, kind, since, where)


def topic(record: Record) -> Topic:
    """Where a message went, or what it was published on."""
    frame: Any = record.frame
    text = next(str(getattr(frame, name)) for name in ("subject", "channel", "topic") if hasattr(frame, name))
    found = topic_of(text)
    assert found is not None, text
    return found


def place(record: Record) -> str:
    """A topic without its prefix: ``REQ.client``."""
    found = topic(record)
    return f"{found.command}.{found.rest}" if found.rest else found.command


def mark(broker: Moleculer) -> int:
    """The journal's end, to look at what comes later."""
    return broker.journal.last_seq


def services_in(info: Any) -> list[str]:
    """The names of the services in an INFO, without the node's own."""
    listed = info.services if isinstance(info.services, Sequence) else []
    names = [str(each.get("name")) for each in listed if isinstance(each, Mapping)]
    return sorted(name for name in names if not name.startswith("$") and not name.startswith("listener-"))


def is_broadcast(found: Topical) -> bool:
    """Whether a packet was for everybody."""
    return topic(found[0]).rest == ""


async def beats(
    broker: Moleculer, expect: Expect, since: int, within_s: float, criterion: str, *, id: str
) -> None:
    """The client's heartbeats go on."""
    found = await came(broker, "Heartbeat", since=since, within_s=within_s)
    expect.that(found, criterion, f"no HEARTBEAT for {within_s:g} s", id=id)


ID_TOPICS = ("EVENT", "REQ", "RES", "DISCOVER", "INFO", "PING", "PONG")


ALL_TOPICS = ("DISCOVER", "INFO", "DISCONNECT", "HEARTBEAT", "PING")


def wanted_topics(id: str = NODE) -> set[str]:
    """The twelve topics of a node."""
    return {f"{word}.{id}" for word in ID_TOPICS} | set(ALL_TOPICS)


def subscriptions(broker: Moleculer, before: int | None = None, since: int = 0) -> list[str]:
    """The topics that the server had granted before a record of the journal (None: by now), in full."""
    found: list[str] = []
    waiting: dict[int, list[str]] = {}
    for record in broker.journal.records(since):
        frame: Any = record.frame
        if before is not None and record.seq >= before:
            break
        if record.kind == "Sub" and record.tap & Tap.RECEIVED:
            found.append(frame.subject)
        elif record.kind == "Subscribed" and record.tap & Tap.SENT and frame.action == "subscribe":
            found.append(frame.channel)
        elif record.kind == "Subscribe" and broker.transporter == "mqtt":
            waiting[frame.packet_id] = [topic for topic, _ in frame.filters]
        elif record.kind == "Suback" and record.tap & Tap.SENT:
            found += waiting.pop(frame.packet_id, [])
    return found


def places(topics: list[str]) -> set[str]:
    """The topics without the prefix of their namespace."""
    parts = [topic_of(topic) for topic in topics]
    return {f"{each.command}.{each.rest}" if each.rest else each.command for each in parts if each}


async def fails_unsent(
    broker: Moleculer, client: Client, expect: Expect, node: Node, criterion: str, within_s: float = 0.5
) -> Result:
    """A call to the peer fails at once, for good, and no REQUEST is published."""
    since, seen = mark(broker), len(node.requests)
    result = await call(client, "p.echo", timeout_s=2.0)
    expect.that(
        result.error is not None and result.error.definite,
        f"{criterion} fails for good",
        str(result),
        id=slug("{}-fails-for-good", criterion),
    )
    expect.within(
        result.elapsed_ms / 1000,
        limit(within_s),
        f"{criterion} fails at once",
        id=slug("{}-fails-at-once", criterion),
    )
    sent = len(said(broker, "Request", since)) + len(node.requests) - seen
    expect.equal(
        sent, 0, f"{criterion}: no REQUEST is published", id=slug("{}-no-request-is-published", criterion)
    )
    return result
