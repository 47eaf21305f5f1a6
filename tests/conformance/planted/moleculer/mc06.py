"""An upload that breaks off ends with an ordinary end packet: the action takes half of the data for the
whole. Like true-async/server 171 (a stream that fails on the way is ended properly, and the truncated body
reads as complete) and ENTERPILOT/GoModel 1017.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.moleculer.caller import Caller, Upload
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer


def plant() -> None:
    """Install the defect."""
    send_end = Caller.send_end

    def properly(self: Any, command: str, rest: str, packet: Any) -> None:
        flags = {name: value for name, value in packet["headers"].items() if name != "$streamError"}
        send_end(self, command, rest, {**packet, "headers": flags})

    Caller.send_end = properly  # type: ignore[method-assign]


async def witness() -> None:
    """The end of an upload whose call has run out of time says that it is none."""

    async def slowly() -> AsyncIterator[bytes]:
        for _ in range(10):
            yield b"piece"
            await asyncio.sleep(1)

    async with Moleculer(memory=True) as moleculer:
        moleculer.node("peer", {"files": {"save": lambda ctx: len(ctx.stream.chunks)}})
        endpoint = f"{moleculer.host}:{moleculer.port}"
        client = MoleculerClient(Runtime(Memory()), Settings(transporter="nats", endpoints=(endpoint,)))
        await client.connect(5.0)
        await asyncio.sleep(2)
        try:
            await client.caller.call("files.save", timeout=3.5, upload=Upload(slowly()))
        except ClientError as error:
            assert error.kind == "timeout", error
        await asyncio.sleep(2)
        requests = [packet for _, packet in moleculer.packets("Request") if packet.stream is False]
        client.abort()
    assert requests, "the upload has no end"
    assert all("$streamError" in packet.headers for packet in requests), requests
