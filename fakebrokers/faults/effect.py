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

from fakebrokers.frames import Frame
from fakebrokers.session import HangUp


class Realism(StrEnum):
    """Who could cause it in real life, and so what the client owes."""

    LEGAL = "legal"  #: the specification allows it: the client must go on
    ENVIRONMENT = "environment"  #: network or crash: the client must recover
    ILLEGAL = "illegal"  #: a broker's bug: the client must notice and fail cleanly


class Passage(Protocol):
    """One frame on its way through the pipe, or one moment (then `frame` is None)."""

    frame: Frame | None
    direction: str
    now: float
    random: Random
    memory: dict[str, Any]

    @property
    def fault(self) -> str:
        """Name of the fault at work."""

    @property
    def connection(self) -> str:
        """Name of the connection."""

    def pass_on(self, frame: Frame, delay: float = 0.0) -> None:
        """Let a frame go on; with a delay (seconds) the ones behind may overtake it."""

    def pass_raw(self, data: Any, delay: float = 0.0) -> None:
        """Let a raw unit go on instead of a frame."""

    def pass_pieces(self, pieces: Sequence[bytes], gap_s: float) -> None:
        """Write the bytes piece by piece, `gap_s` seconds apart; everything behind waits."""

    def push_back(self, seconds: float) -> None:
        """What follows, this frame included, leaves no earlier than in so many seconds; order stays."""

    def hold_lane(self, seconds: float | None = None) -> None:
        """This direction stands still for so many seconds, or until the fault is released."""

    def park(self, frame: Frame, seconds: float | None = None) -> None:
        """Keep a frame back until the fault is released, or so many seconds; others pass."""

    def unpark(self) -> list[Frame]:
        """Take back the parked frames of this fault, in the order in which they came."""

    def gather(self, frames: int, seconds: float) -> None:
        """Collect the next `frames` frames of this direction, this one included, into one write."""

    def silence(self, spare: Sequence[str], seconds: float | None) -> None:
        """Swallow everything that is said from here on but the roles in `spare`."""

    def answer(self, frame: Frame) -> None:
        """Say a frame to the client that the broker did not say; no fault touches it."""

    def say_raw(self, data: Any) -> None:
        """Say a raw unit to the client; no fault touches it."""

    def build(self, kind: str, fields: Mapping[str, Any]) -> Frame:
        """A frame of that kind from plain values. `PlanError` if they do not fit."""

    def forget(self) -> None:
        """Pass nothing on, not even what effects before this one passed on."""

    def mend(self, data: Any) -> Any:
        """The unit with its size field and checksum made right."""

    def push_back_more(self, seconds: float) -> None:
        """What follows leaves so many seconds later than what is in line."""

    def refusal(self, code: int) -> Frame | None:
        """The protocol's answer to the frame at hand with this error code, if it has one."""

    def encode(self, frame: Frame) -> Any:
        """The frame's unit on the wire."""

    def hang_up(self, how: HangUp) -> None:
        """End the connection behind everything that was passed on."""

    def stop_reading(self, seconds: float | None) -> None:
        """Read nothing more from this client; None until the fault is released."""

    def host(self, action: str, **arguments: Any) -> None:
        """Do something to the whole fake, see `Host`."""


class Effect(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", forbid_unknown_fields=True):
    """Base of all effects.

    Attributes:
        needs_frame: Whether it makes no sense at a moment (``on = ...``).
        needs_bytes: Whether it works on a byte stream only, not on a wire that a library owns.
        last: Whether it comes behind all others of its fault, and only once (an end of the connection).
        direction: The only direction in which it makes sense, or "" for both.
        realism: What it is unless the plan says otherwise.
    """

    needs_frame: ClassVar[bool] = True
    needs_bytes: ClassVar[bool] = False
    last: ClassVar[bool] = False
    direction: ClassVar[str] = ""
    realism: ClassVar[Realism] = Realism.ENVIRONMENT

    def apply(self, passage: Passage) -> None:
        """Do it. A frame that is not passed on is lost."""
        raise NotImplementedError

    def check(self, path: str) -> None:
        """Raise `PlanError` where the settings make no sense."""
