"""The receive path of one connection: what the client says, through the faults, to the session."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from fakebrokers.core.frames import Frame
from fakebrokers.core.pauses import Pauses, Reason
from fakebrokers.core.session import Codec, Session
from fakebrokers.core.states import Life
from fakebrokers.core.timers import Timer
from fakebrokers.faults.match import Moment
from fakebrokers.faults.parcel import Parcel
from fakebrokers.faults.pipe import Pipe
from fakebrokers.journal import Journal, Tap

#: Frames of one connection that are handled before the other connections get their turn.
FRAMES_PER_TURN = 250
_IN = Tap.IN  # of each frame: on Python 3.11 reading it from the class is slow

#: Frames with their sizes, as a codec yields them.
Frames = Iterator[tuple[Frame, int]]
#: Tells by a client's frame who the client is; None or "" where that frame does not say.
Recognise = Callable[[Frame], str | None]


class End(Protocol):
    """What the path needs of its connection."""

    name: str
    peer: str
    codec: Codec

    def identify(self, peer: str) -> None:
        """Tell who is at the other end."""

    def fired(self, faults: str, now: float) -> None:
        """Note the faults that a moment set off."""

    def drain_output(self, now: float) -> None:
        """Faults may have put something on its way to the client."""

    def timer(self, act: Callable[[float], None]) -> Timer:
        """A timer that ends with the connection."""


class ReceivePath:
    """Hands the session frame after frame, as long as nothing says stop.

    Args:
        recognise: See `Recognise`; None where the protocol says itself who the client is.

    Attributes:
        waiting: Frames of units that came during a pause; none of them may be handled before those in front.
        received_bytes: Of all frames that were read.
    """

    def __init__(
        self,
        end: End,
        session: Session,
        life: Life,
        pipe: Pipe,
        pauses: Pauses,
        journal: Journal,
        recognise: Recognise | None,
    ) -> None:
        self.waiting: deque[Frames] = deque()
        self.received_bytes = 0
        self._end = end
        self._name = end.name
        self._session = session
        self._life = life
        self._pipe = pipe
        self._lane = pipe.lanes["in"]
        self._pauses = pauses
        self._journal = journal
        self._recognise = recognise
        self._turn: Timer | None = None
        self._frames_left = FRAMES_PER_TURN
        self._size = 0  #: of the frame that is being received

    @property
    def offset(self) -> int:
        """Bytes before the frame at hand."""
        return self.received_bytes - self._size

    @property
    def idle(self) -> bool:
        """Whether everything that came has been handled."""
        return not self.waiting and self._lane.idle

    def receive(self, unit: Any, now: float) -> None:
        """A unit came from the client."""
        self._frames_left = FRAMES_PER_TURN
        frames = iter(self._end.codec.feed(unit))
        if self._pauses.blocked or self.waiting:
            self.waiting.append(frames)
        else:
            self._read(frames, now)

    def read_on(self, now: float) -> None:
        """Handle what is late and due, and what waited for a pause to end."""
        self._drain(now)
        while self.waiting and self._life.hears and not self._pauses.blocked:
            self._read(self.waiting.popleft(), now)

    def finish(self, now: float) -> None:
        """The client has gone: hear what it sent before and is only late; forget the rest."""
        if self._life.hears:
            for parcel in self._lane.rest():
                self._arrive(parcel, now)
        self.waiting.clear()

    def _next_turn(self, now: float) -> None:
        """The other connections have had their turn."""
        self._frames_left = FRAMES_PER_TURN
        self._pauses.unblock(Reason.TURN)

    def _read(self, frames: Frames, now: float) -> None:
        """Handle frames one by one, as long as nothing says stop."""
        life, pauses = self._life, self._pauses
        for frame, size in frames:
            self.received_bytes += size
            self._incoming(frame, size, now)
            if not life.hears:
                return
            self._frames_left -= 1
            if self._frames_left <= 0:
                pauses.block(Reason.TURN)
                self._turn = self._turn or self._end.timer(self._next_turn)
                self._turn.set(now)
            if pauses.blocked:
                self.waiting.appendleft(frames)
                return
        partial = self._end.codec.partial
        if partial:
            self._end.fired(self._pipe.moment(Moment.PARTIAL, now), now)
            if self._life.hears:
                self._session.unfinished(partial, now)

    def _incoming(self, frame: Frame, size: int, now: float) -> None:
        fired = None
        if self._recognise is not None and not self._end.peer and (peer := self._recognise(frame)):
            self._end.identify(peer)
        if not self._pipe.untouched("in", frame, now):
            self._size = size
            fired = self._pipe.push("in", frame, size, now)
        if fired is None:
            self._journal.add(now, self._name, _IN, frame, size)
            self._session.handle(frame, now)
            return
        self._journal.add(now, self._name, Tap.RECEIVED, frame, size, fired)
        self._drain(now)
        self._end.drain_output(now)

    def _drain(self, now: float) -> None:
        for parcel in self._lane.take(now):
            self._arrive(parcel, now)

    def _arrive(self, parcel: Parcel, now: float) -> None:
        """A frame reaches the session, after all faults."""
        if parcel.raw is not None:
            for frame, size in self._end.codec.fresh().feed(parcel.raw):
                self._hear(frame, size, parcel.fault, now)
        elif parcel.frame is not None:
            self._hear(parcel.frame, parcel.size, parcel.fault, now)

    def _hear(self, frame: Frame, size: int, fault: str, now: float) -> None:
        if self._life.hears:
            self._journal.add(now, self._name, Tap.HEARD, frame, size, fault)
            self._session.handle(frame, now)
