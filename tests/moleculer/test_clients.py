"""The quick starts of stock client libraries against the embedded servers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator

import pytest

from fakebrokers import Moleculer
from fakebrokers.errors import UsageError
from tests.eventually import PATIENCE_S
from tests.marked import PASSWORD
from tests.moleculer.real_nodes import require, run_script

nats = pytest.importorskip("nats", reason="nats-py is missing")
redis = pytest.importorskip("redis", reason="redis is missing")
mqtt = pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is missing")


@pytest.fixture
def moleculer() -> Iterator[Moleculer]:
    with Moleculer(management=True) as moleculer:
        yield moleculer


def test_nats_py(moleculer: Moleculer) -> None:
    async def main() -> None:
        client = await nats.connect(moleculer.nats.url)
        heard = asyncio.Queue[tuple[str, bytes]]()

        async def hear(message: nats.aio.msg.Msg) -> None:
            await heard.put((message.subject, message.data))

        async def help(message: nats.aio.msg.Msg) -> None:
            await message.respond(b"I can help")

        subscription = await client.subscribe("foo.*", cb=hear)
        await client.publish("foo.bar", b"hello")
        assert await asyncio.wait_for(heard.get(), PATIENCE_S) == ("foo.bar", b"hello")
        await client.subscribe("help", "workers", help)
        answer = await client.request("help", b"please", timeout=PATIENCE_S, headers={"a": "b"})
        assert answer.data == b"I can help"
        with pytest.raises(nats.errors.NoRespondersError):
            await client.request("nobody", b"", timeout=PATIENCE_S)
        await subscription.unsubscribe(limit=1)
        await client.drain()

    asyncio.run(main())


#: In a process of its own: after a refused login nats-py forgets its socket.
LOGS_IN = """
import asyncio, sys, nats

async def main(url, password):
    try:
        await nats.connect(url, allow_reconnect=False, user="u", password="x")
    except nats.errors.Error as error:
        print(error)
    client = await nats.connect(url, user="u", password=password)
    await client.close()

asyncio.run(main(*sys.argv[1:]))
"""


def test_nats_py_logs_in() -> None:
    with Moleculer(user="u", password=PASSWORD) as moleculer:
        command = [sys.executable, "-c", LOGS_IN, moleculer.url, PASSWORD]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "authorization" in done.stdout.lower()


@pytest.mark.parametrize("protocol", [2, 3])
def test_redis_py(moleculer: Moleculer, protocol: int) -> None:
    client = redis.Redis(host=moleculer.redis.host, port=moleculer.redis.port, protocol=protocol)
    with client.pubsub() as ears:
        ears.subscribe("news")
        ears.psubscribe("n*")
        assert [ears.get_message(timeout=PATIENCE_S)["type"] for _ in range(2)] == ["subscribe", "psubscribe"]
        assert client.publish("news", "hello") == 2
        heard = [ears.get_message(timeout=PATIENCE_S) for _ in range(2)]
        assert [(each["type"], each["data"]) for each in heard] == [
            ("message", b"hello"),
            ("pmessage", b"hello"),
        ]
        assert (client.pubsub_channels(), client.pubsub_numpat()) == ([b"news"], 1)
    client.close()


def test_paho(moleculer: Moleculer) -> None:
    heard: list[tuple[str, bytes, int]] = []
    ready, done = threading.Event(), threading.Event()
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
    client.on_subscribe = lambda *_: ready.set()

    def hear(_: object, __: object, message: mqtt.MQTTMessage) -> None:
        heard.append((message.topic, message.payload, message.qos))
        if len(heard) == 3:
            done.set()

    client.on_message = hear
    client.connect(moleculer.mqtt.host, moleculer.mqtt.port)
    client.loop_start()
    client.subscribe("a/#", qos=1)
    assert ready.wait(PATIENCE_S)
    for qos in range(3):
        client.publish(f"a/{qos}", b"x", qos=qos).wait_for_publish(10)
    assert done.wait(PATIENCE_S)
    client.disconnect()
    client.loop_stop()
    assert sorted(heard) == [("a/0", b"x", 0), ("a/1", b"x", 1), ("a/2", b"x", 1)]


@pytest.mark.full
def test_nats_js(moleculer: Moleculer) -> None:
    require("nats")
    script = """
const { connect, StringCodec } = require("nats");
(async () => {
  const nc = await connect({ servers: "%s" });
  const sc = StringCodec();
  const sub = nc.subscribe("hello");
  (async () => {
    for await (const m of sub) console.log(`[${sub.getProcessed()}]: ${sc.decode(m.data)}`);
  })();
  nc.publish("hello", sc.encode("world"));
  nc.publish("hello", sc.encode("again"));
  await nc.drain();
})();
"""
    assert run_script(script % f"127.0.0.1:{moleculer.port}") == "[1]: world\n[2]: again\n"


@pytest.mark.full
def test_ioredis(moleculer: Moleculer) -> None:
    require("ioredis")
    script = """
const Redis = require("ioredis");
const sub = new Redis(%d, "127.0.0.1"), pub = new Redis(%d, "127.0.0.1");
sub.subscribe("news", "music", (err, count) => {
  console.log(err, count);
  pub.publish("news", "hello").then(n => console.log("to", n));
});
sub.on("message", (channel, message) => { console.log(channel, message); sub.quit(); pub.quit(); });
"""
    port = moleculer.redis.port
    lines = sorted(run_script(script % (port, port)).splitlines())
    assert lines == ["news hello", "null 2", "to 1"]


@pytest.mark.full
def test_mqtt_js(moleculer: Moleculer) -> None:
    require("mqtt")
    script = """
const mqtt = require("mqtt");
const client = mqtt.connect("%s");
client.on("connect", () => {
  client.subscribe("presence", err => { if (!err) client.publish("presence", "Hello mqtt", { qos: 1 }); });
});
client.on("message", (topic, message) => { console.log(topic, message.toString()); client.end(); });
"""
    assert run_script(script % moleculer.mqtt.url) == "presence Hello mqtt\n"


def test_monitoring_pages(moleculer: Moleculer) -> None:
    moleculer.node("fake")

    def page(path: str) -> dict[str, object]:
        with urllib.request.urlopen(f"{moleculer.management_url}/{path}") as answer:
            found: dict[str, object] = json.loads(answer.read())
            return found

    varz = page("varz")
    assert (varz["port"], varz["version"], varz["max_payload"]) == (moleculer.port, "2.9.10", 1048576)
    assert varz["subscriptions"] == 12

    async def main() -> None:
        client = await nats.connect(moleculer.url, name="me")
        await client.subscribe("a.b")
        await client.flush()
        loop = asyncio.get_running_loop()
        connections = (await loop.run_in_executor(None, page, "connz?subs=1"))["connections"]
        listed = (await loop.run_in_executor(None, page, "subsz?subs=1"))["subscriptions_list"]
        assert isinstance(connections, list)
        assert (connections[0]["name"], connections[0]["subscriptions_list"]) == ("me", ["a.b"])
        assert isinstance(listed, list)
        assert [each["subject"] for each in listed] == ["a.b"]
        await client.close()

    asyncio.run(main())
    assert page("healthz") == {"status": "ok"}


def test_pages_of_connections(moleculer: Moleculer) -> None:
    def page(query: str) -> tuple[list[int], int]:
        with urllib.request.urlopen(f"{moleculer.management_url}/connz?{query}") as answer:
            found = json.loads(answer.read())
            return [row["cid"] for row in found["connections"]], found["total"]

    with contextlib.ExitStack() as clients:
        for _ in range(5):
            client = clients.enter_context(socket.create_connection(("127.0.0.1", moleculer.port)))
            client.recv(4096)
        assert page("offset=1&limit=2") == ([2, 3], 5)
        assert page("offset=3&limit=2") == ([4, 5], 5)
        assert page("offset=4") == ([5], 5)
        assert page("limit=1") == ([1], 5)


def test_servers_of_other_transporters_stop_with_the_fake() -> None:
    with Moleculer() as moleculer:
        other = moleculer.redis
        assert moleculer.redis is other
        assert other.url == f"redis://127.0.0.1:{other.port}"
    with pytest.raises(UsageError):
        moleculer.mqtt  # noqa: B018 - the fake does not run any more
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", other.listeners[0].port))
