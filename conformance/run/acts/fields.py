"""Fields with other values: every number, text and flag of a frame, nested ones and those in arrays too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from conformance.run.acts.define import InjectionPoint, Param, act_at_frame
from conformance.run.traits import Traits
from fakebrokers.core.frames import Frame
from fakebrokers.faults.effect import Passage

#: Numbers that a field may have instead, by class; what does not fit into a field is left out.
NUMBERS: Mapping[str, tuple[int, ...]] = {
    "zero": (0,),
    "small": (1, 2, 3, 99),
    "byte": (0xFF, 0xFFFF),
    "large": (2**31, 2**32 - 1, 2**53 + 1, 2**64 - 1),
}
#: What may be added to the value that is there.
STEPS = (1, -1, 5)
#: Texts by class; "foreign" is no UTF-8 on the wire, and so a spec has its bytes.
TEXTS: Mapping[str, Any] = {"blank": "", "long": "x" * 300, "foreign": {"hex": "fffe"}, "umlauts": "äöü€"}
FEW_ITEMS = 2  #: of an array

Path = tuple[str | int, ...]
MORE = 40  #: entries that an array or a map may have besides its own


def paths_of(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every number, text, flag, array and map in a frame, with its path."""
    if isinstance(value, msgspec.Struct):
        for name in type(value).__struct_fields__:
            yield from paths_of(getattr(value, name), (*path, name))
    elif isinstance(value, tuple | list):
        yield path, value
        for index, item in enumerate(value if hasattr(value, "_make") else value[:FEW_ITEMS]):
            yield from paths_of(item, (*path, index))
    elif isinstance(value, Mapping):
        yield path, value
        for name in list(value)[:FEW_ITEMS]:
            yield from paths_of(value[name], (*path, name))
    elif isinstance(value, int | str):
        yield path, value


def replaced(value: Any, path: Path, new: Any) -> Any:
    """A copy of a frame with another value at a path. Raises LookupError where there is no such path."""
    if not path:
        return _changed(value, new)
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


def _changed(value: Any, new: Any) -> Any:
    """The value with a step added, or an array or map with more entries or none."""
    if new == "many entries" and isinstance(value, Mapping):
        return {**value, **{f"more{number}": "x" for number in range(MORE)}}
    if new == "many entries":
        return type(value)([*value, *value[:1] * MORE])
    if new == "no entries":
        return {} if isinstance(value, Mapping) else type(value)()
    if isinstance(new, Mapping) and "hex" in new:
        return bytes.fromhex(new["hex"]).decode(errors="surrogateescape")
    return value + new["add"] if isinstance(new, Mapping) else new


def injected(frame: Frame, param: Any) -> Frame:
    """The frame with the change of a parameter: a path and a value. Raises LookupError, TypeError."""
    path, new = param
    changed: Frame = replaced(frame, tuple(path), new)
    return changed


def other_values(value: Any) -> Iterator[tuple[str, Any]]:
    """What may replace a value, each with its class."""
    if isinstance(value, str):
        yield from ((word, text) for word, text in TEXTS.items() if text != value)
    elif isinstance(value, bool):
        yield "other", not value
    elif isinstance(value, int):
        yield from (
            (word, number) for word, numbers in NUMBERS.items() for number in numbers if number != value
        )
        yield from (("step", {"add": step}) for step in STEPS)
    elif not hasattr(value, "_make"):
        yield from ((word, word) for word in ("many entries", "no entries"))


def fields(place: InjectionPoint, traits: Traits) -> Iterable[Param]:
    """Every field at every value that changes the bytes and fits the wire."""
    if place.direction != "out" or place.ordinal > 2:
        return
    codec = traits.reading.codec("server")
    seen = {_bytes(place.data)}
    for path, value in paths_of(place.frame):
        where = ".".join(str(part) for part in path[:3])
        for word, new in other_values(value):
            try:
                changed = injected(place.frame, (path, new))
                if not traits.faults.is_bearable(changed):
                    continue
                data = _bytes(codec.encode(changed))
            except Exception:
                continue
            if data not in seen:
                seen.add(data)
                yield f"{where} {word}", [list(path), new]


def _bytes(data: Any) -> bytes:
    return bytes(data) if isinstance(data, bytes | bytearray) else repr(data).encode()


@act_at_frame("field", fields, lies=True)
def field(passage: Passage, param: Any, traits: Traits) -> None:
    """A field has another value."""
    assert passage.frame is not None
    try:
        data = passage.encode(injected(passage.frame, param))
    except Exception:  # another frame than in the run without faults, which has no such field
        passage.pass_through()
        return
    passage.pass_raw(data)


PAYLOAD_HEAD = 16  #: bytes at the beginning of messages that are changed one by one
PAYLOAD_FRAMES = 4


def payload(place: InjectionPoint, traits: Traits) -> Iterable[Param]:
    """The first bytes of the messages in a frame, and some further on."""
    start = traits.faults.payload_at(place.frame) if place.direction == "out" else None
    if start is None or place.ordinal > PAYLOAD_FRAMES:
        return
    further = range(PAYLOAD_HEAD, place.size - start, max(1, (place.size - start) // 4))
    kind = place.data[start] >> 4 if start < place.size else 0  # the first bits say what follows
    for offset in (*range(min(PAYLOAD_HEAD, place.size - start)), *further):
        yield from ((f"{kind:x} {min(offset, PAYLOAD_HEAD)}", [offset, change]) for change in (1, 0x20, 0x80))


@act_at_frame("payload", payload, lies=True)
def change_payload(passage: Passage, param: Any, traits: Traits) -> None:
    """A byte of the messages in a frame is another one; sizes and checksums are recomputed."""
    offset, change = param
    start = traits.faults.payload_at(passage.frame) if passage.frame is not None else None
    data = bytearray(passage.data)
    if start is None or start + offset >= len(data):
        passage.pass_through()
        return
    data[start + offset] ^= change
    passage.pass_raw(passage.mend(bytes(data)))
