"""How much a subscription may have unconfirmed (docs/protocols/blazingmq.md, 9)."""

from __future__ import annotations

from math import ceil

_RESUME_AT = 0.8
_NORMAL, _HIGH, _FULL = range(3)


class Flow:
    """Counts what is unconfirmed. The byte limit is soft: the last message may exceed it.

    Messages and bytes have a state each: high from 80 % of the limit, full from the limit until the count is
    at most 80 % again. A limit of 0 is always full.

    Attributes:
        full: Whether nothing more may be delivered.
        group: Whose subscription it is: what `Router` has last made of it.
    """

    def __init__(self, max_messages: int, max_bytes: int) -> None:
        self.messages = 0
        self.bytes = 0
        self.full = False
        self.group: object = None
        self.limit(max_messages, max_bytes)

    def limit(self, max_messages: int, max_bytes: int) -> None:
        """Set other limits; what was counted counts on."""
        self.max_messages = max_messages
        self.max_bytes = max_bytes
        self._mark_messages = ceil(max_messages * _RESUME_AT)
        self._mark_bytes = ceil(max_bytes * _RESUME_AT)
        self._messages_state = self._bytes_state = _NORMAL
        self._counted()

    def empty(self) -> None:
        """Nothing is unconfirmed any more."""
        self.messages = self.bytes = 0
        self.limit(self.max_messages, self.max_bytes)

    def _counted(self) -> None:
        """Go up with the counts."""
        if self.messages >= self._mark_messages:
            is_full = self.messages >= self.max_messages
            self._messages_state = _FULL if is_full else self._messages_state or _HIGH
        if self.bytes >= self._mark_bytes:
            is_full = self.bytes >= self.max_bytes
            self._bytes_state = _FULL if is_full else self._bytes_state or _HIGH
        self.full = _FULL in (self._messages_state, self._bytes_state)

    def add(self, size: int) -> None:
        """A message of that many bytes was delivered."""
        self.messages += 1
        self.bytes += size
        if self.messages >= self._mark_messages or self.bytes >= self._mark_bytes:
            self._counted()

    def remove(self, size: int) -> bool:
        """A message was confirmed, or taken back; whether more may be delivered because of it.

        That is so at 80 % even if it was never full.
        """
        self.messages -= 1
        self.bytes -= size
        before = max(self._messages_state, self._bytes_state)
        if before == _NORMAL:
            return False
        if self.messages <= self._mark_messages and self.max_messages > 0:
            self._messages_state = _NORMAL
        if self.bytes <= self._mark_bytes and self.max_bytes > 0:
            self._bytes_state = _NORMAL
        after = max(self._messages_state, self._bytes_state)
        self.full = after == _FULL
        return after != before
