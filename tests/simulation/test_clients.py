"""Stock asyncio clients, unmodified: ten minutes with an outage, and the same again from the same seed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from fakebrokers.simulation import Simulation, check_repeats

Scenario = Callable[[Simulation], Coroutine[Any, Any, list[Any]]]


def needs(name: str) -> Any:
    return pytest.importorskip(name, reason=f"missing: {name} (pip install {name})")


async def again(work: Callable[[], Awaitable[object]]) -> None:
    """Do it until it works, as applications do."""
    while True:
        try:
            async with asyncio.timeout(30):
                await work()
                return
        except Exception:
            await asyncio.sleep(5)


async def ten_minutes(broker: Any) -> None:
    """With an outage of one."""
    await asyncio.sleep(200)
    broker.crash()
    await asyncio.sleep(60)
    broker.restart()
    await asyncio.sleep(340)


def both_runs(scenario: Scenario, **options: Any) -> str:
    """How a run of ten minutes ends, which is equal to another one in everything that happened."""
    lines = check_repeats(scenario, 3, patch=True, **options)
    assert all(any(word in line.what for line in lines) for word in ("accepted", "crash", "listening"))
    assert lines[-1].at == 600
    return lines[-1].what


def test_rstream() -> None:
    rstream = needs("rstream")

    async def publish(host: str, port: int) -> None:
        for number in range(9):

            async def one(body: bytes = b"%d" % number) -> None:
                async with rstream.Producer(host, port, username="guest", password="guest") as producer:
                    await producer.send_wait("orders", body)

            await again(one)
            await asyncio.sleep(50)

    async def consume(host: str, port: int, got: list[bytes]) -> None:
        async def take(message: bytes, context: object) -> None:
            got.append(message)

        consumer = rstream.Consumer(host, port, username="guest", password="guest")
        await consumer.start()
        await consumer.subscribe("orders", take)
        await consumer.run()

    async def scenario(simulation: Simulation) -> list[Any]:
        broker = simulation.rabbitmq_stream(nodes=3)
        broker.create_stream("orders")
        simulation.start(publish, broker.host, broker.port)
        got: list[bytes] = []
        simulation.start(consume, broker.host, broker.port, got)
        await ten_minutes(broker)
        return [sorted(set(got)), [message.body for message in broker.messages("orders")]]

    bodies = [b"%d" % number for number in range(9)]
    assert both_runs(scenario).endswith(f"{bodies!r}]")


@pytest.mark.full  # rbfly has to be compiled
def test_rbfly() -> None:
    needs("rbfly")
    from rbfly import streams

    async def publish(url: str) -> None:
        client = streams.streams_client(url)
        async with client.publisher("orders") as publisher:
            for number in range(9):
                await publisher.send(b"%d" % number)
                await asyncio.sleep(50)
        await client.disconnect()

    async def consume(url: str, got: list[bytes]) -> None:
        client = streams.streams_client(url)
        async for message in client.subscribe("orders", offset=streams.Offset.FIRST):
            got.append(message)

    async def scenario(simulation: Simulation) -> list[Any]:
        broker = simulation.rabbitmq_stream()
        broker.create_stream("orders")
        url = f"rabbitmq-stream://guest:guest@{broker.host}:{broker.port}/"
        got: list[bytes] = []
        simulation.start(publish, url)
        simulation.start(consume, url, got)
        await ten_minutes(broker)
        return sorted(set(got))

    assert both_runs(scenario) == repr([b"%d" % number for number in range(9)])


def test_nats() -> None:
    needs("nats")
    import nats

    async def work(url: str, got: list[bytes]) -> None:
        async def silent(error: Exception) -> None:
            """What the outage causes."""

        async def take(message: Any) -> None:
            got.append(message.data)
            await message.respond(message.data.upper())

        client = await nats.connect(url, error_cb=silent, ping_interval=30)
        await client.subscribe("orders.*", cb=take)
        for number in range(9):
            answer = None

            async def ask(body: bytes = b"order %d" % number) -> None:
                nonlocal answer
                answer = (await client.request("orders.new", body, timeout=5)).data

            await again(ask)
            assert answer == b"ORDER %d" % number
            await asyncio.sleep(50)
        await client.close()

    async def scenario(simulation: Simulation) -> list[Any]:
        broker = simulation.moleculer(transporter="nats")
        got: list[bytes] = []
        simulation.start(work, broker.url, got)
        await ten_minutes(broker)
        return list(dict.fromkeys(got))  # what was asked for in the outage is asked for again, and buffered

    assert both_runs(scenario) == repr([b"order %d" % number for number in range(9)])


def test_redis() -> None:
    needs("redis")
    import redis.asyncio as redis

    async def consume(host: str, port: int, got: list[bytes]) -> None:
        async def listen() -> None:
            async with redis.Redis(host=host, port=port) as client, client.pubsub() as channel:
                await channel.subscribe("orders")
                async for message in channel.listen():
                    if message["type"] == "message":
                        got.append(message["data"])

        while True:
            with contextlib.suppress(redis.ConnectionError, OSError):
                await listen()
            await asyncio.sleep(5)

    async def publish(host: str, port: int) -> None:
        async with redis.Redis(host=host, port=port) as client:
            for number in range(9):

                async def one(body: bytes = b"%d" % number) -> None:
                    if not await client.publish("orders", body):
                        raise LookupError("nobody listens")

                await again(one)
                await asyncio.sleep(50)

    async def scenario(simulation: Simulation) -> list[Any]:
        broker = simulation.moleculer(transporter="redis")
        got: list[bytes] = []
        simulation.start(consume, broker.host, broker.port, got)
        simulation.start(publish, broker.host, broker.port)
        await ten_minutes(broker)
        return sorted(set(got))

    assert both_runs(scenario) == repr([b"%d" % number for number in range(9)])


def test_aiohttp() -> None:
    aiohttp = needs("aiohttp")

    async def work(url: str, got: list[bytes]) -> None:
        async with aiohttp.ClientSession() as session:

            async def create() -> None:
                async with session.put(f"{url}/v2/shop/queues/orders") as answer:
                    assert answer.status == 201

            await again(create)
            for number in range(9):

                async def one(body: bytes = b"%d" % number) -> None:
                    async with session.post(f"{url}/v2/shop/queues/orders/messages", data=body) as answer:
                        assert answer.status < 300, await answer.text()

                await again(one)
                await asyncio.sleep(50)

    async def scenario(simulation: Simulation) -> list[Any]:
        broker = simulation.narconi()
        simulation.start(work, broker.url, [])
        await ten_minutes(broker)
        return [message.payload for message in broker.messages("shop", "orders")]

    assert both_runs(scenario) == repr([b"%d" % number for number in range(9)])


def test_websockets() -> None:
    websockets = needs("websockets.asyncio.client")

    async def work(url: str) -> None:
        for number in range(9):

            async def one(body: str = str(number)) -> None:
                async with websockets.connect(url, subprotocols=["publish"]) as publisher:
                    await publisher.send(json.dumps({"message": body}))
                    assert await publisher.recv() == ""

            await again(one)
            await asyncio.sleep(50)

    async def scenario(simulation: Simulation) -> list[Any]:
        broker = simulation.narconi()
        broker.create_queue("shop", "orders")
        simulation.start(work, broker.websocket_url("shop", "orders"))
        await ten_minutes(broker)
        return [message.payload for message in broker.messages("shop", "orders")]

    assert both_runs(scenario) == repr([b"%d" % number for number in range(9)])


@pytest.mark.parametrize("kind", ["good", "expired", "unknown-authority"])
def test_tls(kind: str) -> None:
    aiohttp = needs("aiohttp")

    async def scenario(simulation: Simulation) -> list[Any]:
        broker = simulation.narconi(tls=True, host="broker.test")
        broker.tls.show(kind)
        context = ssl.create_default_context(cafile=broker.tls.ca_file)
        assert broker.urls["tls"] == f"https://broker.test:{broker.tls_port}"
        async with aiohttp.ClientSession() as session:
            try:
                async with session.put(f"{broker.urls['tls']}/v2/a/queues/q", ssl=context) as answer:
                    return [answer.status]
            except aiohttp.ClientConnectorCertificateError:
                return ["refused"]

    expected = [201] if kind == "good" else ["refused"]
    assert check_repeats(scenario, patch=True)[-1].what == repr(expected)
