"""What is put on the wire of messages: each once, in the order in which the application gave them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from conformance.rules.outcomes import SLACK_S, settled_by_place
from conformance.rules.registry import May, Violation, invariant
from conformance.rules.requests import asked_by_ops
from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.facts import Settled, Written
from conformance.run.reported import ReportedOutcome, bodies_of, keys_of
from conformance.run.showing import message, shown
from conformance.run.trace import Position


@invariant("written-once")
def written_once(case: Case) -> Iterator[Violation]:
    """A message whose copies the broker does not recognise is written once, or, where writing again is part
    of the protocol, until it has its answer; and no message is written again when its publish is over.

    Why:
        The library makes duplicates that the application cannot prevent.

    Rests on:
        RabbitMQ Stream: without a reference the same id twice is two messages
            (docs/protocols/rabbitmq-stream.md, "Deduplication").
        PZQ: the id is only echoed; a message that has no reply may be written again, under the same id
            (docs/protocols/pzq.md, "Producer").
        elsewhere: common sense: a lost confirm does not mean a lost message.

    Example:
        message "tea" was written again: after a reconnect, by a producer without a name.

    Judges:
        rabbitmq-stream, blazingmq, narconi, pzq, mqtt
    """
    settled = settled_by_place(case)
    reported = {one.body: one for one in case.reported}
    published = Counter(one.body for one in case.reported)
    seen: dict[tuple[object, ...], Written] = {}
    for one in case.facts.written:
        if one.body is None or published[one.body] > 1:
            continue
        if one.body in case.published_besides:
            continue
        key = (*one.place[:-1], one.body)
        first = seen.setdefault(key, one)
        words = [word for word in settled.get(one.place, ()) if first.at < word.at]
        has_answer = any(word.at.t < one.at.t - SLACK_S - case.slack_s for word in words)
        is_young = one.at.t < one.conn.accepted.t + SLACK_S + case.slack_s
        has_waited = case.traits.connecting.unseen_connections and is_young
        if has_waited:
            has_answer = False  # in the transport, for nobody knows how long
        may_outlive = has_waited or case.traits.settlement.outlives
        over = "" if may_outlive else _over(case, reported.get(one.body), one)
        is_once = not one.is_deduplicated and (has_answer or not case.traits.settlement.repeats)
        if first is not one and (over or is_once):
            text = f"{message(one.body)} was written again{over or _answered(one, words, has_answer)}"
            yield May("repeats", text), one.at


def _answered(one: Written, words: Sequence[Settled], has_answer: bool) -> str:
    """How long its answer had been there when a message was written, for people; "" if it had none."""
    return f" {one.at.t - words[0].at.t:.1f} s after its answer had come" if has_answer else ""


def _over(case: Case, reported: ReportedOutcome | None, one: Written) -> str:
    """How the op of a message had ended before the message was written, for people; "" if it had not."""
    if reported is None or reported.at is None or reported.done.result is None:
        return ""
    after_s = one.at.t - reported.at.t
    if after_s <= SLACK_S + case.slack_s:
        return ""
    result = reported.done.result
    word = reported.word if result.ok else result.word
    return f" {after_s:.1f} s after its {reported.done.op} had ended: {word}"


@invariant("writes-what-was-given")
def written_where_it_leads(case: Case) -> Iterator[Violation]:
    """A message for a target that leads to others is written to one of those that the server names for it."""
    counts = Counter(body for done in case.done("publish", "publish_many") for body in bodies_of(done))
    targets = {
        body: done.args["target"]
        for done in case.done("publish", "publish_many")
        if case.traits.delivery.spreads(done.args)
        for body in bodies_of(done)
    }
    for one in case.facts.written:
        if one.body is None or counts[one.body] != 1 or one.body in case.published_besides:
            continue
        target = targets.get(one.body)
        there = case.facts.leads_to.get(target) if target is not None else None
        if there and one.place[0] not in there:
            where = shown(sorted(there))
            text = f"{message(one.body)} for {target} was written to {one.place[0]}"
            yield f"{text}, the server names {where} for it", one.at


@invariant("writes-what-was-given")
def written_to_all(case: Case) -> Iterator[Violation]:
    """A message that was acknowledged has been written to all the targets that the server names for it."""
    written = {(one.body, one.place[0]) for one in case.facts.written}
    is_odd = any(body is None for body, _ in written)
    for done in () if is_odd else case.done("publish"):
        if done.result is None or not done.result.ok or done.result.value.get("outcome") != "acked":
            continue
        leads = sorted(case.traits.delivery.leads(case, done.args))
        for body in bodies_of(done):
            missing = [one for one in leads if (body, one) not in written]
            if missing:
                text = f"{message(body)} for {done.args['target']} was acknowledged"
                yield f"{text}, and not written to {missing[0]}", done.ended


@invariant("writes-what-was-given")
def written_under_its_id(case: Case) -> Iterator[Violation]:
    """A message to which the application has given an id is written under it."""
    given: dict[bytes, list[tuple[RunOp, Any]]] = defaultdict(list)
    for done in case.done("publish", "publish_many"):
        for body, key in zip(bodies_of(done), keys_of(done), strict=True):
            given[body].append((done, key))
    for one in case.facts.written:
        calls = given.get(one.body or b"", [])
        keys = [key for _, key in calls]
        if one.body is None or one.body in case.published_besides or not keys or None in keys:
            continue
        if one.place not in [case.traits.settlement.place(done.args, key) for done, key in calls]:
            text = f"{message(one.body)} was written with the id {shown(one.place[-1])}"
            yield f"{text}, the application gave {shown(keys)}", one.at


@invariant("writes-what-was-given")
def posted_asgiven_in_order(case: Case) -> Iterator[Violation]:
    """A message that is a question of its own is one that the application gave, with its properties."""
    known = {id(one) for _, _, questions in asked_by_ops(case) for one in questions}
    for op in case.traits.settlement.posting:
        asks = case.traits.questions.ops[op]
        given = [done.args for done in case.done(op)] + [args for name, args in case.inside if name == op]
        for one in case.facts.questions:
            if not isinstance(one.frame, asks.kind) or id(one) in known:
                continue
            if any(asks.fits(args, one.frame) for args in given):
                continue  # it is late, or was asked by a callback
            able = [
                done for done in case.done(op)
                if done.begun < one.asked and (done.ended is None or one.asked < done.ended)
            ]  # fmt: skip
            how = [asks.differs(done.args, one.frame) for done in able] if asks.differs is not None else []
            least = min(filter(None, how), key=len, default="was sent with what no op gives")
            yield f"{op} {least}", one.asked


@invariant("written-in-order", level="SHOULD")
def written_in_order(case: Case) -> Iterator[Violation]:
    """What the application publishes first on a producer is written first.

    Why:
        An update that was published later overtakes an earlier one, and consumers keep the older value.

    Rests on:
        RabbitMQ Stream: the publishing ids of a producer rise; the broker drops what comes below the last
            one of a named producer (docs/protocols/rabbitmq-stream.md, "Deduplication").
        PZQ: the daemon keeps the order in which messages come (docs/protocols/pzq.md, "Who gets what, and in
            which order").
        elsewhere: common sense: a broker keeps the order of what comes on one connection; only the client
            knows the order before.

    Example:
        message "2" was written after message "3", which was published later.

    Level:
        Not every library promises an order to calls that wait at the same time.

    Judges:
        rabbitmq-stream, blazingmq, narconi, pzq, nats
    """
    if case.touched or case.hits:
        return  # what a fault has kept or cut off is seen late, or in another place
    given = given_in_order(case)
    latest: dict[tuple[Hashable, ...], tuple[Position, int, Written]] = {}
    seen = set()
    for one in case.facts.written:
        if one.body is None or one.body not in given or one.body in seen:
            continue
        seen.add(one.body)
        begun, index = given[one.body]
        if (case.traits.settlement.repeats or one.is_deduplicated) and begun < one.conn.accepted:
            continue  # it may have been written on an earlier connection, and lost on its way
        line = (one.conn.name, one.producer, *one.place[:-1])
        before = latest.get(line)
        if before is not None and (
            case.before(begun, before[0]) or (begun == before[0] and index < before[1])
        ):
            later = message(before[2].body)
            yield f"{message(one.body)} was written after {later}, which was published later", one.at
        elif before is None or (begun, index) > before[:2]:
            latest[line] = begun, index, one


def given_in_order(case: Case) -> dict[bytes, tuple[Position, int]]:
    """When the application published each message, and which of its call it was; without what is published
    twice, by callbacks, or to whichever target its route leads."""
    counts: Counter[bytes] = Counter()
    found: dict[bytes, tuple[Position, int]] = {}
    for done in case.done("publish", "publish_many"):
        for index, body in enumerate(bodies_of(done)):
            counts[body] += 1
            if not case.traits.delivery.spreads(done.args):
                found[body] = done.begun, index
    return {
        body: at for body, at in found.items() if counts[body] == 1 and body not in case.published_besides
    }
