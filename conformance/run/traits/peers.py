"""What clients that speak to each other owe to others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from conformance.run.trace import Position

Args = Mapping[str, Any]


class Peers:
    """What clients that speak to each other owe to others.

    Attributes:
        rosters: The ops that return which others the client knows.
        sending: The ops that send something to others, so that it can be said what and to whom.
    """

    rosters: ClassVar[tuple[str, ...]] = ()
    sending: ClassVar[tuple[str, ...]] = ()

    def neglected(self, case: Any) -> str:
        """Who of several that can answer was never asked, though there was reason to; "" if nobody was."""
        return ""

    def wrong_sending(self, case: Any, done: Any) -> str:
        """What is wrong with what the client has sent for an op of `sending`; "" if nothing is."""
        return ""

    def offered(self, case: Any) -> Sequence[tuple[Position, Any]]:
        """What the application offers to others: from which moment on, and what; as `Announced.what`."""
        return []

    def streamed(self, args: Args, result: Any) -> tuple[bytes | None, Args | None]:
        """The stream that an op was given, and the one that it returned, as a body in a report (a long one is
        reported by its digest, see `same_body`); None where there is none."""
        return None, None

    def breaks(self, args: Args) -> str:
        """The words of the error with which the source of an op's stream fails; "" if it does not."""
        return ""

    def wrong_roster(self, case: Any, reported: Args, begun: Position, ended: Position) -> str:
        """What is wrong with what a client reports of others that it knows, by an op of `rosters`."""
        return ""
