"""An action that takes longer than its caller waits is answered with the time-out, and answered once more
when it is done. Like deepstreamIO/deepstream.io-client-js 551 (after the time-out the result comes too, for
a request that was answered).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer.caller import Upload
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.context import timed_out
from conformance.clients.reference.moleculer.serving import Server, Service
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer


def plant() -> None:
    """Install the defect."""
    answer = Server.answer

    async def twice(self: Any, packet: Any, stream: Any) -> None:
        found = self.find(packet.get("action"))
        if found is None:
            await answer(self, packet, stream)
            return
        service, handler = found
        context = self.context(packet, service, stream)
        timer = None
        if (moment := self.deadline_of(context)) is not None:
            late = timed_out(context.action, self._settings.node_id)
            timer = asyncio.get_running_loop().call_at(moment, self.refuse, packet, context, late)
        try:
            result = await handler(context)
        except Exception as error:
            self.refuse(packet, context, error)
            return
        finally:
            if timer is not None:
                timer.cancel()
        if isinstance(result, Upload):
            await self.send_down(packet, context, result)
        else:
            self.accept(packet, context, result)

    Server.answer = twice  # type: ignore[method-assign]


async def witness() -> None:
    """A request has one answer."""

    async def slow(context: Any) -> str:
        await asyncio.sleep(3)
        return "done"

    async with Moleculer(memory=True) as moleculer:
        peer = moleculer.node("peer")
        endpoint = f"{moleculer.host}:{moleculer.port}"
        client = MoleculerClient(Runtime(Memory()), Settings(transporter="nats", endpoints=(endpoint,)))
        await client.connect(5.0)
        client.serve(Service("work", {"slow": slow}))
        await asyncio.sleep(2)
        peer.start_call("work.slow", timeout=1.0)
        await asyncio.sleep(10)
        answers = [packet for _, packet in moleculer.packets("Response") if packet.sender == "reference"]
        client.abort()
    seen = {(one.id, one.success) for one in answers}
    assert len(seen) == 1, seen
