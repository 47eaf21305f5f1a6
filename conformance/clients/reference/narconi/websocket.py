"""WebSocket frames as a client writes and reads them (RFC 6455): no extensions."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from conformance.clients.reference.kit import ClientError
from fakebrokers.narconi.websocket import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, xor

MESSAGE_MAX = 16 << 20  #: larger messages end the connection with 1009


class Message(NamedTuple):
    """A message or a control frame that has arrived whole."""

    opcode: int
    payload: bytes


class BadFrame(ClientError):
    """Bytes that end the connection with `close_code`; `before` is what was complete in front of them."""

    def __init__(self, close_code: int, text: str) -> None:
        super().__init__("protocol", text)
        self.close_code = close_code
        self.before: list[Message] = []


def encode(opcode: int, payload: bytes, random: Random) -> bytes:
    """One masked frame."""
    size = len(payload)
    if size < 126:
        head = bytes((0x80 | opcode, 0x80 | size))
    elif size < 65536:
        head = bytes((0x80 | opcode, 0x80 | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((0x80 | opcode, 0x80 | 127)) + size.to_bytes(8, "big")
    mask = random.randbytes(4)
    return head + mask + xor(payload, mask)


class MessageReader:
    """Bytes to messages. Fragments are put together; control frames may come between them."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._opcode = CONTINUATION
        self._parts = bytearray()

    @property
    def partial(self) -> bytes:
        """What has come of a frame that is not whole."""
        return bytes(self._buffer)

    def feed(self, data: bytes) -> list[Message]:
        """Take in bytes; what is complete now. Raises `BadFrame`, after which nothing is read."""
        self._buffer += data
        found: list[Message] = []
        try:
            while (message := self._next()) is not None:
                if message.opcode != CONTINUATION:
                    found.append(message)
        except BadFrame as error:
            error.before = found
            raise
        return found

    def _next(self) -> Message | None:
        """The next frame; with the opcode of a continuation if it completes nothing."""
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        first, second = buffer[0], buffer[1]
        size, at = second & 0x7F, 2
        if size >= 126:
            at = 4 if size == 126 else 10
            if len(buffer) < at:
                return None
            size = int.from_bytes(buffer[2:at], "big")
        self.check(first, second, size)
        if len(buffer) < at + size:
            return None
        payload = bytes(buffer[at : at + size])
        del buffer[: at + size]
        return self._take(first & 0x0F, bool(first & 0x80), payload)

    def check(self, first: int, second: int, size: int) -> None:
        """Raise `BadFrame` for the head of a frame that a server must not send."""
        opcode = first & 0x0F
        if first & 0x70:
            raise BadFrame(1002, "a reserved bit is set")
        if second & 0x80:
            raise BadFrame(1002, "a frame of the server is masked")
        if opcode >= CLOSE and (size > 125 or not first & 0x80):
            raise BadFrame(1002, "a control frame is too large, or in pieces")
        if opcode not in (CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG):
            raise BadFrame(1002, f"opcode {opcode}")
        if opcode < CLOSE and (opcode == CONTINUATION) != (self._opcode != CONTINUATION):
            raise BadFrame(1002, "a fragment at the wrong place")
        if len(self._parts) + size > MESSAGE_MAX:
            raise BadFrame(1009, f"a message of more than {MESSAGE_MAX} bytes")

    def _take(self, opcode: int, final: bool, payload: bytes) -> Message:
        if opcode >= CLOSE:
            return Message(opcode, payload)
        self._opcode = self._opcode or opcode
        self._parts += payload
        if not final:
            return Message(CONTINUATION, b"")
        message = Message(self._opcode, bytes(self._parts))
        self._opcode = CONTINUATION
        self._parts = bytearray()
        return message._replace(payload=self.text(message.payload)) if message.opcode == TEXT else message

    def text(self, payload: bytes) -> bytes:
        """The payload of a text message. Raises `BadFrame` for what is no UTF-8."""
        try:
            payload.decode()
        except UnicodeDecodeError:
            raise BadFrame(1007, "text that is no UTF-8") from None
        return payload
