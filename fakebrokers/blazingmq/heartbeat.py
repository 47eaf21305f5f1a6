"""Heartbeats (docs/protocols/blazingmq.md, 8): only a silent client is asked for a sign of life."""

from __future__ import annotations

from enum import Enum


class Due(Enum):
    """What a look demands."""

    NOTHING = 0
    ASK = 1  #: the client for a sign of life
    DROP = 2  #: the connection


class Heartbeats:
    """Looks once per interval whether any event came.

    Args:
        interval_s: Seconds.
        max_missed: Silent intervals after which the next one ends the connection; 0: none ever does.
        always: Ask at every look.
        grace_s: Silence that costs a client nothing as long as it has said nothing, seconds.
    """

    def __init__(
        self, interval_s: float, max_missed: int, *, always: bool = False, grace_s: float = 0.0
    ) -> None:
        self.interval_s = interval_s
        self._max_missed = max_missed
        self._always = always
        self._heard = False
        self._missed = -int(grace_s / interval_s)

    def heard(self) -> None:
        """Any event came."""
        self._heard = True

    def look(self) -> Due:
        """What to do, after what came since the last look."""
        if self._heard:
            self._heard = False
            self._missed = 0
            return Due.ASK if self._always else Due.NOTHING
        if self._max_missed and self._missed == self._max_missed:
            return Due.DROP
        self._missed += 1
        return Due.ASK
