"""Fields with other values: every number and every text of a frame, nested ones and those in arrays too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from conformance.sweep.acts.define import Param, Place, act
from conformance.sweep.model import Model
from fakebrokers.core.frames import Frame
from fakebrokers.faults.effect import Passage

#: Numbers that a field may have instead; what does not fit into a field is left out.
NUMBERS = (0, 1, 2, 3, 99, 0xFF, 0xFFFF, 2**31, 2**32 - 1, 2**53 + 1, 2**64 - 1)
#: What may be added to the value that is there.
STEPS = (1, -1, 5)
#: Texts; the third is no UTF-8 on the wire.
TEXTS = ("", "x" * 300, "\udcff\udcfe", "äöü€")
FEW_ITEMS = 2  #: of an array

Path = tuple[str | int, ...]


def paths_of(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every number and text in a frame, with its path."""
    if isinstance(value, msgspec.Struct):
        for name in type(value).__struct_fields__:
            yield from paths_of(getattr(value, name), (*path, name))
    elif isinstance(value, tuple | list):
        for index, item in enumerate(value[:FEW_ITEMS]):
            yield from paths_of(item, (*path, index))
    elif isinstance(value, Mapping):
        for name in list(value)[:FEW_ITEMS]:
            yield from paths_of(value[name], (*path, name))
    elif isinstance(value, int | str) and not isinstance(value, bool):
        yield path, value


def replaced(value: Any, path: Path, new: Any) -> Any:
    """A copy of a frame with another value at a path. Raises LookupError where there is no such path."""
    if not path:
        if isinstance(new, Mapping):
            return value + new["add"]
        return new
    name, rest = path[0], path[1:]
    if isinstance(value, msgspec.Struct):
        if name not in type(value).__struct_fields__:
            raise LookupError(name)
        return msgspec.structs.replace(value, **{str(name): replaced(getattr(value, str(name)), rest, new)})
    if isinstance(value, Mapping):
        return {**value, name: replaced(value[name], rest, new)}
    items = list(value)
    items[int(name)] = replaced(items[int(name)], rest, new)
    if hasattr(value, "_make"):
        return value._make(items)
    return type(value)(items)


def bent(frame: Frame, param: Any) -> Frame:
    """The frame with the change of a parameter: a path and a value. Raises LookupError, TypeError."""
    path, new = param
    changed: Frame = replaced(frame, tuple(path), new)
    return changed


def other_values(value: Any) -> Iterator[Any]:
    """What may stand in place of a value."""
    if isinstance(value, str):
        yield from (text for text in TEXTS if text != value)
        return
    yield from (number for number in NUMBERS if number != value)
    yield from ({"add": step} for step in STEPS)


def fields(place: Place, model: Model) -> Iterable[Param]:
    """Every field at every value that changes the bytes and fits the wire."""
    if place.direction != "out" or place.ordinal > 2:
        return
    codec = model.codec("server")
    seen = {bytes(place.data) if isinstance(place.data, bytes | bytearray) else repr(place.data)}
    for path, value in paths_of(place.frame):
        for new in other_values(value):
            try:
                data = codec.encode(bent(place.frame, (path, new)))
            except Exception:
                continue
            key = bytes(data) if isinstance(data, bytes | bytearray) else repr(data)
            if key not in seen:
                seen.add(key)
                yield ".".join(str(part) for part in path if isinstance(part, str)), [list(path), new]


@act("field", fields, lies=True)
def field(passage: Passage, param: Any, model: Model) -> None:
    """A field has another value."""
    assert passage.frame is not None
    try:
        data = passage.encode(bent(passage.frame, param))
    except Exception:  # another frame than in the run without faults, which has no such field
        passage.pass_through()
        return
    passage.pass_raw(data)
