"""What a fake tells of itself: for each protocol, what a page shows after a frame or a call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from conformance.run.document import document_of
from conformance.run.inprocess import runner
from conformance.run.simulated import fake_for
from conformance.run.specs import Spec
from fakebrokers import MQTT, NATS, PZQ, BlazingMQ, Moleculer, Narconi, RabbitMQStream, Redis
from fakebrokers.core.onlooking import record_holdings
from fakebrokers.core.virtual import run
from fakebrokers.journal import RunJournal
from fakebrokers.journal.cli import show
from fakebrokers.journal.stored import stored
from fakebrokers.journal.texts import as_json
from fakebrokers.mqtt import frames as mqtt
from fakebrokers.mqtt.codec import MqttCodec
from fakebrokers.proxy import Proxy
from fakebrokers.rabbitmq_stream.publishing import publish
from fakebrokers.rabbitmq_stream.shown import StreamModel
from fakebrokers.rabbitmq_stream.stream import Publisher
from fakebrokers.rabbitmq_stream.writer import Batch
from fakebrokers.server import FakeServer
from fakebrokers.viewer import RunDocument, of_journal, of_log
from fakebrokers.viewer.calls import calls_of, listen
from fakebrokers.viewer.document import of_the_broker
from fakebrokers.viewer.model import held_row, reported
from fakebrokers.viewer.rows import Fact, Row
from tests.viewer.test_model import after, known


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[FakeServer]]:
    """The fakes of base scripts, which tell what they hold."""
    made: list[FakeServer] = []
    real = fake_for

    def telling(*args: Any, **options: Any) -> FakeServer:
        made.append(real(*args, **options))
        record_holdings(made[-1])
        return made[-1]

    monkeypatch.setattr("conformance.run.inprocess.fake_for", telling)
    yield made


Told = Callable[[str, str], RunDocument]


@pytest.fixture
def of_base(fakes: list[FakeServer]) -> Told:
    def found(protocol: str, base: str) -> RunDocument:
        runner(protocol)(Spec(protocol, base))
        fakes[0].check()
        document = of_journal(base, fakes[0].journal, {}, protocol=protocol)
        assert document.is_reported
        return document

    return found


def test_a_stream_has_offsets_a_committed_chunk_and_stored_offsets(of_base: Told) -> None:
    document = of_base("rabbitmq-stream", "consume")
    first = after(document, "OpenResponse")
    assert first == {"stream S": "offsets 0..10, next 11; committed chunk 7; 11 messages"}
    assert after(document, "StoreOffset")["stream S"] == (
        'offsets 0..13, next 14; committed chunk 13; 13 messages; offset of "app" 5'
    )


def test_a_subscription_has_credit_and_the_next_offset(of_base: Told) -> None:
    document = of_base("rabbitmq-stream", "consume")
    name = "c1 subscription 1"
    assert after(document, "Deliver")[name] == 'of S as "app": credit 1, next offset 4'
    assert after(document, "Deliver", 2)[name] == 'of S as "app": credit 0, next offset 7'
    assert after(document, "Credit")[name] == 'of S as "app": credit 1, next offset 7'
    assert name not in after(document, "Unsubscribe")


def test_a_publisher_has_its_last_id_and_what_is_unconfirmed(of_base: Told) -> None:
    document = of_base("rabbitmq-stream", "publish")
    assert after(document, "DeclarePublisher")["c1 publisher 1"] == "to S: nothing published, 0 unconfirmed"
    assert after(document, "Publish", 4)["c1 publisher 1"] == "to S: last id 6, 0 unconfirmed"
    assert after(document, "Publish", 4)["stream S"].startswith("offsets 0..5, next 6;")
    assert "c1 publisher 1" not in after(document, "DeletePublisher")


def test_what_is_not_committed_is_unconfirmed() -> None:
    class Owner:
        def confirmed(self, publisher: Publisher, publishing_ids: bytes, now: float) -> None:
            """It is reported."""

    with RabbitMQStream() as broker:
        broker.create_stream("orders")
        stream = broker.stream_named("orders")
        publisher = Publisher(Owner(), stream, 1, "me")
        stream.hold_commits()
        frame = publish(1, [(7, b"tea"), (8, b"milk")])
        publisher.publish(Batch(frame.publishing_ids, frame.entries, frame.count, frame.records, ()), 0.0)
        stream.writer.end_step(0.0)
        assert (publisher.last_id, publisher.unconfirmed) == (8, 2)
        assert "committed" not in dict(StreamModel.held(broker))["stream orders"]
        stream.release_commits(0.0)
        assert publisher.unconfirmed == 0
        assert "committed chunk 0" in dict(StreamModel.held(broker))["stream orders"]


def test_what_a_test_does_by_a_call_shows_when_the_call_has_ended() -> None:
    with RabbitMQStream() as broker:
        listen(broker)
        broker.create_stream("orders")
        broker.publish("orders", [b"tea", b"milk"])
        broker.store_sequence("orders", "me", 7)
        document = of_journal("x", broker.journal, {}, protocol="rabbitmq-stream", calls=calls_of(broker))
    assert after(document, "create_stream") == {}
    assert after(document, "create_stream", 2) == {"stream orders": "next 0; 0 messages"}
    assert after(document, "publish", 2)["stream orders"].startswith("offsets 0..1, next 2; committed chunk ")
    assert after(document, "store_sequence", 2)["stream orders"].endswith('; last id of "me" 7')


def test_queues_of_blazingmq_have_messages_and_consumers_what_is_unconfirmed(of_base: Told) -> None:
    document = of_base("blazingmq", "consume")
    queue, oldest = "queue bmq://bmq.test.mem.priority/read", "the oldest 0x4000010000000000000046616b654272"
    assert after(document, "openQueueResponse", 1)[queue] == "6 messages, 145 bytes; 6 to be delivered"
    pushed = after(document, "PUSH")
    assert pushed[queue] == "6 messages, 145 bytes; 1 to be delivered, 5 unconfirmed"
    assert pushed["c1 queue 1"] == f"{queue.split()[1]}; 5 of at most 5 unconfirmed, {oldest}"
    assert after(document, "CONFIRM")[queue] == "5 messages, 143 bytes; 5 unconfirmed"
    assert pushed["c1 queue 0"] == "bmq://bmq.test.mem.priority/written-kept; writes"
    assert known(document)[queue] == "empty"
    assert not [name for name in known(document) if name.startswith("c1 ")]


def test_a_fanout_says_what_each_app_has() -> None:
    async def main() -> RunDocument:
        uri = "bmq://bmq.test.mem.fanout/q"
        domain = {"mode": "fanout", "app_ids": ["foo", "bar"]}
        with BlazingMQ(memory=True, domains={"bmq.test.mem.fanout": domain}) as broker:
            listen(broker)
            broker.publish(uri, b"tea")
            return of_journal("x", broker.journal, {}, protocol="blazingmq", calls=calls_of(broker))

    [text] = known(run(main())).values()
    assert text == "1 message, 3 bytes; app foo: 1 to be delivered; app bar: 1 to be delivered"


def test_pzq_has_a_queue_sockets_and_what_is_in_flight(of_base: Told) -> None:
    document = of_base("pzq", "consume")
    assert after(document, "accepted")["queue"] == "4 stored, 4 to be delivered"
    second = after(document, "Delivery", 2)
    assert second["queue"] == "4 stored, 2 to be delivered"
    assert second["in flight"].startswith("2: 1735689600000000|")
    assert (second["c2 at send"], second["socket send"]) == ("2 delivered", "1 open")
    assert after(document, "ConsumerAck")["queue"].startswith("3 stored,")
    assert after(document, "Produce")["c1 at receive"] == "1 stored"


def test_sockets_of_pzq_have_high_water_marks() -> None:
    with PZQ(high_water_marks=(7, 2, 1)) as broker:
        listen(broker)
        broker.publish(b"tea", key=b"\xff")  # no text
        document = of_journal("x", broker.journal, {}, protocol="pzq", calls=calls_of(broker))
    assert known(document)["socket receive"] == "0 open, high-water mark 7"
    assert known(document)["socket send"] == "1 open, high-water mark 2"


def test_narconi_has_what_is_ready_and_a_consumers_limit(of_base: Told) -> None:
    document = of_base("narconi", "consume")
    assert after(document, "WsUpgrade")["queue test_C"] == "5 ready, 0 not acknowledged, 0 consumers"
    assert after(document, "WsUpgrade")["c1 request 1"].startswith("GET ")  # no broker knows it
    second = after(document, "WsDeliver", 2)
    assert second["queue test_C"] == "3 ready, 2 not acknowledged, 1 consumer"
    assert second["c1 consumer"] == "of test_C: 2 of at most 2 not acknowledged (1, 2)"
    assert after(document, "WsAck", 7)["c1 consumer"] == "of test_C: 0 of at most 2 not acknowledged"
    assert after(document, "WsPublish")["queue test_P"] == "1 ready, 0 not acknowledged, 0 consumers"
    assert after(document, "WsPublish")["c2 publisher"] == "of test_P, confirms"


def test_moleculer_has_nodes_subjects_heartbeats_and_open_calls(of_base: Told) -> None:
    document = of_base("moleculer", "call")
    asked = after(document, "Request")
    assert asked["node peer"] == "fake; services p"
    assert asked["c1 MOL.REQ.client"] == "subscription, sid 2"
    assert asked["c1 node id"] == "client"
    assert "p.echo by client, not answered" in asked.values()
    assert "p.echo by client, not answered" not in after(document, "Response").values()
    beats = [row for row in document.rows if row.name == "Heartbeat" and "client" in row.text]
    said = after(document, "Heartbeat", 2)["node client"]
    assert said == f"no services, last heartbeat at {beats[0].t:.4f} s"
    assert "node client" not in known(document)


def test_a_fake_node_that_does_not_run_says_so() -> None:
    async def main() -> RunDocument:
        with Moleculer(memory=True) as broker:
            listen(broker)
            broker.node("a", services={"math": {"add": lambda ctx: 1}})
            broker.call(lambda: broker.broker.nodes["a"].vanish() if "a" in broker.broker.nodes else None)
            return of_journal("x", broker.journal, {}, protocol="moleculer", calls=calls_of(broker))

    fact = next(fact for fact in run(main()).facts if fact.name == "node a")
    assert "fake; services math" in fact.texts


def mqtt_bytes(*frames: Any) -> bytes:
    return b"".join(map(MqttCodec().encode, frames))


@pytest.mark.parametrize(
    ("fake", "said", "wanted"),
    [
        (
            NATS,
            b"CONNECT {}\r\nSUB a 7\r\nSUB jobs q 8\r\n",
            {"c1 jobs, group q": "subscription, sid 8"},
        ),
        (Redis, b"*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\na\r\n", {"c1 a": "subscription, channel"}),
        (Redis, b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nx\r\n", {"database 0": "1 key"}),
        (
            Redis,
            b"*3\r\n$5\r\nBLPOP\r\n$1\r\na\r\n$1\r\n9\r\n",
            {"c1 client": "blocked: waits for a key"},
        ),
        (
            MQTT,
            mqtt_bytes(
                mqtt.Connect("me"),
                mqtt.Subscribe(1, (("orders", 1),)),
                mqtt.Publish("orders", b"tea", 1, 9),
                mqtt.Publish("last", b"x", 0, 0, retain=True),
            ),
            {
                "client me": "connected, 1 not acknowledged, 0 of them not sent",
                "client me subscription orders": "QoS 1",
                "retained": "1: last",
            },
        ),
    ],
    ids=["nats", "redis", "redis-keys", "redis-waits", "mqtt"],
)
def test_a_bus_has_those_who_listen(fake: type[FakeServer], said: bytes, wanted: dict[str, str]) -> None:
    async def main() -> RunDocument:
        with fake(memory=True) as broker:
            listen(broker)
            link = broker.connect_memory(asyncio.Protocol())
            link.write(said)
            await asyncio.sleep(0.1)
            document = of_journal("x", broker.journal, {}, protocol=broker.protocol.name)
            link.close()
            await asyncio.sleep(0.1)
            return document

    now = known(run(main()))
    assert wanted.items() <= now.items()


def test_of_a_journal_on_disk_with_fields_the_fake_has_told(tmp_path: Path) -> None:
    with Narconi(journal_dir=tmp_path, journal_frames=True) as broker:
        broker.create_queue("shop", "orders")
    [log] = stored(tmp_path)
    document = of_log(log)
    assert document.is_reported
    assert [fact.name for fact in document.facts] == ["queue shop_orders"]
    assert not [row for row in document.rows if row.name == "holds"]
    shown = [CliRunner().invoke(show, [str(tmp_path), *more]).output for more in ([], ["--kind", "holds"])]
    assert ["shop_orders" in text for text in shown] == [False, True]


def test_of_a_judged_run_the_fake_has_told_and_frames_only_the_rest(
    fakes: list[FakeServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    note = RunJournal(None, "run", frames=True, protocol="narconi")
    start = FakeServer.start

    def noted(fake: FakeServer) -> FakeServer:
        fake.journal.sink = note
        return start(fake)

    monkeypatch.setattr(FakeServer, "start", noted)
    case = runner("narconi")(Spec("narconi", "consume"))
    log = note.log()
    document = of_log(log)
    assert document.is_reported
    assert after(document, "WsDeliver")["c1 consumer"] == "of test_C: 1 of at most 2 not acknowledged (1)"
    assert after(document, "WsUpgrade")["c1 request 1"].startswith("GET ")
    traced = document_of(case, "x", {}, besides=lambda began_s, lanes: of_the_broker(log, began_s, lanes))
    assert traced.is_reported
    assert known(traced)["queue test_P"] == "1 ready, 0 not acknowledged, 0 consumers"
    for kind in ("WsDeliver", "WsAck"):
        for nth in (1, 2):  # all of that is at 0 s
            assert after(traced, kind, nth)["c1 consumer"] == after(document, kind, nth)["c1 consumer"]
    assert not document_of(case, "x", {}).is_reported


def test_a_proxy_holds_nothing() -> None:
    with Narconi() as broker, Proxy(broker.url.partition("://")[2], protocol="narconi") as proxy:
        record_holdings(proxy)
        assert proxy.journal.holdings == []


def test_a_fake_that_has_stopped_is_not_asked(tmp_path: Path) -> None:
    with PZQ(database=tmp_path / "q.db") as broker:
        listen(broker)
        broker.publish(b"tea")
    before = len(broker.journal.holdings)
    broker.journal.step_ended(broker.now)
    broker.check()  # its database is closed
    assert len(broker.journal.holdings) == before


def row(t: float, name: str = "x") -> Row:
    return Row(t, "in", 0, "", name, "", "", [], 0, [])


def change(t: float, **facts: str) -> Row:
    return held_row(t, as_json(facts).decode())


def test_what_is_reported_is_at_the_row_before_or_at_the_next_if_that_is_older() -> None:
    rows = [change(0.0, a="0"), row(1.0), change(1.0, a="1"), change(2.0, a="2", b="1"), row(3.0), row(3.0)]
    kept, facts = reported([*rows, change(3.0, b=""), change(9.0, a="9")])
    assert [each.t for each in kept] == [1.0, 3.0, 3.0]
    assert facts == [Fact("a", [0, 1, 2], ["1", "2", "9"]), Fact("b", [1, 2], ["1", ""])]


def test_what_is_reported_of_no_rows_or_cannot_be_read_harms_nothing() -> None:
    assert reported([change(1.0, a="1")]) == ([], [Fact("a", [0], ["1"])])
    assert reported([row(1.0), held_row(1.0, "[1")]) == ([row(1.0)], [])
