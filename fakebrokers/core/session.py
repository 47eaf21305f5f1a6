"""What a protocol has to supply: a `Codec`, a `Session` and a `Broker`; none of them does any IO.

    connection.receive(unit, now) -> codec.feed -> faults in -> session.handle(frame, now)
    transport.write(units)        <- codec.encode <- faults out <- link.say(frame)

Time is an argument everywhere: `now` is monotonic seconds, as a float, from whoever drives the core.
A *unit* is what the wire moves at once: `bytes` for TCP; where a library owns the wire, a tuple of
message parts (ZeroMQ), or a request or message object (HTTP, WebSocket).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar, Protocol

from fakebrokers.core.frames import Frame
from fakebrokers.core.timers import Timer, Timers
from fakebrokers.errors import UsageError, instead_of


class Codec(ABC):
    """Units to frames and back, one object per connection."""

    @abstractmethod
    def feed(self, unit: Any) -> Iterable[tuple[Frame, int]]:
        """Take in one unit; yield each complete frame with its size in bytes on the wire.

        Never raises on foreign bytes: what cannot be read comes out as `Malformed`.

        While a connection may not be read (back pressure, a fault) further units are fed all the same, and
        what was returned is iterated over later: each to its end, in the order in which they were fed. What
        a unit means may depend on the frames before it (an upgrade, say), so look at the codec's state when
        iterated over, not when called.
        """

    @abstractmethod
    def encode(self, frame: Frame) -> Any:
        """The unit of one frame."""

    def fresh(self) -> Codec:
        """A codec of the same settings with nothing in its buffer (for units that a fault rewrote)."""
        return type(self)()

    def mend(self, unit: Any) -> Any:
        """The unit with its size field and checksum made right; as it is where the protocol has none."""
        return unit

    @property
    def partial(self) -> int:
        """Bytes of a frame that has not arrived whole."""
        return 0


class HangUp(StrEnum):
    """How a connection ends on the broker's side."""

    FIN = "fin"  #: orderly TCP end, after everything that was said, what faults hold back too
    RST = "rst"  #: reset: SO_LINGER 0
    HALF_OPEN = "half-open"  #: neither reads nor writes any more, and tells nobody


def hang_up_named(how: HangUp | str) -> HangUp:
    """The way to end a connection of that name.

    Raises:
        UsageError: There is none; with those there are.
    """
    try:
        return HangUp(how)
    except ValueError:
        instead = instead_of(str(how), map(str, HangUp))
        raise UsageError(f"a connection cannot end with {how!r}{instead}") from None


class Link(Protocol):
    """What a session may do to its own connection (implemented by `Connection`)."""

    name: str
    address: str

    def identify(self, peer: str) -> None:
        """Tell who is at the other end (a node id); faults and journal can go by it from here on."""

    def say(self, frame: Frame) -> None:
        """Send a frame; it passes the fault pipe first."""

    def hang_up(self, how: HangUp = HangUp.FIN) -> None:
        """End the connection after everything that was said; from now on nothing is said or heard."""

    def end_output(self) -> None:
        """Send FIN after everything that was said, and read on. Nothing can be said after that."""

    def ready(self) -> None:
        """Tell that the client is set up (handshake done): the moment ``ready`` of fault plans."""

    def stop_reading(self) -> None:
        """Apply back pressure to the client (flow control of the broker)."""

    def resume_reading(self) -> None:
        """Undo `stop_reading`."""

    def session_timer(self, act: Callable[[float], None]) -> Timer:
        """A timer that ends with the connection; `act` is not called once nothing is sent any more."""

    @property
    def writable(self) -> bool:
        """False while the client does not read fast enough; push nothing then."""


class Session(ABC):
    """One connection's state machine. `link` is set before `opened` is called.

    Attributes:
        silence_limit_s: Silence of the broker after which the client has to give up, once the client is set
            up; inf if none was agreed on, None where the protocol knows no such thing.
        half_closes: Whether the connection goes on when the client has sent FIN (`input_ended`); else it
            ends with it.
    """

    link: Link
    state: str = "new"
    silence_limit_s: float | None = None
    half_closes: ClassVar[bool] = False

    def opened(self, now: float) -> None:  # noqa: B027 - optional hook
        """The connection was accepted."""

    @abstractmethod
    def handle(self, frame: Frame, now: float) -> None:
        """A frame came out of the incoming fault pipe; `Malformed` included."""

    def unfinished(self, size: int, now: float) -> None:  # noqa: B027 - optional hook
        """A unit ended in the middle of a frame, `size` bytes of it have arrived."""

    def writable(self, now: float) -> None:  # noqa: B027 - optional hook
        """The client reads again: push what was kept back."""

    def input_ended(self, now: float) -> None:  # noqa: B027 - optional hook
        """The client sends nothing more, and may still read. Only with `half_closes`."""

    def closed(self, now: float) -> None:  # noqa: B027 - optional hook
        """The connection is gone, for whatever reason. Called exactly once."""

    def refusal(self, frame: Frame, code: int, now: float) -> Frame | None:
        """The answer to `frame` that carries the error `code`, or None if it has no answer."""
        return None

    def answers_on(self) -> Link:
        """The connection on which answers to this client leave, where that is another one."""
        return self.link

    def describe(self) -> dict[str, Any]:
        """What an inspector shows: state, user, publishers, ..."""
        return {"state": self.state}


class Broker(ABC):
    """What all connections share. Knows no frames."""

    @cached_property
    def timers(self) -> Timers:
        """All timers of this fake, those of its connections too."""
        return Timers()

    @abstractmethod
    def reset(self) -> None:
        """Forget everything: the state of a fresh start (a crash that lost its disk)."""

    def step_ended(self, now: float) -> None:  # noqa: B027 - optional hook
        """What one unit brought was handled: do what was put off until nothing more could come with it.

        Called often, also where nothing has happened.
        """

    def restarted(self, now: float) -> None:  # noqa: B027 - optional hook
        """The broker came back with its state: what a restart changes (epochs, in-flight marks)."""
