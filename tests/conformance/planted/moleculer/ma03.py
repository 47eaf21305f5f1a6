"""Whether a message is too large is found out by its characters, not its bytes: one with many letters
outside ASCII is sent although the server takes no message of that size, and ends the connection. Like
MassTransit/MassTransit 6183 and ssbc/scuttlebot.io 20.
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.moleculer.bus import TOPIC_MAX, Bus
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer


def plant() -> None:
    """Install the defect."""

    def publish(self: Any, topic: str, payload: bytes) -> None:
        most = self.codec.max_payload
        size = len(payload.decode(errors="replace"))
        if most is not None and size > most:
            raise ClientError("invalid", f"{size} bytes are more than the server takes ({most})")
        if len(topic.encode()) > TOPIC_MAX:
            raise ClientError("invalid", f"a topic of {len(topic)} characters", definite=True)
        self.write(self.codec.publish(topic, payload))

    Bus.publish = publish  # type: ignore[method-assign]


async def witness() -> None:
    """What is too large is refused before it is sent."""
    lost: list[str] = []

    def happened(what: str, *_: Any) -> None:
        if what == "connection_lost":
            lost.append(what)

    async with Moleculer(memory=True, bus={"max_payload": 4000}) as server:
        server.node("echo-1", {"echo": {"say": lambda ctx: len(ctx.params["text"])}})
        settings = Settings(transporter="nats", endpoints=(server.url.partition("//")[2],))
        client = MoleculerClient(Runtime(Memory(), on_session=happened), settings)
        await client.connect(5)
        await asyncio.sleep(1)
        try:
            await client.caller.call("echo.say", {"text": "é" * 2500}, timeout=2.0)
        except ClientError as error:
            kind = error.kind
        else:
            kind = "none"
        client.abort()
    assert (kind, lost) == ("invalid", []), (kind, lost)
