"""The serializers without a schema that are not JSON: MsgPack (and Notepack), CBOR; and JSONExt."""

from __future__ import annotations

import base64
import datetime
import json
import struct
from collections.abc import Mapping
from typing import Any

import msgspec

from fakebrokers.moleculer.serializers import Json, Unreadable

#: How deep packets may be nested.
MAX_DEPTH = 200


class MsgPack:
    """MsgPack, as msgpack5 and notepack.io write it; Buffers are binary."""

    def __init__(self, name: str = "MsgPack") -> None:
        self.name = name

    def read(self, command: str, payload: bytes) -> Any:
        try:
            values = msgspec.msgpack.decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError) as error:
            raise Unreadable(f"expected {self.name}, got {payload[:20].hex()}: {error}") from None
        if not isinstance(values, dict):
            return values
        return {str(name): value for name, value in values.items() if not _is_undefined(value)}

    def write(self, command: str, values: Mapping[str, Any]) -> bytes:
        return msgspec.msgpack.encode(dict(values))


def _is_undefined(value: Any) -> bool:
    """JavaScript's undefined, as notepack.io has it."""
    return isinstance(value, msgspec.msgpack.Ext) and value.code == 0 and bytes(value.data) == b"\0"


class JsonExt(Json):
    """JSON with what it has no words for in marked strings (0.15)."""

    name = "JSONExt"

    def read(self, command: str, payload: bytes) -> Any:
        return _revived(super().read(command, payload))

    def write(self, command: str, values: Mapping[str, Any]) -> bytes:
        return msgspec.json.encode(_marked(values))


def _revived(value: Any) -> Any:
    if isinstance(value, str) and value.startswith("[["):
        return _revived_text(value)
    if isinstance(value, dict):
        return {key: _revived(each) for key, each in value.items()}
    return [_revived(each) for each in value] if isinstance(value, list) else value


def _revived_text(value: str) -> Any:
    mark, text = value[:6], value[6:]
    try:
        match mark:
            case "[[ES]]":
                return text
            case "[[BI]]":
                return int(text)
            case "[[BF]]":
                return base64.b64decode(text)
            case "[[DT]]":
                return datetime.datetime.fromtimestamp(int(text) / 1000, datetime.UTC)
            case "[[ST]]" | "[[MP]]":
                return _revived(json.loads(text))
    except (ValueError, OverflowError, OSError):
        return value
    return value


def _marked(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return "[[BF]]" + base64.b64encode(value).decode()
    if isinstance(value, datetime.datetime):
        return f"[[DT]]{round(value.timestamp() * 1000)}"
    if isinstance(value, str) and value.startswith("[["):
        return "[[ES]]" + value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**53:
        return f"[[BI]]{value}"
    if isinstance(value, Mapping):
        return {key: _marked(each) for key, each in value.items()}
    return [_marked(each) for each in value] if isinstance(value, list | tuple) else value


class Cbor:
    """CBOR, as cbor-x without records writes it: maps have a count of 16 bits, even small ones."""

    name = "CBOR"

    def read(self, command: str, payload: bytes) -> Any:
        try:
            values, end = _read_cbor(payload, 0, 0)
        except (IndexError, struct.error, UnicodeDecodeError, ValueError, OverflowError) as error:
            raise Unreadable(f"expected CBOR, got {payload[:20].hex()}: {error}") from None
        if end != len(payload):
            raise Unreadable(f"expected {end} bytes of CBOR, got {len(payload)}")
        if not isinstance(values, dict):
            return values
        return {str(name): value for name, value in values.items() if value is not msgspec.UNSET}

    def write(self, command: str, values: Mapping[str, Any]) -> bytes:
        found = bytearray()
        _write_cbor(found, values)
        return bytes(found)


_SIMPLE = {20: False, 21: True, 22: None, 23: msgspec.UNSET}
_FLOATS = {25: (">e", 2), 26: (">f", 4), 27: (">d", 8)}


def _read_cbor(data: bytes, at: int, depth: int) -> tuple[Any, int]:
    if depth > MAX_DEPTH:
        raise ValueError(f"nested more than {MAX_DEPTH} levels")
    kind, low = data[at] >> 5, data[at] & 0x1F
    if kind == 7 and low in _FLOATS:
        form, size = _FLOATS[low]
        number = struct.unpack(form, data[at + 1 : at + 1 + size])[0]
        return (int(number) if number.is_integer() else number), at + 1 + size
    if kind == 7:
        if low not in _SIMPLE:
            raise ValueError(f"simple value {low}")
        return _SIMPLE[low], at + 1
    number, at = _read_count(data, at + 1, low)
    match kind:
        case 0:
            return number, at
        case 1:
            return -1 - number, at
        case 2 | 3:
            if at + number > len(data):
                raise ValueError(f"{number} bytes that are not there")
            piece = data[at : at + number]
            return (piece if kind == 2 else piece.decode()), at + number
        case 4:
            items = []
            for _ in range(_plausible(number, data, at)):
                item, at = _read_cbor(data, at, depth + 1)
                items.append(item)
            return items, at
        case 5:
            values = {}
            for _ in range(_plausible(number, data, at)):
                key, at = _read_cbor(data, at, depth + 1)
                values[key if isinstance(key, str | int | float) else repr(key)], at = _read_cbor(
                    data, at, depth + 1
                )
            return values, at
    return _read_cbor(data, at, depth + 1)  # a tag: what it marks will do


def _read_count(data: bytes, at: int, low: int) -> tuple[int, int]:
    if low < 24:
        return low, at
    if low > 27:
        raise ValueError(f"length {low}")
    size = 1 << (low - 24)
    if at + size > len(data):
        raise ValueError("a length that is cut short")
    return int.from_bytes(data[at : at + size], "big"), at + size


def _plausible(count: int, data: bytes, at: int) -> int:
    """A count, unless there cannot be so many items in what is left."""
    if count > len(data) - at:
        raise ValueError(f"{count} items in {len(data) - at} bytes")
    return count


def _write_cbor(out: bytearray, value: Any) -> None:
    if value is None or isinstance(value, bool):
        out.append({None: 0xF6, True: 0xF5, False: 0xF4}[value])
    elif isinstance(value, int) and abs(value) > 0xFFFF_FFFF:
        # JavaScript would get a BigInt of a longer integer, and cbor-x writes none
        out += struct.pack(">Bd", 0xFB, value)
    elif isinstance(value, int):
        _write_count(out, 0 if value >= 0 else 1, value if value >= 0 else -1 - value)
    elif isinstance(value, float):
        out += struct.pack(">Bd", 0xFB, value)
    elif isinstance(value, str):
        data = value.encode("utf-8", "surrogatepass")
        _write_count(out, 3, len(data))
        out += data
    elif isinstance(value, bytes | bytearray):
        _write_count(out, 2, len(value))
        out += value
    elif isinstance(value, Mapping):
        out += struct.pack(">BH", 0xB9, len(value))
        for key, each in value.items():
            _write_cbor(out, key)
            _write_cbor(out, each)
    elif isinstance(value, list | tuple):
        _write_count(out, 4, len(value))
        for each in value:
            _write_cbor(out, each)
    else:
        raise TypeError(f"{type(value).__name__} cannot go into a packet")


def _write_count(out: bytearray, kind: int, count: int) -> None:
    if count < 24:
        out.append(kind << 5 | count)
        return
    size = 0 if count < 1 << 8 else 1 if count < 1 << 16 else 2 if count < 1 << 32 else 3
    out.append(kind << 5 | 24 + size)
    out += count.to_bytes(1 << size, "big")
