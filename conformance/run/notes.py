"""What a script did that no frame shows, so that rules know it: typed, and empty at the beginning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class Notes(msgspec.Struct, kw_only=True):
    """What the base script, the workload or the harness says of a run.

    Attributes:
        sessions: How many the application has.
        crowd: How many sessions lose their connections at the same moment, so that they should not come back
            together; 0: none.
        reconnects: Whether the session was ordered to connect again by itself; None: nothing was ordered.
        without_connection: The script got no session at all.
        raises: Callbacks of the application raise errors.
        abandons: Ops are cancelled, or their session is aborted.
        fits: Of ops, by their number in the run: whether what they send fits the limit.
        oversized: Some ops ask for what cannot be sent.
        early: A stream ends before all of it has come, because the application wants no more.
        unread: From when to when, seconds, the application reads nothing of a stream.
        forgets: The broker may have lost what it had stored.
        lies: The broker was made to say what is not so.
        silent: A peer does not answer.
        stopped: The client's process or the broker stood still.
        unreachable: The broker was away for a while.
        partly_unreachable: Of several brokers one cannot be reached for a while, and the others can.
        unheard: A frame by which the client asked for messages was lost.
    """

    sessions: int = 1
    crowd: int = 0
    reconnects: bool | None = None
    without_connection: bool = False
    raises: bool = False
    abandons: bool = False
    fits: list[tuple[int, bool]] = []
    oversized: bool = False
    early: bool = False
    unread: tuple[float, float] = (0.0, 0.0)
    forgets: bool = False
    lies: bool = False
    silent: bool = False
    stopped: bool = False
    unreachable: bool = False
    partly_unreachable: bool = False
    unheard: bool = False

    def order_reconnect(self, options: Mapping[str, Any], *, can: bool) -> dict[str, Any]:
        """The options of a connect that orders the session to connect again by itself, or not to.

        A client that can is asked for it: by default a library may do it for producers alone. The first
        order counts.
        """
        ordered = {"auto_reconnect": True, **options} if can else dict(options)
        if self.reconnects is None:
            self.reconnects = can and bool(ordered.get("auto_reconnect"))
        return ordered

    @property
    def has_several_sessions(self) -> bool:
        """Whether the application has more than one session."""
        return self.sessions > 1
