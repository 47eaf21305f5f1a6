"""An answer that is larger than the message server takes is dropped without a word: the caller waits until
its time is over instead of getting an error. Like dynamo 9734, moleculer 394 and newchat 49
(``max_payload`` of NATS that shows as a time-out).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.serving import Server, Service
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer


def plant() -> None:
    """Install the defect."""

    def reply(self: Server, packet: dict[str, Any], fields: dict[str, Any]) -> None:
        try:
            self._post.send("RES", packet["sender"], {"id": packet["id"], **fields})
        except ClientError as error:
            self._runtime.callbacks.trouble("write", error)

    Server.reply = reply  # type: ignore[method-assign]


async def much(context: Any) -> str:
    """An action with a long answer."""
    return "x" * 50_000


async def witness() -> None:
    """The caller gets an error at once."""
    kind = ""
    async with Moleculer(memory=True, bus={"max_payload": 20_000}) as bus:
        place = (f"{bus.host}:{bus.port}",)
        worker = MoleculerClient(
            Runtime(Memory()), Settings(transporter="nats", endpoints=place, node_id="worker")
        )
        caller = MoleculerClient(Runtime(Memory(), seed=1), Settings(transporter="nats", endpoints=place))
        for each in (worker, caller):
            await each.connect(5)
        worker.serve(Service("work", {"much": much}))
        await asyncio.sleep(3)
        try:
            await caller.caller.call("work.much", timeout=5)
        except ClientError as error:
            kind = error.kind
        for each in (worker, caller):
            each.abort()
    assert kind == "refused", kind
