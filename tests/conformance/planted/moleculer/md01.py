"""Whether a packet fits the server is asked of what it carries alone, without what is around it: a packet
that is a little too large is sent, and the server ends the connection. Like apache/pulsar 14007 (the check
of the message size leaves out the headers).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.moleculer.bus import TOPIC_MAX, Bus
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.settings import ENVELOPE_BYTES, Settings
from fakebrokers import Moleculer


def plant() -> None:
    """Install the defect."""

    def publish(self: Any, topic: str, payload: bytes) -> None:
        most = self.codec.max_payload
        if most is not None and len(payload) - ENVELOPE_BYTES > most:
            raise ClientError("invalid", f"{len(payload)} bytes are more than the server takes ({most})")
        if len(topic.encode()) > TOPIC_MAX:
            raise ClientError("invalid", f"a topic of {len(topic)} characters", definite=True)
        self.write(self.codec.publish(topic, payload))

    Bus.publish = publish  # type: ignore[method-assign]


async def witness() -> None:
    """A call that is a little too large for the server is refused before it is sent."""
    async with Moleculer(memory=True, bus={"max_payload": 20_000}, faults={"faults": []}) as moleculer:
        moleculer.node("fake-1", services={"text": {"size": lambda ctx: len(ctx.params["text"])}})
        happened: list[str] = []
        runtime = Runtime(Memory(), on_session=lambda what, *_: happened.append(what))
        settings = Settings("nats", (f"{moleculer.host}:{moleculer.port}",))
        client = MoleculerClient(runtime, settings)
        await client.connect(5.0)
        await asyncio.sleep(2)
        kind = ""
        try:
            await client.caller.call("text.size", {"text": "x" * 19_950}, timeout=5.0)
        except ClientError as error:
            kind = error.kind
        await asyncio.sleep(2)
        client.abort()
    assert (kind, happened) == ("invalid", ["connected"]), (kind, happened)
