"""One peer: codec, fault pipe, session and journal taps joined together. No IO, no clock.

    transport -> receive(unit, now) -> codec -> [faults in ] -> session
    transport <- flush(now)         <- codec <- [faults out] <- say(frame)
"""

from __future__ import annotations

import math
from typing import Any, Protocol

from fakebrokers.faults.injector import Injector
from fakebrokers.faults.lane import Parcel
from fakebrokers.faults.match import Moment
from fakebrokers.faults.pipe import Pipe
from fakebrokers.frames import Frame
from fakebrokers.journal import Journal, Tap
from fakebrokers.session import Codec, HangUp, Session


class Transport(Protocol):
    """What carries the units of one connection: a socket, or memory."""

    def write(self, units: list[Any]) -> None:
        """Send these units, in order, in as few writes as possible."""

    def hang_up(self, how: HangUp) -> None:
        """End it behind what was written."""

    def stop_reading(self) -> None:
        """Let the client's bytes pile up."""

    def resume_reading(self) -> None:
        """Read on."""


class Owner(Protocol):
    """Who keeps the time and the list of connections to flush (the `Engine`)."""

    now: float

    def wake(self, connection: Connection) -> None:
        """Flush this connection at the end of the step."""


class Connection:
    """Implements `session.Link` for its session and `faults.pipe.PipeEnd` for its pipe."""

    def __init__(
        self,
        name: str,
        peer: str,
        codec: Codec,
        session: Session,
        injector: Injector,
        journal: Journal,
        transport: Transport,
        owner: Owner,
    ) -> None:
        self.name = name
        self.peer = peer
        self.codec = codec
        self.session = session
        self.journal = journal
        self.transport = transport
        self.pipe = Pipe(injector, self, owner.now)
        self.alive = True  #: the session has not been told of an end yet
        self.dirty = False  #: waits for a flush
        self.deadline = math.inf  #: for whoever drives the timers
        self.opened_at = owner.now
        self.received_bytes = 0
        self.sent_bytes = 0
        self._owner = owner
        self._out: list[Any] = []
        self._writable = True
        self._half_open = False
        self._ended: HangUp | None = None
        self._blocks: set[str] = set()
        self._stalled_until = -math.inf
        session.link = self

    # what the transport says

    def open(self, now: float) -> None:
        """The connection was accepted."""
        self.journal.state(now, self.name, "accepted", self.peer)
        fired = self.pipe.moment(Moment.ACCEPT, now)
        if fired:
            self._mark(fired)
        if self._ended is None:
            self.session.opened(now)
        self._request_flush()

    def receive(self, unit: Any, now: float) -> None:
        """A unit came from the client."""
        if self._half_open or self._gone:
            return
        for frame, size in self.codec.feed(unit):
            self.received_bytes += size
            self._incoming(frame, size, now)
            if self._gone:
                return
        if self.codec.partial:
            self.session.unfinished(self.codec.partial, now)

    def lost(self, now: float, how: str = "closed by client") -> None:
        """The transport is gone. Safe to call twice."""
        if self.alive:
            self.alive = False
            self.journal.state(now, self.name, "closed", how)
            for lane in self.pipe.lanes.values():
                lane.clear()
            self.session.closed(now)

    def set_writable(self, writable: bool, now: float) -> None:
        """The transport's buffer is full (the client does not read), or has room again.

        While it is full nothing is read either, so that a client which asks but never reads
        cannot make the fake grow.
        """
        self._writable = writable
        if writable:
            self._unblock("buffer")
            if self.alive:
                self.session.writable(now)
        else:
            self._block("buffer")

    @property
    def _gone(self) -> bool:
        return self._ended is not None or not self.alive

    # Link

    @property
    def writable(self) -> bool:
        """Whether the session may push more."""
        return self._writable and self._ended is None and not self._half_open

    def say(self, frame: Frame) -> None:
        """The broker means to send a frame."""
        if self._gone:
            return
        now = self._owner.now
        if self.pipe.untouched("out", frame, now):
            unit = self.codec.encode(frame)
            size = _size(unit)
            self.sent_bytes += size
            self._out.append(unit)
            self.journal.add(now, self.name, Tap.OUT, frame, size)
        else:
            fired = self.pipe.push("out", frame, now)
            self.journal.add(now, self.name, Tap.SAID, frame, 0, fired)
            self._drain(now)
        self._request_flush()

    def hang_up(self, how: HangUp = HangUp.FIN) -> None:
        """The broker ends the connection, behind everything it said."""
        self.pipe.lanes["out"].put(Parcel(end=how), self._owner.now)
        self._drain(self._owner.now)
        self._request_flush()

    def ready(self) -> None:
        """The client is set up."""
        fired = self.pipe.moment(Moment.READY, self._owner.now)
        if fired:
            self._mark(fired)
        self._request_flush()

    def stop_reading(self) -> None:
        """Back pressure by the session."""
        self._block("session")

    def resume_reading(self) -> None:
        """Undo `stop_reading`."""
        self._unblock("session")

    def inject(self, unit: Any) -> None:
        """Send a unit that the broker never said, past all faults but in line with what waits."""
        self.pipe.lanes["out"].put(Parcel(raw=unit, fault="by hand"), self._owner.now)
        self._drain(self._owner.now)
        self._request_flush()

    # PipeEnd

    def encode(self, frame: Frame) -> Any:
        """The frame's unit."""
        return self.codec.encode(frame)

    def mend(self, unit: Any) -> Any:
        """The unit with its checksum made right."""
        return self.codec.mend(unit)

    def refusal(self, frame: Frame, code: int) -> Frame | None:
        """The session's error answer to a frame."""
        return self.session.refusal(frame, code)

    def pause_for_fault(self, until: float) -> None:
        """Read nothing until then."""
        self._stalled_until = until
        self._block("fault")

    def release(self, name: str, now: float) -> bool:
        """End what the fault `name` holds back here."""
        found = self.pipe.release(name, now)
        if "fault" in self._blocks:
            self._stalled_until = -math.inf
            self._unblock("fault")
            found = True
        self._request_flush()
        return found

    # time

    def next_deadline(self) -> float:
        """When `handle_timer` is to be called next; inf if never."""
        if not self.alive:
            return math.inf
        deadline = self.session.next_deadline() if not self._half_open and self._ended is None else None
        pipe = self.pipe.next_deadline()
        stalled = self._stalled_until if "fault" in self._blocks else math.inf
        return min(
            math.inf if deadline is None else deadline, math.inf if pipe is None else pipe, stalled
        )

    def handle_timer(self, now: float) -> None:
        """Some deadline has passed."""
        if not self.alive:
            return
        self.pipe.handle_timer(now)
        if "fault" in self._blocks and self._stalled_until <= now:
            self._unblock("fault")
        deadline = self.session.next_deadline()
        if deadline is not None and deadline <= now and not self._half_open and self._ended is None:
            self.session.handle_timer(now)
        self._request_flush()

    # the way in

    def _incoming(self, frame: Frame, size: int, now: float) -> None:
        if self.pipe.untouched("in", frame, now):
            self.journal.add(now, self.name, Tap.IN, frame, size)
            self.session.handle(frame, now)
            return
        fired = self.pipe.push("in", frame, now)
        self.journal.add(now, self.name, Tap.RECEIVED, frame, size, fired)
        self._drain_in(now)
        self._request_flush()

    def _drain_in(self, now: float) -> None:
        for parcel in self.pipe.lanes["in"].take(now):
            if parcel.raw is not None:
                for frame, _ in self.codec.fresh().feed(parcel.raw):
                    self._hear(frame, parcel.fault, now)
            elif parcel.frame is not None:
                self._hear(parcel.frame, parcel.fault, now)

    def _hear(self, frame: Frame, fault: str, now: float) -> None:
        if not self._gone:
            self.journal.add(now, self.name, Tap.HEARD, frame, 0, fault)
            self.session.handle(frame, now)

    # the way out

    def _drain(self, now: float) -> None:
        for parcel in self.pipe.lanes["out"].take(now):
            if self._ended is not None or self._half_open:
                return
            if parcel.end is not None:
                self._end(parcel.end, parcel.fault)
                return
            unit = parcel.raw if parcel.frame is None else self.codec.encode(parcel.frame)
            size = _size(unit)
            self.sent_bytes += size
            if parcel.alone:
                self._write_out()
                self.transport.write([unit])
            else:
                self._out.append(unit)
            if parcel.frame is not None:
                self.journal.add(now, self.name, Tap.SENT, parcel.frame, size, parcel.fault)
            else:
                self.journal.state(now, self.name, "bytes", f"{size} B", parcel.fault)

    def _end(self, how: HangUp, fault: str) -> None:
        self.journal.state(self._owner.now, self.name, how.value, "", fault)
        if how is HangUp.HALF_OPEN:
            self._half_open = True
            self._block("half-open")
            self._write_out()
            return
        self._ended = how

    def flush(self, now: float) -> None:
        """Hand everything that is due to the transport, in one write; end it if that is due."""
        self.dirty = False
        if not self.alive:
            self._out.clear()
            return
        self._drain_in(now)
        self._drain(now)
        self._write_out()
        if self._ended is not None:
            self.transport.hang_up(self._ended)
            self.lost(now, f"{self._ended.value} by broker")

    def end_now(self, how: HangUp, now: float) -> None:
        """Cut the connection past the pipe (crash, kill by a test)."""
        if self.alive and self._ended is None:
            self._end(how, "")
            self._request_flush()

    def _write_out(self) -> None:
        if self._out:
            units, self._out = self._out, []
            self.transport.write(units)

    # reading

    def _block(self, why: str) -> None:
        if not self._blocks:
            self.transport.stop_reading()
        self._blocks.add(why)

    def _unblock(self, why: str) -> None:
        if why in self._blocks:
            self._blocks.discard(why)
            if not self._blocks and self.alive and self._ended is None:
                self.transport.resume_reading()

    def _request_flush(self) -> None:
        self._owner.wake(self)

    def _mark(self, fired: str) -> None:
        self.journal.state(self._owner.now, self.name, "fault", "", fired)
        self._drain(self._owner.now)


def _size(unit: Any) -> int:
    """Bytes of a unit: of a multipart message the sum of its parts."""
    return sum(map(len, unit)) if isinstance(unit, tuple) else len(unit)
