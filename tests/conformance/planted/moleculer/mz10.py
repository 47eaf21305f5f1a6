"""Over MQTT the length of a topic is that of its characters, not of its bytes: a node whose id or namespace
has an umlaut never gets onto the bus. Like adafruit/Adafruit_CircuitPython_MiniMQTT 90, wialon/gmqtt 118
and peterhinch/micropython-mqtt 178.
"""

from __future__ import annotations

from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.codecs import MqttCodec
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer


def plant() -> None:
    """Install the defect."""

    def text(self: Any, text: str) -> bytes:
        return len(text).to_bytes(2, "big") + text.encode()

    MqttCodec._text = text  # type: ignore[method-assign]


def made(server: Any, **more: Any) -> MoleculerClient:
    """A node of it."""
    place = server.url.partition("//")[2]
    return MoleculerClient(
        Runtime(Memory()), Settings(transporter=server.transporter, endpoints=(place,), **more)
    )


async def witness() -> None:
    """Such a node is asked, and answers."""
    async with Moleculer(transporter="mqtt", memory=True) as server:
        node = server.node("n")
        client = made(server, node_id="k\u00f6ln-1")
        await client.connect(20)
        pong = await node.ping_async("k\u00f6ln-1")
        client.abort()
    assert pong.sender == "k\u00f6ln-1", pong
