"""What every client of NATS can do, mutants too, as long as nothing unusual happens."""

from __future__ import annotations

from typing import Any

from conformance.clients.adapter.base import Adapter
from conformance.clients.adapter.messages import body_bytes
from fakebrokers import NATS


async def walk(adapter: Adapter, broker: NATS) -> None:
    """Connect, subscribe, publish one by one, ask, unsubscribe, close."""

    async def do(op: str, **args: Any) -> Any:
        result = await adapter.call(op, args, 5000)
        assert result.ok, result
        return result.value

    broker.respond("echo", lambda _, payload: payload)
    await do("connect", session="s", endpoints=[broker.where], options={})
    await do("subscribe", session="s", sub="c", target="a.*", options={}, on_message={"mode": "event"})
    for number in range(3):
        await do("publish", session="s", target="a.b", body={"text": f"hello {number}"}, wait=True)
        got = await adapter.wait_messages("c", number + 1, 2.0)
        assert [body_bytes(one.body).decode() for one in got] == [f"hello {n}" for n in range(number + 1)]
    answer = await do("nats.request", session="s", target="echo", body={"text": "tea"})
    assert body_bytes(answer["body"]) == b"tea"
    await do("flush", session="s")
    assert (await do("state", session="s"))["open"]
    await do("unsubscribe", sub="c")
    await do("close", session="s")
    assert not adapter.violations
