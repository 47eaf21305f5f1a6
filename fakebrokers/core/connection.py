"""One connection: codec, fault pipe, session and journal taps joined together. No IO, no clock.

What it does when depends on where it is in its life: see `states`.

transport -> receive(unit, now) -> codec -> [faults in ] -> session
transport <- flush(now)         <- codec <- [faults out] <- say(frame)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from fakebrokers.core.action import Action
from fakebrokers.core.frames import Frame
from fakebrokers.core.pauses import Pauses, Reason
from fakebrokers.core.receive_path import ReceivePath, Recognise
from fakebrokers.core.send_path import SendPath, Transport
from fakebrokers.core.session import Codec, HangUp, Session
from fakebrokers.core.states import Event, Input, Life, Output
from fakebrokers.core.timers import Timer, Timers
from fakebrokers.core.wire import Wire
from fakebrokers.faults.injector import Injector
from fakebrokers.faults.match import Moment
from fakebrokers.faults.parcel import Parcel
from fakebrokers.faults.pipe import Pipe
from fakebrokers.journal import Journal
from fakebrokers.journal.record import State

#: Bytes that faults may hold back in each direction before nothing more is read.
IN_LANE_LIMIT = 1024 * 1024
OUT_LANE_LIMIT = 4 * 1024 * 1024
_OUTPUT_IS_FULL = frozenset({Reason.BUFFER, Reason.LANE_OUT})


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
    """Implements `session.Link` for its session and `faults.lanes.PipeEnd` for its pipe."""

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
        self.dirty = False  #: waits for a flush
        self.opened_at = owner.now
        self._life = Life()
        self._owner = owner
        self._timers: list[Timer] = []
        self.pipe = Pipe(injector, self, wire, owner.now)
        self._pauses = Pauses(transport.stop_reading, self._read_again, self.timer)
        self._receive_path = ReceivePath(
            self, session, self._life, self.pipe, self._pauses, journal, owner.recognise
        )
        self._send_path = SendPath(
            name, self._life, codec, self.pipe, self._pauses, journal, transport, wire.write_after
        )
        self._lost_how = ""  #: how the transport has gone
        session.link = self

    @property
    def alive(self) -> bool:
        """Whether the session has not been notified of an end yet."""
        return not self._life.closed

    @property
    def received_bytes(self) -> int:
        """Of all frames that were read."""
        return self._receive_path.received_bytes

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
        if not self._life.ignores:
            self.session.opened(now)
        self._request_flush()

    def receive(self, unit: Any, now: float) -> None:
        """A unit came from the client."""
        if self._life.acts:
            self._receive_path.receive(unit, now)

    def lost(self, now: float, how: str = "closed by client") -> None:
        """The transport is gone. Safe to call twice."""
        if self.alive:
            self._life.on(Event.LOST)
            self._lost_how = how
            if not self._handles_rest:
                self._close(how, now)

    @property
    def _handles_rest(self) -> bool:
        """Whether the client has gone and the turn comes again for what it sent before."""
        return self._life.input is Input.LEFT and self.between_turns

    def _close(self, how: str, now: float) -> None:
        """Tell the session that the connection has ended."""
        self._receive_path.finish(now)
        self._send_path.forget()
        self._life.on(Event.CLOSE)
        self.journal.state(now, self.name, State.CLOSED, how)
        for lane in self.pipe.lanes.values():
            lane.clear()
        for timer in self._timers:
            timer.drop()
        self._timers.clear()
        self.session.closed(now)

    def input_ended(self, now: float) -> None:
        """The client has sent FIN, and may still read; the session hears of it after what came before."""
        if self._life.acts:
            self._life.on(Event.CLIENT_FIN)
            self.journal.state(now, self.name, State.HALF_CLOSED, "by client")
            self._request_flush()

    def set_writable(self, writable: bool, now: float) -> None:
        """The transport's buffer is full (the client does not read), or has room again.

        While it is full nothing is read either, so that a client which asks but never reads
        cannot make the fake grow.
        """
        if writable:
            self._pauses.unblock(Reason.BUFFER)
            if self.writable:  # a library says so too where it never was full
                self.session.writable(now)
        else:
            self._pauses.block(Reason.BUFFER)

    # Link

    @property
    def writable(self) -> bool:
        """Whether the session may push more."""
        return self._life.acts and self._pauses.reasons.isdisjoint(_OUTPUT_IS_FULL)

    def say(self, frame: Frame) -> None:
        """The broker means to send a frame."""
        if self._life.ignores:
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
        self._life.on(Event.HANG_UP)
        if self._life.held_leaves:
            self._send_path.put(Parcel(end=how), self._owner.now)
            self._request_flush()

    def end_output(self) -> None:
        """FIN after everything that was said; the client may go on sending."""
        if self._life.on(Event.FINISH):
            self._send_path.put(Parcel(end=HangUp.FIN, half=True), self._owner.now)
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
        self._pauses.block(Reason.SESSION)

    def resume_reading(self) -> None:
        """Undo `stop_reading`."""
        self._pauses.unblock(Reason.SESSION)

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
        return self._receive_path.offset if direction == "in" else self._send_path.said_bytes

    def pause_for_fault(self, name: str, until: float) -> None:
        """Read nothing until then."""
        self._pauses.stall(name, until)

    def release(self, name: str, now: float) -> bool:
        """End what the fault `name` holds back here."""
        found = [self.pipe.release(name, now), self._pauses.release(name, now)]
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
            if self._life.acts:
                act(now)

        return self.timer(unless_shut)

    def drain(self, now: float) -> None:
        """Something in a lane is due: the flush that follows takes it."""

    def drain_output(self, now: float) -> None:
        """Let go what faults have put on its way to the client."""
        self._send_path.drain(now)
        self._request_flush()

    @property
    def between_turns(self) -> bool:
        """Whether it reads nothing for no other reason than that others have their turn."""
        return self._pauses.reasons == {Reason.TURN}

    # the end of a step

    def flush(self, now: float) -> None:
        """Hand everything that is due to the transport, in one write; end it if that is due."""
        self.dirty = False
        if self._pauses.blocked or self._receive_path.waiting or not self.pipe.idle:
            self._receive_path.read_on(now)
            self._send_path.drain(now)
            self._watch_lanes(now)
        if self._life.unsettled:
            self._settle(now)
        self._send_path.write()

    def _settle(self, now: float) -> None:
        """Tell session and transport of an end, where what came before it has been handled."""
        if self._life.input is Input.ENDING and self._receive_path.idle:
            self._life.on(Event.INPUT_END)
            self.session.input_ended(now)
        if self._life.output is Output.ENDED:
            how = self._send_path.ended
            assert how is not None
            self._send_path.write()
            self.transport.hang_up(how)
            if self.alive:  # a library may report the loss at once
                self._close(f"{how.value} by broker", now)
        elif self._life.output is Output.LOST and not self._handles_rest:
            self._close(self._lost_how, now)

    def end_now(self, how: HangUp, now: float) -> None:
        """Cut the connection past the pipe (crash, kill by a test)."""
        if not self._life.ended:
            self._send_path.end(how, "", now)
            self._request_flush()

    # back pressure

    def _watch_lanes(self, now: float) -> None:
        """Stop reading while faults hold back too much, whichever way it goes."""
        lanes = self.pipe.lanes
        if lanes["in"].size > IN_LANE_LIMIT:
            self._pauses.block(Reason.LANE_IN)
        else:
            self._pauses.unblock(Reason.LANE_IN)
        if lanes["out"].size > OUT_LANE_LIMIT:
            self._pauses.block(Reason.LANE_OUT)
        elif lanes["out"].size <= OUT_LANE_LIMIT // 2:
            self._unblock_output(Reason.LANE_OUT, now)

    def _unblock_output(self, reason: Reason, now: float) -> None:
        """There is room again for what the session wants to push."""
        if self._pauses.unblock(reason) and self.writable:
            self.session.writable(now)

    def _read_again(self) -> None:
        if not self._life.ended:
            self.transport.resume_reading()
            self._request_flush()

    def _request_flush(self) -> None:
        self._owner.wake(self)
