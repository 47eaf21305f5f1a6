"""Packets as records with a place for each member that is known (docs/protocols/moleculer.md, 5).

What may be anything is JSON in a text, or in bytes with a number beside them that says what they are; other
members are left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

Json = dict[str, Any]

#: What bytes are that come with their type.
UNDEFINED, NULL, TEXT, BYTES = range(4)


class Place(NamedTuple):
    """A member in a record.

    Attributes:
        kind: ``text``, ``bytes``, ``bool``, ``int``, ``long``, ``double``, ``texts`` or ``client``.
        may_miss: It may be left out.
        is_json: The text is JSON.
        typed: Bytes whose type is the next place.
    """

    name: str
    kind: str = "text"
    may_miss: bool = False
    is_json: bool = False
    typed: bool = False


def _places(text: str) -> list[Place]:
    """From ``cpu:double``, ``meta:json`` or ``data:typed``, with a question mark for what may be left out."""
    found = [Place("ver"), Place("sender")]
    for word in text.split():
        name, _, kind = word.rstrip("?").partition(":")
        may_miss = word.endswith("?")
        if kind == "typed":
            found += [Place(name, "bytes", True, typed=True), Place(f"{name}Type", "int")]
        elif kind == "json":
            found.append(Place(name, "text", may_miss, is_json=True))
        else:
            found.append(Place(name, kind or "text", may_miss))
    return found


_TRACE = "level:int tracing:bool? parentID? requestID? stream:bool? seq:int? caller?"
_MAPS = "online:json? offline:json?"
RECORDS: Mapping[str, list[Place]] = {
    "DISCOVER": _places(""),
    "DISCONNECT": _places(""),
    "INFO": _places(
        "services:json config:json ipList:texts hostname client:client seq:int instanceID metadata:json"
    ),
    "HEARTBEAT": _places("cpu:double"),
    "PING": _places("time:long id?"),
    "PONG": _places("time:long arrived:long id?"),
    "REQ": _places(f"id action params:typed meta:json timeout:double? {_TRACE}"),
    "RES": _places("id success:bool data:typed error:json? meta:json stream:bool? seq:int?"),
    "EVENT": _places(f"id event data:typed groups:texts? broadcast:bool meta:json {_TRACE} needAck:bool?"),
    "GOSSIP_HELLO": _places("host port:int"),
    "GOSSIP_REQ": _places(_MAPS),
    "GOSSIP_RES": _places(_MAPS),
}
CLIENT = [Place("type"), Place("version"), Place("langVersion")]


class Packing:
    """Packets with nothing in them that a record cannot have, and back."""

    def packed(self, places: list[Place], packet: Mapping[str, Any]) -> Json:
        """What goes into the record."""
        found: Json = {}
        for place in places:
            value = packet.get(place.name)
            if place.typed:
                found[place.name], found[f"{place.name}Type"] = self.typed(place.name, packet)
            elif value is not None:
                found[place.name] = json.dumps(value) if place.is_json else value
        return found

    def typed(self, name: str, packet: Mapping[str, Any]) -> tuple[bytes | None, int]:
        """The bytes of a member that may be anything, and what they are."""
        value = packet.get(name)
        if value is None:
            return None, NULL if name in packet else UNDEFINED
        if isinstance(value, Mapping) and value.get("type") == "Buffer":
            return bytes(value["data"]), BYTES
        return json.dumps(value).encode(), TEXT

    def unpacked(self, places: list[Place], found: Mapping[str, Any]) -> Json:
        """What was packed; a member that is not there is left out. Raises `ValueError`."""
        packet: Json = {}
        types = {f"{place.name}Type" for place in places if place.typed}
        for place in places:
            value = None if place.name in types else found.get(place.name)
            kind = found.get(f"{place.name}Type") or UNDEFINED
            if place.typed and kind != UNDEFINED:
                packet[place.name] = self.meant(value or b"", kind)
            elif value is not None and not place.typed:
                packet[place.name] = json.loads(value) if place.is_json and value else value
        return packet

    def meant(self, data: bytes, kind: int) -> Any:
        """What bytes of this type are."""
        if kind == BYTES:
            return {"type": "Buffer", "data": list(data)}
        return None if kind == NULL else json.loads(data)
