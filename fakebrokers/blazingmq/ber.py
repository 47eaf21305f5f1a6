"""Control messages in BER, in the dialect of BDE's balber (docs/protocols/blazingmq.md, 6.3).

What is constructed has an indefinite length and ends with two zero bytes; a reader takes definite lengths
too. An element's tag is its id in the context class; what a reader does not know it skips, and does not look
into where its length is definite.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from fakebrokers.blazingmq.schema import Element, Form, Shape
from fakebrokers.errors import WireError

SEQUENCE = 0x30
CONSTRUCTED = 0x20
CONTEXT = 0x80
_CLASS = 0xC0  #: bits of a tag
_INDEFINITE = 0x80
_END = b"\0\0"
#: Constructed elements within each other that a reader goes into.
_DEPTH = 32
#: Ids from here on have tags of several bytes; no schema has one.
_LONG_TAG = 0x1F
_LONGEST_TAG = 5
_NAME_SIZE = 4  #: bytes of an enumeration's number, at most


class Node(NamedTuple):
    """An element as it is on the wire.

    Attributes:
        tag: The identifier byte.
        at: Where its content begins.
        content: Of a primitive element the bytes, else the elements in it, or why they cannot be read.
        is_last: Whether nothing comes after a primitive one in the element that it is in.
    """

    tag: int
    at: int
    content: bytes | tuple[Node, ...] | WireError
    is_last: bool = False

    @property
    def number(self) -> int:
        """The element's id."""
        return self.tag & 0x1F

    @property
    def elements(self) -> tuple[Node, ...]:
        """The elements of a sequence or choice, which have the context class. Raises as `parts`."""
        strange = next((part for part in self.parts if part.tag & _CLASS != CONTEXT), None)
        if strange is not None:
            raise WireError("an element of the context class", f"tag 0x{strange.tag:02x}", strange.at)
        return self.parts

    @property
    def parts(self) -> tuple[Node, ...]:
        """The elements of a constructed one.

        Raises:
            WireError: It is primitive, or they are no BER.
        """
        if isinstance(self.content, bytes):
            raise WireError("a constructed element", f"a primitive one, tag 0x{self.tag:02x}", self.at)
        if isinstance(self.content, WireError):
            raise self.content
        return self.content


def parse(data: bytes) -> Node:
    """The outermost element, a sequence; bytes after it are not looked at.

    Raises:
        WireError: The bytes are no BER, or end too early.
    """
    node, _ = _parse(data, 0, len(data), 0)
    return _is_sequence(node)


def _is_sequence(node: Node) -> Node:
    """The node, which stands in no sequence and therefore has the universal tag of one."""
    if node.tag != SEQUENCE:
        raise WireError(f"tag 0x{SEQUENCE:02x}", f"0x{node.tag:02x}", node.at)
    return node


def _parse(data: bytes, at: int, end: int, depth: int) -> tuple[Node, int]:
    if end - at < 2:
        raise WireError("an identifier and a length", f"{end - at} bytes", at)
    tag, at = _parse_tag(data, at, end)
    length, start = data[at], at + 1
    if length == _INDEFINITE:
        if not tag & CONSTRUCTED:
            raise WireError("a definite length of a primitive element", "0x80", at)
        return _parse_parts(data, tag, start, end, depth, indefinite=True)
    if length > _INDEFINITE:
        size = length & 0x7F
        if size > 4 or end - start < size:
            raise WireError("a length of at most 4 bytes", f"0x{length:02x}", at)
        length = int.from_bytes(data[start : start + size])
        start += size
    if length > end - start:
        raise WireError(f"{length} bytes of content", f"{end - start} bytes", start)
    after = start + length
    if not tag & CONSTRUCTED:
        return Node(tag, start, data[start:after], data[after : after + 1] in (b"\0", b"")), after
    try:
        return _parse_parts(data, tag, start, after, depth, indefinite=False)
    except WireError as problem:
        return Node(tag, start, problem), after


def _parse_tag(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The first byte of a tag, as if its id had the fewest bytes, and where its length is."""
    tag, at = data[at], at + 1
    if tag & _LONG_TAG != _LONG_TAG:
        return tag, at
    number = 0
    for place in range(at, min(at + _LONGEST_TAG, end - 1)):
        number = number << 7 | data[place] & 0x7F
        if not data[place] & 0x80:
            return (tag if number >= _LONG_TAG else tag & ~_LONG_TAG | number), place + 1
    raise WireError(f"a tag of at most {_LONGEST_TAG + 1} bytes", "more", at - 1)


def _parse_parts(
    data: bytes, tag: int, start: int, end: int, depth: int, *, indefinite: bool
) -> tuple[Node, int]:
    if depth > _DEPTH:
        raise WireError(f"at most {_DEPTH} elements within each other", "more", start)
    parts: list[Node] = []
    at = start
    while True:
        if indefinite and data[at : at + 2] == _END and end - at >= 2:
            return Node(tag, start, tuple(parts)), at + 2
        if not indefinite and at == end:
            return Node(tag, start, tuple(parts)), at
        node, at = _parse(data, at, end, depth + 1)
        parts.append(node)


def write(node: Node) -> bytes:
    """The bytes of an element."""
    if isinstance(node.content, bytes):
        return primitive(node.tag, node.content)
    return constructed(node.tag, b"".join([write(part) for part in node.parts]))


def primitive(tag: int, content: bytes) -> bytes:
    """A primitive element, with the shortest length there is."""
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes((tag, 0x80 | len(length))) + length + content


def constructed(tag: int, content: bytes) -> bytes:
    """A constructed element of indefinite length."""
    return bytes((tag, _INDEFINITE)) + content + _END


# values by their shapes


def pack_elements(elements: Iterable[Element], value: Any) -> bytes:
    """The elements of a sequence, without anything around them."""
    packed = []
    for element in elements:
        part = getattr(value, element.field)
        if part is not None:
            packed.append(_pack(element.shape, CONTEXT | element.number, part))
    return b"".join(packed)


def _pack(shape: Shape, tag: int, value: Any) -> bytes:
    if shape.form is Form.SEQUENCE:
        return constructed(tag | CONSTRUCTED, pack_elements(shape.elements, value))
    if shape.form is Form.ARRAY:
        assert shape.inner is not None
        inner = b"".join([_pack(shape.inner, SEQUENCE, each) for each in value])
        return constructed(tag | CONSTRUCTED, inner)
    if shape.form is Form.TEXT:
        return primitive(tag, value.encode(errors="surrogateescape"))
    if shape.form is Form.BYTES:
        return primitive(tag, value)
    if shape.form is Form.BOOLEAN:
        return primitive(tag, b"\x01" if value else b"\0")
    return primitive(tag, pack_integer(value))


def pack_integer(value: int) -> bytes:
    """Two's complement, as short as it gets."""
    size = (value if value >= 0 else ~value).bit_length() // 8 + 1
    return value.to_bytes(size, signed=True)


def read_elements(elements: Iterable[Element], nodes: Iterable[Node]) -> dict[str, Any]:
    """The fields of a sequence: absent ones have their default, unknown ones are skipped.

    Raises:
        WireError: An element is not what its shape says.
    """
    elements = tuple(elements)
    by_number = {element.number: element for element in elements}
    found = {}
    for node in nodes:
        element = by_number.get(node.number)
        if element is not None:  # of what is there twice the last counts, but each has to be readable
            found[element.field] = _read(element.shape, node)
    return {element.field: found.get(element.field, element.default) for element in elements}


def _read(shape: Shape, node: Node) -> Any:
    if shape.form is Form.SEQUENCE:
        assert shape.kind is not None
        return shape.kind(**read_elements(shape.elements, node.elements))
    if shape.form is Form.ARRAY:
        assert shape.inner is not None
        inner = shape.inner
        return tuple([_read(inner, _is_sequence(part)) for part in node.parts])
    content = node.content
    if not isinstance(content, bytes):
        raise WireError(shape.form.value, f"a constructed element, tag 0x{node.tag:02x}", node.at)
    if shape.form is Form.TEXT:
        return content.decode(errors="surrogateescape")
    if shape.form is Form.BYTES:
        return content
    if shape.form is Form.BOOLEAN:
        if len(content) != 1:
            raise WireError("one byte for true or false", f"{len(content)} bytes", node.at)
        return content != b"\0"
    return read_number(shape, node)


def read_number(shape: Shape, node: Node) -> int:
    """The number in an element, in as many bytes as its kind has: what does not fit its sign wraps around.

    Of no bytes it is 0 at the end of a sequence, and -1 before another element.

    Raises:
        WireError: There is none, or it is none that the shape allows.
    """
    content, at = node.content, node.at
    simple = shape.simple
    assert simple is not None
    if not isinstance(content, bytes):
        raise WireError("a number", "a constructed element", at)
    is_name = shape.form is Form.ENUMERATION
    is_signed = is_name or simple.low < 0
    size = _NAME_SIZE if is_name else (simple.high.bit_length() + is_signed) // 8
    digits = content[1:] if not is_signed and len(content) == size + 1 and not content[0] else content
    if len(digits) > size:
        raise WireError(f"a number of {size} bytes", f"{len(content)}", at)
    number = int.from_bytes(digits, signed=True) if digits else -(not node.is_last)
    if is_name and number not in simple.names:
        raise WireError(f"one of {', '.join(simple.names.values())}", str(number), at)
    if not is_signed:
        number &= simple.high
    return number
