"""What a page shows of the broker after each row: derived from the frames, for each protocol."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.run.document import document_of
from conformance.run.inprocess import runner
from conformance.run.simulated import fake_for
from conformance.run.specs import Spec
from fakebrokers.journal import Journal, Tap
from fakebrokers.moleculer.shown import BusModel
from fakebrokers.rabbitmq_stream.frames import (
    FRAMES,
    DeclarePublisher,
    DeclarePublisherResponse,
    PublishConfirm,
)
from fakebrokers.rabbitmq_stream.publishing import publish
from fakebrokers.server import FakeServer
from fakebrokers.viewer import RunDocument, of_journal
from fakebrokers.viewer.model import BrokerModel, Seen, add_model, follow, named
from fakebrokers.viewer.rows import Fact, Lane, Row


def known(document: RunDocument, row: int = -1) -> dict[str, str]:
    """What the broker knew after a row; by default after the last."""
    last, now = row if row >= 0 else len(document.rows), {}
    for fact in document.facts:
        texts = [text for at, text in zip(fact.rows, fact.texts, strict=True) if at <= last]
        if texts and texts[-1]:
            now[fact.name] = texts[-1]
    return now


def of_base(protocol: str, base: str) -> RunDocument:
    return document_of(runner(protocol)(Spec(protocol, base)), base, {})


def after(document: RunDocument, kind: str, nth: int = 1) -> dict[str, str]:
    """What the broker knew after the nth row of a kind."""
    return known(document, [n for n, row in enumerate(document.rows) if row.name == kind][nth - 1])


def test_a_subscription_has_credit_and_an_offset() -> None:
    document = of_base("rabbitmq-stream", "consume")
    assert after(document, "SubscribeResponse")["c1 subscription 1"] == "of S: credit 2, nothing delivered"
    delivered = after(document, "Deliver", 2)
    assert delivered["c1 subscription 1"] == "of S: credit 0, delivered up to offset 6"
    assert delivered["stream S"].endswith("delivered offsets 0..6")
    assert after(document, "Credit")["c1 subscription 1"].startswith("of S: credit 1,")
    assert 'offset of "app" 5' in after(document, "StoreOffset")["stream S"]
    assert "c1 subscription 1" not in after(document, "UnsubscribeResponse")
    assert not [name for name in known(document) if name.startswith("c1 ")]


def test_a_publisher_has_a_last_id_and_what_is_unconfirmed() -> None:
    document = of_base("rabbitmq-stream", "publish")
    assert after(document, "Publish", 3)["c1 publisher 1"].startswith("to S: 3 published, last id 3")
    assert known(document)["stream S"] == "12 published, 12 confirmed"


def test_a_confirm_that_a_fault_took_counts_for_the_broker_that_sent_it() -> None:
    journal = Journal(FRAMES)
    declared = DeclarePublisher(correlation_id=7, publisher_id=1, reference="me", stream="orders")
    journal.add(1.0, "c1", Tap.IN, declared, 9)
    journal.add(1.1, "c1", Tap.OUT, DeclarePublisherResponse(correlation_id=7, code=1), 9)
    journal.add(1.2, "c1", Tap.RECEIVED, publish(1, [(1, b"tea")]), 30, "duplicate")
    for at in (1.3, 1.4):
        journal.add(at, "c1", Tap.HEARD, publish(1, [(1, b"tea")]), 30, "duplicate")
    confirm = PublishConfirm(publisher_id=1, publishing_ids=(1).to_bytes(8))
    journal.add(1.5, "c1", Tap.SAID, confirm, 21, "lose it")
    document = of_journal("orders", journal, {}, protocol="rabbitmq-stream")
    assert known(document)["c1 publisher 1"] == 'to orders as "me": 2 published, last id 1, 1 unconfirmed'
    assert known(document)["stream orders"] == "2 published, 1 confirmed"


def test_a_queue_of_blazingmq_has_unconfirmed_messages_and_a_limit() -> None:
    document = of_base("blazingmq", "consume")
    pushed = after(document, "PUSH")["c1 queue 1"]
    assert "; 5 of at most 5 unconfirmed (" in pushed
    assert "; 4 of at most 5 unconfirmed (" in after(document, "CONFIRM")["c1 queue 1"]
    assert after(document, "PUT")["c1 queue 0"].endswith("; 1 put, 1 without an ACK")
    assert after(document, "ACK")["c1 queue 0"].endswith("; 1 put, 0 without an ACK")
    assert known(document) == {}


def test_the_queue_of_pzq_has_what_is_not_acknowledged() -> None:
    document = of_base("pzq", "consume")
    delivered = after(document, "Delivery", 2)
    assert delivered["c2 consumer"].startswith("2 not acknowledged: 1735689600000000|")
    assert "c2 consumer" not in after(document, "ConsumerAck", 4)
    assert known(document)["queue"].startswith("1 produced, 1 confirmed")


def test_narconi_has_queues_consumers_and_requests() -> None:
    document = of_base("narconi", "consume")
    assert after(document, "WsUpgrade")["c1 request 1"].startswith("GET /v2/test/queues/C/messages")
    assert after(document, "WsDeliver", 2)["c1 consumer"] == "of test/C: 1, 2 not acknowledged"
    assert after(document, "WsAck")["c1 consumer"] == "of test/C: 2 not acknowledged"
    assert known(document)["queue test/P"] == "1 published, 1 confirmed"
    asked = of_base("narconi", "ask")
    assert "queue test/N" not in after(asked, "QueueDeleted")
    assert after(asked, "QueueEnsured")["queue test/N"] == "exists"
    assert not [name for name in known(asked) if "request" in name]


def test_moleculer_has_nodes_subscriptions_and_open_calls() -> None:
    document = of_base("moleculer", "call")
    asked = after(document, "Request")
    assert asked["node peer"] == "services p"
    assert "p.echo by client, not answered" in asked.values()
    assert asked["c1 subscription 2"] == "MOL.REQ.client"
    left = known(document)
    assert {text for name, text in left.items() if name.startswith("call ")} == {
        "p.wait by client, not answered"
    }
    assert not [name for name in left if name.startswith("c1 ")]


@pytest.mark.parametrize(
    "fields",
    ['{"channels":["MOL.REQ.a"]}', '{"packet_id":1,"filters":[["MOL.REQ.a",1]]}'],
    ids=["redis", "mqtt"],
)
def test_topics_of_redis_and_mqtt_are_subscriptions_until_they_are_given_back(fields: str) -> None:
    model = BusModel()
    rows = [
        Row(0.0, "in", 0, "", kind, "", "", [], 0, [("fields", fields)])
        for kind in ("Subscribe", "Unsubscribe")
    ]
    follow(model, rows, [Lane("c1", "connection")])
    assert list(model.facts.values()) == [Fact("c1 subscription MOL.REQ.a", [0, 1], ["open", ""])]


@pytest.mark.parametrize(
    ("protocol", "base", "wanted"),
    [
        ("rabbitmq-stream", "consume", {"c1 subscription ?": "of ?: credit ?, delivered up to offset 14"}),
        ("blazingmq", "publish", {"c1 queue ?": "?; 1 put, 1 without an ACK; 0 unconfirmed"}),
        ("pzq", "consume", {"c2 consumer": "1 not acknowledged: 1735689600000000|e3e70682-c209-4ca…"}),
        ("narconi", "consume", {"c1 consumer": "of ?: 1 not acknowledged"}),
        ("moleculer", "call", {"node peer": "is there", "call 1e2feb89": "not answered"}),
    ],
)
def test_a_journal_without_fields_says_what_its_keys_say(
    protocol: str, base: str, wanted: dict[str, str]
) -> None:
    document = of_base(protocol, base)
    for row in document.rows:
        row.details = [each for each in row.details if each[0] != "fields"]
    document.facts = []
    add_model(document, protocol)
    said = [(fact.name, text) for fact in document.facts for text in fact.texts]
    for fact in wanted.items():
        assert fact in said


def scopes(document: RunDocument, kind: str) -> list[str]:
    return [row.scope for row in document.rows if row.name == kind]


def test_keys_count_in_a_stream_or_on_a_connection() -> None:
    stream = of_base("rabbitmq-stream", "consume")
    assert set(scopes(stream, "Deliver") + scopes(stream, "StoreOffset")) == {"S"}
    assert set(scopes(of_base("rabbitmq-stream", "publish"), "PublishConfirm")) == {"S"}
    narconi = of_base("narconi", "consume")
    assert (set(scopes(narconi, "WsAck")), scopes(narconi, "WsPublish")) == ({"c1"}, ["c2"])
    assert set(scopes(of_base("pzq", "consume"), "Delivery")) == {""}, "keys of PZQ count everywhere"


def test_an_offset_that_is_stored_acknowledges_no_single_message() -> None:
    assert not of_base("rabbitmq-stream", "consume").acks_each
    assert of_base("narconi", "consume").acks_each


def test_frames_are_understood_by_the_names_that_a_journal_gives_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = []

    def kept(*args: Any, **options: Any) -> FakeServer:
        made.append(fake_for(*args, **options))
        return made[-1]

    monkeypatch.setattr("conformance.run.inprocess.fake_for", kept)
    runner("blazingmq")(Spec("blazingmq", "consume"))
    document = of_journal("x", made[0].journal, {}, protocol="blazingmq")
    assert not document.is_reported
    assert "; 5 of at most 5 unconfirmed (" in after(document, "PUSH")["c1 queue 1"]


class Odd(BrokerModel):
    """Counts frames, and finds fault with some."""

    def frame(self, seen: Seen) -> None:
        self.tell("frames", f"{seen.keys[0]}")
        self.tell("frames", f"{seen.fields['n']} {seen.number}")


def row(what: str, fields: str, tap: str = "") -> Row:
    return Row(0.0, what, 0, tap, "Some", "", "", ["p:7"], 0, [("fields", fields)], [("publish", 2)])


def test_a_frame_that_cannot_be_read_changes_nothing_more_and_rows_say_their_last_word() -> None:
    model, lanes = Odd(), [Lane("c1", "connection")]
    rows = [
        row("in", '{"n":1}'),
        row("in", "[]"),
        row("bytes", '{"n":2}'),
        row("in", '{"n":3,"text":"cut off'),
    ]
    follow(model, rows, lanes)
    assert model.facts["frames"] == Fact("frames", [0, 1, 3], ["1 2", "7", "3 2"])


def test_only_what_the_broker_heard_and_meant_counts() -> None:
    rows = [row("in", f'{{"n":"{tap}"}}', tap) for tap in ("received", "heard", "said", "sent")]
    both, wire = Odd(), Odd()
    follow(both, rows, [Lane("c1", "connection")])
    follow(wire, rows, [Lane("c1", "connection")], wire_only=True)
    assert both.facts["frames"].texts == ["heard 2", "said 2"]
    assert wire.facts == {}


def test_many_keys_are_counted_and_long_ones_cut() -> None:
    assert named(range(10)) == "0, 1, 2, 3, 4, 5, 6, 7 and 2 more"
    assert named(["x" * 50]) == "x" * 34 + "…"


def test_a_protocol_without_a_model_has_no_facts() -> None:
    document = RunDocument("x", [], [], [])
    assert add_model(document, "nats").facts == []
    assert add_model(document, "").facts == []
