"""How much a subscription may have unconfirmed (docs/protocols/blazingmq.md, 9)."""

from __future__ import annotations

from math import ceil

_RESUME_AT = 0.8


class Flow:
    """Counts what is unconfirmed. The byte limit is soft: the last message may exceed it.

    Attributes:
        full: Whether nothing more may be delivered. Once full, it is so until both counts are at most 80 %
            of their limits; a limit of 0 is always full.
    """

    def __init__(self, max_messages: int, max_bytes: int) -> None:
        self.messages = 0
        self.bytes = 0
        self.full = False
        self.limit(max_messages, max_bytes)

    def limit(self, max_messages: int, max_bytes: int) -> None:
        """Set other limits; what was counted counts on."""
        self.max_messages = max_messages
        self.max_bytes = max_bytes
        self._resume_messages = ceil(max_messages * _RESUME_AT)
        self._resume_bytes = ceil(max_bytes * _RESUME_AT)
        self.full = self._at_limit

    def empty(self) -> None:
        """Nothing is unconfirmed any more."""
        self.messages = self.bytes = 0
        self.full = self._at_limit

    @property
    def _at_limit(self) -> bool:
        return self.messages >= self.max_messages or self.bytes >= self.max_bytes

    def add(self, size: int) -> None:
        """A message of that many bytes was delivered."""
        self.messages += 1
        self.bytes += size
        self.full = self.full or self._at_limit

    def remove(self, size: int) -> bool:
        """A message was confirmed, or taken back; whether more may be delivered because of it."""
        self.messages -= 1
        self.bytes -= size
        if not self.full or self.max_messages <= 0 or self.max_bytes <= 0:
            return False
        self.full = self.messages > self._resume_messages or self.bytes > self._resume_bytes
        return not self.full
