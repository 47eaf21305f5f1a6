"""The reference client of RabbitMQ Stream, in memory, over sockets and in a process of its own."""

from __future__ import annotations

import asyncio
import sys
import time

import pytest

from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.adapter.process import ProcessAdapter
from conformance.clients.adapter.profile import missing_ops
from conformance.clients.reference.kit import ClientError, Memory, Network, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.settings import Settings
from conformance.clients.reference.rabbitmq_stream.subscription import Message, Start
from conformance.clients.reference.registry import command, reference, without_sockets
from fakebrokers import RabbitMQStream
from fakebrokers.core import virtual
from fakebrokers.core.frames import kind_of
from fakebrokers.core.session import HangUp
from fakebrokers.faults import delay, drop, latency, rst, slice_
from fakebrokers.journal import Tap
from fakebrokers.rabbitmq_stream.binary import pack_ids
from fakebrokers.rabbitmq_stream.chunk import Chunk
from fakebrokers.rabbitmq_stream.codes import OffsetType
from fakebrokers.rabbitmq_stream.entries import simple_entries
from fakebrokers.rabbitmq_stream.frames import CreditResponse, DeleteResponse, Deliver, PublishConfirm
from tests.conformance.clients.reference.rabbitmq_stream.happy_path import walk

PROTOCOL = "rabbitmq-stream"


def test_in_memory() -> None:
    async def work() -> None:
        adapter = InProcessAdapter(without_sockets(reference(PROTOCOL)), PROTOCOL)
        hello = await adapter.start()
        assert missing_ops(hello, PROTOCOL) == []
        async with RabbitMQStream(memory=True) as broker:
            await walk(adapter, broker)
        await adapter.shutdown()

    virtual.run(work())


def test_over_sockets() -> None:
    async def work() -> None:
        adapter = InProcessAdapter(reference(PROTOCOL), PROTOCOL)
        await adapter.start()
        async with RabbitMQStream() as broker:
            await walk(adapter, broker)
        await adapter.shutdown()

    asyncio.run(work())


def test_as_a_child_process() -> None:
    async def work() -> None:
        env = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
        adapter = ProcessAdapter(command(PROTOCOL), PROTOCOL, env=env)
        await adapter.start()
        async with RabbitMQStream() as broker:
            await walk(adapter, broker)
        assert await adapter.shutdown() == 0

    asyncio.run(work())


def test_over_tls_with_the_right_certificate_only() -> None:
    async def work() -> None:
        with RabbitMQStream(tls=True) as broker:
            assert broker.tls is not None
            endpoint = f"{broker.host}:{broker.tls_port}"
            trusted = {"ca_file": str(broker.tls.ca_file), "server_name": "localhost"}
            client = StreamClient(Runtime(Network({"tls": trusted})), [endpoint])
            await client.connect(5.0)
            assert client.is_open
            await client.close(5.0)
            stranger = StreamClient(Runtime(Network({"tls": {"ca_file": None}})), [endpoint])
            try:
                await stranger.connect(5.0)
            except ClientError as error:
                assert error.kind == "connection"
            else:
                raise AssertionError("the certificate of an unknown authority was taken")

    asyncio.run(work())


async def _connected(broker: RabbitMQStream, **settings: object) -> tuple[StreamClient, list[str]]:
    reported: list[str] = []
    client = StreamClient(
        Runtime(Memory(), on_session=lambda what, *_: reported.append(what)),
        [f"{broker.host}:{broker.port}"],
        Settings(**settings),  # type: ignore[arg-type]
    )
    await client.connect(5.0)
    return client, reported


@pytest.mark.parametrize("turns", range(6))
def test_what_is_published_as_the_publisher_is_declared_overtakes_nothing(turns: int) -> None:
    async def work() -> None:
        async with RabbitMQStream(memory=True) as broker:
            broker.create_stream("orders")
            client, _ = await _connected(broker)
            first = asyncio.create_task(client.publishing.publish("orders", [b"1"]))
            while all(one.connection is None for one in client.publishing.publishers.values()):
                await asyncio.sleep(0)
            for _ in range(turns):
                await asyncio.sleep(0)
            await asyncio.gather(client.publishing.publish("orders", [b"2"]), first)
            await client.publishing.flush(5.0)
            assert [message.body for message in broker.messages("orders")] == [b"1", b"2"]
            client.abort()

    virtual.run(work())


def test_it_comes_back_and_goes_on_where_it_was() -> None:
    async def work() -> None:
        async with RabbitMQStream(memory=True) as broker:
            broker.create_stream("orders")
            client, reported = await _connected(broker)
            got: list[int] = []

            async def on_message(message: object) -> None:
                got.append(message.offset)  # type: ignore[attr-defined]

            await client.consuming.subscribe("orders", on_message)
            [first] = await client.publishing.publish("orders", [b"1"])
            await first.confirmed()
            broker.kill(how=HangUp.RST)
            await asyncio.sleep(0.01)
            [second] = await client.publishing.publish("orders", [b"2"], timeout=10.0)
            await second.confirmed()
            await asyncio.sleep(1.0)
            assert got == [0, 1]
            assert reported == ["connected", "connection_lost", "reconnecting", "reconnected"]
            await client.close()

    virtual.run(work())


def test_silence_is_found_after_two_heartbeats() -> None:
    async def work() -> None:
        async with RabbitMQStream(memory=True, heartbeat_s=1) as broker:
            client, reported = await _connected(broker, auto_reconnect=False)
            await broker.wait_for_async(kind="Heartbeat", tap=Tap.SENT, count=2, timeout=10.0)
            broker.faults.add(drop(kind="Heartbeat", direction="out"))
            heard = client.runtime.clock.now()
            while client.is_open:
                await asyncio.sleep(0.01)
            assert 1.9 < client.runtime.clock.now() - heard < 2.1
            assert reported == ["connected", "connection_lost"]

    virtual.run(work())


def test_a_lost_confirm_is_unknown_after_the_timeout() -> None:
    async def work() -> None:
        async with RabbitMQStream(memory=True) as broker:
            broker.create_stream("orders")
            client, _ = await _connected(broker)
            broker.faults.add(drop(role="confirm", nth=1))
            [receipt] = await client.publishing.publish("orders", [b"1"], timeout=1.5)
            began = client.runtime.clock.now()
            try:
                await receipt.confirmed()
            except ClientError as error:
                assert (error.kind, error.definite) == ("timeout", False)
            assert 1.4 < client.runtime.clock.now() - began < 1.6
            assert client.pending == 0
            await client.close()

    virtual.run(work())


def test_virtual_time_takes_no_time() -> None:
    async def work() -> None:
        async with RabbitMQStream(memory=True, heartbeat_s=10) as broker:
            client, _ = await _connected(broker)
            await asyncio.sleep(3600)
            assert client.is_open
            await client.close()

    began = time.process_time()
    virtual.run(work())
    assert time.process_time() - began < 5.0


def test_a_loss_in_one_segment_with_the_last_handshake_frame_fails_the_connect() -> None:
    async def work() -> None:
        async with RabbitMQStream(memory=True) as broker:
            broker.faults.add(rst(kind="ExchangeCommandVersionsResponse", nth=1, scope="run"))
            with pytest.raises(ClientError) as caught:
                await _connected(broker)
            assert caught.value.kind == "connection"

    virtual.run(work())


def test_a_loss_right_behind_the_handshake_of_a_reconnect_does_not_wedge_the_client() -> None:
    async def work() -> None:
        async with RabbitMQStream(memory=True) as broker:
            broker.create_stream("orders")
            client, reported = await _connected(broker)
            broker.faults.add(rst(kind="ExchangeCommandVersionsResponse", nth=1, scope="run", name="again"))
            broker.kill(how=HangUp.RST)
            await asyncio.sleep(0.01)
            [receipt] = await client.publishing.publish("orders", [b"1"], timeout=20.0)
            await receipt.confirmed()
            assert broker.faults.fired("again") == 1
            assert reported == ["connected", "connection_lost", "reconnecting", "reconnected"]
            assert client.is_open
            await client.close()

    virtual.run(work())


def test_a_connection_that_it_lets_go_of_is_no_loss() -> None:
    async def work() -> None:
        async with RabbitMQStream(memory=True, nodes=2) as broker:
            broker.create_stream("orders")
            broker.move_leader("orders", 2)
            client, reported = await _connected(broker)
            [receipt] = await client.publishing.publish("orders", [b"1"])
            await receipt.confirmed()
            await client.publishing.delete_publisher("orders", None, 5.0)
            await asyncio.sleep(0.5)
            assert len(broker.connections) == 1
            assert reported == ["connected"]
            await client.close()

    virtual.run(work())


def test_it_is_open_while_any_connection_carries_messages() -> None:
    async def work() -> None:
        async with RabbitMQStream(memory=True, nodes=2) as broker:
            broker.create_stream("orders")
            broker.move_leader("orders", 2)
            client, _ = await _connected(broker)
            [receipt] = await client.publishing.publish("orders", [b"1"])
            await receipt.confirmed()
            broker.faults.add(drop(kind="SaslHandshakeResponse", direction="out"))
            broker.kill("c1", HangUp.RST)
            await asyncio.sleep(1.0)
            [receipt] = await client.publishing.publish("orders", [b"2"], timeout=5.0)
            await receipt.confirmed()
            assert client.is_open
            broker.kill(how=HangUp.RST)
            await asyncio.sleep(0.01)
            assert not client.is_open
            client.abort()

    virtual.run(work())


def test_a_frame_that_never_gets_whole_ends_the_connection() -> None:
    async def work() -> None:
        async with RabbitMQStream(memory=True, heartbeat_s=2) as broker:
            broker.create_stream("orders")
            client, reported = await _connected(broker)
            broker.say_raw("c1", bytes.fromhex("00001000 0017 0001"))  # its size field is wrong
            await asyncio.sleep(7.5)
            assert reported == ["connected"]  # heartbeats come, and may be the rest of a large frame
            await asyncio.sleep(2.0)
            assert reported == ["connected", "connection_lost", "reconnecting", "reconnected"]
            [receipt] = await client.publishing.publish("orders", [b"1"], timeout=5.0)
            await receipt.confirmed()
            await client.close()

    virtual.run(work())


def test_a_large_frame_may_take_its_time() -> None:
    async def work() -> None:
        async with RabbitMQStream(memory=True, heartbeat_s=2) as broker:
            broker.create_stream("orders")
            client, reported = await _connected(broker)
            broker.faults.add(slice_(size=10, gap_s=0.5, kind="Deliver", nth=1))
            broker.publish("orders", [b"x" * 50])
            got: list[bytes] = []

            async def on_message(message: Message) -> None:
                got.append(message.body)

            await client.consuming.subscribe("orders", on_message)
            await asyncio.sleep(20.0)
            assert got == [b"x" * 50]
            assert reported == ["connected"]
            await client.close()

    virtual.run(work())


def test_a_chunk_that_comes_while_it_closes_is_not_surfaced() -> None:
    async def work() -> None:
        async with RabbitMQStream(memory=True) as broker:
            broker.create_stream("orders")
            client, _ = await _connected(broker)
            got: list[bytes] = []

            async def on_message(message: Message) -> None:
                got.append(message.body)

            subscription = await client.consuming.subscribe("orders", on_message)
            link = client.links.control
            closing = asyncio.create_task(client.close())
            while not subscription.is_closed:
                await asyncio.sleep(0)
            assert link is not None
            assert link.is_open
            data = simple_entries([b"late"])
            chunk = Chunk.build(data, entries=1, records=1, first_offset=0, timestamp_ms=0)
            link.data_received(link.core.codec.encode(Deliver(subscription.subscription_id, chunk)))
            await closing
            assert got == []

    virtual.run(work())


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (OffsetType.OFFSET, 1 << 64),
        (OffsetType.OFFSET, -1),
        (OffsetType.TIMESTAMP, 1 << 63),
        (OffsetType.TIMESTAMP, -(1 << 63) - 1),
    ],
)
def test_a_position_that_does_not_fit_is_refused_before_it_is_sent(kind: OffsetType, value: int) -> None:
    async def work() -> None:
        async with RabbitMQStream(memory=True) as broker:
            broker.create_stream("orders")
            client, _ = await _connected(broker)

            async def on_message(message: Message) -> None:
                """Nothing comes."""

            with pytest.raises(ClientError) as caught:
                await client.consuming.subscribe("orders", on_message, start=Start(kind, value))
            assert caught.value.kind == "invalid"
            assert not broker.journal.select(kind="Subscribe")
            await client.close()

    virtual.run(work())


def test_a_subscription_that_ends_while_it_is_brought_back_is_not_made_again() -> None:
    async def work() -> None:
        async with RabbitMQStream(memory=True) as broker:
            broker.create_stream("orders")
            client, _ = await _connected(broker)

            async def on_message(message: Message) -> None:
                """Nothing comes."""

            subscription = await client.consuming.subscribe("orders", on_message)
            broker.faults.add(delay(1.0, kind="MetadataResponse", direction="out", connection="c2"))
            broker.kill(how=HangUp.RST)
            while not broker.journal.select(kind="Metadata", connection="c2"):
                await asyncio.sleep(0.05)
            await client.consuming.unsubscribe(subscription)
            await asyncio.sleep(5.0)
            assert not broker.journal.select(kind="Subscribe", connection="c2")
            await client.close()

    virtual.run(work())


@pytest.mark.parametrize("what", ["subscription", "publisher"])
def test_what_is_granted_behind_its_end_is_taken_back(what: str) -> None:
    granted, undone = {
        "subscription": ("SubscribeResponse", "Unsubscribe"),
        "publisher": ("DeclarePublisherResponse", "DeletePublisher"),
    }[what]

    async def work() -> None:
        async with RabbitMQStream(memory=True) as broker:
            broker.create_stream("orders")
            client, _ = await _connected(broker)

            async def on_message(message: Message) -> None:
                """Nothing comes."""

            subscription = await client.consuming.subscribe("orders", on_message)
            [receipt] = await client.publishing.publish("orders", [b"1"])
            await receipt.confirmed()
            broker.faults.add(delay(1.0, kind=granted, direction="out", connection="c2"))
            broker.kill(how=HangUp.RST)
            question = granted.removesuffix("Response")
            while not broker.journal.select(kind=question, connection="c2"):
                await asyncio.sleep(0.05)
            if what == "subscription":
                await client.consuming.unsubscribe(subscription)
            else:
                await client.publishing.delete_publisher("orders", None, 5.0)
            await asyncio.sleep(5.0)
            assert len(broker.journal.select(kind=undone, connection="c2", tap=Tap.RECEIVED)) == 1
            await client.close()

    virtual.run(work())


@pytest.mark.parametrize("granted_in_s", [0.5, 2.0], ids=["waiting", "given-up"])
def test_nothing_is_taken_back_behind_a_close(granted_in_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a subscribe is granted while the client closes ends with the connection."""
    sent: list[str] = []

    async def work() -> None:
        async with RabbitMQStream(memory=True) as broker:
            broker.create_stream("orders")
            client, _ = await _connected(broker)

            async def on_message(message: Message) -> None:
                """Nothing comes."""

            broker.faults.add(latency(granted_in_s, kind="SubscribeResponse", direction="out"))
            coming = asyncio.create_task(client.consuming.subscribe("orders", on_message, timeout=1.0))
            await asyncio.sleep(granted_in_s - 0.1)
            [link] = client.links.all
            send = link.core.send
            monkeypatch.setattr(link.core, "send", lambda frame: (sent.append(kind_of(frame)), send(frame)))
            await client.close(5.0)
            with pytest.raises(ClientError):
                await coming
            assert broker.journal.select(kind="SubscribeResponse", tap=Tap.SENT)
            assert sent == ["Close"]

    virtual.run(work())


def test_a_publisher_without_ids_says_so() -> None:
    async def work() -> None:
        async with RabbitMQStream(memory=True) as broker:
            broker.create_stream("orders")
            broker.store_sequence("orders", "p", (1 << 64) - 1)
            client, _ = await _connected(broker)
            with pytest.raises(ClientError) as caught:
                await client.publishing.publish("orders", [b"1"], name="p")
            assert caught.value.kind == "invalid"
            assert client.pending == 0
            await client.close()

    virtual.run(work())


def test_what_is_dropped_is_told() -> None:
    async def work() -> None:
        async with RabbitMQStream(memory=True) as broker:
            broker.create_stream("orders")
            client, _ = await _connected(broker)
            notes: list[str] = []
            client.runtime.callbacks.on_note = notes.append
            [receipt] = await client.publishing.publish("orders", [b"1"])
            await receipt.confirmed()
            chunk = Chunk.build(b"", entries=0, records=0, first_offset=0, timestamp_ms=0)
            unasked = [
                PublishConfirm(200, pack_ids([1])),
                PublishConfirm(receipt.publisher.publisher_id, pack_ids([77])),
                Deliver(250, chunk),
                CreditResponse(4, 250),
                DeleteResponse(0x7FFFFF00, 1),
            ]
            broker.say("c1", *unasked)
            broker.say_raw("c1", bytes.fromhex("0000000e 0063 0001") + bytes(10))
            await asyncio.sleep(0.1)
            kinds = [
                "publisher 200",
                "message 77",
                "subscription 250",
                "code 4",
                "DeleteResponse",
                "not known",
            ]
            for word in kinds:
                assert [note for note in notes if word in note], (word, notes)
            await client.close()

    virtual.run(work())
