"""The proxy in front of Debian's RabbitMQ: a plan by role acts there too, and its recording plays."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakebrokers.faults import drop
from fakebrokers.proxy import Proxy
from fakebrokers.proxy.replay import Replay
from fakebrokers.rabbitmq_stream.frames import Delete, DeleteResponse, Metadata, MetadataResponse
from tests.eventually import PATIENCE_S
from tests.proxy.stream_client import StreamClient
from tests.real_rabbitmq import RealRabbit, real_rabbitmq, required

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def rabbit() -> Iterator[RealRabbit]:
    required()
    with real_rabbitmq() as running:
        yield running


def test_the_third_confirm_of_the_real_server_is_lost(rabbit: RealRabbit) -> None:
    with Proxy(rabbit.url, protocol="rabbitmq-stream") as proxy:
        proxy.faults.add(drop(role="confirm", nth=3, name="lost"))
        with StreamClient(proxy.port, ids=10) as client:
            client.create("lost")
            for count, body in enumerate((b"a", b"b", b"c", b"d"), 1):
                client.publish(body)
                proxy.wait_for(kind="PublishConfirm", count=count)  # the server may confirm several at once
            assert client.confirmed(3) == [12, 13, 15]
        assert proxy.faults.fired("lost") == 1
        said = proxy.journal.select(kind="PublishConfirm")
        assert [record.fault for record in said] == ["", "", "lost", ""]


def test_a_stock_client_that_looks_for_the_leader_stays_on_the_proxy(rabbit: RealRabbit) -> None:
    rstream = pytest.importorskip("rstream", reason="missing: rstream (pip install rstream)")

    async def publish(port: int) -> list[bool]:
        confirmed = []
        async with rstream.Producer("127.0.0.1", port, username="guest", password="guest") as producer:
            await producer.create_stream("stock", exists_ok=True)
            for number in range(4):
                try:
                    await producer.send_wait(
                        "stock", b"%d" % number, timeout=1 if number == 2 else PATIENCE_S
                    )
                    confirmed.append(True)
                except TimeoutError:
                    confirmed.append(False)
        return confirmed

    with Proxy(rabbit.url, protocol="rabbitmq-stream") as proxy:
        proxy.faults.add(drop(role="confirm", nth=3))
        assert asyncio.run(publish(proxy.port)) == [True, True, False, True]
        assert len(proxy.journal.select(kind="Publish")) == 4


def test_clients_are_told_the_proxys_address(rabbit: RealRabbit) -> None:
    with Proxy(rabbit.url, protocol="rabbitmq-stream") as proxy, StreamClient(proxy.port) as client:
        client.create("near")
        assert client.opened.properties is not None
        assert client.opened.properties["advertised_port"] == str(proxy.port)
        client.say(Metadata(9, ("near",)))
        assert [(each.host, each.port) for each in client.wait(MetadataResponse).brokers] == [
            (proxy.host, proxy.port)
        ]


def test_a_recording_of_the_real_server_plays(rabbit: RealRabbit, tmp_path: Path) -> None:
    def session(port: int, ids: int) -> tuple[dict[str, str | None] | None, list[int], int]:
        with StreamClient(port, ids=ids) as client:
            client.create("recorded")
            client.publish(b"a", b"b")
            confirmed = client.confirmed(2)
            last = client.take_id()
            client.say(Delete(last, "recorded"))
            code = client.wait(DeleteResponse)
            assert code.correlation_id == last
            return client.opened.properties, [each - ids for each in confirmed], code.code

    file = tmp_path / "session.jsonl"
    with Proxy(rabbit.url, protocol="rabbitmq-stream", record=file) as proxy:
        real = session(proxy.port, 10)
    with Replay(file) as replay:
        properties, confirmed, code = session(replay.port, 5000)
        assert properties == {**(real[0] or {}), "advertised_port": str(replay.port)}
    assert (confirmed, code) == real[1:] == ([2, 3], 1)
