"""With MQTT the length of a topic counts characters: a node whose topics are not ASCII sends packets that
nobody can read. Like jmesnil/stomp-websocket 44 (a length is that of the text, not of its bytes).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.codecs import MqttCodec
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer


def plant() -> None:
    """Install the defect."""

    def text_of(self: Any, text: str) -> bytes:
        return len(text).to_bytes(2, "big") + text.encode()

    MqttCodec._text = text_of  # type: ignore[method-assign]


async def witness() -> None:
    """A node with an umlaut in its id joins over MQTT, and is called."""
    async with Moleculer(transporter="mqtt", memory=True, faults={"faults": []}) as moleculer:
        endpoint = moleculer.url.partition("//")[2]
        settings = Settings(transporter="mqtt", endpoints=(endpoint,), node_id="k\u00fcche")
        client = MoleculerClient(Runtime(Memory()), settings)
        moleculer.node("fake-1", {"test": {"echo": lambda context: context.params}})
        await client.connect(20.0)
        await asyncio.sleep(2)
        data, _ = await client.caller.call("test.echo", {"n": 1}, timeout=5.0)
        client.abort()
    assert data == {"n": 1}, data
