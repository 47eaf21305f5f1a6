"""What an onlooker gets of a client while it runs: ops when they are sent, its lines when they come."""

from __future__ import annotations

from typing import Protocol

from conformance.clients.adapter.call import Call


class Onlooker(Protocol):
    """Called in the order in which things happen; `wrote` on any thread."""

    def begun(self, call: Call, deadline_s: float) -> None:
        """An op is about to be sent; by then the client has to have ended it."""

    def stopped(self, seconds: float) -> None:
        """The client's process was kept from running for that time."""

    def wrote(self, what: int | str, n: int) -> None:
        """The client has written line `n`: the answer to the op with this id, or the event of this name."""
