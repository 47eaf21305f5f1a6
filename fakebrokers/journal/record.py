"""One thing that happened on the wire."""

from __future__ import annotations

from enum import IntFlag
from typing import Any

import msgspec

from fakebrokers.core.frames import Frame, Role

#: The state that tells what silence of the fake a client must not bear: its note is such as ``2000 ms``.
SILENCE_LIMIT = "silence limit"

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

    def __str__(self) -> str:
        arrow = {"in": "->", "out": "<-"}.get(self.tap.direction, "--")
        parts = [f"{self.at:9.4f}", f"{self.connection:>4}", arrow, f"{self.kind:<24}"]
        if self.tap not in (Tap.IN, Tap.OUT, Tap.STATE):
            parts.append(self.tap.label)
        if self.keys:
            parts.append(_shorten(self.keys))
        if self.status is not None:
            parts.append(f"status {self.status}")
        if self.size:
            parts.append(f"{self.size} B")
        if self.fault:
            parts.append(f"[fault: {self.fault}]")
        if self.note:
            parts.append(self.note)
        return " ".join(parts)


def _shorten(keys: tuple[Any, ...]) -> str:
    if len(keys) == 1:
        return f"#{keys[0]}"
    return f"#{keys[0]}..{keys[-1]} ({len(keys)})"
