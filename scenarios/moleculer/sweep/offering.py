"""What the application offers to others, as its ops say, and as whom the client does so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any

from conformance.decoders.moleculer import BALANCED, TopicParts, topic_parts
from conformance.run.case import Case
from conformance.run.facts import Facts, Listening
from conformance.run.showing import shown
from conformance.run.trace import START, Position
from conformance.run.view import Conn
from fakebrokers.moleculer.packets import Info
from fakebrokers.moleculer.topics import node_topics
from scenarios.moleculer.sweep.contents import announced_by

PATTERN = frozenset("*>#+")  #: signs of patterns, which servers write differently
LISTENS_S = 1.0  #: what a node may take to listen to what it has announced


def offered(case: Case) -> list[tuple[Position, Any]]:
    """Names of actions and patterns of events, from each change on; as `tracking.announced_by` has them."""
    if case.hits and any(done.args["options"].get("disable_balancer") for done in case.done("connect")):
        return []  # it may wait for the server before it announces anything
    actions: dict[str, frozenset[str]] = {}
    events: set[str] = set()
    found: list[tuple[Position, Any]] = [(START, (frozenset(), frozenset()))]
    for done in case.ops:
        if done.op not in ("mol.serve", "mol.unserve", "mol.listen") or done.result is None:
            continue
        if not done.result.ok or done.ended is None:
            continue
        if done.op == "mol.listen":
            events.add(done.args["event"])
        elif done.op == "mol.serve":
            service = done.args["service"]
            actions[service] = frozenset(f"{service}.{name}" for name in done.args["actions"])
        else:
            actions.pop(done.args["service"], None)
        found.append((done.ended, (frozenset().union(*actions.values()), frozenset(events))))
    return found


def other_selves(facts: Facts, begins: Sequence[Position]) -> Iterator[tuple[Position, str]]:
    """Where a node announces itself as another one, without having begun anew.

    A node that hears of another instance drops what it knows, and one that hears an older number drops that
    INFO (docs/protocols/moleculer.md, 3).

    Args:
        begins: When the application has connected.
    """
    last: dict[str, tuple[Position, Info]] = {}
    for one in sorted(facts.sent, key=lambda sent: sent.at):
        info = one.frame
        if not isinstance(info, Info):
            continue
        since, former = last.get(info.sender, (one.at, info))
        last[info.sender] = one.at, info
        if any(since < begun < one.at for begun in begins):
            continue
        if info.instanceID != former.instanceID:
            yield (
                one.at,
                f"an INFO with instanceID {shown(info.instanceID)}, it was {shown(former.instanceID)}",
            )
        elif info.seq < former.seq:
            yield one.at, f"an INFO with seq {info.seq} after one with {former.seq}"


def unheard(conns: Iterable[Conn], facts: Facts, *, balances: bool) -> Iterator[tuple[Position, str]]:
    """What a node should hear on a connection that lasts, and does not listen to.

    Args:
        balances: Whether the bus chooses who answers: then nodes listen to each of their actions, too
            (docs/protocols/moleculer.md, 2 and 4.8).
    """
    for conn in conns:
        if conn.ready is None or not _lasts(conn, conn.ready.t):
            continue
        topics = [one for one in facts.listening if one.conn is conn]
        own = _own(topics)
        if own is None:
            continue
        wanted = {(topic, conn.ready) for topic in node_topics(own.prefix, own.rest, own.separator)}
        for sent in facts.sent if balances else ():
            if sent.conn is conn and isinstance(sent.frame, Info) and sent.to == "INFO":
                actions = announced_by(sent.frame)[0] if _lasts(conn, sent.at.t) else ()
                wanted |= {(own.separator.join([own.prefix, "REQB", name]), sent.at) for name in actions}
                lasts = _lasts(conn, sent.at.t)
                for group, event in _listeners(sent.frame) if lasts else ():
                    wanted.add((own.separator.join([own.prefix, "EVENTB", group, event]), sent.at))
        there = {one.topic: one.at.t for one in reversed(topics)}
        for topic, since in sorted(wanted):
            if there.get(topic, since.t + 2 * LISTENS_S) > since.t + LISTENS_S:
                yield since, f"{conn.name}: the client has not subscribed to {topic}"


def overheard(
    conns: Iterable[Conn], facts: Facts, closes: Sequence[Position]
) -> Iterator[tuple[Position, str]]:
    """What a node still listens to though it has announced that it does not offer that, or what is another
    node's. Where the bus chooses who answers, such a node takes requests from those that could answer them
    (docs/protocols/moleculer.md, 2 and 4.8).

    Args:
        closes: When the application has ended the node, which then need not listen to less.
    """
    for conn in conns:
        topics = [one for one in facts.listening if one.conn is conn]
        own = _own(topics)
        if own is None:
            continue
        own_topics = set(node_topics(own.prefix, own.rest, own.separator))
        offers = [
            (one.at, set(_offered_topics(own, one.frame)))
            for one in facts.sent
            if one.conn is conn and isinstance(one.frame, Info) and one.to == "INFO"
        ]
        for one in topics:
            parts = topic_parts(one.topic)
            if parts is None or one.topic in own_topics or not PATTERN.isdisjoint(one.topic):
                continue
            if parts.command not in BALANCED:
                yield one.at, f"{conn.name}: the client has subscribed to {one.topic}, which is not its own"
            elif (since := _not_offered(one, offers, closes)) is not None and _lasts(conn, since.t):
                still = f"{conn.name}: the client is still subscribed to {one.topic}"
                yield since, f"{still}, which it does not offer"


def _own(topics: Iterable[Listening]) -> TopicParts | None:
    """The parts of the topic that is the node's alone."""
    parts = (topic_parts(one.topic) for one in topics)
    return next((at for at in parts if at is not None and at.command == "RES"), None)


def _not_offered(
    one: Listening, offers: Sequence[tuple[Position, set[str]]], closes: Sequence[Position]
) -> Position | None:
    """From when on, and for how long enough, a node listens to what it has announced not to offer; what it
    announces later for the first time it may listen to before."""
    for number, (at, topics) in enumerate(offers):
        next_s = offers[number + 1][0].t if number + 1 < len(offers) else inf
        is_over = one.ended is not None and one.ended.t < at.t + LISTENS_S
        is_early = any(one.topic in later for _, later in offers[number:]) and not any(
            one.topic in former for _, former in offers[:number]
        )
        if at < one.at or next_s < at.t + LISTENS_S or is_over or is_early or one.topic in topics:
            continue
        if not any(close.t < at.t + LISTENS_S for close in closes):
            return at
    return None


def _offered_topics(own: TopicParts, info: Info) -> Iterator[str]:
    """The topics of what an INFO offers, the library's own services too."""
    for service in info.services if isinstance(info.services, list) else ():
        actions = service.get("actions") if isinstance(service, Mapping) else None
        for action in actions or ():
            yield own.separator.join([own.prefix, "REQB", action])
    for group, event in _listeners(info, with_own=True):
        yield own.separator.join([own.prefix, "EVENTB", group, event])


def _listeners(info: Info, *, with_own: bool = False) -> Iterator[tuple[str, str]]:
    """The groups and the events that a node listens to, without patterns, which servers write differently."""
    for service in info.services if isinstance(info.services, list) else ():
        events = service.get("events") if isinstance(service, Mapping) else None
        for event, listener in (events if isinstance(events, Mapping) else {}).items():
            group = (listener.get("group") if isinstance(listener, Mapping) else None) or service.get("name")
            if "*" not in event and (with_own or not str(service.get("name")).startswith("$")):
                yield str(group), event


def _lasts(conn: Conn, since_s: float) -> bool:
    marks = (
        conn.ended,
        conn.server_closing,
        conn.garbage,
        conn.client_closing,
        conn.reading_stopped,
        conn.unwanted,
    )
    return all(mark is None or mark.t > since_s + LISTENS_S for mark in marks)
