"""A chunked response counts as complete with its chunk of size 0: where the empty line after that comes a
moment later it stands in front of the next response over the same connection, which cannot be read. Like
snoyberg/http-client 473 and benoitc/hackney 603.
"""

from __future__ import annotations

from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.http import ResponseReader
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi
from fakebrokers.faults import slice_


def plant() -> None:
    """Install the defect."""

    def read_chunks(self: Any, head: Any) -> Any:
        while True:
            if self._chunk is None:
                line, end, rest = bytes(self._buffer).partition(b"\r\n")
                if not end:
                    return None
                self._chunk = self._number(line.partition(b";")[0].decode("latin-1").rstrip(" \t"), 16)
                self._buffer = bytearray(rest)
                if self._chunk == 0:  # the last one
                    return self._done(head, bytes(self._body), 2 * self._buffer.startswith(b"\r\n"))
            if len(self._buffer) < self._chunk + 2:
                return None
            self._body += self._buffer[: self._chunk]
            if self._buffer[self._chunk : self._chunk + 2] != b"\r\n":
                raise ClientError("protocol", "a chunk goes on after its end")
            del self._buffer[: self._chunk + 2]
            self._chunk = None

    ResponseReader._read_chunks = read_chunks  # type: ignore[method-assign]


async def witness() -> None:
    """One response after the other can be read, wherever the segments end."""
    async with Narconi(memory=True) as server:
        server.create_queue("test", "q")
        for number in range(3):
            server.publish("test", "q", b"%d" % number)
        server.faults.add(slice_(size=1, role="deliver", gap_s=0.05))
        settings = Settings(endpoint=server.url.partition("//")[2], project="test")
        client = NarconiClient(Runtime(Memory()), settings)
        bodies = []
        for _ in range(3):
            taken = await client.http.take("q")
            bodies.append(None if taken is None else taken.body)
        client.abort()
    assert bodies == [b"0", b"1", b"2"], bodies
