"""BER in the dialect of control messages (docs/protocols/blazingmq.md, 6.3)."""

from __future__ import annotations

from typing import NamedTuple

from conformance.decoders import Unreadable

SEQUENCE = 0x30  #: tag of the outermost value, and of what an array holds
CONTEXT, CLASS = 0x80, 0xC0  #: the class of a sequence's elements, and its bits in a tag
CONSTRUCTED, NUMBER = 0x20, 0x1F  #: bits of a tag
INDEFINITE = 0x80
LONGEST_LENGTH = 4  #: bytes
LONGEST_TAG = 5  #: bytes after the first
DEEPEST = 32


class Element(NamedTuple):
    """One element: the content of a primitive one, the elements in a constructed one.

    Attributes:
        number: Its id.
        problem: Why the elements in one of a definite length cannot be read, if somebody wants them.
        is_last: Whether no element follows a primitive one in what it is in.
    """

    tag: int
    number: int
    content: bytes = b""
    parts: tuple[Element, ...] = ()
    problem: str = ""
    is_last: bool = False

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
    parts = _parts_of(parent)
    strange = [part.tag for part in parts if part.tag & CLASS != CONTEXT]
    if strange:
        raise Unreadable(f"expected elements of the context class, came tag {strange[0]:#x}")
    return parts


def items_of(parent: Element) -> tuple[Element, ...]:
    """The elements of an array."""
    parts = _parts_of(parent)
    for part in parts:
        if part.tag != SEQUENCE:
            raise Unreadable(f"expected tag {SEQUENCE:#x} in an array, came {part.tag:#x}")
    return parts


def _parts_of(parent: Element) -> tuple[Element, ...]:
    if parent.is_primitive:
        raise Unreadable(f"expected a constructed element, came tag {parent.tag:#x}")
    if parent.problem:
        raise Unreadable(parent.problem)
    return parent.parts


def _element(data: bytes, at: int, end: int, depth: int) -> tuple[Element, int]:
    """The element that begins here, and where the next one does."""
    if end - at < 2:
        raise Unreadable(f"expected a tag and a length at byte {at}")
    if depth > DEEPEST:
        raise Unreadable(f"expected at most {DEEPEST} elements in each other")
    tag, number, at = _tag(data, at, end)
    length, at = data[at], at + 1
    if length == INDEFINITE:
        if not tag & CONSTRUCTED:
            raise Unreadable(f"expected a definite length of tag {tag:#x}")
        parts, at = _parts(data, at, end, depth)
        return Element(tag, number, parts=parts), at
    if length > INDEFINITE:
        width = length - INDEFINITE
        if width > min(LONGEST_LENGTH, end - at):
            raise Unreadable(f"expected a length of at most {LONGEST_LENGTH} bytes at byte {at}")
        length, at = int.from_bytes(data[at : at + width]), at + width
    stop = at + length
    if stop > end:
        raise Unreadable(f"expected {length} bytes at byte {at}, {end - at} are left")
    if not tag & CONSTRUCTED:
        is_last = stop == end or data[stop] == 0
        return Element(tag, number, data[at:stop], is_last=is_last), stop
    try:
        return Element(tag, number, parts=_definite(data, at, stop, depth)), stop
    except Unreadable as problem:  # who does not know the element does not look into it
        return Element(tag, number, problem=str(problem)), stop


def _tag(data: bytes, at: int, end: int) -> tuple[int, int, int]:
    """The first byte of a tag, its number, and where the length is, of which there is a byte."""
    tag, at = data[at], at + 1
    if tag & NUMBER != NUMBER:
        return tag, tag & NUMBER, at
    number = 0
    for _ in range(LONGEST_TAG):
        if at >= end - 1:
            break
        number, is_more, at = number << 7 | data[at] & 0x7F, data[at] & 0x80, at + 1
        if not is_more:
            return tag, number, at
    raise Unreadable(f"expected a tag of at most {LONGEST_TAG + 1} bytes and a length before byte {end}")


def _definite(data: bytes, at: int, stop: int, depth: int) -> tuple[Element, ...]:
    found: list[Element] = []
    while at < stop:
        part, at = _element(data, at, stop, depth + 1)
        found.append(part)
    return tuple(found)


def _parts(data: bytes, at: int, end: int, depth: int) -> tuple[tuple[Element, ...], int]:
    """The elements up to the two zero bytes that end an indefinite length, and where these end."""
    found: list[Element] = []
    while data[at : min(at + 2, end)] != b"\0\0":
        part, at = _element(data, at, end, depth + 1)
        found.append(part)
    return tuple(found), at + 2
