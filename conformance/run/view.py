"""The trace read by decoders of the judge's own: connections, and the frames on them in order."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, NamedTuple, Protocol

from conformance.decoders import Decoder
from conformance.run.trace import Position, TraceRow
from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.core.session import HangUp


class SeenFrame(NamedTuple):
    """A frame that has passed: ``in`` was written by the client, ``out`` was handed to it.

    Attributes:
        since: When all of it had come that says something, so that a client may act on it; None: at its end.
    """

    at: Position
    direction: str
    frame: Frame
    size: int
    since: Position | None = None


class Agreed(NamedTuple):
    """What the two sides have settled at the start, and when; 0 is none, or no limit.

    Attributes:
        heartbeat_s: The client says something at least as often.
        answer_s: What the server may take to answer a sign of life.
        start_s: What may pass before its timers start.
        quiet_s: The silence of the server after which the client may give it up, and the one after which it
            has to; None: 2 and 4 heartbeats.
    """

    heartbeat_s: float = 0.0
    frame_max: int = 0
    at: Position | None = None
    quiet_s: tuple[float, float] | None = None
    start_s: float = 0.0
    answer_s: float = 0.0

    @property
    def patience_s(self) -> tuple[float, float] | None:
        """As `quiet_s`; None: a silent server is never given up."""
        if self.quiet_s is None and self.heartbeat_s:
            return 2 * self.heartbeat_s, 4 * self.heartbeat_s
        return self.quiet_s


class Conn:
    """One connection.

    Attributes:
        socket: Which of the fake's sockets it came to, where there are several that speak otherwise.
        accepted: When it came.
        frames: What passed, in order.
        ended, ended_by: When and by whom (``client``, ``broker``) it was ended first; None while it is open.
        was_reset: By a reset, which makes the other side lose what it has not read yet.
        left_open: From when until when the server had ended its side, and the client not its own.
        garbage: From here on the client cannot tell where frames begin, and has to give the connection up.
        partial: Bytes of a frame that has begun and never got whole.
        partial_since_s: When it began, seconds.
        slowest_s: How long a frame took at most from its beginning to its end.
        read: Bytes of the frames that were handed to the client.
        came: How many bytes had been handed to it at which moments, from the first one of an open frame on.
        owes: The server has left out an answer that is known by its place alone, so that none fits any more.
        written, handed: When the client wrote, and when it was handed anything, seconds.

        signs: When the client gave a sign of life, seconds, where not every byte is one; None: they all are.
        answered: The same of the server.
        ready: The handshake is done. This and all that follows is noted by the protocol's traits.
        agreed: See `Agreed`.
        turned_away: The server has refused the handshake; with its code.
        spoiled: What should be the server's answer to the handshake cannot be read, and no other one comes.
        server_closing: The server has said that it will end the connection.
        client_closing: The client has said so.
        reading_stopped: The broker has stopped to read: what the client did from here on came late, or not at
            all.
        unwanted: Something has come because of which the client may end the connection, and the session.
        introduced: What the client has said of itself on it: when, the name of the option of ``connect`` that
            orders it, and what.
        is_session: Whether the session depends on it: its end is reported as a loss. Not so where a
            connection carries one request at a time, and another one does as well.
    """

    def __init__(self, name: str, accepted: Position, socket: str = "") -> None:
        self.name = name
        self.socket = socket
        self.accepted = accepted
        self.frames: list[SeenFrame] = []
        self.ended: Position | None = None
        self.ended_by = ""
        self.was_reset = False
        self.left_open: tuple[Position, Position | None] | None = None
        self.garbage: Position | None = None
        self.partial = 0
        self.partial_since_s = 0.0
        self.slowest_s = 0.0
        self.owes = False
        self.read = 0
        self.came: list[tuple[int, Position]] = []
        self.written: list[float] = []
        self.handed: list[float] = []
        self.signs: list[float] | None = None
        self.answered: list[float] | None = None
        self.ready: Position | None = None
        self.agreed = Agreed()
        self.turned_away: tuple[Position, Any] | None = None
        self.spoiled: Position | None = None
        self.server_closing: Position | None = None
        self.client_closing: Position | None = None
        self.unwanted: Position | None = None
        self.reading_stopped: Position | None = None
        self.introduced: list[tuple[Position, str, Any]] = []
        self.is_session = True

    def __repr__(self) -> str:
        return f"Conn({self.name})"

    def stands(self, at: Position) -> bool:
        """Whether it is there at a moment, for both sides."""
        return self.accepted <= at and (self.ended is None or at < self.ended)

    def serves(self, at: Position) -> bool:
        """Whether a correct client can use it at a moment: its handshake is done, and nothing is wrong."""
        if self.ready is None or not self.ready < at or not self.stands(at):
            return False
        marks = (self.garbage, self.server_closing, self.client_closing, self.reading_stopped)
        return all(mark is None or at < mark for mark in marks)

    def is_ended_with(self, at: Position) -> bool:
        """Whether the client ends it in the very step in which it says something."""
        return self.ended is not None and self.ended_by == "client" and self.ended.t == at.t

    def of(self, direction: str) -> Iterator[SeenFrame]:
        """The frames of one direction."""
        return (seen for seen in self.frames if seen.direction == direction)

    def lost(self) -> Position | None:
        """When the client can have known first that it is over; None if it has ended it by itself."""
        marks = [self.server_closing, self.garbage, self.ended if self.ended_by == "broker" else None]
        return min((mark for mark in marks if mark is not None), default=None)


class Reads(Protocol):
    """What reading a trace needs of a protocol: see `traits.Reading`."""

    def decoders(self, socket: str = "") -> tuple[Decoder, Decoder]:
        """Decoders of what client and server are handed."""

    def is_garbage(self, frame: Malformed) -> bool:
        """Whether no client can read over it."""

    @property
    def silent_end(self) -> bytes:
        """What follows a payload whose size is known, and says nothing."""


def read_trace(rows: list[TraceRow], reading: Reads) -> dict[str, Conn]:
    """The connections of a run, by name, in the order in which they came."""
    conns: dict[str, Conn] = {}
    decoders: dict[str, tuple[Decoder, Decoder]] = {}
    for number, row in enumerate(rows):
        if row.what == "accept":
            conns[row.connection] = Conn(row.connection, Position(number, 0, row.t), row.data or "")
            decoders[row.connection] = reading.decoders(row.data or "")
            continue
        if row.what not in ("in", "out", "end", "reads"):
            continue
        conn = conns[row.connection]
        if row.what == "reads":
            conn.reading_stopped = conn.reading_stopped or (None if row.data else Position(number, 0, row.t))
            continue
        if row.what == "end":
            if conn.ended is None:
                conn.ended = Position(number, 0, row.t)
                _take_rest(conn, decoders[row.connection][0], reading)
                conn.ended_by = row.data[0]
                conn.was_reset = row.data[1] == HangUp.RST
            if row.data == ("broker", str(HangUp.FIN)):
                conn.left_open = Position(number, 0, row.t), None
            elif conn.left_open is not None and conn.left_open[1] is None:
                conn.left_open = conn.left_open[0], Position(number, 0, row.t)
        elif row.what == "in":
            conn.written.append(row.t)
            _take(conn, decoders[row.connection][1], row, number)
        else:
            conn.handed.append(row.t)
            if conn.garbage is None:
                start = len(conn.frames)
                _take(conn, decoders[row.connection][0], row, number)
                _note_early(conn, start, Position(number, 0, row.t), len(row.data), reading)
                conn.garbage = _garbage(conn, number, reading)
                _note_rest(conn, decoders[row.connection][0].partial, row.t, number)
    return conns


def _take(conn: Conn, decoder: Decoder, row: TraceRow, number: int) -> None:
    start = len(conn.frames)
    for frame, size in decoder.feed(row.data):
        at = Position(number, len(conn.frames) - start, row.t)
        conn.frames.append(SeenFrame(at, row.what, frame, size))


def _note_early(conn: Conn, start: int, now: Position, size: int, reading: Reads) -> None:
    """Since when a client may act on the frames from `start` on, where they had not come whole yet."""
    if not reading.silent_end:
        return  # and what comes need not be bytes
    total = (conn.came[-1][0] if conn.came else 0) + size
    conn.came.append((total, now))
    for index in range(start, len(conn.frames)):
        seen = conn.frames[index]
        conn.read += seen.size
        known = conn.read - len(_silent_end(seen.frame, reading))
        since = next(at for upto, at in conn.came if upto >= known)
        if since < now:
            conn.frames[index] = seen._replace(since=since)
    while len(conn.came) > 1 and conn.came[0][0] <= conn.read:
        del conn.came[0]


def _take_rest(conn: Conn, decoder: Decoder, reading: Reads) -> None:
    """What has come but for an end that says nothing, when the connection ends: a client may have it, and
    need not."""
    if conn.ended is None or not conn.partial:
        return
    for at in range(len(reading.silent_end)):
        found = list(deepcopy(decoder).feed(reading.silent_end[at:]))
        if len(found) == 1 and _silent_end(found[0][0], reading):
            conn.frames.append(SeenFrame(conn.ended, "out", *found[0], since=conn.came[-1][1]))
            return


def _silent_end(frame: Frame, reading: Reads) -> bytes:
    return reading.silent_end if isinstance(getattr(frame, "payload", None), bytes) else b""


def _note_rest(conn: Conn, partial: int, now_s: float, number: int) -> None:
    """How much of a frame has come that is not whole, and since when."""
    is_whole = bool(conn.frames) and conn.frames[-1].at.row == number
    if conn.partial and is_whole:
        conn.slowest_s = max(conn.slowest_s, now_s - conn.partial_since_s)
    if not conn.partial or is_whole:
        conn.partial_since_s = now_s
    conn.partial = partial


def _garbage(conn: Conn, number: int, reading: Reads) -> Position | None:
    """The first frame of this row that no client can read over."""
    for seen in reversed(conn.frames):
        if seen.at.row != number:
            return None
        if isinstance(seen.frame, Malformed) and reading.is_garbage(seen.frame):
            return seen.at
    return None
