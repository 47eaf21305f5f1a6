"""One peer: codec, fault pipe, session and journal taps joined together. No IO, no clock.

transport -> receive(unit, now) -> codec -> [faults in ] -> session
transport <- flush(now)         <- codec <- [faults out] <- say(frame)
"""

from __future__ import annotations

import math
from typing import Any, Protocol

from fakebrokers.core.frames import Frame
from fakebrokers.core.receive_path import Frames, Intake
from fakebrokers.core.send_path import Outgoing, Transport
from fakebrokers.core.session import Codec, HangUp, Session
from fakebrokers.faults.injector import Injector
from fakebrokers.faults.match import Moment
from fakebrokers.faults.parcel import Parcel
from fakebrokers.faults.pipe import Pipe
from fakebrokers.journal import Journal, Tap
from fakebrokers.journal.record import SILENCE_LIMIT

#: Bytes that faults may hold back on the way in and out before nothing more is read.
IN_LANE_LIMIT = 1024 * 1024
OUT_LANE_LIMIT = 4 * 1024 * 1024


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
        self._intake = Intake(transport.stop_reading, self._read_again)
        self._outgoing = Outgoing(name, codec, self.pipe, self._intake, journal, transport)
        self.alive = True  #: the session has not been told of an end yet
        self.dirty = False  #: waits for a flush
        self.armed = [math.inf]  #: timers that the owner has set, the earliest last
        self.opened_at = owner.now
        self.received_bytes = 0
        self._owner = owner
        self._size_in = 0  #: of the frame that is on its way in
        self._buffer_full = False
        self._lane_full = False
        session.link = self

    @property
    def sent_bytes(self) -> int:
        """Of all that left."""
        return self._outgoing.sent_bytes

    # what the transport says

    def open(self, now: float) -> None:
        """The connection was accepted."""
        self.journal.state(now, self.name, "accepted", self.peer)
        self._moment(Moment.ACCEPT, now)
        if not self._outgoing.gone:
            self.session.opened(now)
        self._request_flush()

    def receive(self, unit: Any, now: float) -> None:
        """A unit came from the client."""
        if self._outgoing.shut:
            return
        frames = iter(self.codec.feed(unit))
        if self._intake.blocked or self._intake.waiting:
            self._intake.waiting.append(frames)
        else:
            self._read(frames, now)

    def lost(self, now: float, how: str = "closed by client") -> None:
        """The transport is gone. Safe to call twice."""
        if not self.alive:
            return
        if not self._outgoing.shut:
            self._outgoing.mute = True
            for parcel in self.pipe.lanes["in"].rest():  # sent before the client closed, only late
                self._arrive(parcel, now)
        self.alive = False
        self._outgoing.gone = True
        self._intake.waiting.clear()
        self.journal.state(now, self.name, "closed", how)
        for lane in self.pipe.lanes.values():
            lane.clear()
        self.session.closed(now)

    def set_writable(self, writable: bool, now: float) -> None:
        """The transport's buffer is full (the client does not read), or has room again.

        While it is full nothing is read either, so that a client which asks but never reads
        cannot make the fake grow.
        """
        self._buffer_full = not writable
        if writable:
            self._intake.unblock("buffer")
            if self.alive and self.writable:
                self.session.writable(now)
        else:
            self._intake.block("buffer")

    # Link

    @property
    def writable(self) -> bool:
        """Whether the session may push more."""
        return not (self._buffer_full or self._lane_full or self._outgoing.shut)

    def say(self, frame: Frame) -> None:
        """The broker means to send a frame."""
        if self._outgoing.gone:
            return
        self._outgoing.say(frame, self._owner.now)
        if not self.dirty:
            self._request_flush()

    def hang_up(self, how: HangUp = HangUp.FIN) -> None:
        """The broker ends the connection, behind everything it said."""
        if self._outgoing.gone:
            return
        self._outgoing.put(Parcel(end=how), self._owner.now)
        self._request_flush()

    def ready(self) -> None:
        """The client is set up."""
        limit = self.session.silence_limit_s
        if limit is not None:
            self.journal.state(self._owner.now, self.name, SILENCE_LIMIT, f"{limit * 1000:g} ms")
        self._moment(Moment.READY, self._owner.now)
        self._request_flush()

    def stop_reading(self) -> None:
        """Back pressure by the session: frames that have come already wait as well."""
        self._intake.block("session")

    def resume_reading(self) -> None:
        """Undo `stop_reading`."""
        self._intake.unblock("session")

    def inject(self, what: Frame | Any) -> None:
        """Send a frame, or a raw unit, that the broker never said: past all faults, behind what waits."""
        frame, unit = (what, None) if isinstance(what, Frame) else (None, what)
        self._outgoing.put(Parcel(frame=frame, raw=unit, fault="by hand", final=True), self._owner.now)
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
        return self.session.refusal(frame, code, self._owner.now)

    def offset(self, direction: str) -> int:
        """Bytes of that direction before the frame at hand."""
        return self.received_bytes - self._size_in if direction == "in" else self._outgoing.said_bytes

    def pause_for_fault(self, name: str, until: float) -> None:
        """Read nothing until then."""
        self._intake.stall(name, until)

    def release(self, name: str, now: float) -> bool:
        """End what the fault `name` holds back here."""
        found = [self.pipe.release(name, now), self._intake.release(name, now)]
        self._request_flush()
        return any(found)

    # time

    def next_deadline(self) -> float:
        """When `handle_timer` is to be called next; inf if never."""
        if not self.alive:
            return math.inf
        due = min(self.pipe.next_deadline(), self._intake.next_due)
        if not self._outgoing.shut:
            deadline = self.session.next_deadline()
            if deadline is not None and deadline < due:
                due = deadline
        return due

    def handle_timer(self, now: float) -> None:
        """Some deadline has passed."""
        if not self.alive:
            return
        self._mark(self.pipe.handle_timer(now), now)
        self._intake.end_stalls(now)
        if not self._outgoing.shut:
            deadline = self.session.next_deadline()
            if deadline is not None and deadline <= now:
                self.session.handle_timer(now)
        self._request_flush()

    # the way in

    def _read(self, frames: Frames, now: float) -> None:
        """Handle frames one by one, as long as nothing says stop."""
        for frame, size in frames:
            self.received_bytes += size
            self._incoming(frame, size, now)
            if self._outgoing.gone:
                return
            if self._intake.blocked:
                self._intake.waiting.appendleft(frames)
                return
        if self.codec.partial:
            self._moment(Moment.PARTIAL, now)
            if not self._outgoing.gone:
                self.session.unfinished(self.codec.partial, now)

    def _read_on(self, now: float) -> None:
        """Handle what waited for a block to end."""
        intake = self._intake
        while intake.waiting and not (intake.blocked or self._outgoing.shut):
            self._read(intake.waiting.popleft(), now)

    def _incoming(self, frame: Frame, size: int, now: float) -> None:
        fired = None
        if not self.pipe.untouched("in", frame, now):
            self._size_in = size
            fired = self.pipe.push("in", frame, size, now)
        if fired is None:
            self.journal.add(now, self.name, Tap.IN, frame, size)
            self.session.handle(frame, now)
            return
        self.journal.add(now, self.name, Tap.RECEIVED, frame, size, fired)
        self._drain_in(now)
        self._outgoing.drain(now)
        self._request_flush()

    def _drain_in(self, now: float) -> None:
        for parcel in self.pipe.lanes["in"].take(now):
            self._arrive(parcel, now)

    def _arrive(self, parcel: Parcel, now: float) -> None:
        """A frame reaches the session, after all faults."""
        if parcel.raw is not None:
            for frame, size in self.codec.fresh().feed(parcel.raw):
                self._hear(frame, size, parcel.fault, now)
        elif parcel.frame is not None:
            self._hear(parcel.frame, parcel.size, parcel.fault, now)

    def _hear(self, frame: Frame, size: int, fault: str, now: float) -> None:
        if not self._outgoing.gone:
            self.journal.add(now, self.name, Tap.HEARD, frame, size, fault)
            self.session.handle(frame, now)

    # the end of a step

    def flush(self, now: float) -> None:
        """Hand everything that is due to the transport, in one write; end it if that is due."""
        self.dirty = False
        if not self.alive:
            self._outgoing.forget()
            return
        self._drain_in(now)
        self._read_on(now)
        self._outgoing.drain(now)
        self._watch_lanes(now)
        self._outgoing.write()
        ended = self._outgoing.ended
        if ended is not None:
            self.transport.hang_up(ended)
            self.lost(now, f"{ended.value} by broker")

    def end_now(self, how: HangUp, now: float) -> None:
        """Cut the connection past the pipe (crash, kill by a test)."""
        if self.alive and not self._outgoing.gone:
            self._outgoing.end(how, "", now)
            self._request_flush()

    # back pressure

    def _watch_lanes(self, now: float) -> None:
        """Stop reading while faults hold back too much, whichever way it goes."""
        lanes = self.pipe.lanes
        if lanes["in"].size > IN_LANE_LIMIT:
            self._intake.block("lane in")
        else:
            self._intake.unblock("lane in")
        if lanes["out"].size > OUT_LANE_LIMIT:
            self._lane_full = True
            self._intake.block("lane out")
        elif self._lane_full and lanes["out"].size <= OUT_LANE_LIMIT // 2:
            self._lane_full = False
            self._intake.unblock("lane out")
            if self.writable:
                self.session.writable(now)

    def _read_again(self) -> None:
        if self.alive and not self._outgoing.gone:
            self.transport.resume_reading()
            self._request_flush()

    def _request_flush(self) -> None:
        self._owner.wake(self)

    def _moment(self, moment: Moment, now: float) -> None:
        self._mark(self.pipe.moment(moment, now), now)

    def _mark(self, fired: str, now: float) -> None:
        """Note the faults that a moment set off."""
        if fired:
            self.journal.state(now, self.name, "fault", "", fired)
            self._outgoing.drain(now)
