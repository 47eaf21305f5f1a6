"""The fake on real sockets, with third-party clients."""

from __future__ import annotations

import asyncio
import json
import socket
import time
import urllib.request
from collections.abc import Iterator
from urllib.error import HTTPError

import aiohttp
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from fakebrokers.faults import fault
from fakebrokers.narconi.config import Config
from fakebrokers.narconi.faults import BreakBackend
from fakebrokers.narconi.server import Narconi
from tests.eventually import eventually


@pytest.fixture
def broker() -> Iterator[Narconi]:
    with Narconi() as narconi:
        narconi.create_queue("gold", "q")
        yield narconi


def request(method: str, url: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
    asked = urllib.request.Request(url, body, headers, method=method)
    try:
        with urllib.request.urlopen(asked) as answer:
            return answer.status, answer.read()
    except HTTPError as error:
        with error:
            return error.code, error.read()


def test_http_with_urllib(broker: Narconi) -> None:
    assert request("PUT", broker.queue_url("gold", "other")) == (201, b"")
    before = int(time.time() * 1000)
    assert request("POST", broker.messages_url("gold", "q"), b"hello", **{"Content-Type": "a/b"}) == (
        201,
        b"",
    )
    (message,) = broker.messages("gold", "q")
    assert (message.payload, message.content_type) == (b"hello", "a/b")
    assert before <= message.timestamp <= time.time() * 1000
    assert request("DELETE", broker.messages_url("gold", "q")) == (200, b"hello")
    assert request("DELETE", broker.messages_url("gold", "q")) == (204, b"")
    assert broker.queues == ["gold_q", "gold_other"]
    assert request("DELETE", broker.queue_url("gold", "other")) == (204, b"")
    assert request("DELETE", broker.messages_url("gold", "other"))[0] == 404


def test_aiohttp(broker: Narconi) -> None:
    async def talk() -> None:
        async with aiohttp.ClientSession() as session:
            url = broker.messages_url("gold", "q")
            async with session.post(url, data=bytes(range(256)), headers={"x-msg-x-a": "1"}) as answer:
                assert (answer.status, await answer.read()) == (201, b"")
            async with session.delete(url) as answer:
                assert answer.status == 200
                assert answer.headers["x-msg-x-a"] == "1"
                assert await answer.read() == bytes(range(256))
            async with session.ws_connect(url, protocols=["publish"]) as publisher:
                await publisher.send_str(json.dumps({"Content-Type": "text/plain"}))
                await publisher.send_bytes(b"hello")
                assert await publisher.receive_str() == ""
            async with session.ws_connect(f"{url}?ack&encoding=utf8", protocols=["consume"]) as consumer:
                delivery = await consumer.receive_json()
                assert (delivery["message"], delivery["ackId"]) == ("hello", "1")
                await consumer.send_json({"ackId": "1"})
            with pytest.raises(aiohttp.WSServerHandshakeError, match="400"):
                await session.ws_connect(url)

    asyncio.run(talk())
    broker.wait_for(kind="WsClose", count=4)
    assert broker.messages("gold", "q") == []
    assert broker.unacked("gold", "q") == 0


def test_websockets(broker: Narconi) -> None:
    async def talk() -> None:
        url = broker.websocket_url("gold", "q")
        async with connect(url, subprotocols=["publish"]) as publisher:  # type: ignore[list-item]
            for number in range(100):
                await publisher.send(json.dumps({"message": str(number)}))
            assert [await publisher.recv() for _ in range(100)] == [""] * 100
            await publisher.send("oops")
            assert json.loads(await publisher.recv())["code"] == 400
            with pytest.raises(ConnectionClosed) as closed:
                await publisher.recv()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1000
        async with connect(f"{url}?ack&limit=10", subprotocols=["consume"]) as consumer:  # type: ignore[list-item]
            for number in range(100):
                ack_id = json.loads(await consumer.recv())["ackId"]
                assert await consumer.recv() == b"%d" % number
                await consumer.send(json.dumps({"ackId": ack_id}))
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"{broker.urls['ws']}/v2/gold/queues/none/messages", subprotocols=["publish"])  # type: ignore[list-item]
        assert refused.value.response.status_code == 404

    asyncio.run(talk())


def test_a_faithful_crash_takes_all_down_for_a_while() -> None:
    async def talk(narconi: Narconi) -> None:
        url = narconi.websocket_url("gold", "q")
        bystander = await connect(url, subprotocols=["publish"])  # type: ignore[list-item]
        consumer = await connect(url, subprotocols=["consume"])  # type: ignore[list-item]
        await consumer.recv()
        assert await consumer.recv() == b"x"
        await consumer.send("null")
        for peer in (consumer, bystander):
            with pytest.raises(ConnectionClosed) as closed:
                await peer.recv()
            assert closed.value.rcvd is None  # no close frame

    with Narconi(config=Config(faithful_crashes=True, crash_s=0.2)) as narconi:
        narconi.publish("gold", "q", b"x")
        asyncio.run(talk(narconi))
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", narconi.port))
        narconi.wait_for(kind="listening")
        assert request("PUT", narconi.queue_url("gold", "q")) == (201, b"")


def test_the_backend_by_hand(broker: Narconi) -> None:
    url = broker.queue_url("gold", "q")
    broker.lose_backend(down=True)
    assert request("PUT", url)[0] == 500
    broker.restore_backend()
    assert request("PUT", url)[0] == 201


def test_the_backend_by_fault(broker: Narconi) -> None:
    url = broker.queue_url("gold", "q")
    broker.faults.add(fault(BreakBackend(down_s=0.1), kind="EnsureQueue", nth=1, scope="run"))
    status, body = request("PUT", url)
    assert (status, json.loads(body)["message"]) == (500, "Cannot connect to the AMQP backend.")
    eventually(lambda: request("PUT", url)[0] == 201)


def test_inspectors(broker: Narconi) -> None:
    broker.publish("gold", "q", b"x", headers={"x-a": 1}, redelivered=True)
    (message,) = broker.messages("gold", "q")
    assert (message.headers, message.redelivered) == ({"x-a": 1}, True)
    with socket.create_connection(("127.0.0.1", broker.port)):
        broker.wait_for(kind="accepted")
        (connection,) = broker.connections
        assert connection["state"] == "http"
    broker.delete_queue("gold", "q")
    assert broker.queues == []


def test_options_from_the_environment() -> None:
    options = Narconi._options_from_environ({"NARCONI_MAX_MESSAGE_SIZE": "10"})
    with Narconi(**options) as narconi:
        narconi.create_queue("gold", "q")
        assert request("POST", narconi.messages_url("gold", "q"), bytes(11))[0] == 429
    assert Narconi._options_from_environ({"PORT": "9000"})["port"] == 9000


def test_starts_for_less_than_5_ms_of_the_processor() -> None:
    Narconi().start().stop()  # the loop thread is there now
    times = []
    for _ in range(10):
        before = time.process_time()
        narconi = Narconi().start()
        times.append(time.process_time() - before)
        narconi.stop()
    assert min(times) < 0.005


def test_fixture(narconi: Narconi) -> None:
    assert request("PUT", narconi.queue_url("gold", "q")) == (201, b"")
    narconi.wait_for(kind="QueueEnsured")
