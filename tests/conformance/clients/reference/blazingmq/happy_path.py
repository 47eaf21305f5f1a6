"""What every client of BlazingMQ can do, mutants too, as long as nothing unusual happens."""

from __future__ import annotations

from typing import Any

from conformance.clients.adapter.base import Adapter
from conformance.clients.adapter.messages import body_bytes
from fakebrokers import BlazingMQ
from tests.eventually import eventually_async

Q = "bmq://bmq.test.mem.priority/orders"


async def walk(adapter: Adapter, broker: BlazingMQ) -> None:
    """Connect, open a reader and a writer, post one by one, confirm, close once the confirms have come."""

    async def do(op: str, **args: Any) -> Any:
        result = await adapter.call(op, args, 5000)
        assert result.ok, result
        return result.value

    await do("connect", session="s", endpoints=[broker.where], options={})
    for name, uri, flag in (("r", Q, "read"), ("w", Q + "2", "write")):
        await do("bmq.open_queue", session="s", target=name, uri=uri, flags=[flag], options={})
    await do("subscribe", session="s", sub="c", target="r", on_message={"mode": "event"})
    for number in range(3):
        posted = await do("publish", session="s", target="w", body={"text": f"out {number}"}, wait=True)
        assert posted["outcome"] == "acked"
        broker.publish(Q, b"in %d" % number)
        got = await adapter.wait_messages("c", number + 1, 2.0)
        assert [body_bytes(message.body) for message in got] == [b"in %d" % n for n in range(number + 1)]
        await do("settle", sub="c", ref=got[-1].ref, how="ack")
    assert [message.data for message in broker.messages(Q + "2")] == [b"out 0", b"out 1", b"out 2"]
    await eventually_async(lambda: not broker.messages(Q), "all is confirmed")
    assert (await do("state", session="s"))["open"]
    await do("unsubscribe", sub="c")
    for name in "rw":
        await do("bmq.close_queue", session="s", target=name)
    await do("close", session="s")
    assert broker.messages(Q) == []
    assert not adapter.violations
