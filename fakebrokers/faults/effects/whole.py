"""Faults of the broker as a whole."""

from __future__ import annotations

from typing import Literal

from fakebrokers.core.action import Fake
from fakebrokers.core.session import HangUp
from fakebrokers.faults.effect import Action, EffectOnFake, Passage


class RefuseConnects(Action, frozen=True):
    """No listener for `for_s` seconds; None until the fault is released."""

    for_s: float | None

    def perform(self, host: Fake, fault: str, connection: str) -> None:
        host.refuse(self.for_s, fault)


class HangConnects(Action, frozen=True):
    """A full accept queue for `for_s` seconds; None until the fault is released."""

    for_s: float | None

    def perform(self, host: Fake, fault: str, connection: str) -> None:
        host.black_hole(self.for_s, fault)


class Die(Action, frozen=True):
    """The end of the process: of all connections, and of the listeners for `restart_s` seconds."""

    how: HangUp
    restart_s: float | None
    keep_state: bool

    def perform(self, host: Fake, fault: str, connection: str) -> None:
        host.die(self.how, self.restart_s, self.keep_state, fault, connection)


class SetClock(Action, frozen=True):
    """The wall clock jumps by `seconds`."""

    seconds: float

    def perform(self, host: Fake, fault: str, connection: str) -> None:
        host.shift_clock(self.seconds, fault)


class Refuse(EffectOnFake, frozen=True, tag="refuse"):
    """No listener: new connections are refused. Those that are open go on.

    Attributes:
        for_s: For how many seconds; None until the fault is released.
    """

    for_s: float | None = None

    def action(self) -> Action:
        return RefuseConnects(self.for_s)


class BlackHole(EffectOnFake, frozen=True, tag="black-hole"):
    """New connects hang: the accept queue is full. Those that are open go on.

    Attributes:
        for_s: For how many seconds; None until the fault is released.
    """

    for_s: float | None = None

    def action(self) -> Action:
        return HangConnects(self.for_s)


class Crash(EffectOnFake, frozen=True, tag="crash"):
    """The broker crashes: all connections end, nothing listens.

    Attributes:
        how: What the clients see.
        restart_s: After how many seconds it comes back; None stays down.
        keep_state: Whether it comes back with what it had stored.
        pass_frame: Whether the frame that matched is still handled (or sent).
    """

    last = True
    how: Literal["rst", "fin"] = "rst"
    restart_s: float | None = 0.0
    keep_state: bool = True
    pass_frame: bool = False

    def apply(self, passage: Passage) -> None:
        if not self.pass_frame:
            passage.forget()
        passage.hang_up(HangUp(self.how))
        passage.host(self.action())

    def action(self) -> Action:
        return Die(HangUp(self.how), self.restart_s, self.keep_state)


class ShiftClock(EffectOnFake, frozen=True, tag="shift-clock"):
    """The wall clock that the broker reports jumps.

    Attributes:
        seconds: By how much, forwards or (negative) backwards.
    """

    seconds: float

    def action(self) -> Action:
        return SetClock(self.seconds)
