"""The serializers with a schema (0.14 only): one table of the packets, three ways to write it down.

What has no type in the schema travels as JSON text; `params` and `data` as bytes, with a number that says
what they were (docs/protocols/moleculer.md, 5).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from fakebrokers.moleculer.serializers import Unreadable


class Kind(Enum):
    """What a field is."""

    STRING = "string"
    JSON = "json"  #: any value, as JSON text
    BYTES = "bytes"
    BOOL = "bool"
    INT = "int"
    LONG = "long"
    DOUBLE = "double"
    STRINGS = "strings"
    CLIENT = "client"  #: a record of three strings


class Field(NamedTuple):
    """A field; its place in the record is its number, from 1. Avro writes optional ones as a union."""

    name: str
    kind: Kind = Kind.STRING
    optional: bool = False


CLIENT = ("type", "version", "langVersion")

#: What `params` and `data` were.
UNDEFINED, NULL, TEXT, BUFFER = range(4)


def _record(words: str) -> tuple[Field, ...]:
    """Fields from words such as ``id``, ``seq:int``, ``caller?``."""
    found = [Field("ver"), Field("sender")]
    for word in words.split():
        name, _, kind = word.rstrip("?").partition(":")
        found.append(Field(name, Kind(kind or "string"), word.endswith("?")))
    return tuple(found)


_CONTEXT = "level:int tracing:bool? parentID? requestID? stream:bool? seq:int? caller?"
RECORDS: Mapping[str, tuple[Field, ...]] = {
    "DISCOVER": _record(""),
    "DISCONNECT": _record(""),
    "INFO": _record(
        "services:json config:json ipList:strings hostname client:client seq:int instanceID metadata:json"
    ),
    "HEARTBEAT": _record("cpu:double"),
    "REQ": _record(f"id action params:bytes? paramsType:int meta:json timeout:double? {_CONTEXT}"),
    "RES": _record("id success:bool data:bytes? dataType:int error:json? meta:json stream:bool? seq:int?"),
    "EVENT": _record(
        f"id event data:bytes? dataType:int groups:strings? broadcast:bool meta:json {_CONTEXT} needAck:bool?"
    ),
    "PING": _record("time:long id?"),
    "PONG": _record("time:long arrived:long id?"),
    "GOSSIP_HELLO": _record("host port:int"),
    "GOSSIP_REQ": _record("online:json? offline:json?"),
    "GOSSIP_RES": _record("online:json? offline:json?"),
}

#: What real nodes have null in JSON where the schema has nothing.
NULLS = frozenset({"tracing", "parentID", "caller", "needAck"})

#: Fields whose type another field tells.
_TYPED = {"params": "paramsType", "data": "dataType"}


class Schema:
    """Base of the three: turns values into what the schema knows, and back."""

    name: str

    def read(self, command: str, payload: bytes) -> Any:
        fields = RECORDS.get(command)
        if fields is None:
            raise Unreadable(f"expected a packet that {self.name} has a schema for, got {command}")
        try:
            return _restored(self._read(fields, payload), fields)
        except (IndexError, struct.error, UnicodeDecodeError, ValueError, msgspec.DecodeError) as error:
            raise Unreadable(f"expected {self.name}, got {payload[:20].hex()}: {error}") from None

    def write(self, command: str, values: Mapping[str, Any]) -> bytes:
        fields = RECORDS.get(command)
        if fields is None:
            raise Unreadable(f"{self.name} has no schema for {command}")
        return self._write(fields, _prepared(values, fields))

    def _read(self, fields: tuple[Field, ...], data: bytes) -> dict[str, Any]:
        raise NotImplementedError

    def _write(self, fields: tuple[Field, ...], values: Mapping[str, Any]) -> bytes:
        raise NotImplementedError


def _prepared(values: Mapping[str, Any], fields: tuple[Field, ...]) -> dict[str, Any]:
    """With JSON texts and typed payloads in place of free values."""
    found: dict[str, Any] = {}
    for field in fields:
        value = values.get(field.name, UNSET)
        if field.name in _TYPED:
            found[field.name], found[_TYPED[field.name]] = _typed(value)
        elif field.kind is Kind.JSON and value not in (UNSET, None):
            found[field.name] = msgspec.json.encode(value).decode()
        elif field.name not in found and value not in (UNSET, None):
            found[field.name] = value
    return found


def _typed(value: Any) -> tuple[Any, int]:
    if value is UNSET:
        return None, UNDEFINED
    if value is None:
        return None, NULL
    if isinstance(value, bytes | bytearray):
        return bytes(value), BUFFER
    return msgspec.json.encode(value), TEXT


def _restored(found: dict[str, Any], fields: tuple[Field, ...]) -> dict[str, Any]:
    """The values of a packet again; what was null is not there, but for `NULLS`."""
    values: dict[str, Any] = {}
    for field in fields:
        value = found.get(field.name)
        if field.name in _TYPED:
            kind = found.get(_TYPED[field.name], UNDEFINED)
            if kind == NULL:
                values[field.name] = None
            elif kind in (TEXT, BUFFER):
                data = value or b""
                values[field.name] = msgspec.json.decode(data) if kind == TEXT else data
        elif value is None and field.name in NULLS:
            values[field.name] = None
        elif value is None or field.name in _TYPED.values():
            continue
        else:
            values[field.name] = msgspec.json.decode(value) if field.kind is Kind.JSON else value
    return values


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits in each byte, the low ones first, and where it ends."""
    found = shift = 0
    while True:
        found |= (data[at] & 0x7F) << shift
        at += 1
        if not data[at - 1] & 0x80:
            return found, at
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than ten bytes")


def write_varint(value: int) -> bytes:
    """The bytes of such a number; negative ones have ten."""
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def piece(data: bytes, at: int, size: int) -> bytes:
    """So many bytes."""
    if size < 0 or at + size > len(data):
        raise ValueError(f"{size} bytes that are not there")
    return data[at : at + size]
