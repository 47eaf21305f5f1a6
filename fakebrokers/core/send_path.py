"""The send path of one connection: what the broker says, through the faults, to the transport."""

from __future__ import annotations

from typing import Any, Protocol

from fakebrokers.core.frames import Frame, kind_of
from fakebrokers.core.pauses import Pauses, Reason
from fakebrokers.core.session import Codec, HangUp
from fakebrokers.core.states import Event, Life
from fakebrokers.faults.parcel import Parcel, unit_size
from fakebrokers.faults.pipe import Pipe
from fakebrokers.journal import Journal, Tap
from fakebrokers.journal.record import State

#: Bytes that a step may collect before they are written; bounds what one read can set off.
WRITE_AT = 32 * 1024
_NO_LIMIT = 1 << 62
_OUT = Tap.OUT  # of each frame: on Python 3.11 reading it from the class is slow


class Transport(Protocol):
    """What carries the units of one connection: a socket, or memory."""

    def write(self, units: list[Any]) -> None:
        """Send these units, in order, in as few writes as possible."""

    def hang_up(self, how: HangUp) -> None:
        """End it after what was written."""

    def end_output(self) -> None:
        """Send FIN after what was written, and read on."""

    def stop_reading(self) -> None:
        """Let the client's bytes pile up."""

    def resume_reading(self) -> None:
        """Read on."""


class SendPath:
    """Collects the units of a step, and writes them in as few pieces as possible.

    Args:
        write_after: See `Wire`.

    Attributes:
        ended: How the connection was ended on this side; the transport is to be notified.
        said_bytes: Of all that the broker said.
        sent_bytes: Of all that left.
    """

    def __init__(
        self,
        name: str,
        life: Life,
        codec: Codec,
        pipe: Pipe,
        pauses: Pauses,
        journal: Journal,
        transport: Transport,
        write_after: int = 0,
    ) -> None:
        self.ended: HangUp | None = None
        self.said_bytes = 0
        self.sent_bytes = 0
        self._name = name
        self._life = life
        self._codec = codec
        self._pipe = pipe
        self._pauses = pauses
        self._journal = journal
        self._transport = transport
        self._units: list[Any] = []
        self._size = 0
        self._write_after = write_after or _NO_LIMIT

    def say(self, frame: Frame, now: float) -> None:
        """The broker means to send a frame."""
        unit = self._codec.encode(frame)
        size = len(unit) if type(unit) is bytes else unit_size(unit)
        if not self._life.sends:
            self._journal.add(now, self._name, Tap.SAID, frame, size)
            return
        fired = None
        if not self._pipe.untouched("out", frame, now):
            fired = self._pipe.push("out", frame, size, now, unit)
        self.said_bytes += size
        if fired is None:
            self.sent_bytes += size
            self._units.append(unit)
            self._size += size
            self._journal.add(now, self._name, _OUT, frame, size)
            if self._size > WRITE_AT or len(self._units) >= self._write_after:
                self.write()
        else:
            self._journal.add(now, self._name, Tap.SAID, frame, size, fired)
            self.drain(now)

    def put(self, parcel: Parcel, now: float) -> None:
        """Send something on its way, past all rules, after what waits."""
        self._pipe.put("out", parcel, now)
        self.drain(now)

    def drain(self, now: float) -> None:
        """Take what is due from the lane."""
        for parcel in self._pipe.lanes["out"].take(now):
            if not self._life.held_leaves:
                return
            if parcel.half:
                self._finish(now)
            elif parcel.end is not None:
                self.end(parcel.end, parcel.fault, now)
                return
            else:
                self._put_out(parcel, now)

    def _finish(self, now: float) -> None:
        """End our direction, after what has left."""
        self._life.on(Event.FIN_SENT)
        self._journal.state(now, self._name, State.HALF_CLOSED, "by broker")
        self.write()
        self._transport.end_output()

    def _put_out(self, parcel: Parcel, now: float) -> None:
        """A unit leaves, after all faults."""
        self.sent_bytes += parcel.size
        if parcel.alone:
            self.write()
            self._transport.write([parcel.raw])
        else:
            self._units.append(parcel.raw)
            self._size += parcel.size
        if parcel.frame is not None and parcel.complete:
            size = parcel.total or parcel.size
            self._journal.add(now, self._name, Tap.SENT, parcel.frame, size, parcel.fault)
        elif not parcel.alone:
            what = f" in place of {kind_of(parcel.frame)}" if parcel.frame is not None else ""
            self._journal.state(now, self._name, "bytes", f"{parcel.size} B{what}", parcel.fault)

    def end(self, how: HangUp, fault: str, now: float) -> None:
        """End the connection at once, after what has left."""
        self._journal.state(now, self._name, how.value, "", fault)
        if how is HangUp.HALF_OPEN:
            self._life.on(Event.VANISH)
            self._pauses.block(Reason.HALF_OPEN)
            self.write()
            return
        self._life.on(Event.END)
        self.ended = how

    def write(self) -> None:
        """Hand what was collected to the transport."""
        if self._units:
            units, self._units = self._units, []
            self._size = 0
            self._transport.write(units)

    def forget(self) -> None:
        """Nobody is there to get what was collected."""
        self._units.clear()
        self._size = 0
