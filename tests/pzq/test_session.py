"""What each socket answers, in both profiles, also where the document says something else than the server."""

from __future__ import annotations

import re
from typing import Any

import pytest

from fakebrokers.errors import UsageError
from fakebrokers.pzq.frames import MonitorRequest, Produce
from fakebrokers.pzq.profile import PROFILES
from fakebrokers.pzq.server import PZQ

NAMES = ["real", "seed", "seed-words"]
NO_DELIMITER = b"Malformed message, no delimiter found or missing message parts"
EMPTY = b"Trying to save empty message"


@pytest.mark.parametrize("profile", NAMES)
@pytest.mark.parametrize(
    ("unit", "reason"),
    [
        ((b"m1", b"body"), NO_DELIMITER),
        ((b"m2", b"h", b"h2"), NO_DELIMITER),
        ((b"m3", b""), EMPTY),
        ((b"m4", b"h", b""), EMPTY),
        ((b"", b""), EMPTY),
    ],
)
def test_refused_messages(make_daemon: Any, profile: str, unit: tuple[bytes, ...], reason: bytes) -> None:
    daemon = make_daemon(profile)
    producer = daemon.producer()
    producer.send(*unit)
    refused = b"NO" if profile == "seed-words" else b"0"
    assert producer.take() == [(unit[0], refused, b"", reason)]
    assert len(daemon.broker.store) == 0
    assert producer.session.describe()["refused"] == 1


@pytest.mark.parametrize("profile", NAMES)
@pytest.mark.parametrize("unit", [(b"only",), (b"",), ()])
def test_a_single_part_is_dropped(make_daemon: Any, profile: str, unit: tuple[bytes, ...]) -> None:
    producer = make_daemon(profile).producer()
    producer.send(*unit)
    assert producer.take() == []


@pytest.mark.parametrize(("profile", "word"), [("real", b"1"), ("seed", b"1"), ("seed-words", b"OK")])
def test_positive_answers(make_daemon: Any, profile: str, word: bytes) -> None:
    producer = make_daemon(profile).producer()
    producer.send(b"\x00\xff", b"", b"x")
    assert producer.take() == [(b"\x00\xff", word, b"")]


@pytest.mark.parametrize("profile", NAMES)
def test_headers_go_and_body_parts_stay(make_daemon: Any, profile: str) -> None:
    daemon = make_daemon(profile)
    producer, consumer = daemon.producer(), daemon.consumer()
    producer.send(b"i", b"X-Header: a", b"other", b"", b"", b"a", b"", b"\x00\xff", b"")
    ((_, sent, timeout, *rest),) = consumer.take()
    assert rest == [b"", b"", b"a", b"", b"\x00\xff", b""]
    assert int(sent) == daemon.broker.microseconds(daemon.now)
    assert timeout == b"5000000"


@pytest.mark.parametrize("profile", NAMES)
@pytest.mark.parametrize("command", [b"STATUS", b"monitor", b"", b"MONITOR "])
def test_unknown_commands_are_not_answered(make_daemon: Any, profile: str, command: bytes) -> None:
    monitor = make_daemon(profile).monitor()
    monitor.send(b"", command)
    assert monitor.take() == []
    monitor.send(b"", b"MONITOR")
    assert len(monitor.take()) == 1


def test_monitor_in_the_documents_spelling(make_daemon: Any) -> None:
    daemon = make_daemon("seed")
    monitor = daemon.monitor()
    monitor.send(b"", b"MONITOR")
    assert monitor.take() == [
        (
            b"",
            b"messages: 0\nmessages_in_flight: 0\ndb_size: 1438720\nin_flightdb_size: 0\n"
            b"syncs: 0\nexpired_messages: 0",
        )
    ]


def test_document_delivers_under_the_producers_id_where_that_is_free(make_daemon: Any) -> None:
    daemon = make_daemon("seed")
    producer, consumer = daemon.producer(), daemon.consumer()
    for identity in (b"\x00", b"dup", b"dup", b""):
        producer.send(identity, b"", b"x")
    keys = [unit[0] for unit in consumer.take()]
    assert keys[:2] == [b"\x00", b"dup"]
    assert all(re.fullmatch(rb"\d{16}\|[0-9a-f-]{36}", key) for key in keys[2:])
    assert len(set(keys)) == 4
    assert len(producer.take()) == 4


def test_document_deletes_on_a_positive_ack_whenever_it_comes(make_daemon: Any) -> None:
    daemon = make_daemon("seed", ack_timeout=1_000_000)
    producer, consumer = daemon.producer(), daemon.consumer()
    producer.send(b"a", b"", b"x")
    consumer.take()
    consumer.capacity = 0
    daemon.advance(1.1)
    assert daemon.report()["messages_in_flight"] == 0
    consumer.send(b"a", b"1")
    assert daemon.report()["messages"] == 0
    producer.send(b"a", b"", b"again")
    consumer.capacity = 10
    consumer.take()
    assert [unit[4] for unit in consumer.take()] == [b"again"]


def test_document_requeues_exactly_after_the_timeout(make_daemon: Any) -> None:
    daemon = make_daemon("seed")
    producer, consumer = daemon.producer(), daemon.consumer()
    producer.send(b"a", b"", b"x")
    consumer.take()
    assert daemon.advance(9.0, until=lambda: consumer.inbox) == pytest.approx(5.0, abs=1e-4)


def test_document_knows_no_replicas(make_daemon: Any) -> None:
    daemon = make_daemon("seed")
    producer, consumer = daemon.producer(), daemon.consumer()
    producer.send(b"a", b"REPLICA:tcp://x:1", b"", b"x")
    assert [unit[3:] for unit in consumer.take()] == [(b"", b"x")]


def test_a_replica_is_kept_under_its_id_and_appended_to(make_daemon: Any) -> None:
    daemon = make_daemon()
    producer = daemon.producer()
    producer.send(b"rep", b"REPLICA:a", b"other", b"", b"x")
    producer.send(b"rep", b"REPLICA:b", b"", b"y")
    producer.send(b"", b"REPLICA:c", b"")
    producer.send(b"rep", b"X-REPLICA:d", b"", b"z")
    assert [unit[1] for unit in producer.take()] == [b"1"] * 4
    consumer = daemon.consumer()
    deliveries = {unit[0]: unit[4:] for unit in consumer.take()}
    assert deliveries.pop(b"rep") == (b"REPLICA:a", b"x", b"REPLICA:b", b"y")
    assert list(deliveries.values()) == [(b"REPLICA:c",), (b"z",)]


@pytest.mark.parametrize("unit", [(b"key",), (b"",), ()])
def test_an_ack_without_status_is_ignored(make_daemon: Any, unit: tuple[bytes, ...]) -> None:
    daemon = make_daemon()
    consumer = daemon.consumer()
    consumer.send(*unit)
    assert consumer.take() == []


def test_refusals_of_fault_plans(make_daemon: Any) -> None:
    producer = make_daemon().producer()
    frame = producer.session.refusal(Produce(b"i", (), (b"x",)), 9, 0.0)
    assert (frame.id, frame.status, frame.texts) == (b"i", b"0", (b"system error",))
    assert producer.session.refusal(Produce(b"i"), 77, 0.0).texts == (b"miscellaneous error",)
    assert producer.session.refusal(MonitorRequest(b"x"), 9, 0.0) is None


def test_there_are_three_profiles() -> None:
    assert list(PROFILES) == NAMES
    assert [profile.name for profile in PROFILES.values()] == NAMES
    with pytest.raises(UsageError, match="Choose from: real, seed, seed-words"):
        PZQ(profile="2014")


def test_a_session_that_has_ended_does_nothing(make_daemon: Any) -> None:
    daemon = make_daemon()
    producer, consumer, monitor = daemon.producer(), daemon.consumer(), daemon.monitor()
    for peer, parts in ((producer, (b"i", b"", b"x")), (consumer, (b"k", b"1")), (monitor, (b"MONITOR",))):
        assert peer.session.describe()["state"] == "open"
        peer.close()
        assert peer.session.describe()["state"] == "closed"
        peer.send(*parts)
        assert not peer.inbox
    assert len(daemon.broker.store) == 0
