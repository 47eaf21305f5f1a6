"""A chunk of an upload that is larger than a packet may be is cut, and all pieces but the first are sent in
the background: if it is the last chunk, the end overtakes them, and the other node never gets the rest.
Like moleculerjs/moleculer 711 and 712 (the end of a stream before the pieces of its last chunk).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.moleculer.caller import Caller, Upload
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.settings import Settings
from conformance.clients.reference.moleculer.streams import cut
from fakebrokers import Moleculer

SIZE = 600_000


def plant() -> None:
    """Install the defect."""

    async def send_up(self: Any, command: str, rest: str, opening: Any, upload: Upload) -> None:
        seq = 0
        later = {**opening, "meta": {}}
        error: Any = None

        async def send(piece: Any) -> None:
            nonlocal seq
            seq += 1
            self._post.send(command, rest, {**later, "params": piece, "stream": True, "seq": seq})
            await self._post.drained()

        try:
            async for chunk in upload.chunks:
                first, *others = cut(chunk, self._post.chunk_limit)
                await send(first)
                for piece in others:
                    self._runtime.tasks.spawn(send(piece))
        except (ClientError, asyncio.CancelledError) as problem:
            error = {"name": "Error", "message": str(problem) or "the call has ended", "code": 500}
            raise
        finally:
            seq += 1
            flags = {**later["headers"], **({"$streamError": error} if error else {})}
            self.send_end(
                command, rest, {**later, "headers": flags, "params": None, "stream": False, "seq": seq}
            )

    Caller.send_up = send_up  # type: ignore[method-assign]


def made(server: Any, **more: Any) -> MoleculerClient:
    """A node of it."""
    place = server.url.partition("//")[2]
    return MoleculerClient(
        Runtime(Memory()), Settings(transporter=server.transporter, endpoints=(place,), **more)
    )


async def witness() -> None:
    """Each byte arrives once, whatever the size of its chunk."""

    async def chunks() -> AsyncIterator[bytes]:
        yield b"a" * SIZE

    def size(context: Any) -> int:
        return sum(map(len, context.stream.chunks))

    async with Moleculer(memory=True) as server:
        server.node("n", services={"svc": {"size": size}})
        client = made(server)
        await client.connect(10)
        came, _ = await client.caller.call("svc.size", timeout=10.0, upload=Upload(chunks()))
        client.abort()
    assert came == SIZE, came
