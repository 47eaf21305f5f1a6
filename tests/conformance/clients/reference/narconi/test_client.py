"""The reference client of Narconi, in memory, over sockets and as a child process."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from conformance.clients.adapter.base import Adapter
from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.adapter.messages import body_bytes
from conformance.clients.adapter.process import ProcessAdapter
from conformance.clients.adapter.profile import missing_ops
from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.consumer import Delivery
from conformance.clients.reference.narconi.settings import Settings
from conformance.clients.reference.registry import command, reference, without_sockets
from fakebrokers import Narconi
from fakebrokers.core import virtual
from fakebrokers.core.session import HangUp
from fakebrokers.faults import drop

PROTOCOL = "narconi"


async def walk(adapter: Adapter, broker: Narconi) -> None:
    """Make a queue, post and take over HTTP, publish, consume and acknowledge over WebSockets, close."""

    async def do(op: str, **args: Any) -> Any:
        result = await adapter.call(op, args, 5000)
        assert result.ok, result
        return result.value

    at = {"session": "s", "target": "orders"}
    await do("connect", session="s", endpoints=[f"{broker.host}:{broker.port}"], options={})
    await do("narc.ensure_queue", **at)
    await do("narc.post", **at, body={"text": "by post"}, headers={"x-msg-x-kind": "letter"})
    taken = (await do("narc.take", **at))["message"]
    assert body_bytes(taken["body"]) == b"by post"
    assert taken["headers"]["x-msg-x-kind"] == "letter"
    on_message = {"mode": "event", "auto_settle": "ack"}
    await do("subscribe", **at, sub="c", options={"ack": True}, on_message=on_message)
    for number in range(3):
        result = await do("publish", **at, body={"text": f"hello {number}"}, wait=True)
        assert result["outcome"] == "acked"
        got = await adapter.wait_messages("c", number + 1, 2.0)
        assert [body_bytes(message.body) for message in got] == [b"hello %d" % n for n in range(number + 1)]
    assert (await do("state", session="s"))["open"]
    await do("unsubscribe", sub="c", drain=True)
    await do("narc.delete_queue", **at)
    await do("close", session="s")
    assert not adapter.violations


def test_in_memory() -> None:
    async def work() -> None:
        adapter = InProcessAdapter(without_sockets(reference(PROTOCOL)), PROTOCOL)
        assert missing_ops(await adapter.start(), PROTOCOL) == []
        async with Narconi(memory=True) as broker:
            await walk(adapter, broker)
        await adapter.shutdown()

    virtual.run(work())


def test_as_a_child_process() -> None:
    async def work() -> None:
        env = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
        adapter = ProcessAdapter(command(PROTOCOL), PROTOCOL, env=env)
        await adapter.start()
        async with Narconi() as broker:
            await walk(adapter, broker)
        assert await adapter.shutdown() == 0

    asyncio.run(work())


def _client(broker: Narconi, reported: list[str] | None = None, **settings: Any) -> NarconiClient:
    runtime = Runtime(
        Memory(), on_session=lambda what, *_: (reported if reported is not None else []).append(what)
    )
    endpoint = f"{broker.host}:{broker.port}"
    return NarconiClient(runtime, Settings(endpoint=endpoint, project="test", **settings))


def test_who_waits_no_longer_for_a_confirm_gives_the_connection_up() -> None:
    async def work() -> None:
        async with Narconi(memory=True) as broker:
            client = _client(broker)
            await client.http.ensure("orders")
            broker.faults.add(drop(role="confirm", nth=1, scope="run"))
            with pytest.raises(ClientError) as caught:
                await client.runtime.tasks.within(1.0, client.publish("orders", b"1", {}))
            assert (caught.value.kind, caught.value.definite) == ("timeout", False)
            await client.publish("orders", b"2", {})
            assert len(client.publishers.standing()) == 1
            assert client.pending == 0
            client.abort()

    virtual.run(work())


@pytest.mark.parametrize("turns", range(8))
def test_what_is_published_as_the_connection_opens_overtakes_nothing(turns: int) -> None:
    async def work() -> None:
        async with Narconi(memory=True) as broker:
            client = _client(broker)
            await client.http.ensure("orders")
            first = asyncio.create_task(client.publish("orders", b"1", {}))
            while not client.publishers.standing():
                await asyncio.sleep(0)
            for _ in range(turns):
                await asyncio.sleep(0)
            await asyncio.gather(client.publish("orders", b"2", {}), first)
            assert [message.payload for message in broker.messages("test", "orders")] == [b"1", b"2"]
            client.abort()

    virtual.run(work())


def test_a_subscription_that_was_lost_is_made_anew() -> None:
    async def work() -> None:
        async with Narconi(memory=True) as broker:
            reported: list[str] = []
            client = _client(broker, reported, auto_reconnect=True)
            got: list[bytes] = []

            async def deliver_message(delivery: Delivery) -> None:
                got.append(delivery.body)

            await client.http.ensure("orders")
            await client.subscribe("orders", deliver_message)
            broker.kill(how=HangUp.RST)
            await asyncio.sleep(2.0)
            await client.http.post("orders", b"1", {})
            await asyncio.sleep(0.5)
            assert got == [b"1"]
            assert reported == ["connection_lost", "reconnecting", "reconnected"]
            client.abort()
            await asyncio.sleep(0.1)
            assert client.runtime.task_count == 0

    virtual.run(work())


def test_what_is_not_subscribed_yet_cannot_be_unsubscribed() -> None:
    async def main() -> None:
        adapter = InProcessAdapter(without_sockets(reference(PROTOCOL)), PROTOCOL)
        async with Narconi(memory=True) as broker:
            broker.faults.add(drop(direction="out"))
            await adapter.start()
            endpoints = [f"{broker.host}:{broker.port}"]
            await adapter.call("connect", {"session": "s", "endpoints": endpoints, "options": {}}, 5000)
            adapter.begin("subscribe", {"session": "s", "sub": "c", "target": "orders"}, 5000)
            await asyncio.sleep(0.1)
            result = await adapter.call("unsubscribe", {"sub": "c"}, 1000)
            await adapter.shutdown()
        assert (result.word, result.error is not None and result.error.definite) == ("closed", True)

    virtual.run(main())
