"""What faults and tests do to a fake as a whole. Keeps no state of its own."""

from __future__ import annotations

from typing import Any, Protocol

from fakebrokers.core.engine import Engine
from fakebrokers.core.listeners import Listeners


class Action(Protocol):
    """What a fault does to a fake as a whole."""

    def perform(self, host: Host, fault: str, connection: str) -> None:
        """Do it, because of the fault of that name at that connection."""


class Host:
    """An engine with its listeners; all methods on the fake's own thread.

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

    def release(self, fault: str) -> None:
        """Undo what a fault did to the listeners."""
        self.listeners.open(fault)

    def _note(self, what: str, fault: str) -> None:
        self.engine.journal.state(self.engine.now, "", what, "", fault)
