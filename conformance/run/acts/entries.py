"""Entries that are missing, or have a value of another type, where a frame's form allows it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, get_args

import msgspec

from conformance.run.acts.define import InjectionPoint, Param, act_at_frame
from conformance.run.traits import Traits
from fakebrokers.core.frames import Frame
from fakebrokers.faults.effect import Passage

#: What may replace a value, by class.
INSTEAD: Mapping[str, Any] = {
    "null": None,
    "true": True,
    "number": 7,
    "text": "7",
    "list": [],
    "object": {"a": 1},
}
ABSENT = "absent"
DEPTH = 3
FEW_ENTRIES = 4  #: of a map
FEW_ITEMS = 8  #: of an array or a map that is a field

Path = tuple[str | int, ...]


@cache
def _free(kind: type) -> Mapping[str, Any]:
    """The fields of a frame that can have a value of any type, each with the one that says it is missing."""
    return {
        one.name: one.default
        for one in msgspec.structs.fields(kind)
        if one.type is Any and one.default is not msgspec.NODEFAULT
    }


@cache
def _optional(kind: type) -> frozenset[str]:
    """The fields of a frame that may be missing, and have no other type."""
    return frozenset(one.name for one in msgspec.structs.fields(kind) if type(None) in get_args(one.type))


def missing_in(value: msgspec.Struct) -> Iterator[Path]:
    """The paths of what may be left out of a frame, and is there: fields, items, entries of maps."""
    for name in type(value).__struct_fields__:
        there = getattr(value, name)
        if there is not None and name in _optional(type(value)):
            yield (name,)
        if isinstance(there, tuple | list) and not hasattr(there, "_make"):
            yield from ((name, index) for index in range(min(len(there), FEW_ITEMS)))
        if isinstance(there, Mapping):
            yield from ((name, key) for key in list(there)[:FEW_ITEMS])


def entries_of(value: Any, path: Path = ()) -> Iterator[Path]:
    """The paths of all that is in a frame and can be of any type."""
    inside: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, msgspec.Struct):
        free = _free(type(value))
        inside = [(name, getattr(value, name)) for name in type(value).__struct_fields__]
        yield from ((*path, name) for name, one in inside if name in free and one is not free[str(name)])
    elif isinstance(value, Mapping):
        inside = list(value.items())[:FEW_ENTRIES]
        yield from ((*path, name) for name, _ in inside)
    elif isinstance(value, list):
        inside = list(enumerate(value))[:1]
        yield from ((*path, index) for index, _ in inside)
    if len(path) < DEPTH:
        for name, one in inside:
            yield from entries_of(one, (*path, name))


def changed(value: Any, path: Path, word: str) -> Any:
    """A copy with an entry missing, or with another value. Raises LookupError where there is none."""
    name, rest = path[0], path[1:]
    if isinstance(value, msgspec.Struct):
        there = getattr(value, str(name))
        new = changed(there, rest, word) if rest else _free(type(value)).get(str(name))
        return msgspec.structs.replace(value, **{str(name): new if rest or word == ABSENT else INSTEAD[word]})
    if isinstance(value, tuple | list):
        items, at = list(value), int(name)
        items[at] = changed(items[at], rest, word) if rest else INSTEAD.get(word)
        return type(value)(items if rest or word != ABSENT else [*items[:at], *items[at + 1 :]])
    if name not in value:
        raise LookupError(name)
    if not rest and word == ABSENT:
        return {key: one for key, one in value.items() if key != name}
    return {**value, name: changed(value[name], rest, word) if rest else INSTEAD[word]}


def entries(place: InjectionPoint, traits: Traits) -> Iterable[Param]:
    """Every entry, missing or of every other type, where the wire takes it and it is another frame then."""
    if place.direction != "out" or place.ordinal > 2:
        return
    codec = traits.reading.codec("server")
    full, few = ((ABSENT, *INSTEAD) if place.ordinal <= 1 else (ABSENT,)), (ABSENT,)
    known = {path: full for path in entries_of(place.frame)}
    for path, words in ({path: few for path in missing_in(place.frame)} | known).items():
        where = ".".join(str(part) for part in path[:2])
        for word in words:
            try:
                frame: Frame = changed(place.frame, path, word)
                if frame != place.frame and traits.faults.is_bearable(frame) and codec.encode(frame):
                    yield f"{where} {'absent' if word == ABSENT else 'other'}", [list(path), word]
            except Exception:
                continue


@act_at_frame("entry", entries, lies=True)
def entry(passage: Passage, param: Any, traits: Traits) -> None:
    """An entry is missing, or has a value of another type."""
    path, word = param
    try:
        data = passage.encode(changed(passage.frame, tuple(path), word))
    except Exception:  # another frame than in the run without faults, which has no such entry
        passage.pass_through()
        return
    passage.pass_raw(data)
