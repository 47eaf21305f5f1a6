"""The reference client of PZQ, in memory, over sockets and as a child process."""

from __future__ import annotations

import asyncio
import sys

import pytest

from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.adapter.process import ProcessAdapter
from conformance.clients.adapter.profile import missing_ops
from conformance.clients.reference.kit import ClientError, Memory, Network, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.consumer import Delivery, number
from conformance.clients.reference.registry import command, reference, without_sockets
from fakebrokers import PZQ
from fakebrokers.core import virtual
from fakebrokers.faults import Plan, drop, fault
from fakebrokers.pzq.faults import WithoutDelimiter, refuse_message, silent_monitor
from tests.conformance.clients.reference.pzq.happy_path import walk
from tests.eventually import eventually_async


def test_in_memory() -> None:
    async def work() -> None:
        adapter = InProcessAdapter(without_sockets(reference("pzq")), "pzq")
        assert missing_ops(await adapter.start(), "pzq") == []
        async with PZQ(memory=True) as broker:
            await walk(adapter, broker)
            assert broker.messages() == []
        await adapter.shutdown()

    virtual.run(work())


def test_over_sockets() -> None:
    async def work() -> None:
        adapter = InProcessAdapter(reference("pzq"), "pzq")
        await adapter.start()
        async with PZQ() as broker:
            await walk(adapter, broker)
        await adapter.shutdown()

    asyncio.run(work())


def test_as_a_child_process() -> None:
    async def work() -> None:
        env = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
        adapter = ProcessAdapter(command("pzq"), "pzq", env=env)
        await adapter.start()
        async with PZQ() as broker:
            await walk(adapter, broker)
        assert await adapter.shutdown() == 0

    asyncio.run(work())


def _client(broker: PZQ) -> PzqClient:
    return PzqClient(Runtime(Memory()), broker.where)


def test_a_message_without_an_answer_is_sent_once_more_and_then_unknown() -> None:
    async def work() -> None:
        async with PZQ(memory=True) as broker:
            broker.faults.add(drop(role="confirm"))
            client = _client(broker)
            with pytest.raises(ClientError) as caught:
                await client.publish((b"x",), b"id", 2.0)
            assert (caught.value.kind, caught.value.definite) == ("timeout", False)
            assert asyncio.get_running_loop().time() == pytest.approx(2.0)
            assert [message.body for message in broker.messages()] == [(b"x",), (b"x",)]
            assert client.pending == 0
            client.abort()

    virtual.run(work())


def test_a_refusal_carries_the_reason_and_is_definite() -> None:
    async def work() -> None:
        async with PZQ(memory=True) as broker:
            broker.faults.add(refuse_message("disk full"))
            client = _client(broker)
            with pytest.raises(ClientError, match="disk full") as caught:
                await client.publish((b"x",))
            assert (caught.value.kind, caught.value.definite, caught.value.code) == ("refused", True, "0")
            client.abort()
            with pytest.raises(ClientError, match="closed"):
                await client.publish((b"x",))

    virtual.run(work())


def test_close_ends_a_question_that_waits() -> None:
    async def work() -> None:
        async with PZQ(memory=True, faults=Plan(faults=(silent_monitor(),))) as broker:
            client = _client(broker)
            asking = asyncio.ensure_future(client.ask())
            await asyncio.sleep(0.5)
            client.abort()
            with pytest.raises(ClientError) as caught:
                await asking
            assert caught.value.kind == "closed"
            await asyncio.sleep(0.5)
            assert not broker.connections

    virtual.run(work())


def test_an_error_callback_that_raises_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        def reported(where: str, error: ClientError) -> None:
            raise RuntimeError("the application's own")

        got = []

        async def deliver_message(delivery: Delivery) -> None:
            got.append(delivery.body)

        async with PZQ(memory=True) as broker:
            broker.faults.add(fault(WithoutDelimiter(), role="deliver", nth=1))
            client = PzqClient(Runtime(Memory(), on_error=reported), broker.where)
            client.subscribe(deliver_message)
            broker.publish(b"bad")
            broker.publish(b"good")
            await asyncio.sleep(0.5)
            client.abort()
        assert got == [(b"good",)]

    virtual.run(work())
    assert "the application's own" in caplog.text


def test_a_clock_that_is_wrong_moves_expiry_only() -> None:
    async def work() -> None:
        adapter = InProcessAdapter(without_sockets(reference("pzq")), "pzq")
        await adapter.start()
        async with PZQ(memory=True) as broker:
            await adapter.call("connect", {"session": "s", "endpoints": broker.where}, 1000)
            on_message = {"mode": "event"}
            subscribe = {"session": "s", "sub": "c", "target": "", "options": {}, "on_message": on_message}
            await adapter.call("subscribe", subscribe, 1000)
            for number, offset_ms in enumerate((3_600_000, 0), 1):
                await adapter.call("set_clock", {"offset_ms": offset_ms}, 1000)
                broker.publish(b"x")
                found = (await adapter.wait_messages("c", number, 1.0))[-1]
                assert found.meta["expired"] is (offset_ms > 0)
            stats = (await adapter.call("stats", {}, 1000)).value
            assert (stats["pending"], stats["buffered_bytes"]) == (0, 0)
        await adapter.kill()

    virtual.run(work())


def test_a_consumer_at_two_brokers_acknowledges_to_each_over_sockets() -> None:
    async def work() -> None:
        async with PZQ() as one, PZQ() as two:
            for broker in (one, two):
                broker.publish(b"x")
            client = PzqClient(Runtime(Network()), {**one.where, "send": [one.send_url, two.send_url]})

            async def deliver_message(delivery: Delivery) -> None:
                await consumer.settle(delivery, True)

            consumer = client.subscribe(deliver_message)
            await eventually_async(lambda: not one.messages() and not two.messages())
            client.abort()

    asyncio.run(work())


def test_an_endpoint_without_a_fake_is_a_connection_error() -> None:
    async def work() -> None:
        with pytest.raises(ClientError) as caught:
            PzqClient(Runtime(Memory()), dict.fromkeys(("receive", "monitor"), "tcp://127.0.0.1:1"))
        assert caught.value.kind == "connection"

    virtual.run(work())


def test_numbers_that_are_too_long_are_none() -> None:
    assert number(b"9" * 5000) is None
    assert number(b"1735689600000000") == 1735689600000000


def test_a_counter_that_is_too_long_is_text() -> None:
    async def work() -> None:
        async with PZQ(memory=True) as broker:
            client = _client(broker)
            assert client.inquirer.value("9" * 5000) == "9" * 5000
            assert client.inquirer.value("12") == 12
            client.abort()

    virtual.run(work())
