"""One connection: codec, fault pipe, session and journal taps joined together. No IO, no clock.

transport -> receive(unit, now) -> codec -> [faults in ] -> session
transport <- flush(now)         <- codec <- [faults out] <- say(frame)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from fakebrokers.core.frames import Frame
from fakebrokers.core.receive_path import Frames, ReceivePath
from fakebrokers.core.send_path import SendPath, Transport
from fakebrokers.core.session import Codec, HangUp, Session
from fakebrokers.core.timers import Timer, Timers
from fakebrokers.core.wire import Wire
from fakebrokers.faults.injector import Injector
from fakebrokers.faults.match import Moment
from fakebrokers.faults.parcel import Parcel
from fakebrokers.faults.pipe import Pipe
from fakebrokers.journal import Journal, Tap
from fakebrokers.journal.record import State

if TYPE_CHECKING:
    from fakebrokers.core.host import Action

#: Bytes that faults may hold back in each direction before nothing more is read.
IN_LANE_LIMIT = 1024 * 1024
OUT_LANE_LIMIT = 4 * 1024 * 1024
#: Frames of one connection that are handled before the other connections get their turn.
FRAMES_PER_TURN = 250


#: Tells by a client's frame who the client is; None or "" where that frame does not say.
Recognise = Callable[[Frame], str | None]


class Owner(Protocol):
    """Who keeps the time, the timers and the list of connections to flush (the `Engine`)."""

    now: float
    timers: Timers
    recognise: Recognise | None

    def wake(self, connection: Connection) -> None:
        """Flush this connection at the end of the step."""

    def perform(self, action: Action, fault: str, connection: str) -> None:
        """Do something to the fake as a whole."""


class Connection:
    """Implements `session.Link` for its session and `faults.pipe.PipeEnd` for its pipe."""

    def __init__(
        self,
        name: str,
        address: str,
        wire: Wire,
        codec: Codec,
        session: Session,
        injector: Injector,
        journal: Journal,
        transport: Transport,
        owner: Owner,
    ) -> None:
        self.name = name
        self.address = address
        self.peer = ""
        self.wire = wire
        self.codec = codec
        self.session = session
        self.journal = journal
        self.transport = transport
        self.alive = True  #: the session has not been told of an end yet
        self.dirty = False  #: waits for a flush
        self.opened_at = owner.now
        self.received_bytes = 0
        self._owner = owner
        self._recognise = owner.recognise
        self._timers: list[Timer] = []
        self._turn = self.timer(self._next_turn)
        self._frames_left = FRAMES_PER_TURN
        self.pipe = Pipe(injector, self, wire, owner.now)
        self._receive_path = ReceivePath(transport.stop_reading, self._read_again, self.timer)
        self._send_path = SendPath(
            name, codec, self.pipe, self._receive_path, journal, transport, wire.write_after
        )
        self._size_in = 0  #: of the frame that is being received
        self._buffer_full = False
        self._lane_full = False
        self._left = ""  #: how the transport has gone, while frames that came before are still handled
        self._input_end_waits = False  #: the client has sent FIN, and the session does not know yet
        session.link = self

    @property
    def sent_bytes(self) -> int:
        """Of all that left."""
        return self._send_path.sent_bytes

    def describe(self) -> dict[str, Any]:
        """What an inspector shows."""
        return {
            "name": self.name,
            "address": self.address,
            "peer": self.peer,
            "received_bytes": self.received_bytes,
            "sent_bytes": self.sent_bytes,
            **self.session.describe(),
        }

    # what the transport says

    def open(self, now: float) -> None:
        """The connection was accepted."""
        self.journal.state(now, self.name, State.ACCEPTED, self.address)
        self.fired(self.pipe.moment(Moment.ACCEPT, now), now)
        if not self._send_path.over:
            self.session.opened(now)
        self._request_flush()

    def receive(self, unit: Any, now: float) -> None:
        """A unit came from the client."""
        if self._send_path.shut:
            return
        self._frames_left = FRAMES_PER_TURN
        frames = iter(self.codec.feed(unit))
        if self._receive_path.blocked or self._receive_path.waiting:
            self._receive_path.waiting.append(frames)
        else:
            self._read(frames, now)

    def lost(self, now: float, how: str = "closed by client") -> None:
        """The transport is gone. Safe to call twice."""
        if not self.alive:
            return
        if self._handles:
            self._send_path.mute = True
            if self.between_turns and not self._send_path.over:  # what came before is handled first
                self._left = how
                return
            for parcel in self.pipe.lanes["in"].rest():  # sent before the client closed, only late
                self._arrive(parcel, now)
        self.alive = False
        self._send_path.gone = True
        self._receive_path.waiting.clear()
        self.journal.state(now, self.name, State.CLOSED, how)
        for lane in self.pipe.lanes.values():
            lane.clear()
        for timer in self._timers:
            timer.drop()
        self._timers.clear()
        self.session.closed(now)

    def input_ended(self, now: float) -> None:
        """The client has sent FIN, and may still read; the session hears of it after what came before."""
        if self.alive and not self._send_path.shut:
            self.journal.state(now, self.name, State.HALF_CLOSED, "by client")
            self._input_end_waits = True
            self._request_flush()

    def set_writable(self, writable: bool, now: float) -> None:
        """The transport's buffer is full (the client does not read), or has room again.

        While it is full nothing is read either, so that a client which asks but never reads
        cannot make the fake grow.
        """
        self._buffer_full = not writable
        if writable:
            self._receive_path.unblock("buffer")
            if self.alive and self.writable:
                self.session.writable(now)
        else:
            self._receive_path.block("buffer")

    # Link

    @property
    def writable(self) -> bool:
        """Whether the session may push more."""
        return not (self._buffer_full or self._lane_full or self._send_path.shut)

    def say(self, frame: Frame) -> None:
        """The broker means to send a frame."""
        if self._send_path.over:
            return
        self._send_path.say(frame, self._owner.now)
        if not self.dirty:
            self._request_flush()

    def identify(self, peer: str) -> None:
        """Tell who is at the other end; faults and journal can go by it from here on."""
        if peer != self.peer:
            self.peer = peer
            self.journal.state(self._owner.now, self.name, State.PEER, peer)
            self.pipe.refresh()

    def hang_up(self, how: HangUp = HangUp.FIN) -> None:
        """The broker ends the connection, after everything that it said; it neither says nor hears more.

        A FIN comes after every byte, as TCP orders it, and so waits for what faults delay or park; a reset
        does not.
        """
        if not self._send_path.gone:
            self._send_path.hang_up(how, self._owner.now)
            self._request_flush()

    def end_output(self) -> None:
        """FIN after everything that was said; the client may go on sending."""
        if not self._send_path.over:
            self._send_path.finish(self._owner.now)
            self._request_flush()

    def ready(self) -> None:
        """The client is set up."""
        limit = self.session.silence_limit_s
        if limit is not None:
            self.journal.state(self._owner.now, self.name, State.SILENCE_LIMIT, f"{limit * 1000:g} ms")
        self.fired(self.pipe.moment(Moment.READY, self._owner.now), self._owner.now)
        self._request_flush()

    def stop_reading(self) -> None:
        """Back pressure by the session: frames that have come already wait as well."""
        self._receive_path.block("session")

    def resume_reading(self) -> None:
        """Undo `stop_reading`."""
        self._receive_path.unblock("session")

    def inject(self, what: Frame | Any) -> None:
        """Send a frame, or a raw unit, that the broker never said: past all faults, after what waits."""
        frame, unit = (what, None) if isinstance(what, Frame) else (None, what)
        self._send_path.put(Parcel(frame=frame, raw=unit, fault="by hand", final=True), self._owner.now)
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
        return self.received_bytes - self._size_in if direction == "in" else self._send_path.said_bytes

    def pause_for_fault(self, name: str, until: float) -> None:
        """Read nothing until then."""
        self._receive_path.stall(name, until)

    def release(self, name: str, now: float) -> bool:
        """End what the fault `name` holds back here."""
        found = [self.pipe.release(name, now), self._receive_path.release(name, now)]
        self._request_flush()
        return any(found)

    def answer(self, parcel: Parcel, now: float) -> None:
        """Send a fault's answer on the connection where the session's own would leave."""
        link = self.session.answers_on()
        assert isinstance(link, Connection)
        link.pipe.put("out", parcel, now)
        link._request_flush()

    def perform(self, action: Action, fault: str) -> None:
        """Do something to the fake as a whole."""
        self._owner.perform(action, fault, self.name)

    def fired(self, faults: str, now: float) -> None:
        """Note the faults that a moment set off."""
        if faults:
            self.journal.state(now, self.name, State.FAULT, "", faults)
            self._send_path.drain(now)

    # time

    def timer(self, act: Callable[[float], None]) -> Timer:
        """A timer that ends with the connection; what it does is flushed."""
        timer = self._owner.timers.new(act, self)
        self._timers.append(timer)
        return timer

    def session_timer(self, act: Callable[[float], None]) -> Timer:
        """A timer of the session: not called once nothing is sent any more."""

        def unless_shut(now: float) -> None:
            if not self._send_path.shut:
                act(now)

        return self.timer(unless_shut)

    def drain(self, now: float) -> None:
        """Something in a lane is due: the flush that follows takes it."""

    @property
    def between_turns(self) -> bool:
        """Whether it reads nothing for no other reason than that others have their turn."""
        return self._receive_path.reasons == {"turn"}

    @property
    def _handles(self) -> bool:
        """Whether what has come is still handled; also for a client that has gone meanwhile."""
        return not (self._send_path.over if self._left else self._send_path.shut)

    def _next_turn(self, now: float) -> None:
        """The other connections have had their turn."""
        self._frames_left = FRAMES_PER_TURN
        self._receive_path.unblock("turn")

    # the receive path

    def _read(self, frames: Frames, now: float) -> None:
        """Handle frames one by one, as long as nothing says stop."""
        for frame, size in frames:
            self.received_bytes += size
            self._incoming(frame, size, now)
            if self._send_path.over:
                return
            self._frames_left -= 1
            if self._frames_left <= 0:
                self._receive_path.block("turn")
                self._turn.set(now)
            if self._receive_path.blocked:
                self._receive_path.waiting.appendleft(frames)
                return
        if self.codec.partial:
            self.fired(self.pipe.moment(Moment.PARTIAL, now), now)
            if not self._send_path.over:
                self.session.unfinished(self.codec.partial, now)

    def _read_on(self, now: float) -> None:
        """Handle what waited for a block to end."""
        path = self._receive_path
        while path.waiting and self._handles and not path.blocked:
            self._read(path.waiting.popleft(), now)

    def _incoming(self, frame: Frame, size: int, now: float) -> None:
        fired = None
        if self._recognise is not None and not self.peer and (peer := self._recognise(frame)):
            self.identify(peer)
        if not self.pipe.untouched("in", frame, now):
            self._size_in = size
            fired = self.pipe.push("in", frame, size, now)
        if fired is None:
            self.journal.add(now, self.name, Tap.IN, frame, size)
            self.session.handle(frame, now)
            return
        self.journal.add(now, self.name, Tap.RECEIVED, frame, size, fired)
        self._drain_in(now)
        self._send_path.drain(now)
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
        if not self._send_path.over:
            self.journal.add(now, self.name, Tap.HEARD, frame, size, fault)
            self.session.handle(frame, now)

    # the end of a step

    def flush(self, now: float) -> None:
        """Hand everything that is due to the transport, in one write; end it if that is due."""
        self.dirty = False
        if not self.alive:
            self._send_path.forget()
            return
        if not self._is_free():
            self._drain_in(now)
            self._read_on(now)
            self._send_path.drain(now)
            self._watch_lanes(now)
        if self._left and not self.between_turns:
            self.lost(now, self._left)
            return
        if self._input_end_waits:
            self._pass_input_end(now)
        self._send_path.write()
        ended = self._send_path.ended
        if ended is not None:
            self.transport.hang_up(ended)
            self.lost(now, f"{ended.value} by broker")

    def _is_free(self) -> bool:
        """Whether nothing waits anywhere, so that a flush has only to write."""
        path, lanes = self._receive_path, self.pipe.lanes
        return (
            not (path.blocked or path.waiting or self._lane_full) and lanes["in"].idle and lanes["out"].idle
        )

    def _pass_input_end(self, now: float) -> None:
        """Tell the session that the client sends nothing more, once nothing waits that it sent before."""
        if not (self._receive_path.waiting or self._send_path.over) and self.pipe.lanes["in"].idle:
            self._input_end_waits = False
            self.session.input_ended(now)

    def end_now(self, how: HangUp, now: float) -> None:
        """Cut the connection past the pipe (crash, kill by a test)."""
        if self.alive and not self._send_path.gone:
            self._send_path.end(how, "", now)
            self._request_flush()

    # back pressure

    def _watch_lanes(self, now: float) -> None:
        """Stop reading while faults hold back too much, whichever way it goes."""
        lanes = self.pipe.lanes
        if lanes["in"].size > IN_LANE_LIMIT:
            self._receive_path.block("lane in")
        else:
            self._receive_path.unblock("lane in")
        if lanes["out"].size > OUT_LANE_LIMIT:
            self._lane_full = True
            self._receive_path.block("lane out")
        elif self._lane_full and lanes["out"].size <= OUT_LANE_LIMIT // 2:
            self._lane_full = False
            self._receive_path.unblock("lane out")
            if self.writable:
                self.session.writable(now)

    def _read_again(self) -> None:
        if self.alive and not self._send_path.gone:
            self.transport.resume_reading()
            self._request_flush()

    def _request_flush(self) -> None:
        self._owner.wake(self)
