"""Clients without sockets, on virtual time; and the faults that exist only here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any

import pytest

from fakebrokers.core.onlooking import watch_wire
from fakebrokers.core.virtual import run
from fakebrokers.core.watch import End
from fakebrokers.errors import PlanError, UsageError
from fakebrokers.faults.build import crash, fault, shift_clock
from fakebrokers.faults.plan import Fault, load_plan
from fakebrokers.pzq.faults import (
    ChangeIdentity,
    CorruptPart,
    ExpireNow,
    ExtraHeaders,
    StoreFailure,
    WithoutDelimiter,
    acknowledge_another,
    frozen_daemon,
    garbled_monitor,
    lose_acknowledgement,
    lose_consumer_ack,
    refuse_message,
    reverse_order,
    silent_monitor,
    stale_delivery,
)
from fakebrokers.pzq.frames import ProduceAck
from fakebrokers.pzq.memory import connect
from fakebrokers.pzq.server import PZQ

Parts = tuple[bytes, ...]


class Client:
    """A memory socket and what it got."""

    def __init__(self, pzq: PZQ, role: Any, kind: Any) -> None:
        self.got: list[Parts] = []
        self.socket = connect(pzq.urls[role], kind, self.got.append)

    async def take(self, seconds: float = 0.01) -> list[Parts]:
        await asyncio.sleep(seconds)
        got = list(self.got)
        self.got.clear()
        return got


class Clients:
    def __init__(self, pzq: PZQ) -> None:
        self.pzq = pzq
        self.producer = Client(pzq, "receive", "DEALER")
        self.consumer = Client(pzq, "send", "ROUTER")
        self.monitor = Client(pzq, "monitor", "REQ")

    async def produce(self, body: bytes, id: bytes = b"i") -> list[Parts]:
        self.producer.socket.send(id, b"", body)
        return await self.producer.take()

    def ack(self, delivery: Parts, status: bytes = b"1") -> None:
        self.consumer.socket.send(delivery[0], delivery[1], status)


def in_memory(talk: Callable[[Clients], Coroutine[Any, Any, None]], *faults: Fault, **options: Any) -> None:
    async def work() -> None:
        with PZQ(memory=True, **options) as pzq:
            pzq.faults.add(*faults)
            await talk(Clients(pzq))

    run(work())


def test_one_message_through_memory() -> None:
    async def talk(c: Clients) -> None:
        assert await c.produce(b"x") == [(b"i", b"1", b"")]
        (delivery,) = await c.consumer.take()
        assert delivery[0] == c.consumer.socket.routing_id
        c.ack((b"\0none", *delivery[1:]))
        await asyncio.sleep(0.01)
        assert c.pzq.statistics["messages"] == 1
        c.ack(delivery)
        c.monitor.socket.send(b"MONITOR")
        ((text,),) = await c.monitor.take()
        assert text.startswith(b"messages: 0\n")

    in_memory(talk)


def test_reaper_on_virtual_time() -> None:
    async def talk(c: Clients) -> None:
        await c.produce(b"x")
        got = await c.consumer.take(60.0)
        gaps = [int(b[2]) - int(a[2]) for a, b in pairwise(got)]
        assert len(gaps) == 8
        assert all(5_000_000 < gap <= 7_500_000 for gap in gaps)

    in_memory(talk)


def test_several_consumers_and_one_that_leaves() -> None:
    async def talk(c: Clients) -> None:
        other = Client(c.pzq, "send", "DEALER")
        for number in range(4):
            await c.produce(b"%d" % number)
        assert [unit[-1] for unit in await c.consumer.take()] == [b"0", b"2"]
        assert [unit[-1] for unit in await other.take()] == [b"1", b"3"]
        other.socket.close()
        assert len(await c.consumer.take(20.0)) > 4

    in_memory(talk)


def test_crash_and_restart_in_memory() -> None:
    async def talk(c: Clients) -> None:
        await c.produce(b"a")
        (first,) = await c.consumer.take()
        c.pzq.crash()
        assert await c.produce(b"b") == []
        c.pzq.restart()
        (again, new) = await c.consumer.take(1.0)
        assert again[:2] == first[:2]
        assert new[-1] == b"b"
        assert await c.producer.take() == [(b"i", b"1", b"")]

    in_memory(talk)


def test_killed_connections_come_back_in_memory() -> None:
    async def talk(c: Clients) -> None:
        c.pzq.kill()
        await asyncio.sleep(0.2)
        assert await c.produce(b"a") == [(b"i", b"1", b"")]

    in_memory(talk)


def test_sockets_need_memory() -> None:
    with pytest.raises(UsageError, match="no PZQ fake in memory"):
        connect("tcp://127.0.0.1:1", "DEALER", print)
    with PZQ() as pzq, pytest.raises(UsageError, match="memory=True"):
        pzq.connect_memory_socket("send", "ROUTER", print)


def test_lost_and_foreign_acknowledgements() -> None:
    async def talk(c: Clients) -> None:
        assert await c.produce(b"x", b"1") == []
        assert await c.produce(b"x", b"2") == [(b"foreign", b"1", b"")]
        assert await c.produce(b"x", b"3") == [(b"3", b"1", b"")]
        assert len(c.pzq.messages()) == 3

    in_memory(talk, lose_acknowledgement(nth=1), acknowledge_another(nth=2))


def test_refused_messages() -> None:
    async def talk(c: Clients) -> None:
        assert await c.produce(b"x") == [(b"i", b"0", b"", b"disk full")]
        assert c.pzq.messages() == []
        assert await c.produce(b"x") == [(b"i", b"1", b"")]
        c.monitor.socket.send(b"MONITOR")
        assert len(await c.monitor.take()) == 1

    in_memory(talk, refuse_message(nth=1), fault(StoreFailure(reason="x"), role="request"))


def test_headers_and_missing_delimiters() -> None:
    async def talk(c: Clients) -> None:
        assert await c.produce(b"x") == [(b"i", b"1", b"h1", b"h2", b"")]
        assert await c.produce(b"x") == [(b"i", b"1")]
        first, second = await c.consumer.take()
        assert first[4:] == (b"h1", b"h2", b"", b"x")
        assert second[4:] == ()

    in_memory(
        talk,
        fault(ExtraHeaders(headers=("h1", "h2")), role="confirm", nth=1),
        fault(ExtraHeaders(headers=("h1", "h2")), role="deliver", nth=1),
        fault(WithoutDelimiter(), role="confirm", nth=2),
        fault(WithoutDelimiter(), role="deliver", nth=2),
    )


def test_one_byte_of_one_part_is_wrong() -> None:
    async def talk(c: Clients) -> None:
        right = (b"i", b"1", b"")
        wrong = [(await c.produce(b"x"))[0] for _ in range(20)]
        for parts in wrong:
            assert [len(part) for part in parts] == [1, 1, 0]
            assert sum(a != b for a, b in zip(parts, right, strict=True)) == 1
        assert {parts[0] == b"i" for parts in wrong} == {True, False}

    in_memory(talk, fault(CorruptPart(), role="confirm"))


def test_answers_that_nobody_asked_for() -> None:
    async def talk(c: Clients) -> None:
        await c.produce(b"x")
        producer = c.pzq.journal.select(kind="Produce")[0].connection
        c.pzq.say(producer, ProduceAck(b"a"), ProduceAck(b"b"))
        assert await c.producer.take() == [(b"a", b"1", b""), (b"b", b"1", b"")]

    in_memory(talk)


def test_a_mask_that_changes_nothing() -> None:
    with pytest.raises(PlanError, match=r"1\.\.255"):
        PZQ(faults={"faults": [{"match": {}, "effect": {"type": "corrupt-part", "xor": 0}}]})


def test_a_socket_that_does_not_come_back() -> None:
    async def work() -> None:
        with PZQ(memory=True) as pzq:
            sockets = [connect(pzq.urls["receive"], "DEALER", print, ms) for ms in (-1, 10)]
            [first, second] = [found["name"] for found in pzq.connections]
            assert [one.holds(first) for one in sockets] == [True, False]
            assert pzq.client_holds(second)
            pzq.kill(how="rst")
            assert not pzq.client_holds(second)
            await asyncio.sleep(1.0)
            assert len(pzq.connections) == 1
            pzq.crash()
            pzq.restart()
            await asyncio.sleep(1.0)
            assert len(pzq.connections) == 1

    run(work())


def test_stale_reordered_and_early_deliveries() -> None:
    async def talk(c: Clients) -> None:
        for body in (b"a", b"b", b"c"):
            await c.produce(body)
        c3, b2, a = await c.consumer.take()
        now = c.pzq.broker.microseconds(c.pzq.now)
        assert now - int(a[2]) > 10_000_000
        assert (c3[-1], b2[-1]) == (b"c", b"b")
        c.pzq.expire()
        assert [unit[-1] for unit in await c.consumer.take()] == [b"a", b"b", b"c"]

    in_memory(
        talk,
        stale_delivery(10_000_000, nth=1),
        reverse_order(3, first=3),
    )


def test_early_expiry_while_the_consumer_works() -> None:
    async def talk(c: Clients) -> None:
        await c.produce(b"a")
        await c.produce(b"b")
        assert [unit[-1] for unit in await c.consumer.take()] == [b"a", b"a", b"b"]

    in_memory(talk, fault(ExpireNow(), role="publish", nth=2))


def test_a_lost_consumer_ack() -> None:
    async def talk(c: Clients) -> None:
        await c.produce(b"a")
        (first,) = await c.consumer.take()
        c.ack(first)
        (second,) = await c.consumer.take(6.0)
        assert second[1] == first[1]
        c.ack(second)
        assert await c.consumer.take(20.0) == []

    in_memory(talk, lose_consumer_ack(nth=1), reaper_interval_s=0)


def test_monitor_faults() -> None:
    async def talk(c: Clients) -> None:
        for want in ([], [(b"hello",)], [(b"\xff",)]):
            c.monitor.socket.send(b"MONITOR")
            assert await c.monitor.take() == want

    in_memory(talk, silent_monitor(nth=1), garbled_monitor("hello", nth=2), garbled_monitor(b"\xff", nth=3))


def test_a_frozen_daemon() -> None:
    async def talk(c: Clients) -> None:
        assert await c.produce(b"a") == []
        await asyncio.sleep(2.0)
        assert await c.produce(b"b") == [(b"i", b"1", b"")]
        assert len(c.pzq.messages()) == 2

    in_memory(talk, frozen_daemon(1.0, role="publish", nth=1))


def test_a_clock_that_jumps() -> None:
    async def talk(c: Clients) -> None:
        await c.produce(b"a")
        await c.produce(b"b")
        first, second = await c.consumer.take()
        assert int(second[2]) - int(first[2]) < -3_590_000_000
        assert int(second[1].split(b"|")[0]) < int(first[1].split(b"|")[0])

    in_memory(talk, shift_clock(seconds=-3600.0, role="publish", nth=2))


def test_a_crash_that_loses_the_acknowledgement() -> None:
    async def talk(c: Clients) -> None:
        assert await c.produce(b"a") == []
        assert [m.body for m in c.pzq.messages()] == [(b"a",)]
        await asyncio.sleep(1.0)
        assert await c.produce(b"b") == [(b"i", b"1", b"")]

    in_memory(talk, crash(restart_s=0.5, role="confirm", nth=1, scope="run"))


def test_effects_as_plain_values() -> None:
    plan = load_plan(
        {
            "faults": [
                {"match": {"role": "publish"}, "effect": {"type": "store-failure", "reason": "disk full"}},
                {"match": {"role": "deliver"}, "effect": {"type": "extra-headers", "headers": ["h"]}},
                {"match": {"role": "deliver"}, "effect": {"type": "without-delimiter"}},
                {"match": {"on": "accept"}, "effect": {"type": "change-identity", "identity": "other"}},
            ]
        },
        "pzq",
    )
    assert [type(f.effects[0]) for f in plan.faults] == [
        StoreFailure,
        ExtraHeaders,
        WithoutDelimiter,
        ChangeIdentity,
    ]


class Onlooker:
    """Notes what a watcher is told."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []

    def accepted(self, connection: str, socket: str = "") -> None:
        self.rows.append(("accepted", connection, socket))

    def written(self, connection: str, data: Any) -> None:
        self.rows.append(("written", connection, data))

    def handed_over(self, connection: str, data: Any) -> None:
        self.rows.append(("handed over", connection, data))

    def reads(self, connection: str, goes_on: bool) -> None:
        self.rows.append(("reads", connection, goes_on))

    def ended(self, connection: str, by: End, how: str) -> None:
        self.rows.append(("ended", connection, by))


def test_an_onlooker_sees_sockets_units_and_ends() -> None:
    seen = Onlooker()

    async def work() -> None:
        pzq = PZQ(memory=True)
        watch_wire(pzq, seen)
        async with pzq:
            producer = Client(pzq, "receive", "DEALER")
            producer.socket.send(b"id", b"", b"body")
            await producer.take()
            pzq.kill("c1", "rst")
            await producer.take(1.0)
            producer.socket.close()

    run(work())
    assert seen.rows == [
        ("accepted", "c1", "receive"),
        ("written", "c1", (b"id", b"", b"body")),
        ("handed over", "c1", (b"id", b"1", b"")),
        ("ended", "c1", "broker"),
        ("accepted", "c2", "receive"),
        ("ended", "c2", "client"),
    ]


def test_a_req_socket_drops_what_has_no_delimiter_or_nothing_behind_it() -> None:
    async def work() -> None:
        async with PZQ(memory=True) as pzq:
            monitor = Client(pzq, "monitor", "REQ")
            monitor.socket.send(b"MONITOR")
            assert len(await monitor.take()) == 1
            for parts in ((b"x", b"y"), (b"",), (b"", b"z")):
                pzq.say_raw("c1", parts)
            assert await monitor.take() == [(b"z",)]

    run(work())
