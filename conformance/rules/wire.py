"""What the client writes is legal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator

from conformance.rules.registry import Violation, invariant
from conformance.run.case import Case
from conformance.run.facts import IdUse, Question, Written
from conformance.run.showing import named, shown
from conformance.run.trace import Position
from fakebrokers.core.frames import Malformed, kind_of

BUSY_S = 4.0  #: what an answer may take where the client is a process, on a machine that may have much to do
PARTING_S = 0.05  #: what is asked this long before a client sends a close is answered first


@invariant("wire-legal")
def wire_legal(case: Case) -> Iterator[Violation]:
    """Every frame of the client can be read by the letter of the protocol.

    Why:
        Servers drop such a frame or close the connection; others accept it until the next version.

    Rests on:
        RabbitMQ Stream: the commands (docs/protocols/rabbitmq-stream.md, 2, 3).
        BlazingMQ: events, control messages and messages (docs/protocols/blazingmq.md, 1, 2, 4, 6.4).
        PZQ: parts and their delimiter (docs/protocols/pzq.md, "Producer"); ZMTP (RFC 23 of ZeroMQ).
        Narconi: HTTP (RFC 9112), WebSocket (RFC 6455), JSON (docs/protocols/narconi.md, "WebSocket").
        Moleculer: the packets (docs/protocols/moleculer.md, 4); NATS, Redis or MQTT below them
            (docs/protocols/moleculer.md, 6).
        SHOULD, not MUST, for a field that the protocol lists and that no receiver needs, such as `hostname`
            of INFO.

    Example:
        instanceID of INFO is missing.
    """
    for conn in case.conns.values():
        for seen in conn.of("in"):
            if conn.turned_away is not None and case.may_precede(conn.turned_away[0], seen.at):
                break  # what the client asks after a refusal, a server that takes it for accepted misreads
            if isinstance(seen.frame, Malformed):
                yield seen.frame.problem, seen.at
    for at, what in case.facts.broken:
        yield what, at


@invariant("frame-max")
def frame_max(case: Case) -> Iterator[Violation]:
    """No frame of the client is larger than was agreed.

    Why:
        The server ends the connection, and everything in flight is lost.

    Rests on:
        RabbitMQ Stream: a frame above the agreed frame max is answered by Close with code 14
            (docs/protocols/rabbitmq-stream.md, 5).

    Example:
        Publish of 1200000 bytes, 1048576 were agreed.

    Judges:
        rabbitmq-stream
    """
    for conn in case.conns.values():
        limit = conn.agreed.frame_max
        if limit < case.traits.reading.least_limit or conn.ready is None:
            continue
        for seen in conn.of("in"):
            if seen.at > conn.ready and seen.size - case.traits.reading.size_field > limit:
                yield f"{kind_of(seen.frame)} of {seen.size} bytes, {limit} were agreed", seen.at


@invariant("id-reuse")
def id_reuse(case: Case) -> Iterator[Violation]:
    """The id of a request is not used for another one while it has no answer.

    Why:
        The answer to one request ends another: callers get each other's results.

    Rests on:
        RabbitMQ Stream: correlation ids (docs/protocols/rabbitmq-stream.md, 2).
        BlazingMQ: rIds increase (docs/protocols/blazingmq.md, 7).
        Moleculer: ids of packets are UUIDs (docs/protocols/moleculer.md, 4).
        elsewhere: common sense: an id that is used twice identifies nothing.

    Example:
        QueryOffset has id 7 of a Metadata that has no answer yet.
    """
    open_until: dict[tuple[str, Hashable], tuple[object, object]] = {}
    for question in case.facts.questions:
        if question.key is None:
            continue
        key = question.conn.name, question.key
        former = open_until.get(key)
        if former is not None and (former[1] is None or former[1] > question.asked):  # type: ignore[operator]
            what = f"{kind_of(question.frame)} has id {shown(question.key)}"
            yield f"{what} of a {former[0]} that has no answer yet", question.asked
        open_until[key] = kind_of(question.frame), question.answered


@invariant("id-reuse")
def id_of_another_message(case: Case) -> Iterator[Violation]:
    """The id of a message is not given to another one on the same connection while its outcome is open."""
    settled: dict[object, list[Position]] = defaultdict(list)
    for word in case.facts.settled:
        settled[word.conn.name, word.place].append(word.at)
    reported: dict[object, list[Position]] = defaultdict(list)
    for outcome in case.reported:
        if outcome.place is not None and outcome.at is not None:
            reported[outcome.place].append(outcome.at)
    former: dict[object, Written] = {}
    for one in case.facts.written:
        key = one.conn.name, one.place
        before = former.get((*key, one.producer))
        former[*key, one.producer] = one
        if before is None or one.body is None or before.body in (None, one.body) or not settled[key]:
            continue  # or the server speaks of no message by this id: it is none
        if not any(before.at < at < one.at for at in [*settled[key], *reported[one.place]]):
            yield f"{named(one.place)} is given to another message while the first one waits", one.at


@invariant("live-id")
def live_id(case: Case) -> Iterator[Violation]:
    """A number that is in use on a connection is not given to something else there.

    Why:
        Confirms and deliveries of one producer or consumer go to another.

    Rests on:
        RabbitMQ Stream: publisher and subscription ids belong to a connection; the second use is refused
            with 17 or 3 (docs/protocols/rabbitmq-stream.md, 6, 8).
        BlazingMQ: a qId of another URI is refused (docs/protocols/blazingmq.md, 9).
        NATS: a sid names one subscription of its connection (docs/protocols/nats.md, 2).

    Example:
        publisher 0 for invoices, it is that of orders.

    Judges:
        rabbitmq-stream, blazingmq, nats
    """
    last: dict[tuple[str, str, Hashable], IdUse] = {}
    for use in case.facts.ids:
        key = use.conn.name, use.space, use.number
        former = last.get(key)
        if former is not None and (former.freed is None or former.freed > use.taken):
            yield (
                f"{use.space} {use.number} for {use.what}, it is that of {former.what}",
                former.taken,
                use.taken,
            )
        last[key] = use


@invariant("answers-questions")
def answers_questions(case: Case) -> Iterator[Violation]:
    """Every request of the server is answered soon, with its own id, while the connection is open.

    Why:
        The server takes the client for dead, or a consumer group waits for it.

    Rests on:
        RabbitMQ Stream: ConsumerUpdate without an answer ends the connection after 60 s; Close wants
            CloseResponse (docs/protocols/rabbitmq-stream.md, 5, "Single active consumer").
        BlazingMQ: HEARTBEAT_REQ is answered by HEARTBEAT_RSP (docs/protocols/blazingmq.md, 8).
        Narconi: a ping is answered by a pong, a close frame by a close frame (RFC 6455, 5.5).
        Moleculer: REQUEST by RESPONSE, PING by PONG, DISCOVER by INFO (docs/protocols/moleculer.md, 3, 4.4,
            4.6).
        NATS: a PING is answered by a PONG (docs/protocols/nats.md, 3).

    Example:
        ConsumerUpdate 0 got no answer.

    Judges:
        rabbitmq-stream, blazingmq, narconi, moleculer, nats
    """
    for question in case.facts.asked_back:
        conn = question.conn
        if question.answered is None:
            is_unreadable = conn.garbage is not None or conn.partial
            if (
                not is_unreadable
                and conn.server_closing in (None, question.asked)
                and _is_due(case, question)
            ):
                yield f"{_question(question)} got no answer", question.asked
        elif type(question.frame) in case.traits.questions.questions:
            after_s = question.answered.t - question.asked.t
            within_s = max(case.traits.questions.answer_within_s, BUSY_S * bool(case.slack_s)) + case.slack_s
            if after_s > within_s:
                text = f"{_question(question)} got its answer {after_s:.1f} s later"
                yield text, question.asked, question.answered
    known = {(q.conn.name, q.answered) for q in case.facts.asked_back if q.answer is not None}
    answers = set(case.traits.questions.questions.values()) - set(case.traits.questions.answers)
    for conn in case.conns.values():
        for seen in conn.of("in"):
            if type(seen.frame) in answers and (conn.name, seen.at) not in known:
                yield f"{kind_of(seen.frame)} answers nothing that was asked", seen.at


def _question(question: Question) -> str:
    """A request by its kind and, where it has one, its id."""
    *_, key = question.key if isinstance(question.key, tuple) else (question.key,)
    return f"{kind_of(question.frame)}{'' if key is None else f' {shown(key)}'}"


def _is_due(case: Case, question: Question) -> bool:
    """Whether the client had the time to answer, or has left without an answer."""
    conn, asked_s = question.conn, question.asked.t
    parted = conn.client_closing is not None and asked_s + PARTING_S + case.slack_s < conn.client_closing.t
    left_s = (case.ended_s if conn.ended is None else conn.ended.t) - asked_s
    had_time = left_s > case.traits.questions.answer_within_s + case.slack_s or parted
    return (had_time and conn.reading_stopped is None) or _was_left(case, question)


def _was_left(case: Case, question: Question) -> bool:
    """Whether the client has ended a connection, by nothing but a close that wants an answer.

    Over sockets it cannot be known: a reset takes along what was written in front of it.
    """
    conn, ended = question.conn, question.conn.ended
    if case.slack_s:
        return False
    if ended is None or conn.ended_by != "client" or question.asked != conn.server_closing:
        return False
    if (
        conn.client_closing is not None
        or conn.garbage is not None
        or conn.reading_stopped is not None
        or conn.ready is None
    ):
        return False
    return question.asked > conn.ready and not any(d.begun < ended for d in case.done("close", "abort"))


@invariant("uses-what-it-has")
def uses_what_it_has(case: Case) -> Iterator[Violation]:
    """The client sends nothing about a producer or a subscription that it does not have, or has ended
    itself.

    Why:
        The broker refuses or ignores it: messages vanish, or the connection ends.

    Rests on:
        RabbitMQ Stream: an unknown publisher id is refused with 18, an unknown subscription with 4
            (docs/protocols/rabbitmq-stream.md, 6, 8).
        BlazingMQ: closed or unknown queues are refused, or only logged (docs/protocols/blazingmq.md, 4, 9).
        Narconi: an acknowledgement of what does not wait for one ends the channel
            (docs/protocols/narconi.md, "consume").
        PZQ: a message without delimiter or body is refused (docs/protocols/pzq.md, "Producer").
        Moleculer: an answer with an unknown id is dropped (docs/protocols/moleculer.md, 4.10).
        elsewhere: common sense: what has ended is not used.

    Example:
        messages of publisher 3, which is not there.
    """
    for at, what in case.facts.misused:
        yield what, at


@invariant("answers-what-was-asked")
def answers_what_was_asked(case: Case) -> Iterator[Violation]:
    """The client answers a request of another node with what was asked for.

    Why:
        The caller gets a wrong result, or an error that does not fit.

    Rests on:
        Moleculer: RESPONSE, PONG and INFO (docs/protocols/moleculer.md, 4.2, 4.4, 4.6).

    Example:
        the PONG has the time 0, its PING had 1700000000000.

    Judges:
        moleculer
    """
    for at, what in case.facts.wrong:
        yield what, at
