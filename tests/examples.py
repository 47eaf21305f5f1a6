"""Golden vectors put together field by field: a frame with every kind of value in every field.

A `Kind` is what may be in a field: usual values, and those with which mistakes show, each with its bytes
as the notes in docs/protocols have them. A record is one too, so a frame has as many examples as all of its
fields together: one per field and odd value, the other fields usual. Neighbours of one kind have different
usual values, so that fields in the wrong order show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from msgspec import inspect

Side = Literal["client", "server"]


class Example(NamedTuple):
    """A value and its bytes.

    Attributes:
        value: Of the field; of fields that are read together a tuple.
        wire: The bytes.
        is_written: Whether these are the bytes that are written for it; else it is one of several spellings.
    """

    value: Any
    wire: bytes
    is_written: bool = True


class Kind(NamedTuple):
    """What may be in a field: usual values, and others by what is odd about them."""

    usual: tuple[Example, ...]
    odd: Mapping[str, Example]

    @property
    def shortest(self) -> Example:
        """That with the fewest bytes, of those that are written."""
        written = [each for each in (*self.odd.values(), *self.usual) if each.is_written]
        return min(written, key=lambda each: len(each.wire))

    def without(self, *names: str) -> Kind:
        """The same without some of what is odd."""
        return Kind(self.usual, {name: each for name, each in self.odd.items() if name not in names})

    def also(self, **odd: Example) -> Kind:
        """The same with more that is odd; words are joined by ``_``."""
        return Kind(self.usual, {**self.odd, **{name.replace("_", " "): each for name, each in odd.items()}})


class Vector(NamedTuple):
    """A frame and its bytes.

    Attributes:
        name: The frame, the field, and what is odd about it.
        reader: Who is sent it.
        frame: What it is.
        wire: The bytes.
        is_written: See `Example`.
    """

    name: str
    reader: Side
    frame: Any
    wire: bytes
    is_written: bool = True


class Limit(NamedTuple):
    """Bytes at a limit, or after it, and what becomes of them.

    Attributes:
        name: Which limit.
        reader: Who is sent it.
        wire: The bytes.
        codec, decoder: What the fake's codec and the judge's decoder make of it: ``frame``, ``waits`` for
            more, or the code of `Malformed`.
    """

    name: str
    reader: Side
    wire: bytes
    codec: str
    decoder: str


def vectors(name: str, reader: Side, kind: Kind) -> Iterator[Vector]:
    """The examples of a frame."""
    for number, each in enumerate(kind.usual):
        yield Vector(f"{name}: usual {number}", reader, *each)
    for odd, each in kind.odd.items():
        yield Vector(f"{name}.{odd}", reader, *each)


def number(bits: int, *, signed: bool = False) -> Kind:
    """An integer, big endian."""
    size = bits // 8

    def example(value: int) -> Example:
        return Example(value, value.to_bytes(size, signed=signed))

    top = 1 << bits - 1
    odd = {"zero": 0, "sign bit": -top if signed else top, "largest": top - 1 if signed else 2 * top - 1}
    if signed:
        odd["minus one"] = -1
    usual = [int.from_bytes(bytes(range(first, first + size))) for first in (1, 0x11, 0x21, 0x31, 0x41)]
    return Kind(tuple(map(example, usual)), {name: example(value) for name, value in odd.items()})


def literal(usual: Mapping[Any, bytes], **odd: Example) -> Kind:
    """Values with bytes written down; words of what is odd are joined by ``_``."""
    return Kind(tuple([Example(value, wire) for value, wire in usual.items()]), {}).also(**odd)


def concatenated(parts: Mapping[str, bytes]) -> bytes:
    """One after the other."""
    return b"".join(parts.values())


def record(
    make: Callable[..., Any],
    fields: Mapping[str, Kind],
    join: Callable[[Mapping[str, bytes]], bytes] = concatenated,
    *,
    twice: bool = False,
) -> Kind:
    """Several fields.

    Args:
        make: Takes the values by name.
        fields: By name, in the order of the wire; fields that are read together have a name of several words.
        join: The bytes of all from the bytes of each.
        twice: Whether each odd value is tried beside both usual ones of the others: one item and two, there
            and absent. What is read fast is often read by hand.
    """

    def example(chosen: Mapping[str, Example]) -> Example:
        values: dict[str, Any] = {}
        for names, (value, *_) in chosen.items():
            values |= zip(names.split(), value, strict=True) if " " in names else {names: value}
        return Example(
            make(**values),
            join({name: each.wire for name, each in chosen.items()}),
            all(each.is_written for each in chosen.values()),
        )

    usual = [
        {name: kind.usual[(at + shift) % len(kind.usual)] for at, (name, kind) in enumerate(fields.items())}
        for shift in range(2)
    ]
    odd = {
        f"{name}{'.' if '.' in label or ':' in label else ': '}{label}{beside}": example(
            {**others, name: each}
        )
        for beside, others in zip(("", ", beside others"), usual[: 1 + twice], strict=False)
        for name, kind in fields.items()
        for label, each in kind.odd.items()
    }
    if fields:
        odd["nothing in it: all shortest"] = example({name: kind.shortest for name, kind in fields.items()})
    return Kind((example(usual[0]), example(usual[1])), odd)


def array(
    item: Kind,
    join: Callable[[list[bytes]], bytes],
    make: Callable[[Iterable[Any]], Any] = tuple,
    *,
    may_repeat: bool = True,
) -> Kind:
    """Any number of a kind.

    Args:
        join: The bytes of all from the bytes of each.
        make: What holds the values.
        may_repeat: Whether two may be the same.
    """

    def example(*items: Example) -> Example:
        return Example(
            make([each.value for each in items]),
            join([each.wire for each in items]),
            all(each.is_written for each in items),
        )

    first, second = item.usual[:2]
    odd = {"none": example(), "two": example(first, second), "the other order": example(second, first)}
    if may_repeat:
        odd["twice the same"] = example(first, first)
    odd |= {f"of {label}": example(each) for label, each in item.odd.items()}
    return Kind((example(first), example(second, first)), odd)


def optional(kind: Kind, absent: bytes = b"") -> Kind:
    """Something that need not be there, and is not in every other usual frame."""
    missing = Example(None, absent)
    return Kind((kind.usual[0], missing), kind.odd).also(absent=missing)


# What the table of a protocol has to hold

#: By where a value is: the values that have to be met there.
Wanted = Mapping[str, Iterable[Any]]

_LARGEST = {(1 << bits) - 1 for width in (8, 16, 32, 64) for bits in (width, width - 1)}
_TOP = {1 << width - 1 for width in (8, 16, 32, 64)}


def gaps(kinds: Iterable[type], found: Iterable[Vector], values: Wanted) -> list[str]:
    """What is missing in vectors: a frame, a field, or what is odd of a field.

    Args:
        kinds: The classes of the frames.
        found: The vectors.
        values: What fields have to be met with instead, where their type says too much or too little: by
            class and field, ``Deliver.version``; nothing at all of a field that follows from others.
    """
    frames = [vector.frame for vector in found]
    missing = []
    for kind in kinds:
        own = [frame for frame in frames if type(frame) is kind]
        if own:
            missing += _gaps(kind.__name__, inspect.type_info(kind), own, values)
        else:
            missing.append(f"{kind.__name__}: no vector")
    return missing


def _gaps(place: str, info: inspect.Type, met: list[Any], values: Wanted) -> Iterator[str]:
    if isinstance(info, inspect.StructType | inspect.NamedTupleType):
        for field in info.fields:
            name = f"{info.cls.__name__}.{field.name}"
            inner = [getattr(each, field.name) for each in met]
            if name in values:
                yield from (f"{place}.{field.name}: {each!r}" for each in values[name] if each not in inner)
            else:
                yield from _gaps(f"{place}.{field.name}", field.type, inner, values)
        return
    yield from (f"{place}: {label}" for label, is_met in _classes(info).items() if not is_met(met))
    present = [each for each in met if each is not None]
    if isinstance(info, inspect.UnionType):
        for each in info.types:
            if not isinstance(each, inspect.NoneType):
                yield from _gaps(place, each, present, values)
    elif isinstance(info, inspect.VarTupleType):
        yield from _gaps(f"{place}[]", info.item_type, [one for each in present for one in each], values)
    elif isinstance(info, inspect.TupleType):
        for at, each in enumerate(info.item_types):
            yield from _gaps(f"{place}[{at}]", each, [one[at] for one in present], values)
    elif isinstance(info, inspect.DictType):
        yield from _gaps(f"{place} key", info.key_type, [key for each in present for key in each], values)
        inner = [value for each in present for value in each.values()]
        yield from _gaps(f"{place} value", info.value_type, inner, values)


Met = Callable[[list[Any]], bool]


def _any(wanted: Callable[[Any], bool]) -> Met:
    return lambda met: any(wanted(each) for each in met)


def _classes(info: inspect.Type) -> Mapping[str, Met]:
    """What has to be met of a type: by name, and the test of whether it is."""
    if isinstance(info, inspect.UnionType) and info.includes_none:
        return {"absent": _any(lambda value: value is None)}
    if isinstance(info, inspect.BoolType):
        return {"true": lambda met: True in met, "false": lambda met: False in met}
    if isinstance(info, inspect.IntType):
        return {
            "zero": lambda met: 0 in met,
            "the largest": _any(lambda value: value in _LARGEST),
            "the sign bit": _any(lambda value: abs(value) in _TOP),
        }
    if isinstance(info, inspect.StrType):
        return {
            "empty": lambda met: "" in met,
            "not ASCII": _any(lambda value: not value.isascii() and _is_utf8(value)),
            "not UTF-8": _any(lambda value: not _is_utf8(value)),
            "of more than 255 bytes": _any(lambda value: len(value) > 255),
        }
    if isinstance(info, inspect.BytesType):
        return {"empty": lambda met: b"" in met, "every byte": _any(lambda value: len(set(value)) == 256)}
    if isinstance(info, inspect.VarTupleType):
        return {
            "none": lambda met: () in met,
            "two": _any(lambda value: len(value) == 2 and value[0] != value[1]),
            "twice the same": _any(lambda value: len(value) == 2 and value[0] == value[1]),
        }
    if isinstance(info, inspect.DictType):
        return {"none": lambda met: {} in met, "two": _any(lambda value: len(value) > 1)}
    return {}


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
