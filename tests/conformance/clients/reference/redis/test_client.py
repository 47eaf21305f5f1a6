"""The reference client of Redis, in memory, over sockets and as a child process."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.adapter.process import ProcessAdapter
from conformance.clients.adapter.profile import missing_ops
from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.redis.client import RedisClient, Subscription
from conformance.clients.reference.redis.link import Settings
from conformance.clients.reference.redis.resp import ErrorReply, Parser, Push
from conformance.clients.reference.registry import command, reference, without_sockets
from fakebrokers import Redis
from fakebrokers.core import virtual
from fakebrokers.faults import drop, latency
from tests.conformance.clients.reference.redis.happy_path import walk


def test_in_memory() -> None:
    async def work() -> None:
        adapter = InProcessAdapter(without_sockets(reference("redis")), "redis")
        assert missing_ops(await adapter.start(), "redis") == []
        async with Redis(memory=True) as broker:
            await walk(adapter, broker)
        await adapter.shutdown()

    virtual.run(work())


def test_as_a_child_process() -> None:
    async def work() -> None:
        env = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
        adapter = ProcessAdapter(command("redis"), "redis", env=env)
        await adapter.start()
        async with Redis() as broker:
            await walk(adapter, broker)
        assert await adapter.shutdown() == 0

    asyncio.run(work())


def _client(broker: Redis, **more: Any) -> RedisClient:
    return RedisClient(Runtime(Memory()), Settings(broker.where, **more))


REPLIES: list[tuple[bytes, list[Any]]] = [
    (b"+OK\r\n:-7\r\n$-1\r\n*-1\r\n", [b"OK", -7, None, None]),
    (b"$5\r\na\r\nb\0\r\n*2\r\n$1\r\nx\r\n*1\r\n:1\r\n", [b"a\r\nb\0", [b"x", [1]]]),
    (b"-ERR no\r\n_\r\n#t\r\n,1.5\r\n", [ErrorReply("ERR no"), None, True, 1.5]),
    (b"%1\r\n+a\r\n:1\r\n>2\r\n+push\r\n:1\r\n", [[b"a", 1], Push((b"push", 1))]),
]


@pytest.mark.parametrize(("data", "wanted"), REPLIES)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_replies_are_read_however_they_are_cut(data: bytes, wanted: list[Any], size: int) -> None:
    parser, got = Parser(), []
    for at in range(0, len(data), size):
        got += parser.feed(data[at : at + size])
    assert got == wanted
    assert [type(one) for one in got] == [type(one) for one in wanted]


@pytest.mark.parametrize(
    "data", [b"?x\r\n", b":x\r\n", b"$1\r\nabc", b"*-2\r\n", b"~1\r\n:1\r\n", b"*1\r\n" * 20]
)
def test_what_is_no_reply_is_refused(data: bytes) -> None:
    with pytest.raises(ClientError) as caught:
        list(Parser().feed(data))
    assert caught.value.kind == "protocol"


def test_an_answer_that_is_late_is_for_nobody_else() -> None:
    async def work() -> None:
        async with Redis(memory=True) as broker:
            broker.store("a", "1")
            broker.store("b", "2")
            client = _client(broker)
            await client.connect(1.0)
            broker.faults.add(latency(0.5, kind="Reply", direction="out"))
            with pytest.raises(ClientError) as caught:
                await client.call([b"GET", b"a"], 0.2)
            assert (caught.value.kind, caught.value.definite) == ("timeout", False)
            assert await client.call([b"GET", b"b"], 1.0) == b"2"
            assert len(broker.connections) == 1
            client.abort()

    virtual.run(work())


def test_an_answer_that_does_not_come_ends_the_connection() -> None:
    async def work() -> None:
        async with Redis(memory=True) as broker:
            client = _client(broker, auto_reconnect=True)
            await client.connect(1.0)
            broker.faults.add(drop(kind="Reply", direction="out", nth=1, scope="run"))
            with pytest.raises(ClientError):
                await client.call([b"ECHO", b"a"], 0.2)
            await asyncio.sleep(2.0)
            assert await client.call([b"ECHO", b"b"], 5.0) == b"b"
            assert client.pending == 0
            client.abort()

    virtual.run(work())


def test_a_subscription_whose_answer_was_late_is_ended() -> None:
    async def work() -> None:
        async def nothing(message: Any) -> None: ...

        async with Redis(memory=True) as broker:
            client = _client(broker)
            await client.connect(1.0)
            broker.faults.add(latency(0.5, kind="Subscribed", direction="out"))
            subscription = Subscription(client.runtime, "channel", b"q", nothing)
            with pytest.raises(ClientError):
                await client.subscribe(subscription, 0.2)
            await asyncio.sleep(1.0)
            assert broker.subscriptions == []
            assert client.subscriptions == []
            client.abort()

    virtual.run(work())
