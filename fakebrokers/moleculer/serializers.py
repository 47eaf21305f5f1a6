"""Packets to bytes and back: what a serializer of Moleculer is (docs/protocols/moleculer.md, 5), and JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec


class Unreadable(ValueError):
    """Bytes that are no packet; the text says what was expected."""


class Serializer(Protocol):
    """Values of a packet to bytes and back.

    Attributes:
        name: What Moleculer calls it.
    """

    name: str

    def read(self, command: str, payload: bytes) -> Any:
        """The values in a payload; `command` is the word in the topic.

        Raises:
            Unreadable: They are not there.
        """

    def write(self, command: str, values: Mapping[str, Any]) -> bytes:
        """The payload."""


class Json:
    """Text with no spaces. Buffers are objects: ``{"type":"Buffer","data":[1,2]}``."""

    name = "JSON"

    def read(self, command: str, payload: bytes) -> Any:
        try:
            return msgspec.json.decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return _lenient(payload)

    def write(self, command: str, values: Mapping[str, Any]) -> bytes:
        plain = {name: _with_buffers(value) for name, value in values.items()}
        try:
            return msgspec.json.encode(plain)
        except (UnicodeEncodeError, OverflowError, ValueError):  # a lone surrogate, say, that came in
            return json.dumps(plain, separators=(",", ":")).encode()


def _lenient(payload: bytes) -> Any:
    """JavaScript takes lone surrogates and numbers without limit, but no NaN, byte order mark or UTF-16."""
    try:
        return json.loads(payload.decode(), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"expected JSON, got {payload[:40]!r}: {error}") from None


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no number")


def _with_buffers(value: Any) -> Any:
    """The value with Buffers as JavaScript writes them."""
    if isinstance(value, bytes | bytearray):
        return {"type": "Buffer", "data": list(value)}
    if isinstance(value, Mapping):
        return {key: _with_buffers(each) for key, each in value.items()}
    return [_with_buffers(each) for each in value] if isinstance(value, list | tuple) else value
