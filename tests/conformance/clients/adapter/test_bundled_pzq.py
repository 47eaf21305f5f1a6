"""The bundled PZQ adapters keep the protocol and do what their ops say, against the fake."""

from __future__ import annotations

import asyncio
import base64

from conformance.clients.adapter.messages import body_bytes
from conformance.clients.adapter.process import ProcessAdapter
from conformance.clients.adapters.registry import Client
from fakebrokers import PZQ
from fakebrokers.pzq.faults import silent_monitor
from tests.conformance.clients.adapter.bundled_clients import client_fixture, passes_the_self_test
from tests.eventually import PATIENCE_S, eventually_async

client = client_fixture("pzq")


def test_it_passes_the_self_test(client: Client) -> None:
    passes_the_self_test(client, "pzq")


def test_produce_consume_settle_and_ask(client: Client) -> None:
    async def work() -> None:
        async with PZQ(high_water_marks=(0, 1, 1)) as broker:
            adapter = ProcessAdapter(client.command, "pzq", env=client.env)
            await adapter.start()
            try:
                await _script(adapter, broker)
                assert adapter.violations == []
                assert await adapter.shutdown() == 0
            finally:
                await adapter.kill()

    asyncio.run(work())


async def _script(adapter: ProcessAdapter, broker: PZQ) -> None:
    async def go(op: str, **args: object) -> dict[str, object]:
        result = await adapter.call(op, args, PATIENCE_S * 1000)
        assert result.ok, f"{result}{adapter.stderr_tail()}"
        return result.value or {}

    await go("connect", session="s", endpoints=broker.where)
    key = {"b64": base64.b64encode(b"\xff\x00").decode()}
    body = [{"text": ""}, {"b64": "AP8="}, {"gen": "zero", "len": 5000}]
    sent = await go("publish", session="s", target="", body=body, key=key)
    assert (sent["outcome"], sent["key"]) == ("acked", key)
    await go("publish", session="s", target="", body={"text": "one part"}, wait=False)
    outcome = await adapter.event("outcome", timeout_s=PATIENCE_S)
    assert outcome is not None
    assert outcome["outcome"] == "acked"
    assert [message.body for message in broker.messages()] == [(b"", b"\0\xff", bytes(5000)), (b"one part",)]
    await go("subscribe", session="s", sub="c", target="", on_message={"mode": "event"})
    first, second = await adapter.wait_messages("c", 2, PATIENCE_S)
    assert [first.position.encode(), second.position.encode()] == [m.key for m in broker.messages()]
    assert [body_bytes(part) for part in first.body[:2]] == [b"", b"\0\xff"]
    assert first.body[2]["len"] == 5000
    assert first.meta["timeout_us"] == 5_000_000
    assert first.meta["expired"] is False
    await go("settle", sub="c", ref=second.ref, how="nack")
    again = (await adapter.wait_messages("c", 3, PATIENCE_S))[2]
    assert again.position == second.position
    for message in (first, again):
        await go("settle", sub="c", ref=message.ref, how="ack")

    async def monitor_tells_that_none_is_left() -> bool:
        values = (await go("pzq.monitor", session="s"))["values"]
        return values == broker.statistics and not values["messages"]

    await eventually_async(monitor_tells_that_none_is_left)
    await go("unsubscribe", sub="c")
    broker.faults.add(silent_monitor())
    asking = adapter.begin("pzq.monitor", {"session": "s"}, PATIENCE_S * 1000)
    await broker.wait_for_async(kind="MonitorRequest", count=2)
    await go("close", session="s")
    assert (await asking).kind == "closed"
    assert not (await go("state", session="s"))["open"]
