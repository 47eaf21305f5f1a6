"""Values in the sentences of rules, as a maintainer of a client in any language reads them."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from msgspec import UNSET, Struct, structs

from conformance.clients.adapter.messages import body_bytes
from conformance.run.trace import Position
from conformance.run.view import Conn
from fakebrokers.core.frames import kind_of

LONGEST = 80  #: characters of a value; what differs is shown by itself

BORDER = b"\0|\0"  #: between the parts of a body that has several


def shown(value: Any, longest: int = LONGEST) -> str:
    """A value as JSON: bytes as text, or in hex; a member that is not there at all as ``(absent)``."""
    if value is UNSET:
        return "(absent)"
    text = "".join(map(_visible, json.dumps(_plain(value), ensure_ascii=False)))
    return text if len(text) <= longest else f"{text[:longest]}..."


def message(body: bytes | None) -> str:
    """A message by its body."""
    if body is None:
        return "a message"
    return "message " + " | ".join(shown(part, 24) for part in body.split(BORDER))


def _visible(letter: str) -> str:
    return letter if letter.isprintable() else f"\\u{ord(letter):04x}"


def named_by(position: Any, body: Any) -> str:
    """A message by its position; where it has none, by its body, as ops and events or wires write it."""
    if position is not None:
        return f"message {shown(position)}"
    if isinstance(body, Mapping):
        body = None if "sha256" in body else body_bytes(body)
    return message(body if isinstance(body, bytes) else None)


def named(place: Sequence[Hashable]) -> str:
    """The name of a message on the wire (`facts.Written.place`): ``id 2 of orders``."""
    target, *producer, number = place
    where = "" if target == "" else f" of {target}"  # a protocol with one target does not name it
    names = [f" by the producer {shown(each)}" for each in producer if each not in (None, "")]
    return f"id {shown(number)}{where}{''.join(names)}"


def counted(count: int, what: str) -> str:
    """``1 message``, ``2 messages``."""
    return f"{count} {what}{'s' * (count != 1)}"


def frame_at(conn: Conn, at: Position | None) -> str:
    """The kind of the frame that came on a connection at that position; ``the end`` if none did."""
    return next((kind_of(seen.frame) for seen in conn.frames if seen.at == at), "the end")


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        text = value.decode("utf-8", "replace")
        return text if "\ufffd" not in text and text.isprintable() else f"hex {value.hex()}"
    if isinstance(value, Mapping):
        return {_key(name): _plain(one) for name, one in value.items() if one is not UNSET}
    if isinstance(value, Struct):
        return _plain(structs.asdict(value))
    if isinstance(value, set | frozenset):
        return sorted(map(_plain, value), key=str)
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value if isinstance(value, str | int | float | None) else str(value)


def _key(name: Any) -> str:
    plain = _plain(name)
    return plain if isinstance(plain, str) else str(plain)
