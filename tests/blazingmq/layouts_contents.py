"""Golden vectors of what messages of BlazingMQ carry, and of GUIDs.

By the notes (docs/protocols/blazingmq.md, 2.1, 2.2 and 5).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import NamedTuple

from conformance.decoders.blazingmq.contents import MessageContent, MessageProperty
from tests.blazingmq.layouts import ALL_BYTES
from tests.examples import Kind, number

OLD, NEW, MIXED = "old", "new", "mixed"  #: styles: lengths, places, lengths under a schema id


class Value(NamedTuple):
    """A property: its type by number and by name, its value, and its bytes."""

    number: int
    type: str
    value: bool | int | str | bytes
    wire: bytes


def _numbers(type_number: int, name: str, kind: Kind) -> dict[str, Value]:
    examples = {"usual": kind.usual[0], **kind.odd}
    return {
        f"{name} {odd}": Value(type_number, name, each.value, each.wire) for odd, each in examples.items()
    }


def _same(type_number: int, name: str, **values: bytes) -> dict[str, Value]:
    """Bytes that are the value."""
    return {f"{name} {odd}": Value(type_number, name, each, each) for odd, each in values.items()}


VALUES: dict[str, Value] = {
    "true": Value(1, "bool", True, b"\1"),
    "false": Value(1, "bool", False, b"\0"),
    **_same(2, "char", zero=b"\0", letter=b"a", sign_bit=b"\x80", largest=b"\xff"),
    **_numbers(3, "short", number(16, signed=True)),
    **_numbers(4, "int32", number(32, signed=True)),
    **_numbers(5, "int64", number(64, signed=True)),
    "string": Value(6, "string", "v1", b"v1"),
    "string empty": Value(6, "string", "", b""),
    "string not ASCII": Value(6, "string", "é€", bytes.fromhex("c3a9e282ac")),
    "string not UTF-8": Value(6, "string", "\udcff", b"\xff"),
    "string with the number of its padding": Value(6, "string", "\1", b"\1"),
    **_same(
        7,
        "binary",
        empty=b"",
        every_byte=ALL_BYTES,
        more_than_16_bits=b"\1" * 0x1_2345,
        more_than_16_bits_of_words=b"\2" * 0x4_0406,
    ),
}
NAMES = {
    "one letter": ("a", b"a"),
    "not ASCII": ("é", b"\xc3\xa9"),
    "not UTF-8": ("\udcff", b"\xff"),
    "two bytes of length": ("x" * 0x102, b"x" * 0x102),
    "longest": ("x" * 4095, b"x" * 4095),
}


class Carried(NamedTuple):
    """What a message carries.

    Attributes:
        data: As it lies in the message.
        content: In the words of the judge.
        style: Of the properties.
        schema_id, compression: Of the message's header.
        is_written: Whether these are the bytes that are written.
    """

    name: str
    data: bytes
    content: MessageContent
    style: str
    schema_id: int
    compression: int
    is_written: bool = True


def area(rows: list[tuple[bytes, Value]], style: str) -> bytes:
    """The table of section 2.2, with the padding of 1.1."""
    heads, pairs = b"", b""
    for name, value in rows:
        number = len(pairs) if style == NEW else len(value.wire)
        heads += bytes([value.number << 2 | number >> 24, number >> 16 & 0xFF]) + (number & 0xFFFF).to_bytes(
            2
        )
        heads += len(name).to_bytes(2)
        pairs += name + value.wire
    size = 6 + len(heads) + len(pairs)
    padding = 4 - size % 4
    words = (size + padding) // 4
    return b"\x1b" + words.to_bytes(3) + bytes([0, len(rows)]) + heads + pairs + bytes([padding]) * padding


def _carried(name: str, rows: list[tuple[tuple[str, bytes], Value]], payload: bytes) -> Iterator[Carried]:
    """In all styles, with and without compression."""
    content = MessageContent(
        payload, {text: MessageProperty(value.type, value.value) for (text, _), value in rows}
    )
    for style, schema_id in ((OLD, 0), (NEW, 3), (MIXED, 1)):
        if style == MIXED and not rows[0][1].wire:
            continue  # a length of 0 looks like the place of the first
        plain = area([(wire, value) for (_, wire), value in rows], style)
        packed = plain + zlib.compress(payload) if style == NEW else zlib.compress(plain + payload)
        yield Carried(f"{name}, {style}", plain + payload, content, style, schema_id, 0)
        yield Carried(f"{name}, {style}, compressed", packed, content, style, schema_id, 1)


def contents() -> Iterator[Carried]:
    """All of them."""
    n, m = ("n", b"n"), ("m", b"m")
    for odd, value in VALUES.items():
        yield from _carried(odd, [(n, value)], b"abcd")
        yield from _carried(f"{odd} in front", [(n, value), (m, VALUES["true"])], b"abcd")
        yield from _carried(f"{odd} after", [(m, VALUES["true"]), (n, value)], b"abcd")
    for odd, name in NAMES.items():
        yield from _carried(f"name {odd}", [(m, VALUES["true"]), (name, VALUES["string"])], b"")
    many = [((f"p{at}", f"p{at}".encode()), VALUES["int64 usual"]) for at in range(255)]
    yield from _carried("as many as there may be", many, b"x")
    for size in range(4):  # another padding each
        yield from _carried(f"padding {size}", [(n, Value(6, "string", "x" * size, b"x" * size))], ALL_BYTES)
    for payload in (b"", b"\x1b", ALL_BYTES):
        yield Carried(f"nothing but {payload[:3]!r}", payload, MessageContent(payload), "", 0, 0)
        yield Carried(
            f"nothing but {payload[:3]!r}, compressed",
            zlib.compress(payload),
            MessageContent(payload),
            "",
            0,
            1,
        )


class Option(NamedTuple):
    """An options area: subscriptions with the attempts that remain, and the form in which it is written."""

    wire: bytes
    infos: tuple[tuple[int, int], ...]
    form: str = ""


_U = 0x80  #: attempts that are not counted
OPTIONS = {
    name: Option(bytes.fromhex(wire), infos, form)
    for name, (wire, infos, form) in {
        "none": ("", ((0, _U),), ""),
        "one": ("04000002 00000001", ((1, _U),), "ids"),
        "zero": ("04000002 00000000", ((0, _U),), "ids"),
        "two": ("04000003 01020304 00000001", ((0x01020304, _U), (1, _U)), "ids"),
        "sign bit": ("04000003 80000000 FFFFFFFF", ((1 << 31, _U), (2**32 - 1, _U)), "ids"),
        "info": ("0C400003 00000005 80000000", ((5, _U),), "infos"),
        "infos": (
            "0C400007 00000005 3F000000 FFFFFFFF 40000000 00000000 00000000",
            ((5, 63), (2**32 - 1, 0x40), (0, 0)),
            "infos",
        ),
        "packed": ("0E000080", ((0, _U),), "packed"),
        "packed counted": ("0E00003F", ((0, 63),), "packed"),
        "packed poisonous": ("0E000041", ((0, 0x41),), "packed"),
        "packed of another number": ("0C400003 00000007 02000000", ((7, 2),), "packed"),
        "a group in front": ("08000002 61620202 04000002 00000007", ((7, _U),), ""),
        "unknown after": ("04000002 00000007 FC000003 00000000 00000000", ((7, _U),), ""),
        "unknown packed": ("FE000003 04000002 00000007", ((7, _U),), ""),
        "infos of another size": ("0C600004 00000005 80000000 00000000", ((0, _U),), ""),
        "both": ("04000002 00000007 0C400003 00000008 03000000", ((7, _U), (8, 3)), ""),
    }.items()
}

#: Seconds since the maker began, what it has made before, and the GUID (section 5).
MAKER = bytes.fromhex("47FC14A25188")
GUIDS = (
    (0.0, 0, "400000 00000000000000"),
    (0.0, 0x1FFFFF, "5FFFFF 00000000000000"),
    (0.0, 0x200000, "600000 00000000000000"),
    (0.0, 0x3FFFFF, "7FFFFF 00000000000000"),
    (0.0, 0x400000, "400000 00000000000000"),
    (1.0, 5, "400005 0000003B9ACA00"),
    (72057594.0, 1, "400001 FFFFFFFDBD4400"),
)
