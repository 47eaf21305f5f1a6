"""A frame of any kind, made from the types of its fields."""

from __future__ import annotations

import types
import typing
from functools import cache
from typing import Any

import msgspec

from conformance.run.traits import Traits
from fakebrokers.core.frames import Frame, kind_of


def specimen(kind: type[Frame], traits: Traits, key: Any = None) -> Frame | None:
    """A frame of that kind, as empty as its types allow, with that correlation key; None if there is none."""
    made = _made(kind, traits)
    name = kind.spec.key
    if key is None or name is None or name not in kind.__struct_fields__:
        return made
    if type(key) is not type(getattr(made, name)):
        return None
    return msgspec.structs.replace(made, **{name: key})


@cache
def _made(kind: type[Frame], traits: Traits) -> Frame:
    if kind in traits.faults.specimens:
        return traits.faults.specimens[kind]
    hints = typing.get_type_hints(kind)
    values = {one.name: _blank(hints[one.name]) for one in msgspec.structs.fields(kind) if one.required}
    if kind.spec.status in values:
        values[kind.spec.status] = traits.questions.ok
    return kind(**values)


def kind_named(name: str, traits: Traits) -> type[Frame]:
    """The frame class of that kind, among those that the server may say. Raises LookupError."""
    for kind in traits.faults.said_by_server():
        if kind_of(kind) == name:
            return kind
    raise LookupError(name)


def _blank(hint: Any) -> Any:
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        return _blank(typing.get_args(hint)[0])
    if origin in (typing.Union, types.UnionType):
        parts = typing.get_args(hint)
        return None if type(None) in parts else _blank(parts[0])
    plain = origin or hint
    if plain in (int, float, str, bytes, bool, list, dict):
        return plain()
    if isinstance(plain, type) and issubclass(plain, tuple):
        return ()
    return {}
