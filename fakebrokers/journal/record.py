"""One thing that happened on the wire, and the words for what is no frame."""

from __future__ import annotations

from enum import Flag, IntFlag, StrEnum, auto
from typing import Any

import msgspec

from fakebrokers.core.frames import Frame, Part, Role
from fakebrokers.journal.keys import key_text


class Meaning(Flag):
    """What a state means for judging a run."""

    NOTHING = 0
    END = auto()  #: the connection has ended
    CUT = auto()  #: what was under way may be lost, unless the client goes on by itself
    LOSS = auto()  #: messages may be lost, whatever the client does
    ELSEWHERE = auto()  #: the client has also spoken to somebody whose words are in no journal


class State(StrEnum):
    """What happened where there is no frame, in the words of the journal.

    A protocol may note states of its own; those mean `Meaning.NOTHING`.
    """

    meaning: Meaning

    def __new__(cls, text: str, meaning: Meaning = Meaning.NOTHING) -> State:
        state = str.__new__(cls, text)
        state._value_ = text
        state.meaning = meaning
        return state

    __repr__ = str.__repr__  # a record's kind is written as text, whoever noted it

    ACCEPTED = "accepted"  #: a client connected; the note is its address
    ADDRESS = "address"  #: the client's address became known later
    PEER = "peer"  #: from here on the other side of the connection is who the note names
    CLOSED = "closed", Meaning.END
    FIN = "fin", Meaning.END
    RST = "rst", Meaning.END | Meaning.CUT
    HALF_OPEN = "half-open", Meaning.CUT
    HALF_CLOSED = "half-closed"  #: FIN in one direction, whose sender the note names; the other goes on
    LISTENING = "listening"
    REFUSING = "refusing", Meaning.CUT
    BLACK_HOLE = "black hole", Meaning.CUT
    CRASH = "crash", Meaning.CUT  #: with the note `STATE_LOST`, what the broker held is gone besides
    BACKEND_LOST = "backend lost", Meaning.CUT  #: the store behind the broker cannot be reached
    LOST = "lost", Meaning.CUT  #: a frame could not be handed to the transport
    CLOCK = "clock", Meaning.LOSS  #: the broker's clock was moved, so that messages may have expired
    SECOND_FAKE = "second fake", Meaning.ELSEWHERE
    BYTES = "bytes"  #: bytes left that are no frame
    FAULT = "fault"
    HOLDS = "holds"  #: what the broker holds has changed: the note is JSON, texts by name
    SILENCE_LIMIT = "silence limit"  #: silence after which the client must give up, such as ``2000 ms``


#: The note of a crash that took with it what the broker held.
STATE_LOST = "state lost"
SILENCE_LIMIT = State.SILENCE_LIMIT
_MEANINGS = {state.value: state.meaning for state in State}


def meaning_of(state: str) -> Meaning:
    """What a state means, by the `kind` of its record."""
    return _MEANINGS.get(state, Meaning.NOTHING)


def states_that(meaning: Meaning) -> tuple[str, ...]:
    """The states that mean this, among other things."""
    return tuple([state for state, means in _MEANINGS.items() if meaning & means])


#: The state that tells who is at the other end of a connection, where the protocol says so: its note.
PEER = "peer"


class Tap(IntFlag):
    """Where in the pipe a frame was seen.

        received -> [faults in] -> heard -> session -> said -> [faults out] -> sent

    A frame that no fault touched carries both flags of its direction in one record.
    """

    RECEIVED = 1  #: came from the socket
    HEARD = 2  #: reached the session
    SAID = 4  #: the broker meant to send it
    SENT = 8  #: left for the socket
    IN = RECEIVED | HEARD
    OUT = SAID | SENT
    STATE = 16  #: no frame: the connection came, went or changed

    @property
    def label(self) -> str:
        """``received``, ``heard``, ``said``, ``sent``, ``in``, ``out`` or ``state``."""
        return (self.name or str(int(self))).lower()

    @property
    def direction(self) -> str:
        """``in`` is client to broker, ``out`` broker to client; empty for states."""
        if self & Tap.IN:
            return "in"
        return "out" if self & Tap.OUT else ""


class Record(msgspec.Struct, frozen=True):
    """A journal line.

    Attributes:
        seq: Position in this journal, from 1 without gaps; the order of events.
        at: Monotonic seconds since the fake started.
        connection: ``c1``, ``c2`` ... in the order in which connections came.
        tap: Where it was seen.
        kind: The protocol's name of the frame, or of the state (``accepted``, ``fin`` ...).
        role: See `Role`; empty for states.
        keys: Correlation keys: one, or those of each item of a batch.
        size: Bytes on the wire.
        status: The wire's result code, if the frame has one.
        fault: Names of the faults that touched it, comma separated.
        frame: The frame, without secrets; None for states and where its bodies are too large.
        note: Free text of states.
        peer: Who is at the other end, where the protocol knows (see `State.PEER`).
        envelope: Kind of the frame that it was inside of.
        parts: Of a batch whose items differ in role, status or scope: which of them share these.
            `role` and `status` are then those of all items, or of none.
    """

    seq: int
    at: float
    connection: str
    tap: Tap
    kind: str
    role: Role | str = ""
    keys: tuple[Any, ...] = ()
    size: int = 0
    status: int | None = None
    fault: str = ""
    frame: Frame | None = None
    note: str = ""
    peer: str = ""
    envelope: str = ""
    parts: tuple[Part, ...] = ()

    def has_role(self, role: str) -> bool:
        """Whether the frame, or any of its items, has this role."""
        return any(part.role == role for part in self.parts) if self.parts else self.role == role

    def split(self) -> tuple[Record, ...]:
        """A record for each part, as the files have it: the first has the size. Else the record itself."""
        if not self.parts:
            return (self,)
        return tuple(
            [
                msgspec.structs.replace(
                    self,
                    role=part.role,
                    status=part.status,
                    keys=self.keys if part.indices is None else tuple([self.keys[i] for i in part.indices]),
                    size=0 if number else self.size,
                    parts=(),
                )
                for number, part in enumerate(self.parts)
            ]
        )

    def __repr__(self) -> str:
        return f"<Record {self.seq}: {' '.join(str(self).split())}>"

    def __str__(self) -> str:
        arrow = {"in": "->", "out": "<-"}.get(self.tap.direction, "--")
        parts = [f"{self.at:9.4f}", f"{self.connection:>4}", arrow, f"{self.kind:<24}"]
        if self.tap not in (Tap.IN, Tap.OUT, Tap.STATE):
            parts.append(self.tap.label)
        if self.keys:
            parts.append(_shorten(self.keys))
        if self.status is not None:
            name = "" if self.frame is None else self.frame.code_name(self.status)
            parts.append(f"status {self.status} {name}".rstrip())
        if len(self.parts) > 1:
            parts.append(", ".join(map(_summary, self.parts)))
        if self.size:
            parts.append(f"{self.size} B")
        if self.fault:
            parts.append(f"[fault: {self.fault}]")
        if self.note:
            parts.append(self.note)
        return " ".join(parts)


def _shorten(keys: tuple[Any, ...]) -> str:
    first, last = (key_text(key) if isinstance(key, bytes) else key for key in (keys[0], keys[-1]))
    return f"key {first}" if len(keys) == 1 else f"keys {first}..{last} ({len(keys)})"


def _summary(part: Part) -> str:
    """Such as ``2 x reject (status 5)``."""
    count = len(part.indices or ())
    return f"{count} x {part.role}" + ("" if part.status is None else f" (status {part.status})")
