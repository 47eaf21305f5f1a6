"""Commands as clients of Redis send them."""

from __future__ import annotations


def command(*words: str) -> bytes:
    """One command, as an array."""
    parts = [word.encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join([b"$%d\r\n%b\r\n" % (len(part), part) for part in parts])
