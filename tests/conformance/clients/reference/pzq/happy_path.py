"""What every client of PZQ can do, mutants too, as long as nothing unusual happens."""

from __future__ import annotations

from typing import Any

from conformance.clients.adapter.base import Adapter
from conformance.clients.adapter.messages import body_bytes
from fakebrokers import PZQ


async def walk(adapter: Adapter, broker: PZQ) -> None:
    """Connect, subscribe, produce one by one, acknowledge, ask the monitor, close."""

    async def do(op: str, **args: Any) -> Any:
        result = await adapter.call(op, args, 5000)
        assert result.ok, result
        return result.value

    on_message = {"mode": "event", "auto_settle": "ack"}
    await do("connect", session="s", endpoints=broker.where, options={})
    await do("subscribe", session="s", sub="c", target="", options={}, on_message=on_message)
    for number in range(3):
        body = [{"text": f"hello {number}"}]
        result = await do("publish", session="s", target="", body=body, wait=True)
        assert result["outcome"] == "acked"
        got = await adapter.wait_messages("c", number + 1, 2.0)
        texts = [body_bytes(part).decode() for message in got for part in message.body]
        assert texts == [f"hello {n}" for n in range(number + 1)]
    await do("pzq.monitor", session="s")
    assert (await do("state", session="s"))["open"]
    await do("unsubscribe", sub="c")
    await do("close", session="s")
    assert not adapter.violations
