"""What a failing assertion or a notebook shows of servers, journals and records."""

from __future__ import annotations

import re

from fakebrokers import PZQ, BlazingMQ, Moleculer, Narconi, RabbitMQStream
from fakebrokers.faults import drop
from fakebrokers.journal import Record, Tap
from fakebrokers.proxy import Proxy


def test_a_server_says_where_it_is_and_what_it_holds() -> None:
    broker = RabbitMQStream()
    assert repr(broker) == "<RabbitMQStream, not running: 0 connections, 0 records, 0 streams>"
    with broker:
        broker.create_stream("orders")
        records = len(broker.journal)
        assert repr(broker) == f"<RabbitMQStream at {broker.url}: 0 connections, {records} records, 1 stream>"
        broker.faults.add(drop(role="confirm", nth=1))
        assert repr(broker).endswith(", 1 stream, 1 fault>")
    assert repr(broker).startswith("<RabbitMQStream, not running: ")


def test_each_server_counts_what_it_keeps() -> None:
    with BlazingMQ() as blazingmq, PZQ() as pzq, Narconi() as narconi, Moleculer() as moleculer:
        blazingmq.publish("bmq://bmq.test.mem.priority/orders", b"tea")
        pzq.publish(b"tea")
        narconi.create_queue("gold", "orders")
        moleculer.node("shop")
        for server, holds in (
            (blazingmq, "1 queue"),
            (pzq, "1 message"),
            (narconi, "1 queue"),
            (moleculer, "1 node"),
        ):
            pattern = rf"<\w+ at {re.escape(server.url)}: \d+ connections?, \d+ records?, {holds}>"
            assert re.fullmatch(pattern, repr(server))
        with Proxy(f"{narconi.host}:{narconi.port}") as proxy:
            assert repr(proxy).startswith(f"<Proxy at {proxy.url}: 0 connections, ")


def test_a_server_that_could_not_be_made() -> None:
    assert repr(RabbitMQStream.__new__(RabbitMQStream)) == "<RabbitMQStream, not made>"


def test_faults_journal_and_records() -> None:
    with RabbitMQStream() as broker:
        assert repr(broker.faults) == "<faults: none>"
        broker.faults.add(drop(role="confirm", nth=1, name="lose it"))
        assert repr(broker.faults) == f"<faults: {broker.faults.counts[0]}>"
        assert repr(broker.journal) == f"<Journal: {len(broker.journal)} records>"
    few = RabbitMQStream(journal_limit=1)
    for number in range(3):
        few.journal.state(0.0, f"c{number}", "accepted")
    assert repr(few.journal) == "<Journal: 1 record, 2 older ones dropped>"
    record = Record(7, 0.0073, "c1", Tap.IN, "Publish", "publish", (2,), 29)
    assert repr(record) == "<Record 7: 0.0073 c1 -> Publish key 2 29 B>"
