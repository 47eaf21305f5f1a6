"""What faults and tests do to a fake as a whole. Keeps no state of its own."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from fakebrokers.core.action import Action
from fakebrokers.core.engine import Engine
from fakebrokers.core.listeners import Listeners
from fakebrokers.core.session import HangUp


@runtime_checkable
class Performing(Protocol):
    """An `Action` that can be carried out.

    A protocol's own actions narrow the type of `Host.server` to their server class.
    """

    def perform(self, host: Host, fault: str, connection: str) -> None:
        """Do it, because of the fault of that name at that connection."""


class Host:
    """An engine with its listeners; all methods on the fake's own thread.

    Implements `action.Fake` and `engine.Whole`.

    Attributes:
        server: The fake's public face, for the actions that only its protocol has.
    """

    def __init__(self, engine: Engine, listeners: Listeners, server: Any) -> None:
        self.engine = engine
        self.listeners = listeners
        self.server = server
        engine.host = self

    def refuse(self, for_s: float | None, fault: str) -> None:
        """Refuse new connections for `for_s` seconds; None until `release`."""
        self.listeners.refuse(fault, for_s)
        self._note("refusing", fault)

    def black_hole(self, for_s: float | None, fault: str) -> None:
        """Let new connects hang for `for_s` seconds; None until `release`."""
        self.listeners.black_hole(fault, for_s)
        self._note("black hole", fault)

    def close_listeners(self, restart_s: float | None, fault: str) -> None:
        """Refuse new connections because the broker died."""
        self.listeners.refuse(fault, restart_s, after_step=True)

    def die(self, how: HangUp, restart_s: float | None, keep_state: bool, fault: str, last: str) -> None:
        """End all connections, and accept none for `restart_s` seconds.

        Args:
            last: The connection that ends after the frame that the fault took place at; "" for none.
        """
        self.close_listeners(restart_s, fault)
        self.engine.crash(how, keep_state, self.engine.now, ends_itself=last)

    def shift_clock(self, seconds: float, fault: str) -> None:
        """The wall clock jumps, until the fault is over if it has an end."""
        self.engine.shift_clock(seconds, fault)
        self.engine.until_over(fault, lambda: self.engine.shift_clock(-seconds, fault))

    def release(self, fault: str) -> None:
        """Undo what a fault did to the listeners."""
        self.listeners.open(fault)

    def perform(self, action: Action, fault: str, connection: str) -> None:
        """Do what a fault wants at that connection; "" for none."""
        if not isinstance(action, Performing):
            raise NotImplementedError(f"{type(action).__name__} has no perform(host, fault, connection)")
        action.perform(self, fault, connection)

    def _note(self, what: str, fault: str) -> None:
        self.engine.journal.state(self.engine.now, "", what, "", fault)
