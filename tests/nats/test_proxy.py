"""The proxy in front of a NATS server: by frames, and at its own address."""

from __future__ import annotations

import asyncio

import pytest

from fakebrokers import NATS
from fakebrokers.faults import drop
from fakebrokers.journal import Tap
from fakebrokers.proxy import Proxy
from tests.eventually import PATIENCE_S

nats = pytest.importorskip("nats", reason="missing: nats-py")


def test_a_client_stays_on_the_proxy_and_loses_the_message_that_it_takes() -> None:
    with NATS(nodes=2) as server, Proxy(f"127.0.0.1:{server.port}", protocol="nats") as proxy:
        proxy.faults.add(drop(role="deliver", nth=1))

        async def main() -> bytes:
            client = await nats.connect(f"nats://127.0.0.1:{proxy.port}")
            assert {each.port for each in client.servers} == {proxy.port}  # and none of the cluster's
            heard: asyncio.Queue[bytes] = asyncio.Queue()

            async def come(message: nats.aio.msg.Msg) -> None:
                await heard.put(message.data)

            await client.subscribe("a", cb=come)
            await client.publish("a", b"lost")
            await client.publish("a", b"comes")
            found = await asyncio.wait_for(heard.get(), PATIENCE_S)
            await client.close()
            return found

        assert asyncio.run(main()) == b"comes"
        assert [each.kind for each in proxy.journal.select(role="publish", tap=Tap.RECEIVED)] == [
            "Pub",
            "Pub",
        ]
