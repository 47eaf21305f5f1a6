"""What a run of a scenario promises of its messages: the protocol's word, less what its faults took back.

The words are those of `conformance.rules.anomalies.anomaly`. An analysis of the journal blames the client
only for what the contract does not allow, so this leaves room for everything that a fault may have done.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from fakebrokers.core.frames import Role
from fakebrokers.journal import Journal, Record, Tap
from fakebrokers.journal.record import STATE_LOST, Meaning, State, meaning_of
from fakebrokers.protocol import find_protocol

#: Frames that carry no message and say nothing about one.
NEUTRAL = {Role.HANDSHAKE, Role.HEARTBEAT, Role.CLOSE}
ANSWERS = {Role.CONFIRM, Role.REJECT}
BEFORE_FAULTS = Tap.RECEIVED | Tap.SAID
AFTER_FAULTS = Tap.HEARD | Tap.SENT
BY_HAND = "by hand"
#: The client also spoke to a peer whose frames are in no journal.
ELSEWHERE = {"at-most-once", "by-hand"}


def promise(protocol: str) -> str:
    """The contract where nothing goes wrong."""
    found = find_protocol(protocol)
    if not found.confirms:
        return "at-most-once by-hand"
    return "at-least-once ordered" if found.ordered else "at-least-once"


class AnyRun(Protocol):
    """What was run: a scenario, or anything else that has these."""

    @property
    def protocol(self) -> str:
        """What it speaks."""

    @property
    def server(self) -> Mapping[str, Any]:
        """Settings of the fake."""

    @property
    def sockets(self) -> bool | None:
        """Whether the client also spoke to peers of its own making."""


def contract(item: AnyRun, journal: Journal, *, resumed_s: float | None = None) -> str:
    """The contract of a run.

    Args:
        journal: The fake's, at the end of the run.
        resumed_s: When the client last reported that it goes on by itself on a new connection, on the
            journal's clock: then a cut alone is no excuse for what is missing. None: it never did.
    """
    words = set(promise(item.protocol).split())
    records = [part for record in journal.records() for part in _parts(record)]
    if journal.dropped or item.server.get("proxied"):
        words.add("at-most-once")  # not all that happened is in the journal
    if item.sockets:
        words |= ELSEWHERE
    if any(record.fault for record in records):
        words |= _of_faults(records)
        if find_protocol(item.protocol).answers_in_order and _moves_answers(records):
            words.add("false-answers")
    closing: set[str] = set()
    answers = {record.kind for record in records if record.role in ANSWERS}
    for record in records:
        if record.role == Role.CLOSE:
            closing.add(record.connection)
        elif record.tap is Tap.STATE:
            resumed = resumed_s is not None and not _is_unnoticed(record, journal.started_at, resumed_s)
            words |= _of_state(record, answers, resumed=resumed, asked=record.connection in closing)
    if "at-most-once" in words:
        words.discard("ordered")
    return " ".join(sorted(words))


def _parts(record: Record) -> Sequence[Record]:
    """A batch by what its items share; the size of the whole says nothing about them."""
    if not record.parts:
        return (record,)
    return [msgspec.structs.replace(part, size=0) for part in record.split()]


def _is_unnoticed(record: Record, began_s: float, resumed_s: float) -> bool:
    """Whether a connection has gone silent after the client last went on: it may never find out."""
    return record.kind == State.HALF_OPEN and began_s + record.at > resumed_s


def _of_state(record: Record, answers: set[str], *, resumed: bool, asked: bool) -> set[str]:
    """What a connection's end, or what was done to the fake, takes back. `answers`: the kinds of answers."""
    means = meaning_of(record.kind)
    if record.kind == State.BYTES and record.fault == BY_HAND:
        return {"by-hand", "false-answers", "at-most-once"}
    if record.kind == State.BYTES and record.note.rpartition(" in place of ")[2] in answers:
        return {"by-hand", "false-answers"}  # an answer of other bytes: whatever it says, nobody meant it
    if means & Meaning.ELSEWHERE:
        return ELSEWHERE
    if means & Meaning.LOSS or (record.kind == State.CRASH and record.note == STATE_LOST):
        return {"at-most-once"}
    cut = means & Meaning.CUT or (record.kind == State.FIN and not asked)
    return {"at-most-once"} if cut and not resumed else set()


def _of_faults(records: Sequence[Record]) -> set[str]:
    """What faults take back that changed frames or their order. A lost answer is no such thing: a client that
    takes it for one has to be blamed. An answer that nobody meant lies about its message.
    """
    words: set[str] = set()
    before: dict[tuple[str, str], list[object]] = defaultdict(list)
    after: dict[tuple[str, str], list[object]] = defaultdict(list)
    meant: set[object] = set()
    for record in records:
        if record.tap is Tap.STATE or record.role in NEUTRAL:
            continue
        what = (record.kind, record.keys, record.status, record.size)
        way = record.connection, record.tap.direction
        if record.role in ANSWERS:
            if record.tap & Tap.SAID:
                meant.add((way, what))
            elif (way, what) not in meant:
                words.add("false-answers")
            continue
        if record.tap & BEFORE_FAULTS:
            before[way].append((what, record.frame))
        if record.tap & AFTER_FAULTS:
            after[way].append((what, record.frame))
        if record.fault == BY_HAND and record.role != Role.DELIVER:
            words.add("by-hand")
    return words if before == after else words | {"at-most-once"}


def _moves_answers(records: Sequence[Record]) -> bool:
    """Whether something that can be taken for an answer came in place of one that a fault has lost or kept
    back: with answers that are told apart by their order alone, a client cannot know.
    """
    owed: dict[str, list[object]] = defaultdict(list)
    for record in records:
        if record.role not in ANSWERS and record.role != Role.EVENT:
            continue
        what, waiting = (record.kind, record.status), owed[record.connection]
        if record.tap is Tap.SAID and record.role in ANSWERS:
            waiting.append(what)
        elif record.tap is Tap.SENT and what in waiting[:1]:
            waiting.pop(0)
        elif record.tap in (Tap.SENT, Tap.OUT) and waiting:
            return True
    return False
