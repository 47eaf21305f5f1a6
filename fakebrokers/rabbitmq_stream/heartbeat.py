"""Heartbeats in both directions (docs/protocols/rabbitmq-stream.md, 5 "Heartbeats").

The server checks twice per interval T whether it has sent anything, and sends a Heartbeat if not; so an idle
connection gets one at T/2 and then every T. It checks once per interval whether anything was received, and
hangs up at the second check without: a client that falls silent right after Open is dropped at 3 T.
"""

from __future__ import annotations

from enum import Enum


class Due(Enum):
    """What a check demands."""

    NOTHING = 0
    SEND = 1  #: a Heartbeat
    DROP = 2  #: the connection


class Heartbeats:
    """The timers of one connection; `interval` in seconds."""

    def __init__(self, interval: float, now: float) -> None:
        self._interval = interval
        self._send_check = now + interval / 2
        self._receive_check = now + interval
        self._sent = False
        self._received = True  # what made the connection open
        self._silent_checks = 0
        self._paused = False

    def sent(self) -> None:
        """Note that the server has sent a frame, of any kind."""
        self._sent = True

    def received(self) -> None:
        """Note that bytes have come from the client: any traffic counts, also a part of a frame."""
        self._received = True

    def pause(self, paused: bool) -> None:
        """Do not expect anything while the server itself does not read."""
        self._paused = paused
        self._received = True

    @property
    def next_look(self) -> float:
        """When `check` has to be called next."""
        return min(self._send_check, self._receive_check)

    def check(self, now: float) -> Due:
        """What to do at `now`, after what was sent and received since the last check."""
        if self._receive_check <= now and self._client_is_gone(now):
            return Due.DROP
        if self._send_check > now:
            return Due.NOTHING
        self._send_check = now + self._interval / 2
        idle, self._sent = not self._sent, False
        return Due.SEND if idle else Due.NOTHING

    def _client_is_gone(self, now: float) -> bool:
        self._receive_check = now + self._interval
        alive, self._received = self._received or self._paused, False
        self._silent_checks = 0 if alive else self._silent_checks + 1
        return self._silent_checks >= 2
