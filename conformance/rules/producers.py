"""Producers of the client: one for each target and name."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from conformance.rules.registry import Violation, invariant
from conformance.run.case import Case
from conformance.run.facts import IdUse
from conformance.run.reported import PUBLISHING

AT_ONCE_S = 0.5  #: within this nothing can have been given up: time-outs of base scripts and rows are longer


@invariant("one-producer-each")
def one_producer_each(case: Case) -> Iterator[Violation]:
    """What the application publishes to one target, under one name, goes through one producer at a time.

    Why:
        Producers without use add up at the broker until it refuses more; under a name the broker refuses
        the second one, and the messages that wait for it fail.

    Rests on:
        RabbitMQ Stream: a reference is declared once on a connection, which has 256 publishers
            (docs/protocols/rabbitmq-stream.md, 6).
        Narconi: a connection takes all messages for its queue (docs/protocols/narconi.md, "publish").

    Example:
        publisher 1 for orders, and publisher 0 is there for it.

    Judges:
        rabbitmq-stream, narconi
    """
    spaces = case.traits.settlement.producers
    if not spaces or case.notes.has_several_sessions or _has_several_ways(case):
        return
    there: dict[tuple[str, str], list[IdUse]] = defaultdict(list)
    for use in case.facts.ids:
        if use.space not in spaces:
            continue
        for former in there[use.space, use.what]:
            if _is_kept(case, former, use):
                there_ = f"{former.space} {former.number} is there for it"
                yield f"{use.space} {use.number} for {use.what}, and {there_}", former.taken, use.taken
        there[use.space, use.what].append(use)


def _has_several_ways(case: Case) -> bool:
    """Whether messages are published in several forms, for each of which a library may have a producer: the
    empty name is one beside none, and each way to choose a partition one beside writing to it."""
    forms = set()
    for done in case.done(*PUBLISHING):
        messages = done.args.get("messages", [done.args])
        by = (done.args.get("routing") or {}).get("by")
        way = done.args.get("subentry"), by, done.args.get("name") == ""
        forms |= {(*way, message.get("filtered")) for message in messages}
    return len(forms) > 1


def _is_kept(case: Case, former: IdUse, use: IdUse) -> bool:
    """Whether the client has a producer when it opens another one: it has just asked for it, or uses it. One
    whose answer, to its question or to a message, did not come for longer it may have given up."""
    if (former.freed is not None and former.freed < use.taken) or not former.conn.stands(use.taken):
        return False
    if any(
        one.conn is former.conn and one.number == former.number and former.taken < one.taken <= use.taken
        for one in case.facts.ids
        if one.space == former.space
    ):
        return False  # its number was given to another one; see `wire.live_id`
    lost = former.conn.lost()
    if lost is not None and case.may_precede(lost, use.taken):
        return False
    mine = [
        one
        for one in case.facts.written
        if one.conn is former.conn and one.producer in (None, former.number) and one.at < use.taken
    ]
    if not mine:
        return use.taken.t - former.taken.t < AT_ONCE_S
    answered = {one.place: one.at.t for one in case.facts.settled if one.conn is former.conn}
    return all(min(use.taken.t, answered.get(one.place, math.inf)) - one.at.t < AT_ONCE_S for one in mine)
