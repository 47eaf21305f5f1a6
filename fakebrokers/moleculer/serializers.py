"""Packets to bytes and back: the serializers of Moleculer (docs/protocols/moleculer.md, 5).

All nodes of a network use the same one, and a packet does not say which. The first bytes do, since every
packet is a map or a record that begins with a string: see `serializer_of`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from fakebrokers.errors import UsageError


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
        return msgspec.json.encode({name: _with_buffers(value) for name, value in values.items()})


def _lenient(payload: bytes) -> Any:
    """JavaScript takes lone surrogates and numbers without limit; so does the standard library."""
    try:
        return json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"expected JSON, got {payload[:40]!r}: {error}") from None


def _with_buffers(value: Any) -> Any:
    """The value with Buffers as JavaScript writes them."""
    if isinstance(value, bytes | bytearray):
        return {"type": "Buffer", "data": list(value)}
    if isinstance(value, Mapping):
        return {key: _with_buffers(each) for key, each in value.items()}
    return [_with_buffers(each) for each in value] if isinstance(value, list | tuple) else value


#: By name. The ones that need a library or a table are loaded when they are asked for.
_LOADERS: Mapping[str, Callable[[], Serializer]] = {"JSON": Json}
_loaded: dict[str, Serializer] = {}


def find_serializer(name: str) -> Serializer:
    """The serializer of that name.

    Raises:
        UsageError: There is none.
    """
    found = _loaded.get(name)
    if found is None:
        if name not in _LOADERS:
            raise UsageError(f"no serializer {name!r}; one of: {', '.join(_LOADERS)}")
        found = _loaded[name] = _LOADERS[name]()
    return found


def serializer_of(payload: bytes) -> Serializer:
    """The serializer that a payload was written with, by its first bytes; JSON if none fits."""
    return find_serializer("JSON")
