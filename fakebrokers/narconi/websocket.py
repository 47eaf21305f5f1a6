"""WebSocket messages as a server reads and writes them (RFC 6455): no extensions.

Own code, because what is needed is what libraries keep from their users. The server reads a message that is
too large to its end and answers it with an error of its own (docs/protocols/narconi.md, "publish"), where
they end the connection as soon as they see the length; frames are read with and without a mask, and the
journal wants their size on the wire. Faults write what the RFC forbids (reserved bits, unknown opcodes,
masked frames of a server), and the mask is always the same, so that runs repeat.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
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
    return head + _MASK + xor(payload, _MASK) if masked else head + payload


def xor(data: bytes, key: bytes) -> bytes:
    """Mask or unmask a payload with a key of four bytes."""
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
        self._pos = 0  #: in the buffer: what is in front has been read
        self._out: list[Message | BadFrame] = []
        self._dead = False
        # the message under way
        self._opcode = CONTINUATION
        self._parts: list[bytes] = []
        self._kept = 0
        self._size = 0
        self._too_large = False
        # the frame that is read over
        self._skip = 0
        self._skipped_final = True

    @property
    def partial(self) -> int:
        """Bytes of a message that has not arrived whole."""
        return self._size + len(self._buffer) - self._pos

    def feed(self, data: bytes) -> list[Message | BadFrame]:
        """Take in bytes; everything that is complete now."""
        return list(self.read(data))

    def read(self, data: bytes) -> Iterator[Message | BadFrame]:
        """The same one by one: what nobody asks for yet is not read yet."""
        if self._dead:
            return
        self._buffer += data
        try:
            while not self._dead:
                pos = self._pos
                self._pos = self._read_over(pos) if self._skip else self._read_frame(pos)
                yield from self._out
                self._out.clear()
                if self._pos == pos:
                    break
        finally:
            del self._buffer[: self._pos]
            self._pos = 0

    def _read_frame(self, pos: int) -> int:
        """Read the frame that begins at `pos`; returns where the next one begins."""
        buffer = self._buffer
        there = len(buffer) - pos
        if there < 2:
            return pos
        first, second = buffer[pos], buffer[pos + 1]
        size, at = second & 0x7F, pos + 2
        if size >= 126:
            width = 2 if size == 126 else 8
            if there < 2 + width:
                return pos
            size, at = int.from_bytes(buffer[at : at + width], "big"), at + width
        body = at + 4 if second & 0x80 else at
        if problem := self._problem(first, size):
            return self._fail(pos, problem, PROTOCOL_ERROR)
        if first & 0x0F < CLOSE and self._kept + size > self._limit:
            if len(buffer) < body:
                return pos
            return self._start_over(first, size, body, body - pos)
        end = body + size
        if len(buffer) < end:
            return pos
        payload = bytes(buffer[body:end])
        if body > at:
            payload = xor(payload, bytes(buffer[at:body]))
        self._take(first, payload, end - pos)
        return end

    def _problem(self, first: int, size: int) -> str:
        """What is wrong with a frame's head; "" if nothing."""
        opcode, final = first & 0x0F, first & 0x80
        if first & 0x70:
            return f"reserved bits that are zero, got {(first & 0x70) >> 4:03b}"
        if opcode in (CLOSE, PING, PONG):
            return "" if final and size < 126 else "a control frame of at most 125 bytes, in one piece"
        if opcode not in (CONTINUATION, TEXT, BINARY):
            return f"an opcode of RFC 6455, got {opcode}"
        if (opcode == CONTINUATION) != (self._opcode != CONTINUATION):
            return f"{'a continuation' if self._opcode else 'the start of a message'}, got opcode {opcode}"
        return ""

    def _fail(self, pos: int, problem: str, code: int) -> int:
        self._out.append(BadFrame(bytes(self._buffer[pos : pos + 256]), f"expected {problem}", code))
        self._dead = True
        return len(self._buffer)

    def _start_over(self, first: int, size: int, body: int, head: int) -> int:
        """The frame is too large: read over it, and over the rest of its message."""
        self._too_large = True
        self._parts.clear()
        self._opcode = self._opcode or first & 0x0F
        self._size += head
        self._skip, self._skipped_final = size, bool(first & 0x80)
        return body

    def _read_over(self, pos: int) -> int:
        step = min(self._skip, len(self._buffer) - pos)
        self._skip -= step
        self._size += step
        if not self._skip and self._skipped_final:
            self._finish()
        return pos + step

    def _take(self, first: int, payload: bytes, size: int) -> None:
        opcode = first & 0x0F
        if opcode >= CLOSE:
            self._out.append(Message(opcode, payload, size))
            return
        self._opcode = self._opcode or opcode
        self._size += size
        if payload and not self._too_large:  # empty fragments may come without end: they leave nothing behind
            self._parts.append(payload)
            self._kept += len(payload)
        if first & 0x80:
            self._finish()

    def _finish(self) -> None:
        payload = b"".join(self._parts)
        self._out.append(Message(self._opcode, payload, self._size, self._too_large))
        self._opcode, self._kept, self._size, self._too_large = CONTINUATION, 0, 0, False
        self._parts.clear()
