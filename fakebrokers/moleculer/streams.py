"""Streams: chunks to packets and back (docs/protocols/moleculer.md, 4.9)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import UNSET

from fakebrokers.moleculer.packets import Packet, Request
from fakebrokers.moleculer.services import Stream

#: Larger chunks of bytes are cut.
MAX_CHUNK = 256 * 1024


def cut(chunks: Any) -> Iterator[Any]:
    """The chunks, none of them larger than a packet may carry."""
    for chunk in chunks:
        if isinstance(chunk, bytes | bytearray) and len(chunk) > MAX_CHUNK:
            yield from (bytes(chunk[at : at + MAX_CHUNK]) for at in range(0, len(chunk), MAX_CHUNK))
        else:
            yield chunk


def as_bytes(value: Any) -> Any:
    """A Buffer as JSON has it, as bytes; anything else as it is."""
    if isinstance(value, Mapping) and value.get("type") == "Buffer" and isinstance(value.get("data"), list):
        try:
            return bytes(value["data"])
        except (ValueError, TypeError):
            return value
    return value


class Incoming:
    """A stream that comes in, in the order of its `seq`; what comes early waits for what is missing.

    As in real nodes a chunk that has been there already counts again.

    Attributes:
        opening: The packet with number 0, once it is there.
        stream: All of it, once it has ended.
    """

    def __init__(self) -> None:
        self.opening: Any = None
        self.stream: Stream | None = None
        self._chunks: list[Any] = []
        self._last = -1
        self._early: dict[int, Any] = {}
        self._objects = False

    @property
    def missing(self) -> int:
        """The number that is waited for."""
        return self._last + 1

    def add(self, packet: Any) -> bool:
        """Take one packet in; whether the stream has ended with it."""
        seq = packet.seq if isinstance(packet.seq, int) else 0
        if seq > self._last + 1:
            self._early[seq] = packet
            return False
        while packet is not None:
            self._last = packet.seq if isinstance(packet.seq, int) else 0
            if self._take(packet):
                return True
            packet = self._early.pop(self._last + 1, None)
        return False

    def _take(self, packet: Any) -> bool:
        flags = {**_mapping(packet.meta), **_mapping(packet.headers)}
        self._objects = self._objects or bool(flags.get("$streamObjectMode"))
        if self._last == 0:
            self.opening = packet
            return False
        if packet.stream is True:
            payload = packet.params if isinstance(packet, Request) else packet.data
            self._chunks.append(as_bytes(payload))
            return False
        error = flags.get("$streamError") if isinstance(packet, Request) else packet.error
        self.stream = Stream(tuple(self._chunks), self._objects, None if error in (UNSET, None) else error)
        return True


def is_chunk(packet: Packet) -> bool:
    """Whether a request or answer belongs to a stream."""
    stream, seq = getattr(packet, "stream", UNSET), getattr(packet, "seq", UNSET)
    return stream is True or (stream is not UNSET and isinstance(seq, int) and seq > 0)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
