"""Each bundled adapter for NATS keeps the protocol, and does what its ops say, against the fake."""

from __future__ import annotations

from conformance.clients.adapter.messages import Kind, body_bytes
from conformance.clients.adapters.registry import Client
from fakebrokers import NATS
from fakebrokers.faults import drop
from tests.conformance.clients.adapter.bundled_clients import (
    Driven,
    client_fixture,
    drive,
    passes_the_self_test,
)
from tests.eventually import PATIENCE_S

ALL_BYTES = {"b64": "AP8BAgMEBQYHCAkKCwwNDg+A"}

client = client_fixture("nats")


def test_it_passes_the_self_test(client: Client) -> None:
    passes_the_self_test(client, "nats")


def test_publish_subscribe_request_and_close(client: Client) -> None:
    async def script(driven: Driven) -> None:
        await driven.listen("orders.*")
        sent = await driven.go("publish", target="orders.new", body=ALL_BYTES)
        assert sent["outcome"] == "acked"
        assert await driven.heard(1) == [bytes([0, 255, *range(1, 16), 128])]
        driven.broker.respond("echo", lambda _, payload: payload)
        answer = await driven.go("nats.request", target="echo", body=ALL_BYTES)
        assert body_bytes(answer["body"]) == bytes([0, 255, *range(1, 16), 128])
        nobody = {"session": "s", "target": "nowhere", "body": {"text": "?"}}
        refused = await driven.adapter.call("nats.request", nobody, PATIENCE_S * 1000)
        assert (refused.kind, refused.code) == (Kind.REFUSED, 503)
        await driven.go("unsubscribe", sub="c")
        assert (await driven.go("state"))["open"]
        await driven.go("close")
        assert not (await driven.go("state"))["open"]

    drive(client, NATS(), script)


def test_a_subscribe_that_fails_leaves_no_subscription(client: Client) -> None:
    async def script(driven: Driven) -> None:
        driven.broker.faults.add(drop(kind="Pong", direction="out", name="lost"))
        asked = {"session": "s", "sub": "c", "target": "orders", "on_message": {"mode": "event"}}
        failed = await driven.adapter.call("subscribe", asked, 300)
        if failed.hang:  # its flush has no time-out
            assert client.name == "nats-node"
            return
        assert failed.kind is Kind.TIMEOUT, str(failed)
        await driven.broker.wait_for_async(kind="Unsub")

    drive(client, NATS(), script)
