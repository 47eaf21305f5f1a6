"""Streams: packets in their order, whatever order they come in; chunks that fit a message."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.moleculer.settings import CHUNK_MAX, ENVELOPE_BYTES

Json = dict[str, Any]
WORST_CHARS = 4  #: of a byte in JSON


class Incoming:
    """A stream that comes in; read it with ``async for``. Chunks are bytes, or objects in object mode.

    Args:
        sender: The node that it comes from.
        payload: The member of its packets that has the chunk: ``params`` or ``data``.
    """

    def __init__(self, sender: str, payload: str) -> None:
        self.sender = sender
        self.opening: Json | None = None
        self.is_ended = False
        self._payload = payload
        self._expected = 0
        self._early: dict[int, Json] = {}
        self._chunks: asyncio.Queue[Any] = asyncio.Queue()

    def add(self, packet: Json) -> None:
        """Take one packet in: early ones wait, old ones are dropped."""
        seq = packet.get("seq")
        if self.is_ended or not isinstance(seq, int) or self.is_old(seq):
            return
        self._early[seq] = packet
        while (following := self._early.pop(self._expected, None)) is not None:
            self._expected += 1
            self.take(following)

    def is_old(self, seq: int) -> bool:
        """Whether that packet has been there."""
        return seq < self._expected

    def take(self, packet: Json) -> None:
        """The next packet in order."""
        if self.opening is None:
            self.opening = packet
        elif packet.get("stream") is True:
            self._chunks.put_nowait(chunk_of(packet.get(self._payload)))
        else:
            self.end(self.error_in(packet))

    def error_in(self, packet: Json) -> ClientError | None:
        """The error with which a stream ends."""
        error = flags_of(packet).get("$streamError")
        if packet.get("success") is False:
            error = packet.get("error") or {}
        return None if error is None else remote(error)

    def end(self, error: ClientError | None = None) -> None:
        """Nothing more comes, perhaps because of an error."""
        if not self.is_ended:
            self.is_ended = True
            self._chunks.put_nowait(_End(error))

    async def __aiter__(self) -> AsyncIterator[Any]:
        while True:
            found = await self._chunks.get()
            if not isinstance(found, _End):
                yield found
                continue
            if found.error is not None:
                raise found.error
            return


class _End:
    def __init__(self, error: ClientError | None) -> None:
        self.error = error


def chunk_of(value: Any) -> Any:
    """A chunk: bytes for a Buffer, anything else as it is."""
    if isinstance(value, Mapping) and value.get("type") == "Buffer" and isinstance(value.get("data"), list):
        return bytes(value["data"])
    return value


def flags_of(packet: Mapping[str, Any]) -> Mapping[str, Any]:
    """Where version 5 has the flags of a stream."""
    found = packet.get("headers")
    return found if isinstance(found, Mapping) else {}


def remote(error: Any) -> ClientError:
    """The error of an answer, as the user gets it."""
    if not isinstance(error, Mapping):
        return ClientError("refused", str(error))
    code, kind = error.get("code"), error.get("type")
    text = str(error.get("message") or error.get("name") or "an error without words")
    return ClientError(
        "refused", text, code=code if is_code(code) else None, type=str(kind) if kind else None
    )


def is_code(value: Any) -> bool:
    """Whether that is the code of an error: a number or a text."""
    return isinstance(value, int | str) and not isinstance(value, bool)


def limit_of(max_payload: int | None) -> int:
    """How many bytes a chunk may have, so that its packet fits into a message however it is written."""
    if max_payload is None:
        return CHUNK_MAX
    return max(1, min(CHUNK_MAX, (max_payload - ENVELOPE_BYTES) // WORST_CHARS))


def cut(chunk: Any, most: int) -> list[Any]:
    """A chunk of bytes in pieces that fit, as JSON has them; an object as it is."""
    if not isinstance(chunk, bytes):
        return [chunk]
    return [{"type": "Buffer", "data": list(chunk[at : at + most])} for at in range(0, len(chunk), most)]
