"""Golden vectors of control messages of BlazingMQ, in both encodings.

By the notes (docs/protocols/blazingmq.md, 6.2 to 6.4).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fakebrokers.blazingmq import frames as f
from tests.blazingmq.layouts import ALL_BYTES, event, headed_otherwise
from tests.blazingmq.layouts_schema import CHOICES, ENUMERATIONS, INTEGERS, RANGES, elements, python, rows
from tests.examples import Example, Kind, Limit, Side, Vector, array, literal, record, vectors

BER, JSON = 0x00, 0x20  #: the seventh byte of an event
CONTROL, AUTHENTICATION = 1, 15  #: types of events


class Encoding(ABC):
    """How values are written. What is absent has no bytes."""

    BYTE: int  #: the seventh of an event

    def __init__(self) -> None:
        self._made: dict[str, Kind] = {}

    @abstractmethod
    def whole(self, number: int) -> bytes:
        """A number."""

    @abstractmethod
    def enumerated(self, number: int, name: str) -> bytes:
        """A member of an enumeration."""

    @abstractmethod
    def texts(self) -> Kind:
        """Strings."""

    @abstractmethod
    def flags(self) -> Kind:
        """True and false."""

    @abstractmethod
    def octets(self) -> Kind:
        """Bytes."""

    @abstractmethod
    def sequence(self, names: Sequence[str], parts: Sequence[bytes]) -> bytes:
        """Elements by their names."""

    @abstractmethod
    def several(self, items: list[bytes]) -> bytes:
        """Any number of sequences."""

    @abstractmethod
    def message(self, group: str, number: int, name: str, head: bytes, content: bytes) -> bytes:
        """A choice, with the number of the request in front of it where it has one."""

    def kind(self, word: str) -> Kind:
        """What a word of the tables means."""
        if word not in self._made:
            self._made[word] = self._kind(word)
        return self._made[word]

    def _kind(self, word: str) -> Kind:
        if word in RANGES:
            usual = [Example(number, self.whole(number)) for number in (1, 2, 3, 7, 0x01020304)]
            odd = {f"{number}": Example(number, self.whole(number)) for number in RANGES[word]}
            return Kind(tuple(usual), {"zero": Example(0, self.whole(0)), **odd})
        if word in ENUMERATIONS:
            sign = -1 if word == "category" else 1
            members = enumerate(ENUMERATIONS[word])
            found = [Example(sign * at, self.enumerated(sign * at, name)) for at, name in members]
            return Kind(tuple(found[:2]), {f"member {each.value}": each for each in found})
        simple = {"string": self.texts, "bool": self.flags, "bytes": self.octets}
        if word in simple:
            return simple[word]()
        return self.elements(getattr(f, word), elements(word))

    def elements(self, make: Callable[..., Any], words: Sequence[str]) -> Kind:
        """A sequence of these elements."""
        fields = {}
        for word in words:
            name, _, kind = word.partition(":")
            fields[name] = self._element(*kind.partition("=")[::2])
        names = list(fields)
        return record(
            make,
            {python(name): kind for name, kind in fields.items()},
            lambda parts: self.sequence(names, list(parts.values())),
        )

    def _element(self, word: str, default: str) -> Kind:
        if word.startswith("?"):
            return self.kind(word[1:]).also(absent=Example(None, b""))
        if word.startswith("[]"):
            return array(self.kind(word[2:]), self.several).also(left_out=Example((), b"", False))
        return self.kind(word).also(left_out=Example(_left_out(word, default), b"", False))


def _left_out(word: str, default: str) -> Any:
    """What an element is read as that is not there."""
    if word.startswith("?"):
        return None
    if word.startswith("[]"):
        return ()
    if word == "string":
        return default
    if word == "bool":
        return bool(int(default))
    if word in RANGES or word in ENUMERATIONS:
        return int(default)
    values = {}
    for element in elements(word):
        name, _, kind = element.partition(":")
        values[python(name)] = _left_out(*kind.partition("=")[::2])
    if default:
        values[next(iter(values))] = int(default)
    return getattr(f, word)(**values)


class Ber(Encoding):
    """Section 6.3: a tag with the number of the element in it, a length, the content."""

    BYTE = BER

    def whole(self, number: int) -> bytes:
        return _primitive(bytes.fromhex(INTEGERS[number]))

    def enumerated(self, number: int, name: str) -> bytes:
        return self.whole(number)

    def texts(self) -> Kind:
        lengths = {size: "x" * size for size in (127, 128, 255, 256, 65536)}
        heads = {127: "7F", 128: "8180", 255: "81FF", 256: "820100", 65536: "83010000"}
        return literal(
            {text: _primitive(text.encode()) for text in ("a", "bc", "def", "ghij")},
            empty=Example("", b"\x80\0"),
            not_ASCII=Example("é€", bytes.fromhex("80 05 c3a9e282ac")),
            not_UTF8=Example("\udcff", b"\x80\1\xff"),
            a_slash=Example('/"\\', b'\x80\3/"\\'),
            blanks=Example(" a  b\0", b"\x80\6 a  b\0"),
            **{
                f"of_{size}_bytes": Example(text, b"\x80" + bytes.fromhex(heads[size]) + text.encode())
                for size, text in lengths.items()
            },
            wider_length=Example("ab", b"\x80\x84\0\0\0\2ab", False),
        )

    def flags(self) -> Kind:
        return literal(
            {True: b"\x80\1\1", False: b"\x80\1\0"},
            false=Example(False, b"\x80\1\0"),
            another_true=Example(True, b"\x80\1\xff", False),
        )

    def octets(self) -> Kind:
        return literal(
            {b"\0me": b"\x80\3\0me"},
            empty=Example(b"", b"\x80\0"),
            every_byte=Example(ALL_BYTES, bytes.fromhex("80 820100") + ALL_BYTES),
        )

    def sequence(self, names: Sequence[str], parts: Sequence[bytes]) -> bytes:
        numbered = (_with_tag(part[0] | at, part) for at, part in enumerate(parts) if part)
        return _constructed(0xA0, b"".join(numbered))

    def several(self, items: list[bytes]) -> bytes:
        return _constructed(0xA0, b"".join([_with_tag(0x30, item) for item in items]))

    def message(self, group: str, number: int, name: str, head: bytes, content: bytes) -> bytes:
        at = 1 if group == "control" else 0
        choice = _constructed(0xA0 | at, _with_tag(0xA0 | number, content))
        return _constructed(0x30, head + choice)


def _primitive(content: bytes) -> bytes:
    return bytes([0x80, len(content)]) + content


def _constructed(tag: int, content: bytes) -> bytes:
    return bytes([tag, 0x80]) + content + b"\0\0"


def _with_tag(tag: int, element: bytes) -> bytes:
    return bytes([tag]) + element[1:]


class Json(Encoding):
    """Section 6.2: names, and slashes with a backslash in front."""

    BYTE = JSON

    def whole(self, number: int) -> bytes:
        return str(number).encode()

    def enumerated(self, number: int, name: str) -> bytes:
        return f'"{name}"'.encode()

    def texts(self) -> Kind:
        return literal(
            {text: f'"{text}"'.encode() for text in ("a", "bc", "def", "ghij")},
            empty=Example("", b'""'),
            not_ASCII=Example("é€\U0001f600", b'"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"'),
            a_slash=Example('/"\\\n', rb'"\/\"\\\n"'),
            blanks=Example(" a  b\t\0", rb'" a  b\t\u0000"'),
            long=Example("x" * 300, b'"' + b"x" * 300 + b'"'),
            other_escapes=Example("é\U0001f600/ ", rb'"\u00e9\ud83d\ude00/\u0020"', False),
        )

    def flags(self) -> Kind:
        return literal({True: b"true", False: b"false"}, false=Example(False, b"false"))

    def octets(self) -> Kind:
        return literal(
            {b"\0me": b'"AG1l"'},
            empty=Example(b"", b'""'),
            every_byte=Example(ALL_BYTES, b'"' + b64encode(ALL_BYTES).replace(b"/", b"\\/") + b'"'),
        )

    def sequence(self, names: Sequence[str], parts: Sequence[bytes]) -> bytes:
        present = zip(names, parts, strict=True)
        return b"{" + b",".join([f'"{name}":'.encode() + part for name, part in present if part]) + b"}"

    def several(self, items: list[bytes]) -> bytes:
        return b"[" + b",".join(items) + b"]"

    def message(self, group: str, number: int, name: str, head: bytes, content: bytes) -> bytes:
        start = b'"rId":' + head + b"," if head else b""
        return b"{" + start + f'"{name}":'.encode() + content + b"}"


def _padded(message: bytes) -> bytes:
    count = 4 - len(message) % 4
    return message + bytes([count]) * count


def _choice(encoding: Encoding, group: str, number: int, name: str, words: Sequence[str]) -> Kind:
    """An event with one choice."""
    kind_of_event = AUTHENTICATION if group == "login" else CONTROL
    make = getattr(f, name[0].upper() + name[1:] if name != "status" else "StatusResponse")

    def whole(head: bytes, content: bytes) -> bytes:
        message = encoding.message(group, number, name, head, content)
        return event(kind_of_event, _padded(message), encoding.BYTE)

    if group != "control":
        content = encoding.elements(make, words)
        return Kind(
            tuple([each._replace(wire=whole(b"", each.wire)) for each in content.usual]),
            {label: each._replace(wire=whole(b"", each.wire)) for label, each in content.odd.items()},
        )
    content = encoding.elements(lambda **values: values, words)
    return record(
        lambda r_id, content: make(r_id=r_id, **content),
        {"r_id": encoding.kind("i32").also(absent=Example(None, b"")), "content": content},
        lambda parts: whole(parts["r_id"], parts["content"]),
    )


def _reader(name: str) -> Side:
    return "client" if name.endswith("Response") or name == "status" else "server"


def by_the_notes() -> Iterator[Vector]:
    """All of them, in both encodings."""
    for encoding in (Ber(), Json()):
        for row in rows(CHOICES):
            group, number, name, *words = row.split()
            label = f"{name} in {type(encoding).__name__}"
            kind = _choice(encoding, group, int(number), name, words)
            yield from vectors(label, _reader(name), kind)
            yield from headed_otherwise(label, _reader(name), kind)


_CATEGORIES = tuple(range(0, -9, -1))
#: What fields have to be met with where their type says too much or too little.
WANTED: Mapping[str, Any] = {
    "Status.category": _CATEGORIES,
    "StatusResponse.category": _CATEGORIES,
    "Expression.version": (0, 1),
    **{f"{name}.client_type": (0, 1, 2, 3) for name in ("Identity", "ClientIdentity")},
    **{f"{name}.sdk_language": (0, 1, 2) for name in ("Identity", "ClientIdentity")},
}

#: What an element cannot be: its sequence, number and name, and its content in BER and in JSON.
_IMPOSSIBLE = (
    ("handle", 1, "qId", (("FF", "-1"), ("0100000000", "4294967296"), ("", '"7"'))),
    ("handle", 3, "flags", (("FF", "-1"), ("010000000000000000", "18446744073709551616"))),
    ("handle", 4, "readCount", (("0080000000", "2147483648"), ("FF7FFFFFFF", "-2147483649"), ("", "0.5"))),
    ("stream", 1, "maxUnconfirmedMessages", (("008000000000000000", "9223372036854775808"),)),
    ("stream", 1, "maxUnconfirmedMessages", (("FF7FFFFFFFFFFFFFFF", "-9223372036854775809"), ("", "true"))),
    ("queue", 1, "isFinal", (("0000", "1"), ("", '"true"'))),
)
#: Of these what a broker takes all the same.
_TAKEN = {
    *(("qId", "FF"), ("qId", ""), ("qId", '"7"'), ("flags", "FF"), ("readCount", "")),
    *(("maxUnconfirmedMessages", ""), ("isFinal", '"true"')),
}


def limited() -> Iterator[Limit]:
    """Numbers beyond their types, and values that are none."""
    for where, number, name, contents in _IMPOSSIBLE:
        for octets, text in contents:
            inner = bytes([0x80 | number, len(octets) // 2]) + bytes.fromhex(octets)
            said = f'{{"{name}":{text}}}'
            if where == "stream":
                choice, inner, said = (
                    14,
                    _constructed(0xA1, inner),
                    f'"configureQueueStream":{{"streamParameters":{said}}}',
                )
            elif where == "handle":
                choice, inner, said = (
                    12,
                    _constructed(0xA0, inner),
                    f'"closeQueue":{{"handleParameters":{said}}}',
                )
            else:
                choice, said = 12, f'"closeQueue":{said}'
            message = _constructed(0x30, b"\x80\1\1" + _constructed(0xA1, _constructed(0xA0 | choice, inner)))
            json = f'{{"rId":1,{said}}}'.encode()
            for label, content, wire in (
                (repr(octets), octets, event(CONTROL, _padded(message))),
                (text, text, event(CONTROL, _padded(json), JSON)),
            ):
                outcome = "frame" if (name, content) in _TAKEN else "control"
                yield Limit(f"{name} of {label}", "server", wire, outcome, outcome)
