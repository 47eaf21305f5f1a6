"""What an effect is, and what it may do to the frame at hand.

An effect is a small frozen struct whose fields are its settings, with one method::

    class Drop(Effect, frozen=True, tag="drop"):
        def apply(self, passage):
            pass                        # nothing is passed on

It never keeps state in itself: one effect serves many connections. What has to be remembered goes
into ``passage.memory``, a dictionary per fault and connection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from random import Random
from typing import Any, ClassVar, Protocol

import msgspec

from fakebrokers.core.action import Action
from fakebrokers.core.frames import Frame, Role
from fakebrokers.core.session import HangUp
from fakebrokers.core.wire import Wire
from fakebrokers.errors import PlanError
from fakebrokers.faults.match import Match
from fakebrokers.faults.source import call

__all__ = ["MOST_TIMES", "Action", "Effect", "EffectOnFake", "Passage", "Realism"]

#: How often an effect may say a frame at once: a fake that says more does nothing else for seconds.
MOST_TIMES = 100_000


class Realism(StrEnum):
    """Who could cause it in real life, and so what the client owes."""

    LEGAL = "legal"  #: the specification allows it: the client must go on
    ENVIRONMENT = "environment"  #: network or crash: the client must recover
    ILLEGAL = "illegal"  #: a broker's bug: the client must notice and fail cleanly


class Passage(Protocol):
    """What an effect has at hand: one frame on its way through the pipe, or one moment of the connection."""

    direction: str
    now: float
    offset: int  #: where the frame's first byte stands in its direction's stream

    @property
    def frame(self) -> Frame | None:
        """The frame; None at a moment, and where an effect before this one made bytes of it."""

    @property
    def data(self) -> Any:
        """The unit on the wire, with what effects before this one did to it."""

    @property
    def size(self) -> int:
        """Bytes of `data`."""

    @property
    def role(self) -> Role | None:
        """The frame's role; None at a moment."""

    @property
    def fault(self) -> str:
        """Name of the fault at work."""

    @property
    def connection(self) -> str:
        """Name of the connection."""

    @property
    def random(self) -> Random:
        """The fault's own stream of random numbers."""

    @property
    def memory(self) -> dict[str, Any]:
        """What the fault remembers of this connection."""

    def pass_through(self, delay: float = 0.0) -> None:
        """Let what is at hand go on as it is; with a delay (seconds) what comes after it may overtake it."""

    def pass_on(self, frame: Frame, delay: float = 0.0) -> None:
        """Let this frame go on instead."""

    def pass_raw(self, data: Any, delay: float = 0.0) -> None:
        """Let a raw unit go on instead."""

    def pass_pieces(self, pieces: Sequence[bytes], gaps: Sequence[float]) -> None:
        """Let the bytes go on in writes of their own, `gaps` seconds after each; order stays."""

    def pass_slowly(self, seconds: float) -> None:
        """Let what is at hand go on, `seconds` after what is before it in line."""

    def push_back(self, seconds: float) -> None:
        """What is passed on after this call, and everything after it, waits `seconds`; order stays."""

    def forget(self) -> None:
        """Pass nothing on, not even what effects before this one passed on."""

    def hold_lane(self, seconds: float | None = None) -> None:
        """This direction is paused for `seconds`, or until the fault is released."""

    def park(self, frame: Frame, seconds: float | None = None) -> None:
        """Keep a frame back until the fault is released, or for `seconds`; others pass."""

    def unpark(self) -> list[Frame]:
        """Take back the parked frames of this fault, in the order in which they came."""

    def gather(self, frames: int | None, seconds: float) -> None:
        """Collect `frames` frames of this direction, this one included, into one write."""

    def silence(self, exempt: Sequence[str], seconds: float | None) -> None:
        """Drop everything that is said from here on but the roles in `exempt`."""

    def answer(self, frame: Frame) -> None:
        """Say a frame to the client that the broker did not say; no fault touches it."""

    def say_raw(self, data: Any) -> None:
        """Say a raw unit to the client; no fault touches it."""

    def hang_up(self, how: HangUp, delay: float = 0.0) -> None:
        """End the connection after everything that was passed on."""

    def stop_reading(self, seconds: float | None) -> None:
        """Read nothing more from this client; None until the fault is released."""

    def host(self, action: Action) -> None:
        """Do something to the fake as a whole."""

    def build(self, kind: str, fields: Mapping[str, Any]) -> Frame:
        """A frame of that kind from plain values. `PlanError` if they do not fit."""

    def refusal(self, code: int) -> Frame | None:
        """The protocol's answer to the frame at hand with this error code, if it has one."""

    def encode(self, frame: Frame) -> Any:
        """The frame's unit on the wire."""

    def mend(self, data: Any) -> Any:
        """The unit with its size field and checksum made right."""


class Effect(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="type",
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """Base of all effects.

    Attributes:
        needs_frame: Whether it makes no sense at a moment (``on = ...``).
        needs_bytes: Whether it works on a byte stream only, not on a wire that a library owns.
        takes_raw: Whether it can also act on what an effect before it has turned into bytes.
        once: Whether it acts once, not on each of the frames that rules before it made of one.
        last: Whether it comes after all others of its fault, once (an end of the connection).
        per_run: Whether ``nth`` and ``first`` count in the whole run unless the match says otherwise: after
            the end of a connection the client's next one would set it off again, without end.
        direction: The only direction in which it makes sense, or "" for both.
        needs_broker: Whether it acts on what a fake's broker keeps, which a proxy does not have.
        realism: What it is unless the plan says otherwise.
    """

    needs_frame: ClassVar[bool] = True
    needs_bytes: ClassVar[bool] = False
    takes_raw: ClassVar[bool] = False
    once: ClassVar[bool] = False
    last: ClassVar[bool] = False
    per_run: ClassVar[bool] = False
    direction: ClassVar[str] = ""
    needs_broker: ClassVar[bool] = False
    realism: ClassVar[Realism] = Realism.ENVIRONMENT

    def apply(self, passage: Passage) -> None:
        """Do it. A frame that is not passed on is lost."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return call(type(self).__name__, self)

    def check(self, path: str) -> None:
        """Raise `PlanError` where the settings make no sense."""

    def check_wire(self, wire: Wire, match: Match, path: str) -> None:
        """Raise `PlanError` where this wire, or the frames that match, cannot have it."""
        if self.needs_broker and not wire.brokered:
            problem = f'"{self.__struct_config__.tag}" acts on what a broker keeps, and here is only a proxy'
            raise PlanError(path, problem)
        if self.needs_bytes and not wire.stream:
            raise PlanError(
                path,
                f'"{self.__struct_config__.tag}" works on bytes, but a library owns this wire: '
                "put the byte proxy in front of it",
            )


class EffectOnFake(Effect, frozen=True):
    """Base of effects on the fake as a whole. At the moment ``begin`` they need no connection."""

    needs_frame = False
    once = True
    per_run = True

    def action(self) -> Action:
        """What it does."""
        raise NotImplementedError

    def apply(self, passage: Passage) -> None:
        passage.pass_through()
        passage.host(self.action())
