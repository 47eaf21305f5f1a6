"""Each bundled adapter for MQTT keeps the protocol, and does what its ops say, against the fake."""

from __future__ import annotations

import pytest

from conformance.clients.adapters.registry import Client
from fakebrokers import MQTT
from tests.conformance.clients.adapter.bundled_clients import (
    Driven,
    client_fixture,
    drive,
    passes_the_self_test,
)

ALL_BYTES = {"b64": "AP8BAgMEBQYHCAkKCwwNDg+A"}

client = client_fixture("mqtt")


def test_it_passes_the_self_test(client: Client) -> None:
    passes_the_self_test(client, "mqtt")


@pytest.mark.parametrize("qos", [1, 2])
def test_publish_subscribe_and_close(client: Client, qos: int) -> None:
    async def script(driven: Driven) -> None:
        await driven.listen("orders/+", qos=qos)
        sent = await driven.go("publish", target="orders/new", body=ALL_BYTES, qos=qos)
        assert sent["outcome"] == "acked"
        assert await driven.heard(1) == [bytes([0, 255, *range(1, 16), 128])]
        [message] = driven.adapter.messages("c")
        assert (message.meta["topic"], message.meta["qos"]) == ("orders/new", qos)
        await driven.go("unsubscribe", sub="c")
        assert (await driven.go("state"))["open"]
        await driven.go("close")
        assert not (await driven.go("state"))["open"]

    drive(client, MQTT(), script)
