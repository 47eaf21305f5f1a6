"""GUIDs of messages (docs/protocols/blazingmq.md, 5)."""

from __future__ import annotations

_VERSION = 1
_COUNTER_BITS = 22
_TICK_BITS = 56


class GuidMaker:
    """Makes GUIDs: a version of two bits, a counter, a clock and who made it.

    Args:
        maker: Six bytes that no other maker has.
    """

    def __init__(self, maker: bytes) -> None:
        self._maker = maker
        self._made = 0

    def new(self, seconds: float) -> bytes:
        """The next GUID; `seconds` since the maker began."""
        self._made += 1
        counter = self._made % (1 << _COUNTER_BITS)
        tick = int(seconds * 1e9) % (1 << _TICK_BITS)
        number = _VERSION << 78 | counter << _TICK_BITS | tick
        return number.to_bytes(10) + self._maker


def guid_text(guid: bytes) -> str:
    """A GUID as people and logs write it."""
    return guid.hex().upper()
