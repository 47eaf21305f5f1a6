"""What an onlooker between a fake and its clients is told: bytes as they pass, after all faults.

The journal speaks of frames; what a fault has cut, replaced or made up is "bytes" there. An onlooker gets all
of it as the client does, and hears who ended a connection first.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

End = Literal["client", "broker"]


class Watcher(Protocol):
    """Called on the fake's own loop, in the order in which things happen.

    Over a socket a client is handed what is written into it: when it reads that, nobody can tell. ZeroMQ
    keeps its connections to itself: there a ROUTER tells of each routing id, a DEALER of all peers as one.
    """

    def accepted(self, connection: str, socket: str = "") -> None:
        """A client has connected; `socket` says to which, where the fake has several that speak otherwise."""

    def written(self, connection: str, data: Any) -> None:
        """The client has written a unit: bytes, or the parts of a message."""

    def handed_over(self, connection: str, data: Any) -> None:
        """The client is given a unit, now."""

    def reads(self, connection: str, goes_on: bool) -> None:
        """The broker reads what this client writes no more, or again."""

    def ended(self, connection: str, by: End, how: str) -> None:
        """One side has ended the connection; `how` is a `HangUp` of the broker's side."""
