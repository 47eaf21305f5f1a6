"""RabbitMQ Stream, read by the letter of docs/protocols/rabbitmq-stream.md, 2, 3, 6 and 7.

What the client has sent is read as strictly as a server does, what it was sent as tolerantly as a well-made
client does: it skips what follows the fields that it knows, and takes a null string for an empty one.
"""

from __future__ import annotations

from typing import Literal

from conformance.decoders import SHOWN, Unreadable
from conformance.decoders.rabbitmq_stream.commands import FROM_CLIENT, FROM_SERVER, NAMES
from fakebrokers.core.frames import Frame, Malformed


class StreamDecoder:
    """Reads what one side of a connection is handed.

    What cannot be read is `Malformed` with the first bytes of the frame and its size, and one of these codes:

        too-large   the size is above the limit; nothing after it can be read any more
        empty       there is no room for a key
        unknown     key or version that this side is never sent; its size says where the next frame begins
        malformed   a known frame of another shape

    Args:
        reader: Who is handed the bytes.
        largest: What the size field may say, bytes; 0: anything.
    """

    def __init__(self, reader: Literal["client", "server"], largest: int = 0) -> None:
        self._readers = FROM_SERVER if reader == "client" else FROM_CLIENT
        self._largest = largest
        self._buffer = bytearray()
        self._is_lost = False

    @property
    def partial(self) -> int:
        """Bytes of a frame that has not arrived whole."""
        return len(self._buffer)

    def feed(self, unit: bytes) -> list[tuple[Frame, int]]:
        """Take in bytes; each frame that is whole now, with its size with the size field, bytes."""
        if self._is_lost:
            return []
        buffer = self._buffer
        buffer += unit
        found: list[tuple[Frame, int]] = []
        start = 0
        while len(buffer) - start >= 4:
            size = int.from_bytes(buffer[start : start + 4])
            if self._largest and size > self._largest:
                found.append(
                    (self._too_large(bytes(buffer[start : start + SHOWN]), size), len(buffer) - start)
                )
                self._is_lost = True
                start = len(buffer)
                break
            end = start + 4 + size
            if end > len(buffer):
                break
            found.append((self.read(bytes(buffer[start + 4 : end])), 4 + size))
            start = end
        del buffer[:start]
        return found

    def read(self, body: bytes) -> Frame:
        """The frame with this body: all but the size."""
        if len(body) < 2:
            return _malformed(body, f"expected a key, came {len(body)} bytes", "empty")
        read = self._readers.get(body[:4])
        if read is None:
            return _malformed(body, f"{_label(body)}: not known on this side", "unknown")
        try:
            return read(body)
        except (Unreadable, IndexError) as problem:
            text = str(problem) if isinstance(problem, Unreadable) else "the frame is too short"
            return _malformed(body, f"{_label(body)}: {text}", "malformed")

    def _too_large(self, data: bytes, size: int) -> Malformed:
        return Malformed(data, f"expected at most {self._largest} bytes, came a frame of {size}", "too-large")


def _malformed(body: bytes, problem: str, code: str) -> Malformed:
    return Malformed((len(body).to_bytes(4) + body)[:SHOWN], problem, code)


def _label(body: bytes) -> str:
    key, version = int.from_bytes(body[:2]), int.from_bytes(body[2:4])
    return f"{NAMES.get(body[:2], f'key {key:#06x}')} version {version}"
