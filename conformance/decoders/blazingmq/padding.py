"""Padding (docs/protocols/blazingmq.md, 1.1): one to four bytes, each of which says how many there are."""

from __future__ import annotations

from conformance.decoders import Unreadable


def unpadded(data: bytes) -> bytes:
    """The data without padding."""
    if not data or not 1 <= data[-1] <= min(4, len(data)):
        raise Unreadable(f"expected 1 to 4 bytes of padding, came {data[-1:].hex() or 'nothing'}")
    return data[: -data[-1]]
