"""Each bundled adapter for Redis keeps the protocol, and does what its ops say, against the fake."""

from __future__ import annotations

from typing import Any

from conformance.clients.adapter.messages import body_bytes
from conformance.clients.adapters.registry import Client
from fakebrokers import Redis
from tests.conformance.clients.adapter.bundled_clients import (
    Driven,
    client_fixture,
    drive,
    passes_the_self_test,
)
from tests.eventually import PATIENCE_S

ALL_BYTES = {"b64": "AP8BAgMEBQYHCAkKCwwNDg+A"}

client = client_fixture("redis")


def test_it_passes_the_self_test(client: Client) -> None:
    passes_the_self_test(client, "redis")


def test_commands_pipelines_pops_and_messages(client: Client) -> None:
    async def script(driven: Driven) -> None:
        async def ask(*words: Any) -> Any:
            return (await driven.go("redis.call", words=list(words)))["value"]

        assert body_bytes(await ask("SET", "key", ALL_BYTES)) == b"OK"
        assert body_bytes(await ask("GET", "key")) == bytes([0, 255, *range(1, 16), 128])
        assert await ask("GET", "nothing") is None
        commands = [["INCR", "count"], ["LPUSH", "key", "x"], ["INCRBY", "count", "41"]]
        piped = (await driven.go("redis.pipeline", commands=commands))["results"]
        assert [one.get("error") for one in piped] == [None, "WRONGTYPE", None]
        assert int(piped[2]["value"]) == 42
        popped = driven.adapter.begin(
            "redis.call", {"session": "s", "words": ["BLPOP", "list", "0"]}, PATIENCE_S * 1000
        )
        driven.broker.push("list", b"tea")
        assert [body_bytes(one) for one in (await popped).value["value"]] == [b"list", b"tea"]
        await driven.listen("orders")
        await driven.broker.wait_for_async(kind="Subscribed")
        sent = await driven.go("publish", target="orders", body=ALL_BYTES)
        assert (sent["outcome"], sent["meta"]["receivers"]) == ("acked", 1)
        assert await driven.heard(1) == [bytes([0, 255, *range(1, 16), 128])]
        await driven.go("unsubscribe", sub="c")
        await driven.go("close")
        assert not (await driven.go("state"))["open"]

    drive(client, Redis(), script)
