"""Which serializers there are, by name and by what they write (docs/protocols/moleculer.md, 5).

All nodes of a network use the same one, and a packet does not say which. The first bytes do, since every
packet is a map or a record that begins with a string: see `serializer_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fakebrokers.errors import UsageError
from fakebrokers.moleculer.serializers import Json, Serializer


def _msgpack() -> Serializer:
    from fakebrokers.moleculer.binary import MsgPack

    return MsgPack()


def _notepack() -> Serializer:
    from fakebrokers.moleculer.binary import MsgPack

    return MsgPack("Notepack")


def _cbor() -> Serializer:
    from fakebrokers.moleculer.binary import Cbor

    return Cbor()


def _json_ext() -> Serializer:
    from fakebrokers.moleculer.binary import JsonExt

    return JsonExt()


def _with_schema(name: str) -> Callable[[], Serializer]:
    def load() -> Serializer:
        from fakebrokers.moleculer import schema_formats

        made: Serializer = getattr(schema_formats, name)()
        return made

    return load


#: By name; loaded when they are asked for, but JSON.
_LOADERS: Mapping[str, Callable[[], Serializer]] = {
    "JSON": Json,
    "JSONExt": _json_ext,
    "MsgPack": _msgpack,
    "Notepack": _notepack,
    "CBOR": _cbor,
    "ProtoBuf": _with_schema("ProtoBuf"),
    "Avro": _with_schema("Avro"),
    "Thrift": _with_schema("Thrift"),
}
SERIALIZERS = tuple(_LOADERS)
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
    first, second = payload[:1], payload[1:2]
    if first == b"{" or not payload:
        return find_serializer("JSON")
    if b"\x80" <= first <= b"\x8f" or first in (b"\xde", b"\xdf"):
        return find_serializer("MsgPack")
    if b"\xa0" <= first <= b"\xbf":
        return find_serializer("CBOR")
    if first == b"\n" and second < b"\x20":
        return find_serializer("ProtoBuf")
    if first == b"\x02" and second.isdigit():
        return find_serializer("Avro")
    return find_serializer("Thrift" if payload[:3] == b"\x0b\0\1" else "JSON")
