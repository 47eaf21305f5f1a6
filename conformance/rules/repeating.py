"""What is written again, because nobody knows whether the first copy has come."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator

from conformance.rules.registry import Violation, invariant
from conformance.rules.written import given_in_order
from conformance.run.case import Case
from conformance.run.facts import Should, Written
from conformance.run.reported import bodies_of, keys_of
from conformance.run.showing import message, named, shown
from conformance.run.trace import Position


@invariant("repeats-come-first")
def repeats_come_first(case: Case) -> Iterator[Violation]:
    """What a client writes again after a loss it writes in the order of the first time, and before what is
    new.

    Why:
        New messages overtake those that waited for their confirms, and consumers keep the older value. Where
        the server knows copies by rising ids it takes the late ones for known: it confirms them and stores
        none.

    Rests on:
        RabbitMQ Stream: the publishing ids of a producer rise; the broker drops what comes below the last
            one of a named producer, and confirms it (docs/protocols/rabbitmq-stream.md, "Deduplication").
        MQTT: messages are sent again in the order in which they were sent (MQTT 3.1.1, 4.6).
        elsewhere: common sense: a loss does not change the order in which the application published. That
            what is new comes later is then a SHOULD.

    Example:
        message "2" was written again after message "3", which was new.

    Judges:
        rabbitmq-stream, blazingmq, mqtt
    """
    if case.traits.connecting.unseen_connections:
        return
    given = given_in_order(case)
    first: dict[tuple[Hashable, ...], tuple[int, Written]] = {}
    latest: dict[tuple[Hashable, ...], tuple[int, Written]] = {}
    for number, one in enumerate(case.facts.written):
        if one.is_opaque or given.keys().isdisjoint(_contents(one)):
            continue
        key = *one.place[:-1], _contents(one)
        order, before = first.setdefault(key, (number, one))
        line = one.conn.name, one.producer, *one.place[:-1]
        last, other = latest.setdefault(line, (order, one))
        if order >= last:
            latest[line] = order, one
        elif before.conn is not one.conn:
            is_new = first[*other.place[:-1], _contents(other)][1] is other
            how = "was new" if is_new else "was written later at first"
            text = f"{_named(one)} was written again after {_named(other)}, which {how}"
            is_lost = case.traits.settlement.rises and one.is_deduplicated
            yield Should(text) if is_new and not is_lost else text, one.at


@invariant("repeats-come-first")
def ids_rise(case: Case) -> Iterator[Violation]:
    """Where the broker knows copies by rising ids, each message has a higher one than those before it on the
    connection, unless the application gives the ids."""
    if not case.traits.settlement.rises:
        return
    given = {case.traits.settlement.place(done.args, 0)[:-1] for done in case.done("publish", "publish_many")
             if any(key is not None for key in keys_of(done))}  # fmt: skip
    declared: defaultdict[tuple[Hashable, ...], list[Position]] = defaultdict(list)
    for use in case.facts.ids:
        declared[use.conn.name, use.number].append(use.taken)
    highest: dict[tuple[Hashable, ...], Written] = {}
    seen = set()
    for one in case.facts.written:
        begun = sum(1 for taken in declared[one.conn.name, one.producer] if taken < one.at)
        line = one.conn.name, one.producer, begun, *one.place[:-1]
        before = highest.setdefault(line, one)
        if not one.is_deduplicated or one.place[:-1] in given or (one.conn.name, one.place) in seen:
            continue
        seen.add((one.conn.name, one.place))
        if one.place[-1] >= before.place[-1]:  # type: ignore[operator]
            highest[line] = one
        else:
            text = f"{_named(one)} has the {named(one.place)}, and was written after {_named(before)}"
            yield f"{text} with id {shown(before.place[-1])}: the broker takes it for a copy", one.at


@invariant("repeats-the-same")
def repeats_the_same(case: Case) -> Iterator[Violation]:
    """What a client writes again under the id of a message without an answer is that message: its body, the
    messages that are packed with it, what goes with them.

    Why:
        If the first copy was lost, what is stored and acknowledged was never published.

    Rests on:
        RabbitMQ Stream: an id that the broker knows is a copy of what it has
            (docs/protocols/rabbitmq-stream.md, "Deduplication").
        PZQ: the message is written again, under the same id (docs/protocols/pzq.md, "Producer").
        MQTT: what is sent again is the original message, with DUP (MQTT 3.1.1, 3.3.1.1 and 4.4).
        elsewhere: common sense: a copy is a copy.

    Example:
        message "te" was written again in the place of message "tea", under id 2 of orders.

    Judges:
        rabbitmq-stream, pzq, mqtt
    """
    published = Counter(body for done in case.done("publish", "publish_many") for body in bodies_of(done))
    first: dict[tuple[Hashable, ...], Written] = {}
    for one in case.facts.written:
        former = first.setdefault(one.place, one)
        if former.is_opaque or one.is_opaque or not case.published_besides.isdisjoint(_contents(one)):
            continue
        there, again = _contents(former), _contents(one)
        is_the_same = any(published[body] == 1 and body in there for body in again)
        if not is_the_same and any(body in published for body in again):
            first[one.place] = one  # who gives an id may use it for another message, and so one that is free
        elif again != there:
            text = f"{_named(one)} was written again in the place of {_named(former)}"
            yield f"{text}, under {named(one.place)}", former.at, one.at
        elif one.properties != former.properties and is_the_same:
            text = f"{_named(one)} was written again with {shown(one.properties)}"
            yield f"{text}, at first it was {shown(former.properties)}", former.at, one.at


def _contents(one: Written) -> tuple[bytes, ...]:
    """The bodies of what was written."""
    return (one.packed or ()) if one.body is None else (one.body,)


def _named(one: Written) -> str:
    """What was written, for people."""
    return message(one.body) if one.packed is None else f"the batch of {shown(one.packed)}"
