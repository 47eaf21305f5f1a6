"""BER in the dialect of control messages (docs/protocols/blazingmq.md, 6.3)."""

from __future__ import annotations

from typing import NamedTuple

from conformance.decoders import Unreadable

SEQUENCE = 0x30  #: tag of the outermost value, and of what an array holds
CONTEXT, CLASS = 0x80, 0xC0  #: the class of a sequence's elements, and its bits in a tag
CONSTRUCTED, NUMBER = 0x20, 0x1F  #: bits of a tag
INDEFINITE = 0x80
LONGEST_LENGTH = 4  #: bytes
DEEPEST = 32


class Element(NamedTuple):
    """One element: the content of a primitive one, the elements in a constructed one."""

    tag: int
    content: bytes
    parts: tuple[Element, ...]

    @property
    def number(self) -> int:
        """Its id."""
        return self.tag & NUMBER

    @property
    def is_primitive(self) -> bool:
        return not self.tag & CONSTRUCTED


def read_sequence(data: bytes) -> Element:
    """The outermost value; what follows it means nothing."""
    element, _ = _element(data, 0, len(data), 0)
    if element.tag != SEQUENCE:
        raise Unreadable(f"expected tag {SEQUENCE:#x}, came {element.tag:#x}")
    return element


def elements_of(parent: Element) -> tuple[Element, ...]:
    """The elements of a sequence or choice, which all have the context class."""
    if parent.is_primitive:
        raise Unreadable(f"expected a constructed element, came tag {parent.tag:#x}")
    strange = [part.tag for part in parent.parts if part.tag & CLASS != CONTEXT]
    if strange:
        raise Unreadable(f"expected elements of the context class, came tag {strange[0]:#x}")
    return parent.parts


def elements_by_number(parent: Element) -> dict[int, Element]:
    """The elements of a sequence by their ids; of several the last."""
    return {part.number: part for part in elements_of(parent)}


def items_of(parent: Element) -> list[Element]:
    """The elements of an array."""
    if parent.is_primitive:
        raise Unreadable(f"expected an array, came tag {parent.tag:#x}")
    for part in parent.parts:
        if part.tag != SEQUENCE:
            raise Unreadable(f"expected tag {SEQUENCE:#x} in an array, came {part.tag:#x}")
    return list(parent.parts)


def _element(data: bytes, at: int, end: int, depth: int) -> tuple[Element, int]:
    """The element that begins here, and where the next one does."""
    if end - at < 2:
        raise Unreadable(f"expected a tag and a length at byte {at}")
    if depth > DEEPEST:
        raise Unreadable(f"expected at most {DEEPEST} elements in each other")
    tag, length = data[at], data[at + 1]
    at += 2
    if tag & NUMBER == NUMBER:
        raise Unreadable(f"expected a tag of one byte, came {tag:#x}")
    if length == INDEFINITE:
        if not tag & CONSTRUCTED:
            raise Unreadable(f"expected a definite length of tag {tag:#x}")
        parts, at = _parts(data, at, end, depth)
        return Element(tag, b"", parts), at
    if length > INDEFINITE:
        width = length - INDEFINITE
        if width > min(LONGEST_LENGTH, end - at):
            raise Unreadable(f"expected a length of at most {LONGEST_LENGTH} bytes at byte {at}")
        length, at = int.from_bytes(data[at : at + width]), at + width
    stop = at + length
    if stop > end:
        raise Unreadable(f"expected {length} bytes at byte {at}, {end - at} are left")
    if not tag & CONSTRUCTED:
        return Element(tag, data[at:stop], ()), stop
    parts_of: list[Element] = []
    while at < stop:
        part, at = _element(data, at, stop, depth + 1)
        parts_of.append(part)
    return Element(tag, b"", tuple(parts_of)), stop


def _parts(data: bytes, at: int, end: int, depth: int) -> tuple[tuple[Element, ...], int]:
    """The elements up to the two zero bytes that end an indefinite length, and where these end."""
    found: list[Element] = []
    while data[at : min(at + 2, end)] != b"\0\0":
        part, at = _element(data, at, end, depth + 1)
        found.append(part)
    return tuple(found), at + 2
