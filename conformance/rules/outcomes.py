"""What is reported of messages is what the broker said of them, neither more nor less."""

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


def settled_by_place(case: Case) -> dict[tuple[Hashable, ...], list[Settled]]:
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
    single = {done.id for done in case.done("publish")}
    counts: Counter[tuple[int, str]] = Counter()
    for heard in case.heard("outcome"):
        is_named = heard["key"] is not None
        place = heard["id"], str(heard["key"]) if is_named and heard["id"] not in single else ""
        counts[place] += 1
        if counts[place] > 1 and (is_named or heard["id"] in single):
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
            got = sum(1 for heard in case.heard("outcome") if heard["id"] == done.id)
            got += sum(1 for row in result.value["outcomes"] if row["outcome"] != "sent")  # reported at once
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
    settled, unheard = settled_by_place(case), _unheard(case)
    for reported in case.reported:
        if (
            reported.word != "acked"
            or reported.place is None
            or reported.at is None
            or reported.place in unheard
        ):
            continue
        places = {reported.place}
        if reported.done.args.get("subentry"):  # the messages of a batch have one id on the wire
            places |= {other.place for other in case.reported if other.done is reported.done and other.place}
        confirms = [one for place in places for one in settled.get(place, ())]
        if any(one.stored and case.may_precede(one.at, reported.at) for one in confirms):
            continue
        text = f"{reported}, and no confirm for {named(reported.place)} had come"
        other = _confirm_of_another(case, reported.place, reported.at)
        if other is None:
            yield text, reported.at
        else:
            yield f"{text}, only that for {named(other.place)} on {other.conn.name}", other.at, reported.at


def _confirm_of_another(case: Case, place: tuple[Hashable, ...], until: Position) -> Settled | None:
    """The last confirm of the same id that came then, and was for another producer."""
    came = [one for one in case.facts.settled if one.stored and one.at < until and one.place != place]
    return next((one for one in reversed(came) if one.place[-1] == place[-1]), None)


def _unheard(case: Case) -> set[tuple[Hashable, ...]]:
    """The places of messages that were written where nobody can say any more what the server answers: after
    what cannot be read, or is not whole."""
    found = set()
    for one in case.facts.written:
        conn = one.conn
        if (conn.garbage is not None and conn.garbage < one.at) or (
            conn.partial and conn.partial_since.t < one.at.t
        ):
            found.add(one.place)
    return found


@invariant("acked-not-stored")
def acked_is_written(case: Case) -> Iterator[Violation]:
    """What is acknowledged was written, where each message can be read on the wire by itself."""
    written = {one.body for one in case.facts.written}
    sent = (seen.frame for conn in case.conns.values() for seen in conn.of("in"))
    if None in written or case.facts.broken or any(isinstance(frame, Malformed) for frame in sent):
        return
    for reported in case.reported:
        if (
            reported.word == "acked"
            and reported.place is None
            and reported.body is not None
            and reported.body not in written
        ):
            yield f"{reported}, and it was never written", reported.at


@invariant("answer-value")
def confirm_value(case: Case) -> Iterator[Violation]:
    """What else is reported of a message that was confirmed is what the confirm contains."""
    settled = settled_by_place(case)
    for reported in case.reported:
        result = reported.done.result
        if reported.word != "acked" or reported.done.op != "publish" or result is None or not result.ok:
            continue
        said = [one.details for one in settled.get(reported.place or (), ()) if one.stored and reported.at]
        meta = result.value.get("meta") or {} if result.value else {}
        fits = [all(_same(meta[name], one[name]) for name in one if name in meta) for one in said]
        if fits and not any(fits):
            yield f"{reported} with {shown(meta)}, and its confirm has {shown(said[0])}", reported.at


def _same(one: object, other: object) -> bool:
    """Whether two values are written alike; hexadecimal digits may be letters of either size."""
    return str(one).casefold() == str(other).casefold()


@invariant("ok-needs-answer")
def flush_needs_outcomes(case: Case) -> Iterator[Violation]:
    """A flush is over once each message that was written before has its outcome."""
    for done in case.done("flush"):
        if done.result is None or not done.result.ok or done.ended is None:
            continue
        written = {one.body for one in case.facts.written if one.at < done.begun} - {None}
        until_s = done.ended.t + SLACK_S + case.slack_s
        for reported in case.reported:
            is_late = reported.at is None or reported.at.t > until_s
            if reported.body in written and reported.done.begun < done.begun and is_late:
                text = f"flush was ok, and {message(reported.body)} had no outcome yet"
                yield text, done.ended, reported.at


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
    settled = settled_by_place(case)
    for reported in case.reported:
        if (
            reported.word != "nacked"
            or reported.code is None
            or reported.place is None
            or reported.at is None
            or len(case.traits.delivery.leads(case, reported.done.args)) > 1
        ):
            continue
        codes = [
            one.code
            for one in settled.get(reported.place, ())
            if not one.stored and case.may_precede(one.at, reported.at)
        ]
        if not any(case.traits.questions.is_code(reported.code, code) for code in codes) and not may_be_about(
            case, reported
        ):
            yield f"{reported}, and no such refusal of {named(reported.place)} had come", reported.at


def may_be_about(case: Case, reported: ReportedOutcome) -> bool:
    """Whether an error with this code, of which the server says not what it is about, met the message on its
    way: a client that cannot know which of the two was first takes it for the answer."""
    written = [one for one in case.facts.written if one.place == reported.place]
    return reported.at is not None and any(
        said.conn is one.conn
        and said.code == reported.code
        and not case.before(said.at, one.at)
        and case.may_precede(said.at, reported.at)
        for one in written
        for said in case.facts.complaints
    )


@invariant("answer-counts")
def answer_counts(case: Case) -> Iterator[Violation]:
    """The first intact confirm or refusal of a message, in time, is its outcome."""
    for reported, first in _answered(case):
        yield from _reported_in_time(case, reported, first)
        if (
            reported.at is None
            or not case.before(first.at, reported.at)
            or _was_called_off(case, reported, first.at)
        ):
            continue
        wanted = "acked" if first.stored else "nacked"
        if reported.word not in (wanted, "sent") and not may_be_about(case, reported):
            place = named(reported.place or ())
            yield f"{reported}, and the broker had answered {wanted} for {place}", first.at, reported.at


def _answered(case: Case) -> Iterator[tuple[ReportedOutcome, Settled]]:
    """The messages whose answer has come in time, with the answer."""
    settled = settled_by_place(case)
    writings = defaultdict(list)
    for one in case.facts.written:
        writings[one.place].append(one)
    for reported in case.reported:
        if (
            reported.place is None
            or not writings[reported.place]
            or (reported.at is None and reported.word != "sent")
        ):
            continue
        if reported.done.result is not None and reported.done.result.word == "cancelled":
            continue  # the application does not wait for it
        if len(case.traits.delivery.leads(case, reported.done.args)) > 1:
            continue  # what all the others were answered counts, too
        if len(writings[reported.place]) != 1 and not case.traits.settlement.repeats:
            continue  # which of several copies an answer is for, is not for us to say
        first = _first_answer(case, writings[reported.place][0], settled.get(reported.place, ()))
        if first is None or not first.is_open or not first.conn.serves(first.at):
            continue
        if first.at >= reported.done.begun and first.at.t <= reported.deadline_s - SLACK_S - case.slack_s:
            yield reported, first


def _reported_in_time(case: Case, reported: ReportedOutcome, answer: Settled) -> Iterator[Violation]:
    """The outcome of a publish that waits for nothing is reported soon after its answer, before the close."""
    if reported.at is None:
        closing = case.mark("close")
        if closing is not None and answer.at.t + REPORTED_S + case.slack_s < closing.t:
            yield f"no outcome of {message(reported.body)} was reported, and it was answered", answer.at
    elif not reported.done.args.get("wait", True) and not case.notes.stopped:
        late_s = reported.at.t - answer.at.t
        if late_s > LATE_S + case.slack_s:
            yield f"{reported} {late_s:.1f} s after the broker had answered", answer.at, reported.at


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
    settled = settled_by_place(case)
    stored = {target: Counter(body for _, body in rows) for target, rows in case.stored.items()}
    told_well = Counter(reported.body for reported in case.reported if reported.word != "nacked")
    published = Counter(reported.body for reported in case.reported)
    for reported in case.reported:
        if reported.word != "nacked" or reported.body is None:
            continue
        if reported.place is None and published[reported.body] > 1:
            continue  # which of them is stored cannot be known
        refused = reported.place is not None and any(
            not one.stored for one in settled.get(reported.place, ())
        )
        there = stored.get(reported.done.args["target"], Counter())[reported.body]
        if there and not refused and not told_well[reported.body] and not may_be_about(case, reported):
            yield f"{reported}, and it is stored", reported.at


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
    # a confirm that was lost or came twice makes those after it count for other messages
    moved = case.touched if case.traits.answers_in_order else frozenset()
    on = {one.place: one.conn.name for one in case.facts.written} if moved else {}
    exact = {target: {body for _, body in rows} for target, rows in case.stored.items()}
    for reported in case.reported:
        target = reported.done.args["target"]
        if on.get(reported.place or ()) in moved:
            continue
        if reported.word != "acked" or reported.body is None or target not in case.stored:
            continue
        if reported.body in exact[target]:
            continue
        if not any(reported.body in body for _, body in case.stored[target]):  # a format may be around it
            yield f"{reported}, and it is not stored", reported.at


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
    published = Counter((reported.done.args["target"], reported.body) for reported in case.reported)
    written = Counter(one.body for one in case.facts.written)
    for reported in case.reported:
        target = reported.done.args["target"]
        if (
            reported.body is None
            or published[target, reported.body] > 1
            or reported.body in case.published_besides
        ):
            continue
        if case.traits.settlement.repeats and written[reported.body] > 1:
            continue  # consumers have to cope with that
        if stored.get(target, Counter())[reported.body] > 1:
            yield May("repeats", f"{reported}, and it is stored twice"), reported.at


@invariant("fails-for-a-reason")
def unknown_for_a_reason(case: Case) -> Iterator[Violation]:
    """A message whose outcome is given up before its deadline has lost its connection or its target, or was
    called off.
    """
    for reported in case.reported:
        if (
            reported.word != "unknown"
            or reported.place is None
            or reported.at is None
            or reported.done.result is None
        ):
            continue
        if (
            reported.done.result.word in ("cancelled", "hang", "crashed")
            or reported.at.t >= reported.earliest_s - SLACK_S - case.slack_s
        ):
            continue
        written = [one for one in case.facts.written if one.place == reported.place and one.at < reported.at]
        if written and not any(_has_ended(case, one, reported) for one in written):
            after_s = reported.at.t - reported.done.begun.t
            text = f"{reported} after {after_s:.2f} s, and no connection was lost"
            yield May("own_deadline", text) if after_s > OWN_S else text, reported.at


@invariant("fails-for-a-reason")
def waits_as_long_as_it_may(case: Case) -> Iterator[Violation]:
    """A message that was never written times out at its own deadline, not at that of what it waits for."""
    lost = [at for at in (conn.lost() for conn in case.conns.values()) if at is not None]
    written = {one.body for one in case.facts.written}
    if None in written or case.notes.unreachable or case.notes.partly_unreachable:
        return
    for reported in case.reported:
        done, at = reported.done, reported.at
        if done.op != "publish" or done.result is None or done.result.word != "timeout" or at is None:
            continue
        is_late = at.t >= reported.earliest_s - SLACK_S - case.slack_s
        if is_late or reported.body is None or reported.body in written or any(one < at for one in lost):
            continue
        after_s = at.t - done.begun.t
        text = f"{reported} (timeout) after {after_s:.2f} s of {done.earliest_s:g} s, and was never written"
        yield May("own_deadline", text) if after_s > OWN_S else text, at


def _has_ended(case: Case, written: Written, reported: ReportedOutcome) -> bool:
    assert reported.at is not None
    conn = written.conn
    ends = (conn.ended, conn.server_closing, conn.garbage, conn.client_closing, conn.reading_stopped)
    if any(end is not None and end < reported.at for end in ends):
        return True
    if conn.ended is not None and conn.is_ended_with(reported.at) and was_quiet(case, conn, conn.ended):
        return True  # which of the two comes first within the step is its own affair
    target = written.place[0]
    if any(one.conn is conn and one.target == target and one.at < reported.at for one in case.facts.dropped):
        return True
    for one in case.facts.settled:
        if one.conn is conn and one.place[0] == target and not (one.stored and one.is_open):
            return True  # a refusal may say that the broker does not know the producer, or it cannot be read
    return _was_called_off(case, reported, reported.at)


def _was_called_off(case: Case, reported: ReportedOutcome, until: Position) -> bool:
    """Whether the application has ended the producer, or more, between its publish and that moment."""
    ops = (*case.traits.settlement.dropping, "close", "abort")
    return any(reported.done.begun < done.begun < until for done in case.done(*ops))
