"""What the messages on one connection mean, in order (docs/protocols/pzq.md, "Producer" and "Consumer")."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence

from conformance.run.bases import RunOp
from conformance.run.facts import Answered, Facts, Handed, Question, Settled, Window, Written
from conformance.run.reported import PUBLISHING, bodies_of, joined
from conformance.run.showing import shown
from conformance.run.trace import Position
from conformance.run.view import Conn
from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.pzq.frames import (
    ConsumerAck,
    Delivery,
    MonitorReply,
    MonitorRequest,
    Produce,
    ProduceAck,
    ProduceNack,
)
from scenarios._servers import SECOND

QUEUE = ""  #: the only target there is


def track(conn: Conn, facts: Facts) -> None:
    """Note everything. A connection has no handshake, and a consumer asks for nothing: it is there."""
    conn.ready = conn.accepted
    if conn.socket == "send":
        facts.windows.append(
            Window(conn, QUEUE, conn.name, None, conn.accepted, opened=conn.accepted, closed=conn.ended)
        )
    asked: list[Question] = []
    for seen in conn.frames:
        frame, at = seen.frame, seen.at
        if isinstance(frame, MonitorRequest):
            asked.append(Question(conn, frame, None, at))
        elif isinstance(frame, MonitorReply) and asked:
            question = asked.pop(0)
            question.answer, question.answered, question.accepted = frame, at, True
            facts.questions.append(question)
        else:
            _note(conn, facts, frame, at)
            if isinstance(frame, Malformed) and conn.socket == "send" and seen.direction == "out":
                facts.handed.append(Handed(conn, at, b"", damaged=True))
    facts.questions += asked


def _note(conn: Conn, facts: Facts, frame: Frame, at: Position) -> None:
    if isinstance(frame, Produce):
        body = None if frame.body is None else joined(frame.body)
        facts.written.append(Written(conn, at, place(frame.id), body))
        if not frame.body:
            facts.misused.append((at, "a message without delimiter, or without a body after it"))
    elif isinstance(frame, ProduceAck | ProduceNack):
        facts.settled.append(_settled(conn, at, frame))
    elif isinstance(frame, Delivery):
        facts.handed.append(_handed(conn, at, frame))
    elif isinstance(frame, ConsumerAck):
        facts.answered.append(Answered(conn, at, frame.key, frame.status == b"1"))
        if frame.status not in (b"0", b"1") or frame.extra:
            text = f"an acknowledgement with the status {shown(frame.status)}, then {shown(frame.extra)}"
            facts.misused.append((at, text))


def place(id: bytes, session: str = "") -> tuple[str, str, bytes]:
    """Where a message belongs: its id, and whose that is: the daemon answers to the socket that sent it."""
    return QUEUE, session, id


def tell_sessions_apart(ops: Sequence[RunOp], facts: Facts) -> None:
    """Say of each message and each answer whose it is.

    A connection is that session's which published what is on it: most of it, as two may publish the same.
    """
    publishers: defaultdict[bytes, dict[str, None]] = defaultdict(dict)  # in order, each once
    for done in ops:
        if done.op in PUBLISHING:
            for body in bodies_of(done):
                publishers[body][done.args["session"]] = None
    sessions = {name for names in publishers.values() for name in names}
    alone = next(iter(sessions)) if len(sessions) == 1 else ""
    votes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for one in facts.written:
        votes[one.conn.name].update(list(publishers.get(one.body or b"", ())))
    whose = {name: found.most_common(1)[0][0] for name, found in votes.items() if found}

    def told(one: Written | Settled) -> tuple[Hashable, ...]:
        return QUEUE, whose.get(one.conn.name, alone), one.place[-1]

    facts.written[:] = [one._replace(place=told(one)) for one in facts.written]
    facts.settled[:] = [one._replace(place=told(one)) for one in facts.settled]


def tell_instances_apart(facts: Facts) -> None:
    """Note acknowledgements for an instance that has not delivered the message, where another one has."""
    keys = {is_second: set[bytes]() for is_second in (False, True)}
    for one in facts.handed:
        keys[one.conn.name.startswith(SECOND)].add(one.key)
    for word in facts.answered:
        is_second = word.conn.name.startswith(SECOND)
        if word.key in keys[not is_second] - keys[is_second]:
            text = f"an acknowledgement of message {shown(word.key)} to an instance that has not delivered it"
            facts.misused.append((word.at, text))


def _settled(conn: Conn, at: Position, frame: ProduceAck | ProduceNack) -> Settled:
    """An answer without status or delimiter need not be understood; a 1 is a 1 without a delimiter too."""
    is_whole = frame.status is not None and frame.texts is not None
    code = None if frame.status is None or not is_whole else frame.status.decode(errors="replace")
    stored = isinstance(frame, ProduceAck)
    return Settled(conn, at, place(frame.id), stored, code, is_open=is_whole)


def _handed(conn: Conn, at: Position, frame: Delivery) -> Handed:
    if frame.timeout is None or not frame.body:
        return Handed(conn, at, frame.key, damaged=True)
    sent_us, timeout_us = _number(frame.sent), _number(frame.timeout)
    details = {"sent_us": sent_us, "timeout_us": timeout_us}
    stale_from_s = None if sent_us is None or timeout_us is None else (sent_us + timeout_us) / 1e6
    return Handed(conn, at, frame.key, joined(frame.body), details=details, stale_from_s=stale_from_s)


def _number(value: int | bytes | None) -> int | None:
    """A decimal part; None if it is no number that a time can be."""
    if isinstance(value, bytes):
        return int(value) if value.isdigit() and len(value) <= LONGEST else None
    return value


LONGEST = 40  #: digits
