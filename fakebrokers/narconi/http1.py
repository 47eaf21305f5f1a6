"""HTTP/1.x as a server reads and writes it: bytes to requests, and both kinds of message to bytes.

Own code, because a fake answers as the recorded server does, not as a good one. It takes and refuses what
node 0.10 did: bare line feeds, blank lines in front of a request, a body after an upgrade; heads up to its
limit. It answers with the headers of the recording, in their order, and faults write responses that no
library would.

The size rule is Narconi's (docs/protocols/narconi.md, "Size"). It counts pieces: here a piece is a chunk, or
the whole body of a request with a length. TCP segments play no part, so that runs repeat.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import NamedTuple

from fakebrokers.journal.secrets import without_secrets
from fakebrokers.narconi.frames import Headers

#: Bytes of a request line and all headers, with the blank lines in front of them (the limit of node 0.10,
#: whose parser counts from the end of the request before). A trailer may be as long.
HEAD_LIMIT = 80 * 1024
#: Bytes of the line in front of a chunk and of a line of a trailer, with its end.
LINE_LIMIT = 1024
#: Digits of a length. All that a client can send within a lifetime has fewer.
_LENGTH_DIGITS = 15
_METHOD = re.compile(r"[A-Z][A-Z-]*\Z")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_LINE_ENDS = re.compile(rb"[\r\n]*")
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
_BLANK_LINE_SIZE = 4
_LENGTH = re.compile(rb"Content-Length: \d+")
#: Headers that carry credentials. Narconi has no use for them, so they are not kept.
_SECRET = frozenset({"authorization", "proxy-authorization", "cookie"})
_REASONS = {
    **{status.value: status.phrase for status in HTTPStatus},
    # as the server says them; Python 3.13 has the words of RFC 9110
    413: "Request Entity Too Large",
    414: "Request-URI Too Long",
    416: "Requested Range Not Satisfiable",
    422: "Unprocessable Entity",
}


class Request(NamedTuple):
    """A request that has arrived whole; `size` is its bytes on the wire."""

    method: str
    target: str
    headers: Headers
    minor: int
    body: bytes = b""
    too_large: bool = False
    size: int = 0

    def values(self, name: str) -> list[str]:
        """All values of a header; `name` in lower case."""
        return [value for key, value in self.headers if key.lower() == name]

    @property
    def upgrades(self) -> bool:
        """Whether it asks for WebSocket, so that the bytes after it are no HTTP."""
        return self.method == "GET" and any(v.lower() == "websocket" for v in self.values("upgrade"))


class ContinueExpected(NamedTuple):
    """A head with ``Expect: 100-continue``; the client waits before it sends the body."""


class BadRequest(NamedTuple):
    """Bytes that are no request; nothing after them can be read."""

    data: bytes
    problem: str


class _Bad(Exception):
    """Ends the reading; the text says what was expected and what came."""


Event = Request | ContinueExpected | BadRequest


class RequestReader:
    """Bytes to requests. The work is proportional to the bytes, however small the segments.

    Args:
        limit: Bytes of a body that are kept.
        cut: Whether the count stops once a piece has ended exactly at the limit, so that the rest
            is cut off and the request accepted.
    """

    def __init__(self, limit: int, cut: bool) -> None:
        self._limit = limit
        self._cut = cut
        self._buffer = bytearray()
        self._searched = 0  # in the buffer: the end of a head or line does not begin before
        self._blank = 0  # bytes of blank lines in front of the head
        self._trailer_at = 0
        self._step: Callable[[], bool] = self._read_head
        self._events: list[Event] = []
        self._head = Request("", "", (), 1)
        self._parts: list[bytes] = []
        self._kept = 0
        self._keep = True
        self._left = 0
        self._too_large = False
        self._size = 0

    @property
    def partial(self) -> int:
        """Bytes of a request that has not arrived whole."""
        return self._size + len(self._buffer)

    def feed(self, data: bytes) -> list[Event]:
        """Take in bytes; everything that is complete now."""
        return list(self.read(data))

    def read(self, data: bytes) -> Iterator[Event]:
        """The same one by one: what nobody asks for yet is not read yet."""
        if self._step == self._ended:
            return
        self._buffer += data
        goes_on = True
        while goes_on:
            try:
                goes_on = self._step()
            except _Bad as bad:
                self._events.append(BadRequest(bytes(self._buffer[:256]), str(bad)))
                self._buffer.clear()
                self._size = 0
                self._step = self._ended
                goes_on = False
            yield from self._events
            self._events.clear()

    def take_rest(self) -> bytes:
        """The bytes after a request that upgrades."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        return rest

    # steps; each returns whether it got on

    def _ended(self) -> bool:
        return False

    def _take(self, size: int) -> bytes:
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        self._size += size
        return data

    def _read_head(self) -> bool:
        buffer = self._buffer
        if not self._searched and (blank := _LINE_ENDS.match(buffer)):
            self._blank += blank.end()
            del buffer[: blank.end()]
        if buffer and not buffer[:1].isalpha():  # node's parser gives up here, too
            raise _Bad(f"a method, got {bytes(buffer[:16])!r}")
        limit = HEAD_LIMIT - self._blank
        end = _BLANK_LINE.search(buffer, self._searched, max(limit, 0))
        if end is None:
            if len(buffer) > limit:
                raise _Bad(f"a head of at most {HEAD_LIMIT} bytes, got more")
            self._searched = max(len(buffer) - _BLANK_LINE_SIZE + 1, 0)
            return False
        self._searched = 0
        self._head = _parse_head(bytes(buffer[: end.start()]))
        self._take(end.end())
        self._size += self._blank
        self._blank = 0
        self._start_body()
        return True

    def _start_body(self) -> None:
        head = self._head
        self._parts, self._kept, self._keep, self._too_large = [], 0, True, False
        coding = ",".join(head.values("transfer-encoding")).lower()
        lengths = set(head.values("content-length"))
        if coding and coding.split(",")[-1].strip() != "chunked":
            raise _Bad(f"a chunked transfer encoding, got {coding!r}")
        if not coding and (len(lengths) > 1 or not all(map(_is_length, lengths))):
            raise _Bad(f"one Content-Length, got {', '.join(sorted(lengths))[:80]!r}")
        if head.minor and "100-continue" in head.values("expect"):
            self._events.append(ContinueExpected())
        if coding:
            self._step = self._read_chunk_size
            return
        self._begin_piece(int(lengths.pop()) if lengths else 0)
        self._step = self._read_whole
        if not self._left:
            self._finish()

    def _begin_piece(self, size: int) -> None:
        """Decide whether the next piece is kept."""
        self._left = size
        self._keep = not self._too_large and not (self._cut and self._kept == self._limit)
        if self._keep and self._kept + size > self._limit:
            self._too_large, self._keep = True, False
            self._parts.clear()

    def _read_piece(self) -> bool:
        """Whether the piece is complete."""
        data = self._take(min(self._left, len(self._buffer)))
        self._left -= len(data)
        if self._keep:
            self._parts.append(data)
            self._kept += len(data)
        return not self._left

    def _read_whole(self) -> bool:
        if not self._read_piece():
            return False
        self._finish()
        return True

    def _line(self) -> bytes | None:
        end = self._buffer.find(b"\n", self._searched, LINE_LIMIT)
        if end < 0:
            self._searched = len(self._buffer)
            if self._searched >= LINE_LIMIT:
                raise _Bad(f"a line of at most {LINE_LIMIT} bytes, got more")
            return None
        self._searched = 0
        return self._take(end + 1).rstrip(b"\r\n")

    def _read_chunk_size(self) -> bool:
        line = self._line()
        if line is None:
            return False
        digits = line.split(b";")[0].strip()
        if not re.fullmatch(rb"[0-9A-Fa-f]{1,%d}" % _LENGTH_DIGITS, digits):
            raise _Bad(f"the size of a chunk, got {digits[:40]!r}")
        self._begin_piece(int(digits, 16))
        self._step = self._read_chunk if self._left else self._read_trailer
        self._trailer_at = self._size
        return True

    def _read_chunk(self) -> bool:
        if not self._read_piece():
            return False
        self._step = self._read_chunk_end
        return True

    def _read_chunk_end(self) -> bool:
        line = self._line()
        if line:
            raise _Bad(f"the end of a chunk, got {line[:40]!r}")
        if line is None:
            return False
        self._step = self._read_chunk_size
        return True

    def _read_trailer(self) -> bool:
        line = self._line()
        if line is None:
            return False
        if not line:
            self._finish()
        elif self._size - self._trailer_at > HEAD_LIMIT:
            raise _Bad(f"a trailer of at most {HEAD_LIMIT} bytes, got more")
        return True

    def _finish(self) -> None:
        request = self._head._replace(body=b"".join(self._parts), too_large=self._too_large, size=self._size)
        self._parts, self._size = [], 0
        self._events.append(request)
        self._step = self._ended if request.upgrades else self._read_head


def _is_length(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _LENGTH_DIGITS


def _parse_head(data: bytes) -> Request:
    first, *lines = data.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    parts = first.split(" ")
    if len(parts) != 3 or not _METHOD.match(parts[0]) or parts[2] not in ("HTTP/1.1", "HTTP/1.0"):
        raise _Bad(f"a request line of HTTP/1, got {' '.join(without_secrets(parts))[:80]!r}")
    headers = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not _TOKEN.match(name):
            shown = name if colon else line.partition(" ")[0]  # what follows may be a credential
            raise _Bad(f"a header, got {shown[:80]!r} of {len(line)} characters")
        headers.append((name, "***" if name.lower() in _SECRET else value.strip(" \t")))
    return Request(parts[0], parts[1], tuple(headers), int(parts[2][-1]))


def encode_request(method: str, target: str, headers: Headers, body: bytes, minor: int = 1) -> bytes:
    """A request; its headers say how the body is framed."""
    return _encode(f"{method} {target} HTTP/1.{minor}", headers, body)


def encode_response(status: int, reason: str, headers: Headers, body: bytes) -> bytes:
    """A response; its headers say how the body is framed."""
    return _encode(f"HTTP/1.1 {status} {reason or _REASONS.get(status, 'Unknown')}", headers, body)


def _encode(first: str, headers: Headers, body: bytes) -> bytes:
    lines = [first, *[f"{name}: {value}" for name, value in headers], "", ""]
    head = "\r\n".join(lines).encode("utf-8", "replace")
    if ("Transfer-Encoding", "chunked") not in headers:
        return head + body
    chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
    return b"%b%b0\r\n\r\n" % (head, chunk)


def mend_length(data: bytes) -> bytes:
    """An HTTP message whose ``Content-Length``, if it has one, fits its body."""
    head, blank, body = data.partition(b"\r\n\r\n")
    length = b"Content-Length: %d" % len(body)
    return _LENGTH.sub(length, head, count=1) + blank + body
