"""What happened in a run, in one order: bytes as the client was handed them, its ops, its events.

Frames of a journal are what a broker meant and sent; a frame that a fault has cut or replaced is "bytes"
there. The trace has what the client got, and what it did, in the order in which both happened. So a rule that
says "before" needs no clock.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, Literal, NamedTuple

from fakebrokers.core.watch import End

What = Literal["accept", "in", "out", "reads", "end", "op", "answer", "event", "mark"]


class TraceRow(NamedTuple):
    """One thing that happened.

    Attributes:
        t: Seconds on the loop's clock.
        what: ``in`` is written by the client, ``out`` handed to it; ``op`` begins, ``answer`` ends an op;
            ``reads`` says whether the broker reads on; ``mark`` is a word of the base script.
        connection: Name of the connection; "" for what belongs to none.
        data: Bytes or parts; who ended a connection, and how; the id of an op; the number of an event's
            line; the word of a mark.
    """

    t: float
    what: What
    connection: str
    data: Any


class Position(NamedTuple):
    """A place in the trace. Positions compare in the order in which things happened.

    Attributes:
        row: Number of the row.
        place: Of several frames in one row, from 0.
        t: Seconds.
    """

    row: int
    place: int
    t: float


START = Position(-1, 0, 0.0)


class Trace:
    """Takes down one run; a `fakebrokers.core.watch.Watcher`.

    Args:
        clock: Seconds of the loop on which client and fake run.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self._lock = Lock()  # a fake with sockets has a thread of its own
        self.rows: list[TraceRow] = []

    def cut(self) -> Trace:
        """What it has so far, as a trace of its own."""
        with self._lock:
            found = Trace(self.clock)
            found.rows = list(self.rows)
            return found

    def note(self, what: What, data: Any = None, connection: str = "") -> Position:
        """Take down what happens now."""
        with self._lock:
            now = self.clock()
            self.rows.append(TraceRow(now, what, connection, data))
            return Position(len(self.rows) - 1, 0, now)

    def accepted(self, connection: str, socket: str = "") -> None:
        self.note("accept", socket, connection)

    def written(self, connection: str, data: Any) -> None:
        self.note("in", data, connection)

    def handed_over(self, connection: str, data: Any) -> None:
        self.note("out", data, connection)

    def reads(self, connection: str, goes_on: bool) -> None:
        self.note("reads", goes_on, connection)

    def ended(self, connection: str, by: End, how: str) -> None:
        self.note("end", (by, str(how)), connection)
