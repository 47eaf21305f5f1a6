"""How packets are written: JSON, and the three with a schema (docs/protocols/moleculer.md, 5)."""

from __future__ import annotations

import json
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from conformance.clients.reference.kit import ClientError, Runtime
from conformance.clients.reference.moleculer.packing import CLIENT, RECORDS, Packing, Place

Json = dict[str, Any]


class JsonText:
    """The usual one. Raises `ValueError` where there is no JSON."""

    def write(self, command: str, packet: Mapping[str, Any]) -> bytes:
        return json.dumps(packet, separators=(",", ":"), ensure_ascii=False).encode()

    def read(self, command: str, payload: bytes) -> Any:
        return json.loads(payload)


class Reader:
    """Takes bytes one after the other. Raises `ValueError` where there are too few."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        """How many there are."""
        return len(self._data) - self._at

    def take(self, count: int) -> bytes:
        """So many."""
        if not 0 <= count <= self.left:
            raise ValueError(f"{count} of {self.left} bytes")
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self, form: str) -> Any:
        """A number of `struct`."""
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def varint(self) -> int:
        """Groups of seven bits, the lowest first."""
        found = shift = 0
        while True:
            byte = self.take(1)[0]
            found |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return found


def varint(number: int) -> bytes:
    """See `Reader.varint`; a negative number has 64 bits."""
    number &= 2**64 - 1
    found = []
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


class Schema(ABC):
    """What the three have in common."""

    def __init__(self, packing: Packing) -> None:
        self._packing = packing

    def write(self, command: str, packet: Mapping[str, Any]) -> bytes:
        """The bytes of a packet."""
        places = RECORDS[command]
        return self.put(places, self._packing.packed(places, packet))

    def read(self, command: str, payload: bytes) -> Any:
        """The packet. Raises `ValueError`."""
        reader = Reader(payload)
        places = RECORDS[command]
        return self._packing.unpacked(places, self.get(places, reader))

    @abstractmethod
    def put(self, places: list[Place], values: Mapping[str, Any]) -> bytes:
        """A record."""

    @abstractmethod
    def get(self, places: list[Place], reader: Reader) -> Json:
        """What is in a record. Raises `ValueError`."""


def _bytes_of(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


class ProtoBuf(Schema):
    """The third version of the format; numbers of fields are places."""

    _WIRE: Mapping[str, int] = {"bool": 0, "int": 0, "long": 0, "double": 1}

    def put(self, places: list[Place], values: Mapping[str, Any]) -> bytes:
        found = b""
        for number, place in enumerate(places, 1):
            value = values.get(place.name)
            for each in () if value is None else value if place.kind == "texts" else (value,):
                found += varint(number << 3 | self._WIRE.get(place.kind, 2)) + self._one(place.kind, each)
        return found

    def _one(self, kind: str, value: Any) -> bytes:
        if kind == "double":
            return struct.pack("<d", value)
        if kind in self._WIRE:
            return varint(int(value))
        data = self.put(CLIENT, value) if kind == "client" else _bytes_of(value)
        return varint(len(data)) + data

    def get(self, places: list[Place], reader: Reader) -> Json:
        found: Json = {place.name: [] for place in places if place.kind == "texts"}
        while reader.left:
            number, wire = divmod(reader.varint(), 8)
            raw = self._raw(wire, reader)
            if not 1 <= number <= len(places):
                continue
            name, kind = places[number - 1][:2]
            if wire != self._WIRE.get(kind, 2):
                raise ValueError(f"{name} of wire type {wire}")
            value = self._value(kind, raw)
            found[name] = [*found[name], value] if kind == "texts" else value
        return found

    def _raw(self, wire: int, reader: Reader) -> Any:
        if wire == 0:
            return reader.varint()
        return reader.take({1: 8, 5: 4}[wire] if wire in (1, 5) else reader.varint())

    def _value(self, kind: str, raw: Any) -> Any:
        match kind:
            case "bool":
                return raw != 0
            case "int" | "long":
                return raw - 2**64 if raw >= 2**63 else raw
            case "double":
                return struct.unpack("<d", raw)[0]
            case "client":
                return self.get(CLIENT, Reader(raw))
        return raw if kind == "bytes" else raw.decode()


class Avro(Schema):
    """All places in their order, with nothing between them."""

    def put(self, places: list[Place], values: Mapping[str, Any]) -> bytes:
        found = b""
        for place in places:
            value = values.get(place.name)
            if place.may_miss:
                found += b"\0" if value is None else b"\2"
            if value is not None:
                found += self._one(place.kind, value)
            elif not place.may_miss:
                raise ClientError("invalid", f"a packet without {place.name}", definite=True)
        return found

    def _one(self, kind: str, value: Any) -> bytes:
        match kind:
            case "bool":
                return bytes([value])
            case "int" | "long":
                return varint(value << 1 ^ value >> 63)
            case "double":
                return struct.pack("<d", value)
            case "texts":
                block = b"".join([self._one("text", each) for each in value])
                return (varint(len(value) << 1) + block if value else b"") + b"\0"
            case "client":
                return self.put(CLIENT, value)
        data = _bytes_of(value)
        return varint(len(data) << 1) + data

    def get(self, places: list[Place], reader: Reader) -> Json:
        return {
            place.name: self._value(place.kind, reader)
            for place in places
            if not place.may_miss or self._signed(reader)
        }

    def _signed(self, reader: Reader) -> int:
        number = reader.varint()
        return number >> 1 ^ -(number & 1)

    def _value(self, kind: str, reader: Reader) -> Any:
        match kind:
            case "bool":
                return reader.take(1) != b"\0"
            case "int" | "long":
                return self._signed(reader)
            case "double":
                return reader.number("<d")
            case "texts":
                found: list[str] = []
                while count := self._signed(reader):
                    if count < 0:  # the block says its bytes, too
                        self._signed(reader)
                    found += [self._value("text", reader) for _ in range(abs(count))]
                return found
            case "client":
                return self.get(CLIENT, reader)
        data = reader.take(self._signed(reader))
        return data if kind == "bytes" else data.decode()


class Thrift(Schema):
    """The binary protocol, a struct without a message around it; ids of fields are places."""

    _TYPES: Mapping[str, int] = {"bool": 2, "double": 4, "int": 8, "long": 10, "client": 12, "texts": 15}
    _TEXT = 11
    _FORMS: Mapping[str, str] = {"bool": ">?", "double": ">d", "int": ">i", "long": ">q"}

    def put(self, places: list[Place], values: Mapping[str, Any]) -> bytes:
        found = b""
        for number, place in enumerate(places, 1):
            value = values.get(place.name)
            if value is not None:
                head = struct.pack(">bh", self._TYPES.get(place.kind, self._TEXT), number)
                found += head + self._one(place.kind, value)
        return found + b"\0"

    def _one(self, kind: str, value: Any) -> bytes:
        if kind in self._FORMS:
            return struct.pack(self._FORMS[kind], value)
        if kind == "client":
            return self.put(CLIENT, value)
        if kind == "texts":
            head = struct.pack(">bi", self._TEXT, len(value))
            return head + b"".join([self._one("text", each) for each in value])
        data = _bytes_of(value)
        return struct.pack(">i", len(data)) + data

    def get(self, places: list[Place], reader: Reader) -> Json:
        found: Json = {}
        while kind := reader.number(">b"):
            number = reader.number(">h")
            if not 1 <= number <= len(places) or kind != self._TYPES.get(places[number - 1].kind, self._TEXT):
                raise ValueError(f"field {number} of type {kind}")
            found[places[number - 1].name] = self._value(places[number - 1].kind, reader)
        return found

    def _value(self, kind: str, reader: Reader) -> Any:
        if kind in self._FORMS:
            return reader.number(self._FORMS[kind])
        if kind == "client":
            return self.get(CLIENT, reader)
        if kind == "texts":
            reader.number(">b")
            return [self._value("text", reader) for _ in range(reader.number(">i"))]
        data = reader.take(reader.number(">i"))
        return data if kind == "bytes" else data.decode()


SCHEMAS: Mapping[str, Callable[[Packing], Schema]] = {"ProtoBuf": ProtoBuf, "Avro": Avro, "Thrift": Thrift}


def serializer_of(runtime: Runtime, name: str) -> JsonText | Schema:
    """The serializer of that name. Raises `ClientError` (unsupported)."""
    if name == "JSON":
        return JsonText()
    if name not in SCHEMAS:
        raise ClientError("unsupported", f"no serializer {name}", definite=True)
    return SCHEMAS[name](runtime.part(Packing)())
