"""What a line says of a frame: its result code by number and name, its key, how its bodies begin.

It uses the protocol's own words: names of fields, and names of codes where a document has them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from msgspec import UNSET

from fakebrokers.core.frames import Frame, Items, Part, Role, parts_of
from fakebrokers.journal.keys import expand, key_text, raw_keys
from fakebrokers.journal.secrets import redacted, without_secrets
from fakebrokers.viewer.rows import Span, as_json, brief, readable

KEYS_LINKED = 100  #: keys of a batch by which its frame is found
CODES_SHOWN = 3  #: of the items of a frame
KEY, KEY_HEAD, KEY_TAIL = 20, 10, 4  #: characters of a key that a line shows; of a longer one
BODIES, BODY = 2, 40  #: that a line shows the beginning of, and characters of each

#: Roles of frames that speak of a message as it goes to the broker, and as it comes from there.
_PUBLISHED = frozenset({Role.PUBLISH, Role.CONFIRM, Role.REJECT})
_DELIVERED = frozenset({Role.DELIVER, Role.ACK})


def keys_of(frame: Frame) -> Sequence[Any]:
    """The keys of its messages, or its own."""
    spec = frame.spec
    if spec.items is not None:
        return spec.items.keys(frame)
    return expand(raw_keys(frame, spec), spec)


def group_of(roles: Collection[str], connection: str) -> str:
    """Where its keys count: for messages to the broker, for those from there, or on its connection."""
    return "p" if _PUBLISHED.intersection(roles) else "d" if _DELIVERED.intersection(roles) else connection


def linked(keys: Sequence[Any], group: str) -> list[str]:
    """What a frame has in common with others of the same message."""
    return [f"{group}:{key if isinstance(key, str) else key_text(key)}" for key in keys[:KEYS_LINKED]]


def span_of(frame: Frame, group: str, links: Sequence[str]) -> Span | None:
    """The keys by which other frames may name its messages, where its links do not name all of them."""
    covers = range(0) if frame.spec.items is None else frame.spec.items.covers(frame)
    return (group, covers[0], covers[-1]) if len(covers) > len(links) else None


def counts_of(frame: Frame, direction: str) -> list[tuple[str, int]]:
    """For how many messages a frame is what: roles with numbers."""
    items = frame.spec.items
    if items is not None and items.mixed:
        return counts_in(parts_of(frame, frame.spec, direction))
    return [(str(frame.spec.role_in(direction)), 1 if items is None else _many(frame, items))]


def _many(frame: Frame, items: Items) -> int:
    """How many messages are in it; an item may hold several."""
    return len(items.covers(frame)) or items.count(frame)


def counts_in(parts: Iterable[Part]) -> list[tuple[str, int]]:
    """The same of a batch whose items differ."""
    found: dict[str, int] = {}
    for part in parts:
        found[str(part.role)] = found.get(str(part.role), 0) + len(part.indices or ())
    return list(found.items())


def keys_said(name: str, keys: Sequence[Any], many: int) -> str:
    """Keys with the name of their field: ``publishing_ids 1..3 (3 messages)``.

    Args:
        many: Messages.
    """
    if not keys:
        return ""
    first, last = _short(key_text(keys[0])), _short(key_text(keys[-1]))
    count = f" ({many} messages)" if many > 1 else ""
    return f"{name} {first}{count}" if len(keys) == 1 else f"{name} {first}..{last}{count}"


def _short(key: str) -> str:
    """Both ends of a long key: one of them differs from key to key."""
    return key if len(key) <= KEY else f"{key[:KEY_HEAD]}…{key[-KEY_TAIL:]}"


def _keys_of_frame(frame: Frame, keys: Sequence[Any]) -> str:
    """A key that no field holds has the name of the field that has the same value."""
    name, fields = frame.spec.key or "key", frame.__struct_fields__
    if name not in fields and keys and isinstance(keys[0], str | bytes):
        name = next((each for each in fields if getattr(frame, each) == keys[0]), name)
    items = frame.spec.items
    return keys_said(name, keys, 1 if items is None else _many(frame, items))


def code_said(name: str, code: int, word: str) -> str:
    """A result code: ``code 2 STREAM_DOES_NOT_EXIST``."""
    return " ".join(filter(None, (name, str(code), word)))


def codes_said(frame: Frame) -> str:
    """The result code of a frame, or those of its items, by number and name."""
    spec = frame.spec
    if spec.status:
        code = getattr(frame, spec.status)
        return "" if code is None else code_said(spec.status, int(code), frame.code_name(int(code)))
    if spec.items is None:
        return ""
    items, many = spec.items, min(spec.items.count(frame), KEYS_LINKED)
    codes = dict.fromkeys(code for at in range(many) if (code := items.status(frame, at)) is not None)
    said = [code_said("status", int(code), frame.code_name(int(code))) for code in islice(codes, CODES_SHOWN)]
    return ", ".join(said) + (" ..." if len(codes) > CODES_SHOWN else "")


def bodies_said(frame: Frame) -> str:
    """How the bodies of its messages begin, escaped: ``"tea", "milk" ...``; without credentials."""
    if frame.says:
        return " ".join(beginning(each, quoted=False) for each in _fields(frame, frame.says))
    said: list[str] = []
    for body in islice(_bodies(frame), BODIES + 1):
        if len(said) == BODIES:
            return f"{', '.join(said)} ..."
        said.append(beginning(body))
    return ", ".join(said)


def _bodies(frame: Frame) -> Iterator[Any]:
    spec = frame.spec
    if spec.inside is not None:  # what is inside has a row of its own
        return
    if spec.items is not None:
        yield from spec.items.bodies(frame)
        return
    for value in _fields(frame, spec.bulk):
        yield from value if isinstance(value, tuple) else (value,)


def _fields(frame: Frame, names: Iterable[str]) -> Iterator[Any]:
    """Some fields, without credentials, where they are there."""
    shown = redacted(frame, frame.spec)
    for name in names:
        value = getattr(shown, name)
        if value is not None and value is not UNSET:
            yield without_secrets(value) if isinstance(value, Mapping) else value


def beginning(body: Any, *, quoted: bool = True) -> str:
    """Text and bytes are quoted: an empty body shows as such."""
    is_text = isinstance(body, bytes | str)
    text = str(readable(body[: 2 * BODY])) if is_text else as_json(body)
    is_cut = len(text) > BODY or (is_text and len(body) > 2 * BODY)
    text = text[:BODY] + "…" * is_cut
    return f'"{text}"' if is_text and quoted else text


def said_of(frame: Frame, keys: Sequence[Any]) -> str:
    """All of it; of a frame without bodies, the first texts in it."""
    said = [codes_said(frame), _keys_of_frame(frame, keys), bodies_said(frame)]
    if not said[2]:
        known = {str(key) for key in keys}
        said.append(brief(frame, known | set(frame.code_names.values()) if said[0] or said[1] else ()))
    return " ".join(filter(None, said))
