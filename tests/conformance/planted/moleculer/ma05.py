"""The length of an MQTT packet is worked out once, from the bytes of it that have come: where a segment
ends between them it is too short, and nothing that follows can be read. Like mqttjs/mqtt-packet 95 and
gausby/tortoise 53.
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.codecs import MqttCodec
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer
from fakebrokers.faults import slice_


def plant() -> None:
    """Install the defect."""

    def next_packet(self: Any) -> tuple[int, bytes] | None:
        head, end = self.__dict__.get("extent", (0, 0))
        if not end:
            if len(self._buffer) < 2:
                return None
            length = shift = 0
            for digit in self._buffer[1:5]:
                length |= (digit & 0x7F) << shift
                shift += 7
                if digit < 0x80:
                    break
            head = 1 + shift // 7
            end = head + length
            self.extent = (head, end)
        if len(self._buffer) < end:
            return None
        kind, body = self._buffer[0], bytes(self._buffer[head:end])
        del self._buffer[:end]
        self.extent = (0, 0)
        return kind, body

    MqttCodec._next = next_packet  # type: ignore[method-assign]


async def witness() -> None:
    """Packets can be read, wherever the segments end."""
    async with Moleculer(memory=True, transporter="mqtt") as server:
        server.node("echo-1", {"echo": {"say": lambda ctx: ctx.params["text"]}})
        settings = Settings(transporter="mqtt", endpoints=(server.url.partition("//")[2],))
        client = MoleculerClient(Runtime(Memory()), settings)
        await client.connect(5)
        await asyncio.sleep(2)
        server.faults.add(slice_(at=2, role="response", gap_s=0.05))
        answers = []
        for number in range(3):
            try:
                data, _ = await client.caller.call("echo.say", {"text": f"{number}" * 300}, timeout=2.0)
            except ClientError as error:
                data = error.kind
            answers.append(data)
        client.abort()
    assert answers == [f"{number}" * 300 for number in range(3)], answers
