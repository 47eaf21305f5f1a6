"""RESP 2 and 3 without a socket: bytes become values, commands become bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from conformance.clients.reference.kit import ClientError

DEPTH_MAX = 16  #: arrays in one another
ITEMS_MAX = 1 << 20  #: of an array
BULK_MAX = 512 << 20  #: bytes of a string
LINE_MAX = 64 << 10  #: bytes before the end of a line
#: What only RESP3 has: big numbers, errors and texts with a length, sets, attributes.
LATER = (b"(", b"!", b"=", b"~", b"|")


class Push(tuple[Any, ...]):
    """What the server says without being asked (RESP3)."""


class ErrorReply(str):
    """An error of the server, its text."""

    __slots__ = ()

    @property
    def code(self) -> str:
        """Its first word."""
        return self.partition(" ")[0]


class Parser:
    """Values of one connection: bytes, int, float, bool, None, list, `Push`, `ErrorReply`.

    A simple string is bytes as a bulk string is; a map is the list of its keys and values in turn.

    Attributes:
        resp3: Whether values are allowed that RESP2 does not have.
    """

    def __init__(self) -> None:
        self.resp3 = False
        self.rest = b""
        self.needed = 0

    def feed(self, data: bytes) -> Iterator[Any]:
        """Values that are whole. Raises `ClientError` (protocol) for what is no RESP."""
        self.rest += data
        if len(self.rest) < self.needed:
            return
        at = 0
        while at < len(self.rest):
            found = self.value(at, 0)
            if found is None:
                break
            value, at = found
            yield value
        self.needed = max(self.needed - at, 0)
        self.rest = self.rest[at:]

    def value(self, at: int, depth: int) -> tuple[Any, int] | None:
        """The value at a place and where it ends; None if it does not end yet."""
        end = self.rest.find(b"\r\n", at)
        if end < 0:
            if len(self.rest) - at > LINE_MAX:
                raise unreadable(self.rest[at : at + 20])
            return None
        mark, line, at = self.rest[at : at + 1], self.rest[at + 1 : end], end + 2
        if mark in LATER and not self.resp3:
            raise unreadable(mark + line)
        if mark in (b"$", b"=", b"!"):
            return self.bulk(mark, self.size(line, BULK_MAX), at)
        if mark in (b"*", b"~", b">", b"%", b"|"):
            return self.many(mark, self.size(line, ITEMS_MAX), at, depth)
        return self.simple(mark, line), at

    def simple(self, mark: bytes, line: bytes) -> Any:
        """A value that is one line."""
        if mark == b"+":
            return line
        if mark == b"-":
            return ErrorReply(line.decode(errors="replace"))
        if mark in (b":", b"("):
            return self.number(line)
        if mark == b"_" and not line:
            return None
        if mark == b"#" and line in (b"t", b"f"):
            return line == b"t"
        if mark == b",":
            try:
                return float(line)
            except ValueError:
                raise unreadable(mark + line) from None
        raise unreadable(mark + line)

    def bulk(self, mark: bytes, size: int, at: int) -> tuple[Any, int] | None:
        """A string of so many bytes."""
        if size < 0:
            return (None, at)
        if len(self.rest) < at + size + 2:
            self.needed = at + size + 2
            return None
        if self.rest[at + size : at + size + 2] != b"\r\n":
            raise unreadable(self.rest[at + size : at + size + 2])
        body = self.rest[at : at + size]
        if mark == b"!":
            return ErrorReply(body.decode(errors="replace")), at + size + 2
        return (body[4:] if mark == b"=" else body), at + size + 2

    def many(self, mark: bytes, count: int, at: int, depth: int) -> tuple[Any, int] | None:
        """Values in a value."""
        if depth >= DEPTH_MAX:
            raise ClientError("protocol", "values are nested too deeply")
        if count < 0:
            return (None, at)
        items = []
        for _ in range(2 * count if mark in b"%|" else count):
            found = self.value(at, depth + 1)
            if found is None:
                return None
            items.append(found[0])
            at = found[1]
        if mark == b"|":  # attributes say something about the value that follows, which is what counts
            return self.value(at, depth)
        return (Push(items) if mark == b">" else items), at

    def size(self, line: bytes, most: int) -> int:
        """A length; -1 stands for nothing."""
        found = self.number(line)
        if not -1 <= found <= most:
            raise unreadable(line)
        return found

    def number(self, line: bytes) -> int:
        """An integer."""
        digits = line[1:] if line[:1] in (b"-", b"+") else line
        if not digits.isdigit() or len(digits) > (40 if self.resp3 else 19):
            raise unreadable(line)
        return int(line)


def unreadable(what: bytes) -> ClientError:
    """What is raised for bytes that are no RESP."""
    return ClientError("protocol", f"expected a value of RESP, got {what[:20]!r}")


def command(words: Sequence[bytes]) -> bytes:
    """The bytes of a command."""
    parts = [b"*%d\r\n" % len(words)]
    parts += [b"$%d\r\n%b\r\n" % (len(word), word) for word in words]
    return b"".join(parts)
