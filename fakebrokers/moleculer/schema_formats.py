"""ProtoBuf (proto3), Avro and Thrift (binary protocol) for the table in `schema`."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from fakebrokers.moleculer.schema import CLIENT, Field, Kind, Schema, piece, read_varint, write_varint

_CLIENT_FIELDS = tuple([Field(name) for name in CLIENT])
_I16, _I32, _I64, _BE_DOUBLE = (
    struct.Struct(">h"),
    struct.Struct(">i"),
    struct.Struct(">q"),
    struct.Struct(">d"),
)
_LE_DOUBLE = struct.Struct("<d")


def _raw(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


class ProtoBuf(Schema):
    """proto3; as protobufjs a value that is set is written even if it is the default."""

    name = "ProtoBuf"

    def _write(self, fields: tuple[Field, ...], values: Mapping[str, Any]) -> bytes:
        found = bytearray()
        for number, field in enumerate(fields, 1):
            value = values.get(field.name)
            if value is None:
                continue
            for each in value if field.kind is Kind.STRINGS else (value,):
                found += self._field(number, field.kind, each)
        return bytes(found)

    def _field(self, number: int, kind: Kind, value: Any) -> bytes:
        match kind:
            case Kind.BOOL | Kind.INT | Kind.LONG:
                return write_varint(number << 3) + write_varint(int(value))
            case Kind.DOUBLE:
                return write_varint(number << 3 | 1) + _LE_DOUBLE.pack(value)
            case Kind.CLIENT:
                data = self._write(_CLIENT_FIELDS, value)
            case _:
                data = _raw(value)
        return write_varint(number << 3 | 2) + write_varint(len(data)) + data

    def _read(self, fields: tuple[Field, ...], data: bytes) -> dict[str, Any]:
        values: dict[str, Any] = {}
        at = 0
        while at < len(data):
            head, at = read_varint(data, at)
            number, form = head >> 3, head & 7
            raw: Any
            if form == 0:
                raw, at = read_varint(data, at)
            elif form in (1, 5):
                size = 8 if form == 1 else 4
                raw, at = piece(data, at, size), at + size
            elif form == 2:
                size, at = read_varint(data, at)
                raw, at = piece(data, at, size), at + size
            else:
                raise ValueError(f"wire type {form}")
            if 1 <= number <= len(fields):
                self._take(values, fields[number - 1], form, raw)
        return values

    def _take(self, values: dict[str, Any], field: Field, form: int, raw: Any) -> None:
        expected = {Kind.BOOL: 0, Kind.INT: 0, Kind.LONG: 0, Kind.DOUBLE: 1}.get(field.kind, 2)
        if form != expected:
            raise ValueError(f"wire type {form} of {field.name}")
        match field.kind:
            case Kind.BOOL:
                values[field.name] = bool(raw)
            case Kind.INT | Kind.LONG:
                values[field.name] = raw - (1 << 64) if raw >> 63 else raw
            case Kind.DOUBLE:
                values[field.name] = _whole(_LE_DOUBLE.unpack(raw)[0])
            case Kind.STRINGS:
                values.setdefault(field.name, []).append(raw.decode())
            case Kind.CLIENT:
                values[field.name] = self._read(_CLIENT_FIELDS, raw)
            case Kind.BYTES:
                values[field.name] = raw
            case _:
                values[field.name] = raw.decode()


class Avro(Schema):
    """Avro: fields in order; numbers zigzag; optional ones after the number of their branch."""

    name = "Avro"

    def _write(self, fields: tuple[Field, ...], values: Mapping[str, Any]) -> bytes:
        found = bytearray()
        for field in fields:
            value = values.get(field.name)
            if field.optional:
                found.append(0 if value is None else 2)
                if value is None:
                    continue
            found += self._value(field.kind, value)
        return bytes(found)

    def _value(self, kind: Kind, value: Any) -> bytes:
        match kind:
            case Kind.BOOL:
                return b"\1" if value else b"\0"
            case Kind.INT | Kind.LONG:
                return _zigzag(int(value or 0))
            case Kind.DOUBLE:
                return _LE_DOUBLE.pack(value or 0.0)
            case Kind.CLIENT:
                return self._write(_CLIENT_FIELDS, value or {})
            case Kind.STRINGS:
                items = [_zigzag(len(_raw(each))) + _raw(each) for each in value or ()]
                return (_zigzag(len(items)) + b"".join(items) if items else b"") + b"\0"
        data = b"" if value is None else _raw(value)
        return _zigzag(len(data)) + data

    def _read(self, fields: tuple[Field, ...], data: bytes) -> dict[str, Any]:
        values, end = self._read_record(fields, data, 0)
        if end != len(data):
            raise ValueError(f"{len(data) - end} bytes after the record")
        return values

    def _read_record(self, fields: tuple[Field, ...], data: bytes, at: int) -> tuple[dict[str, Any], int]:
        values: dict[str, Any] = {}
        for field in fields:
            if field.optional:
                branch, at = _unzigzag(data, at)
                if branch == 0:
                    continue
                if branch != 1:
                    raise ValueError(f"branch {branch} of {field.name}")
            values[field.name], at = self._read_value(field.kind, data, at)
        return values, at

    def _read_value(self, kind: Kind, data: bytes, at: int) -> tuple[Any, int]:
        match kind:
            case Kind.BOOL:
                return bool(piece(data, at, 1)[0]), at + 1
            case Kind.INT | Kind.LONG:
                return _unzigzag(data, at)
            case Kind.DOUBLE:
                return _whole(_LE_DOUBLE.unpack(piece(data, at, 8))[0]), at + 8
            case Kind.CLIENT:
                return self._read_record(_CLIENT_FIELDS, data, at)
            case Kind.STRINGS:
                return self._read_strings(data, at)
        size, at = _unzigzag(data, at)
        raw = piece(data, at, size)
        return (raw if kind is Kind.BYTES else raw.decode()), at + size

    def _read_strings(self, data: bytes, at: int) -> tuple[list[str], int]:
        found: list[str] = []
        while True:
            count, at = _unzigzag(data, at)
            if count == 0:
                return found, at
            if count < 0:  # a block with its size in bytes
                count = -count
                _, at = _unzigzag(data, at)
            if count > len(data) - at:
                raise ValueError(f"{count} strings in {len(data) - at} bytes")
            for _ in range(count):
                text, at = self._read_value(Kind.STRING, data, at)
                found.append(text)


def _zigzag(value: int) -> bytes:
    return write_varint(value << 1 if value >= 0 else (-value << 1) - 1)


def _unzigzag(data: bytes, at: int) -> tuple[int, int]:
    value, at = read_varint(data, at)
    return (value >> 1) ^ -(value & 1), at


_THRIFT = {Kind.BOOL: 2, Kind.DOUBLE: 4, Kind.INT: 8, Kind.LONG: 10, Kind.STRINGS: 15, Kind.CLIENT: 12}
_THRIFT_STRING = 11


class Thrift(Schema):
    """Thrift's binary protocol, without a message around the struct."""

    name = "Thrift"

    def _write(self, fields: tuple[Field, ...], values: Mapping[str, Any]) -> bytes:
        found = bytearray()
        for number, field in enumerate(fields, 1):
            value = values.get(field.name)
            if value is not None:
                found.append(_THRIFT.get(field.kind, _THRIFT_STRING))
                found += _I16.pack(number) + self._value(field.kind, value)
        return bytes(found) + b"\0"

    def _value(self, kind: Kind, value: Any) -> bytes:
        match kind:
            case Kind.BOOL:
                return b"\1" if value else b"\0"
            case Kind.INT:
                return _I32.pack(value)
            case Kind.LONG:
                return _I64.pack(value)
            case Kind.DOUBLE:
                return _BE_DOUBLE.pack(value)
            case Kind.CLIENT:
                return self._write(_CLIENT_FIELDS, value)
            case Kind.STRINGS:
                items = b"".join([self._value(Kind.STRING, each) for each in value])
                return bytes([_THRIFT_STRING]) + _I32.pack(len(value)) + items
        data = _raw(value)
        return _I32.pack(len(data)) + data

    def _read(self, fields: tuple[Field, ...], data: bytes) -> dict[str, Any]:
        values, _ = self._read_struct(fields, data, 0)
        return values

    def _read_struct(self, fields: tuple[Field, ...], data: bytes, at: int) -> tuple[dict[str, Any], int]:
        values: dict[str, Any] = {}
        while True:
            form = piece(data, at, 1)[0]
            at += 1
            if form == 0:
                return values, at
            (number,) = _I16.unpack(piece(data, at, 2))
            at += 2
            if not 1 <= number <= len(fields):
                raise ValueError(f"field {number}")
            field = fields[number - 1]
            if form != _THRIFT.get(field.kind, _THRIFT_STRING):
                raise ValueError(f"type {form} of {field.name}")
            values[field.name], at = self._read_value(field.kind, data, at)

    def _read_value(self, kind: Kind, data: bytes, at: int) -> tuple[Any, int]:
        match kind:
            case Kind.BOOL:
                return bool(piece(data, at, 1)[0]), at + 1
            case Kind.INT:
                return _I32.unpack(piece(data, at, 4))[0], at + 4
            case Kind.LONG:
                return _I64.unpack(piece(data, at, 8))[0], at + 8
            case Kind.DOUBLE:
                return _whole(_BE_DOUBLE.unpack(piece(data, at, 8))[0]), at + 8
            case Kind.CLIENT:
                return self._read_struct(_CLIENT_FIELDS, data, at)
            case Kind.STRINGS:
                (count,) = _I32.unpack(piece(data, at + 1, 4))
                found, at = [], at + 5
                if not 0 <= count <= len(data) - at:
                    raise ValueError(f"{count} strings in {len(data) - at} bytes")
                for _ in range(count):
                    text, at = self._read_value(Kind.STRING, data, at)
                    found.append(text)
                return found, at
        (size,) = _I32.unpack(piece(data, at, 4))
        raw = piece(data, at + 4, size)
        return (raw if kind is Kind.BYTES else raw.decode()), at + 4 + size


def _whole(value: float) -> float | int:
    """A number as JavaScript would print it."""
    return int(value) if value.is_integer() else value
