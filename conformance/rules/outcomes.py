"""What is told of messages is what the broker said of them, neither more nor less."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator

from conformance.rules.connections import was_quiet
from conformance.rules.registry import May, Violation, invariant
from conformance.run.case import Case
from conformance.run.facts import Settled, Written
from conformance.run.reported import ReportedOutcome
from conformance.run.showing import message, named, shown
from conformance.run.trace import Position
from fakebrokers.core.frames import Malformed

OWN_S = 1.0  #: the shortest time-out that a library may have by itself
REPORTED_S = 2.0  #: in which an outcome is reported that nothing holds up
LATE_S = 5.0  #: after its answer nothing explains that an outcome is only reported now
SLACK_S = 0.005  #: what comes this close to a deadline may be late


def _settled(case: Case) -> dict[tuple[Hashable, ...], list[Settled]]:
    if "settled" not in case.shared:
        case.shared["settled"] = defaultdict(list)
        for one in case.facts.settled:
            case.shared["settled"][one.place].append(one)
    found: dict[tuple[Hashable, ...], list[Settled]] = case.shared["settled"]
    return found


@invariant("one-outcome")
def one_outcome(case: Case) -> Iterator[Violation]:
    """Every message gets exactly one outcome.

    Why:
        An application that counts outcomes waits forever for the missing one, or releases a resource twice.

    Rests on:
        RabbitMQ Stream: each publishing id is in one PublishConfirm or PublishError
            (docs/protocols/rabbitmq-stream.md, 6).
        BlazingMQ: one ACK for each PUT that asked for it (docs/protocols/blazingmq.md, 4).
        Narconi: one empty text frame for each message (docs/protocols/narconi.md, "publish").
        PZQ: one reply for each message (docs/protocols/pzq.md, "Producer").

    Example:
        message 3 got a second outcome, acked.

    Judges:
        rabbitmq-stream, blazingmq, narconi, pzq
    """
    single = {done.call.id for done in case.done("publish")}
    reported: Counter[tuple[int, str]] = Counter()
    for heard in case.heard("outcome"):
        is_named = heard["key"] is not None
        place = heard["id"], str(heard["key"]) if is_named and heard["id"] not in single else ""
        reported[place] += 1
        if reported[place] > 1 and (is_named or heard["id"] in single):
            name = shown(heard["key"]) if is_named else f"of publish {heard['id']}"
            yield f"message {name} got a second outcome, {heard['outcome']}", heard.at
    for done in case.done("publish_many"):
        result = done.result
        if result is None or not result.ok:
            continue
        wanted = len(done.args["messages"])
        if done.args.get("wait", True):
            if len(result.value["outcomes"]) != wanted:
                yield f"{len(result.value['outcomes'])} outcomes of {wanted} messages", done.ended
        elif not done.args.get("subentry"):
            got = sum(1 for heard in case.heard("outcome") if heard["id"] == done.call.id)
            got += sum(1 for row in result.value["outcomes"] if row["outcome"] != "sent")  # told at once
            if got != wanted:
                yield f"{got} outcomes of {wanted} messages", done.ended


@invariant("ack-needs-confirm")
def ack_needs_confirm(case: Case) -> Iterator[Violation]:
    """A message is acknowledged to the application only after its confirm.

    Why:
        Data loss without an error: the application deletes its copy of a message that the broker never
        stored.

    Rests on:
        RabbitMQ Stream: PublishConfirm names the ids that are stored (docs/protocols/rabbitmq-stream.md,
            6).
        BlazingMQ: an ACK with status 0 (docs/protocols/blazingmq.md, 4).
        Narconi: an empty text frame, in the order of the messages (docs/protocols/narconi.md, "publish").
        PZQ: a reply with the status 1 (docs/protocols/pzq.md, "Producer").

    Example:
        message "tea" was reported as acked, and no confirm for id 2 of orders had come.

    Judges:
        rabbitmq-stream, blazingmq, narconi, pzq
    """
    settled = _settled(case)
    for told in case.told:
        if told.word != "acked" or told.place is None or told.at is None or _is_unheard(case, told):
            continue
        places = {told.place}
        if told.done.args.get("subentry"):  # the messages of a batch have one id on the wire
            places |= {other.place for other in case.told if other.done is told.done and other.place}
        confirms = [one for place in places for one in settled.get(place, ())]
        if any(one.stored and case.may_precede(one.at, told.at) for one in confirms):
            continue
        yield f"{told}, and no confirm for {named(told.place)} had come", told.at


def _is_unheard(case: Case, told: ReportedOutcome) -> bool:
    """Whether its message was written where nobody can say any more what the server answers: behind what
    cannot be read, or is not whole."""
    for one in case.facts.written:
        if one.place != told.place:
            continue
        conn = one.conn
        if (conn.garbage is not None and conn.garbage < one.at) or (
            conn.partial and conn.partial_since_s < one.at.t
        ):
            return True
    return False


@invariant("acked-not-stored")
def acked_is_written(case: Case) -> Iterator[Violation]:
    """What is acknowledged was written, where each message can be read on the wire by itself."""
    written = {one.body for one in case.facts.written}
    sent = (seen.frame for conn in case.conns.values() for seen in conn.of("in"))
    if None in written or case.facts.broken or any(isinstance(frame, Malformed) for frame in sent):
        return
    for told in case.told:
        if told.word == "acked" and told.place is None and told.body is not None and told.body not in written:
            yield f"{told}, and it was never written", told.at


@invariant("answer-value")
def confirm_value(case: Case) -> Iterator[Violation]:
    """What else is reported of a message that was confirmed is what the confirm contains."""
    settled = _settled(case)
    for told in case.told:
        result = told.done.result
        if told.word != "acked" or told.done.op != "publish" or result is None or not result.ok:
            continue
        said = [one.details for one in settled.get(told.place or (), ()) if one.stored and told.at]
        meta = result.value.get("meta") or {} if result.value else {}
        fits = [all(_same(meta[name], one[name]) for name in one if name in meta) for one in said]
        if fits and not any(fits):
            yield f"{told} with {shown(meta)}, and its confirm has {shown(said[0])}", told.at


def _same(one: object, other: object) -> bool:
    """Whether two values are written alike; hexadecimal digits may be letters of either size."""
    return str(one).casefold() == str(other).casefold()


@invariant("nack-needs-error")
def nack_needs_error(case: Case) -> Iterator[Violation]:
    """A message is reported as refused with a code only after a refusal with this code.

    Why:
        The application sends a message again that was stored, or raises an alarm about a cause that is not
        there.

    Rests on:
        RabbitMQ Stream: PublishError has a code for each id (docs/protocols/rabbitmq-stream.md, 4, 6).
        BlazingMQ: the status of an ACK (docs/protocols/blazingmq.md, 4).
        Narconi: the code of an error frame (docs/protocols/narconi.md, "publish").
        PZQ: a reply with a status other than 1 (docs/protocols/pzq.md, "Producer").

    Example:
        message "salt" was reported as nacked with code 18, and no such refusal of id 3 of orders had come.

    Judges:
        rabbitmq-stream, blazingmq, narconi, pzq
    """
    settled = _settled(case)
    for told in case.told:
        if told.word != "nacked" or told.code is None or told.place is None or told.at is None:
            continue
        codes = [
            one.code
            for one in settled.get(told.place, ())
            if not one.stored and case.may_precede(one.at, told.at)
        ]
        if not any(case.traits.questions.is_code(told.code, code) for code in codes) and not may_be_about(
            case, told
        ):
            yield f"{told}, and no such refusal of {named(told.place)} had come", told.at


def may_be_about(case: Case, told: ReportedOutcome) -> bool:
    """Whether an error with this code, of which the server says not what it is about, met the message on its
    way: a client that cannot know which of the two was first takes it for the answer."""
    written = [one for one in case.facts.written if one.place == told.place]
    return told.at is not None and any(
        said.conn is one.conn
        and said.code == told.code
        and not case.before(said.at, one.at)
        and case.may_precede(said.at, told.at)
        for one in written
        for said in case.facts.complaints
    )


@invariant("answer-counts")
def answer_counts(case: Case) -> Iterator[Violation]:
    """The first intact confirm or refusal of a message, in time, is its outcome."""
    for told, first in _answered(case):
        yield from _reported_in_time(case, told, first)
        if told.at is None or not case.before(first.at, told.at) or _was_called_off(case, told, first.at):
            continue
        wanted = "acked" if first.stored else "nacked"
        if told.word not in (wanted, "sent") and not may_be_about(case, told):
            place = named(told.place or ())
            yield f"{told}, and the broker had answered {wanted} for {place}", first.at, told.at


def _answered(case: Case) -> Iterator[tuple[ReportedOutcome, Settled]]:
    """The messages whose answer has come in time, with the answer."""
    settled = _settled(case)
    writings = defaultdict(list)
    for one in case.facts.written:
        writings[one.place].append(one)
    for told in case.told:
        if told.place is None or not writings[told.place] or (told.at is None and told.word != "sent"):
            continue
        if told.done.result is not None and told.done.result.word == "cancelled":
            continue  # the application does not wait for it
        if len(writings[told.place]) != 1 and not case.traits.settlement.repeats:
            continue  # which of several copies an answer is for, is not for us to say
        first = _first_answer(case, writings[told.place][0], settled.get(told.place, ()))
        if first is None or not first.is_open or not first.conn.serves(first.at):
            continue
        if first.at >= told.done.begun and first.at.t <= told.deadline_s - SLACK_S - case.slack_s:
            yield told, first


def _reported_in_time(case: Case, told: ReportedOutcome, answer: Settled) -> Iterator[Violation]:
    """The outcome of a publish that waits for nothing is reported soon after its answer, before the close."""
    if told.at is None:
        closing = case.mark("close")
        if closing is not None and answer.at.t + REPORTED_S + case.slack_s < closing.t:
            yield f"no outcome of {message(told.body)} was reported, and it was answered", answer.at
    elif not told.done.args.get("wait", True) and not case.notes.stopped:
        late_s = told.at.t - answer.at.t
        if late_s > LATE_S + case.slack_s:
            yield f"{told} {late_s:.1f} s after the broker had answered", answer.at, told.at


def _first_answer(case: Case, written: Written, answers: Iterable[Settled]) -> Settled | None:
    """The first confirm or refusal after a message was written that may be for it."""
    of_it = (one for one in answers if one.conn is written.conn or case.traits.settlement.repeats)
    return next((one for one in of_it if one.at > written.at), None)


@invariant("failed-yet-stored")
def failed_yet_stored(case: Case) -> Iterator[Violation]:
    """What was reported to the application as certainly failed is not stored.

    Why:
        The application sends it again under another id: the message is there twice.

    Rests on:
        all: a lost connection or a missing confirm leaves open whether the message is stored; only a
            refusal is certain (docs/explanation/verdicts.md).

    Example:
        message "tea" was reported as nacked, and it is stored.

    Judges:
        rabbitmq-stream, blazingmq, narconi, pzq
    """
    settled = _settled(case)
    stored = {target: Counter(body for _, body in rows) for target, rows in case.stored.items()}
    told_well = Counter(told.body for told in case.told if told.word != "nacked")
    published = Counter(told.body for told in case.told)
    for told in case.told:
        if told.word != "nacked" or told.body is None:
            continue
        if told.place is None and published[told.body] > 1:
            continue  # which of them is stored, nobody can tell
        refused = told.place is not None and any(not one.stored for one in settled.get(told.place, ()))
        there = stored.get(told.done.args["target"], Counter())[told.body]
        if there and not refused and not told_well[told.body] and not may_be_about(case, told):
            yield f"{told}, and it is stored", told.at


@invariant("acked-not-stored")
def acked_not_stored(case: Case) -> Iterator[Violation]:
    """What the application got as acknowledged is stored by the broker, where the broker confirmed
    truthfully.

    Why:
        Data loss without an error: the message is on no disk, and the application has dropped its copy.

    Rests on:
        all: a positive confirm is the broker's promise that it has this message; the client may pass it on
            for no other.

    Example:
        message "milk" was reported as acked, and it is not stored.

    Judges:
        rabbitmq-stream, blazingmq, narconi, pzq
    """
    if not case.is_truthful or case.notes.forgets:
        return
    # a confirm that was lost or came twice makes those behind it count for other messages
    moved = case.touched if case.traits.answers_in_order else frozenset()
    on = {one.place: one.conn.name for one in case.facts.written} if moved else {}
    exact = {target: {body for _, body in rows} for target, rows in case.stored.items()}
    for told in case.told:
        target = told.done.args["target"]
        if on.get(told.place or ()) in moved:
            continue
        if told.word != "acked" or told.body is None or target not in case.stored:
            continue
        if told.body in exact[target]:
            continue
        if not any(told.body in body for _, body in case.stored[target]):  # a format may be around it
            yield f"{told}, and it is not stored", told.at


@invariant("stored-twice")
def stored_twice(case: Case) -> Iterator[Violation]:
    """A message is stored once, if the producer has a name by which copies are recognised, or its outcome
    was not unknown.

    Why:
        Orders are executed twice.

    Rests on:
        RabbitMQ Stream: with a reference, a publishing id that is not above the last one is dropped
            (docs/protocols/rabbitmq-stream.md, "Deduplication").
        BlazingMQ: a PUT with the same GUID is stored once (docs/protocols/blazingmq.md, 9).
        elsewhere: common sense: what may be stored already is sent again only by the application's
            decision.

    Example:
        message "tea" was reported as acked, and it is stored twice.

    Judges:
        rabbitmq-stream, blazingmq, narconi, pzq
    """
    stored = {target: Counter(body for _, body in rows) for target, rows in case.stored.items()}
    published = Counter((told.done.args["target"], told.body) for told in case.told)
    written = Counter(one.body for one in case.facts.written)
    for told in case.told:
        target = told.done.args["target"]
        if told.body is None or published[target, told.body] > 1 or told.body in case.published_besides:
            continue
        if case.traits.settlement.repeats and written[told.body] > 1:
            continue  # consumers have to cope with that
        if stored.get(target, Counter())[told.body] > 1:
            yield May("repeats", f"{told}, and it is stored twice"), told.at


@invariant("written-once")
def written_once(case: Case) -> Iterator[Violation]:
    """A message whose copies the broker does not recognise is written once; or, where writing again is part
    of the protocol, until it has its answer.

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
        rabbitmq-stream, blazingmq, narconi, pzq
    """
    settled = _settled(case)
    published = Counter(told.body for told in case.told)
    seen: dict[tuple[object, ...], Written] = {}
    for one in case.facts.written:
        if one.body is None or one.is_deduplicated or published[one.body] > 1:
            continue
        if one.body in case.published_besides:
            continue
        key = (*one.place[:-1], one.body)
        first = seen.setdefault(key, one)
        words = [word for word in settled.get(one.place, ()) if first.at < word.at]
        has_answer = any(word.at.t < one.at.t - SLACK_S - case.slack_s for word in words)
        if (
            case.traits.connecting.unseen_connections
            and one.at.t < one.conn.accepted.t + SLACK_S + case.slack_s
        ):
            has_answer = False  # it has waited in the transport, for nobody knows how long
        if first is not one and (has_answer or not case.traits.settlement.repeats):
            yield May("repeats", f"{message(one.body)} was written again"), one.at


@invariant("fails-for-a-reason")
def unknown_for_a_reason(case: Case) -> Iterator[Violation]:
    """A message whose outcome is given up before its deadline has lost its connection or its target, or was
    called off.
    """
    for told in case.told:
        if told.word != "unknown" or told.place is None or told.at is None or told.done.result is None:
            continue
        if (
            told.done.result.word in ("cancelled", "hang", "crashed")
            or told.at.t >= told.deadline_s - SLACK_S - case.slack_s
        ):
            continue
        written = [one for one in case.facts.written if one.place == told.place and one.at < told.at]
        if written and not any(_has_ended(case, one, told) for one in written):
            after_s = told.at.t - told.done.begun.t
            text = f"{told} after {after_s:.2f} s, and no connection was lost"
            yield May("own_deadline", text) if after_s > OWN_S else text, told.at


def _has_ended(case: Case, written: Written, told: ReportedOutcome) -> bool:
    assert told.at is not None
    conn = written.conn
    ends = (conn.ended, conn.goodbye, conn.garbage, conn.parting, conn.deaf)
    if any(end is not None and end < told.at for end in ends):
        return True
    if conn.ended is not None and conn.is_ended_with(told.at) and was_quiet(case, conn, conn.ended):
        return True  # which of the two comes first within the step is its own affair
    target = written.place[0]
    if any(one.conn is conn and one.target == target and one.at < told.at for one in case.facts.dropped):
        return True
    if any(not one.stored and one.conn is conn and one.place[0] == target for one in case.facts.settled):
        return True  # a refusal may say that the broker does not know the producer
    return _was_called_off(case, told, told.at)


def _was_called_off(case: Case, told: ReportedOutcome, until: Position) -> bool:
    """Whether the application has ended the producer, or more, between its publish and that moment."""
    ops = (*case.traits.settlement.dropping, "close", "abort")
    return any(told.done.begun < done.begun < until for done in case.done(*ops))
