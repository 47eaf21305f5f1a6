"""What every client of Redis can do, mutants too, as long as nothing unusual happens."""

from __future__ import annotations

from typing import Any

from conformance.clients.adapter.base import Adapter
from conformance.clients.adapter.messages import body_bytes
from fakebrokers import Redis


async def walk(adapter: Adapter, broker: Redis) -> None:
    """Connect, subscribe, publish one by one, ask, pop, unsubscribe, close."""

    async def do(op: str, **args: Any) -> Any:
        result = await adapter.call(op, args, 5000)
        assert result.ok, result
        return result.value

    await do("connect", session="s", endpoints=[broker.where], options={})
    await do("subscribe", session="s", sub="c", target="q", options={}, on_message={"mode": "event"})
    for number in range(3):
        result = await do("publish", session="s", target="q", body={"text": f"hello {number}"}, wait=True)
        assert result == {"outcome": "acked", "key": None, "meta": {"receivers": 1}}
        got = await adapter.wait_messages("c", number + 1, 2.0)
        assert [body_bytes(one.body).decode() for one in got] == [f"hello {n}" for n in range(number + 1)]
    assert await do("redis.call", session="s", words=["INCR", "n"]) == {"value": 1}
    broker.push("list", "element")
    popped = await do("redis.call", session="s", words=["BLPOP", "list", "1"])
    assert [body_bytes(one) for one in popped["value"]] == [b"list", b"element"]
    rows = await do("redis.pipeline", session="s", commands=[["INCR", "n"]])
    assert rows == {"results": [{"value": 2}]}
    assert (await do("state", session="s"))["open"]
    await do("unsubscribe", sub="c")
    assert not broker.subscriptions
    await do("close", session="s")
    assert not adapter.violations
