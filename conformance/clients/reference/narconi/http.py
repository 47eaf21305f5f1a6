"""HTTP/1.1 as a client writes and reads it: requests to bytes, bytes to responses."""

from __future__ import annotations

from collections.abc import Sequence
from string import digits, hexdigits
from typing import NamedTuple

from conformance.clients.reference.kit import ClientError

Headers = Sequence[tuple[str, str]]

HEAD_MAX = 64 * 1024
VERSION = b"HTTP/"  #: what every response begins with
CHUNKED = -1


class Response(NamedTuple):
    """A response that has arrived whole."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes = b""

    def header(self, name: str) -> str | None:
        """The first value of a header, whatever its case."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    @property
    def keeps_alive(self) -> bool:
        """Whether the connection stays open after it."""
        return (self.header("connection") or "").lower() != "close"


def encode_request(method: str, target: str, host: str, headers: Headers = (), body: bytes = b"") -> bytes:
    """The bytes of a request; one with a body, and every POST, has a length.

    Raises:
        ClientError: invalid, for a header that would not stay one line.
    """
    length = [("Content-Length", str(len(body)))] if body or method in ("POST", "PUT") else []
    lines = [f"{method} {target} HTTP/1.1"]
    for name, value in [("Host", host), *headers, *length]:
        if any(mark in name + value for mark in "\r\n\0"):
            raise ClientError("invalid", f"the header {name!r} is not one line")
        lines.append(f"{name}: {value}")
    try:
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body
    except UnicodeEncodeError:
        raise ClientError("invalid", "headers are Latin-1") from None


class ResponseReader:
    """Bytes to one response. `rest` is what came after it.

    Args:
        method: Of the request.
    """

    def __init__(self, method: str) -> None:
        self.method = method
        self.rest = b""
        self._buffer = bytearray()
        self._head: Response | None = None
        self._body = bytearray()
        self._chunk: int | None = None  #: bytes of the chunk at hand that are missing

    def feed(self, data: bytes) -> Response | None:
        """Take in bytes; the response once it is whole. Raises `ClientError` (protocol)."""
        self._buffer += data
        if self._head is None and not self._read_head():
            return None
        head = self._head
        assert head is not None
        length = self.length_of(head)
        if length == CHUNKED:
            return self._read_chunks(head)
        if length is None:
            self._body += self._buffer
            self._buffer.clear()
            return None
        if len(self._buffer) < length:
            return None
        return self._done(head, bytes(self._buffer[:length]), length)

    def end(self) -> Response | None:
        """The connection has ended: that completes a body without a length, and nothing else."""
        if self._head is not None and self.length_of(self._head) is None:
            return self._head._replace(body=bytes(self._body))
        return None

    def length_of(self, head: Response) -> int | None:
        """Bytes of the body, `CHUNKED`, or None: up to the end of the connection."""
        if head.status in (101, 204, 304) or self.method == "HEAD":
            return 0
        if (head.header("transfer-encoding") or "").lower() == "chunked":
            return CHUNKED
        length = head.header("content-length")
        return None if length is None else self._number(length, 10)

    def _number(self, text: str, base: int) -> int:
        """A length, of digits alone: `int` takes signs, spaces and underlines too."""
        if not text or not set(text) <= set(hexdigits if base == 16 else digits):
            raise ClientError("protocol", f"no length: {text!r:.40}")
        return int(text, base)

    def _read_head(self) -> bool:
        while True:
            if not VERSION.startswith(self._buffer[: len(VERSION)]):
                raise ClientError("protocol", f"no response: {bytes(self._buffer[:40])!r}")
            head, end, rest = bytes(self._buffer).partition(b"\r\n\r\n")
            if not end:
                if len(self._buffer) > HEAD_MAX:
                    raise ClientError("protocol", "the head of the response has no end")
                return False
            first, *lines = head.decode("latin-1").split("\r\n")
            words = first.split(" ", 2)
            if not words[0].startswith("HTTP/1.") or len(words) < 2 or not words[1].isdecimal():
                raise ClientError("protocol", f"no HTTP response: {first!r:.60}")
            self._buffer = bytearray(rest)
            headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
            if (
                len(words[1]) != 3 or words[1][0] != "1" or words[1] == "101"
            ):  # others are not the last answer
                self._head = Response(int(words[1]), headers)
                return True

    def _read_chunks(self, head: Response) -> Response | None:
        while True:
            if self._chunk is None:
                line, end, rest = bytes(self._buffer).partition(b"\r\n")
                if not end:
                    return None
                self._chunk = self._number(line.partition(b";")[0].decode("latin-1").rstrip(" \t"), 16)
                self._buffer = bytearray(rest)
            if len(self._buffer) < self._chunk + 2:
                return None
            self._body += self._buffer[: self._chunk]
            if self._buffer[self._chunk : self._chunk + 2] != b"\r\n":
                raise ClientError("protocol", "a chunk goes on after its end")
            del self._buffer[: self._chunk + 2]
            is_last, self._chunk = self._chunk == 0, None
            if is_last:
                return self._done(head, bytes(self._body), 0)

    def _done(self, head: Response, body: bytes, used: int) -> Response:
        self.rest = bytes(self._buffer[used:])
        return head._replace(body=body)
