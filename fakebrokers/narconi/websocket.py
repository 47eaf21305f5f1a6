"""WebSocket messages as a server reads and writes them (RFC 6455): no extensions."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha1
from typing import NamedTuple

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
CONTINUATION = 0

PROTOCOL_ERROR = 1002
NO_TEXT = 1007

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_MASK = b"\x37\xfa\x21\x3d"


class Message(NamedTuple):
    """A message or control frame that has arrived whole.

    Attributes:
        opcode: Of its first frame.
        payload: Unmasked; empty if `too_large`.
        size: Bytes on the wire.
        too_large: Above what the reader keeps; it has been thrown away.
    """

    opcode: int
    payload: bytes
    size: int
    too_large: bool = False


class BadFrame(NamedTuple):
    """Bytes that are no frame; `code` is what RFC 6455 closes with. Nothing more is read."""

    data: bytes
    problem: str
    code: int


def accept_key(key: str) -> str:
    """The answer to a ``Sec-WebSocket-Key`` (RFC 6455, section 4.2.2)."""
    return b64encode(sha1(key.encode() + _GUID, usedforsecurity=False).digest()).decode()


def encode_frame(
    opcode: int, payload: bytes, *, fin: bool = True, rsv: int = 0, masked: bool = False
) -> bytes:
    """One frame; masked with a fixed key if asked for."""
    first = (0x80 if fin else 0) | rsv << 4 | opcode
    size = len(payload)
    mask = 0x80 if masked else 0
    if size < 126:
        head = bytes((first, mask | size))
    elif size < 65536:
        head = bytes((first, mask | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((first, mask | 127)) + size.to_bytes(8, "big")
    return head + _MASK + _xor(payload, _MASK) if masked else head + payload


def _xor(data: bytes, key: bytes) -> bytes:
    size = len(data)
    stream = (key * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "little") ^ int.from_bytes(stream, "little")).to_bytes(size, "little")


class MessageReader:
    """Bytes to messages. Fragments are put together; control frames may come between them.

    Args:
        limit: Bytes of a message that are kept; larger ones are read over.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._skip = 0  # bytes of a too large frame that are still to come
        self._opcode = 0  # of the fragmented message under way
        self._fragments = bytearray()
        self._size = 0
        self._too_large = False
        self._final = True
        self._dead = False

    @property
    def partial(self) -> int:
        """Bytes of a message that has not arrived whole."""
        return self._size + len(self._buffer)

    def feed(self, data: bytes) -> list[Message | BadFrame]:
        """Take in bytes; everything that is complete now."""
        out: list[Message | BadFrame] = []
        if self._dead:
            return out
        buffer = self._buffer
        buffer += data
        pos = 0
        while True:
            if self._skip:
                step = min(self._skip, len(buffer) - pos)
                pos += step
                self._skip -= step
                if self._skip:
                    break
                self._end_frame(out)
            at, end, first, key = _head(buffer, pos)
            if at < 0:
                break
            problem = self._check(first, end - at)
            if problem:
                out.append(BadFrame(bytes(buffer[pos : pos + 256]), problem, PROTOCOL_ERROR))
                self._dead = True
                break
            if first & 0x0F < CLOSE:
                if not self._start_frame(first, end - pos, end - at):
                    self._skip = end - at
                    pos = at
                    continue
                if end > len(buffer):
                    self._size -= end - pos
                    break
                self._fragments += _xor(buffer[at:end], key) if key else buffer[at:end]
                self._end_frame(out)
            elif end > len(buffer):
                break
            else:
                payload = bytes(buffer[at:end])
                out.append(Message(first & 0x0F, _xor(payload, key) if key else payload, end - pos))
            pos = end
        del buffer[:pos]
        return out
