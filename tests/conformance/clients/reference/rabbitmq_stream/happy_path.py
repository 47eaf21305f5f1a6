"""What every client can do, mutants too, as long as nothing unusual happens."""

from __future__ import annotations

from typing import Any

from conformance.clients.adapter.base import Adapter
from conformance.clients.adapter.messages import body_bytes
from fakebrokers import RabbitMQStream
from fakebrokers.faults import slice_

#: one frame in each segment: a gentle network (the checksums of these bodies' chunks are gentle, too)
GENTLE = slice_(size=1 << 24, gap_s=0.001, direction="out")
BODIES = ("hello 0", "hello 1", "hello 4")


async def walk(adapter: Adapter, broker: RabbitMQStream, endpoint: str | None = None) -> None:
    """Connect, create, subscribe, publish one by one, store and query an offset, unsubscribe, close."""

    async def do(op: str, **args: Any) -> Any:
        result = await adapter.call(op, args, 5000)
        assert result.ok, result
        return result.value

    at = endpoint or f"{broker.host}:{broker.port}"
    await do("connect", session="s", endpoints=[at], options={}, roles=["publisher"])
    await do("rmqs.create", session="s", target="orders")
    await do("subscribe", session="s", sub="c", target="orders", options={}, on_message={"mode": "event"})
    for number, body in enumerate(BODIES):
        await do("publish", session="s", target="orders", body={"text": body}, wait=True)
        got = await adapter.wait_messages("c", number + 1, 2.0)
        assert [body_bytes(message.body).decode() for message in got] == list(BODIES[: number + 1])
    await do("rmqs.store_offset", session="s", target="orders", name="reader", offset=2)
    assert await do("rmqs.query_offset", session="s", target="orders", name="reader") == {"offset": 2}
    assert (await do("state", session="s"))["open"]
    await do("unsubscribe", sub="c")
    await do("close", session="s")
    assert [message.body.decode() for message in broker.messages("orders")] == list(BODIES)
    assert not adapter.violations
