"""The bodies of messages that tests store: bytes, or text, which becomes UTF-8."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from fakebrokers.errors import UsageError
from fakebrokers.reading import shown

Body: TypeAlias = bytes | bytearray | memoryview | str


def body_of(given: object) -> bytes:
    """A body.

    Raises:
        UsageError: It is neither bytes nor text.
    """
    if isinstance(given, str):
        return given.encode()
    if isinstance(given, bytes | bytearray | memoryview):
        return bytes(given)
    raise UsageError(f"expected a body as bytes or text, got {shown(given)}")


def bodies_of(given: object) -> list[bytes]:
    """Several bodies, or a single one; see `body_of`."""
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | bytearray | memoryview | Mapping):
        return [body_of(each) for each in given]
    return [body_of(given)]
