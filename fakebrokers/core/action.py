"""What is done to a fake as a whole, as a value."""

from __future__ import annotations

from typing import Protocol

import msgspec

from fakebrokers.core.session import HangUp


class Action(msgspec.Struct, frozen=True):
    """What an effect does to the fake; carried out where that runs, see `host.Performing`."""


class Fake(Protocol):
    """A fake as a whole, as far as faults of all protocols go, see `host.Host`."""

    def refuse(self, for_s: float | None, fault: str) -> None:
        """Refuse new connections for `for_s` seconds; None until the fault is released."""

    def black_hole(self, for_s: float | None, fault: str) -> None:
        """Let new connects hang for `for_s` seconds; None until the fault is released."""

    def die(self, how: HangUp, restart_s: float | None, keep_state: bool, fault: str, last: str) -> None:
        """End all connections, and accept none for `restart_s` seconds.

        Args:
            last: The connection that ends after the frame that the fault took place at; "" for none.
        """

    def shift_clock(self, seconds: float, fault: str) -> None:
        """The wall clock jumps, until the fault is over if it has an end."""
