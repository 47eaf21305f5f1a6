"""Heartbeats, the end of a connection, and what others ask of it."""

from __future__ import annotations

import math

import pytest

from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.rabbitmq_stream.codes import NO_LEADER, Code
from fakebrokers.rabbitmq_stream.frames import (
    Close,
    CloseResponse,
    ConsumerUpdateResponse,
    Create,
    CreateResponse,
    Credit,
    CreditResponse,
    DeclarePublisher,
    Heartbeat,
    Metadata,
    MetadataResponse,
    MetadataUpdate,
    PublishError,
    ResolveOffsetSpec,
    SaslAuthenticate,
    Subscribe,
)
from fakebrokers.rabbitmq_stream.profile import V4_3
from fakebrokers.rabbitmq_stream.publishing import publish
from fakebrokers.rabbitmq_stream.wiretypes import StreamMetadata
from tests.rabbitmq_stream.bench import (
    EOF,
    SAC,
    Bench,
    publishing,
    subscribe,
    times,
    with_stream,
)

# --- signs of life -----------------------------------------------------------------------------


def test_an_idle_server_beats_once_per_interval() -> None:
    bench = Bench()
    client = bench.open(heartbeat=10)
    for _ in range(8):
        bench.advance(5.0)
        client.send(Heartbeat())
    assert times(client) == [5.0, 15.0, 25.0, 35.0]
    assert set(map(type, client.frames())) == {Heartbeat}


def test_a_busy_server_does_not_beat() -> None:
    bench = Bench()
    client = bench.open(heartbeat=10)
    for _ in range(20):
        client.send(Metadata(1, ()))
        bench.advance(2.0)
    assert set(map(type, client.frames())) == {MetadataResponse}


@pytest.mark.parametrize(("heartbeat", "limit_s"), [(0, math.inf), (3, 6.0)])
def test_a_client_must_not_bear_silence_for_two_intervals(heartbeat: int, limit_s: float) -> None:
    client = Bench().open(heartbeat=heartbeat)
    assert client.session.silence_limit_s == limit_s


@pytest.mark.parametrize("heartbeat", [1, 2, 60])
def test_a_client_that_is_silent_after_open_is_dropped_after_three_intervals(heartbeat: int) -> None:
    bench = Bench()
    client = bench.open(heartbeat=heartbeat)
    bench.advance(10.0 * heartbeat)
    assert client.sent[-1] == (3.0 * heartbeat, EOF)


def test_a_client_is_dropped_two_to_three_intervals_after_its_last_byte() -> None:
    bench = Bench()
    client = bench.open(heartbeat=10)
    bench.advance(14.0)
    client.send(Heartbeat())
    bench.advance(100.0)
    assert client.sent[-1] == (40.0, EOF)


def test_any_byte_is_a_sign_of_life() -> None:
    bench = Bench()
    client = bench.open(heartbeat=1)
    for byte in client.codec.encode(Metadata(1, ("s",) * 10)):
        client.send_bytes(bytes([byte]))
        bench.advance(0.9)
    assert not client.ended


def test_no_heartbeats_at_all() -> None:
    bench = Bench()
    client = bench.open(heartbeat=0)
    bench.advance(500.0)
    assert client.sent == []


# --- the end -----------------------------------------------------------------------------------


def test_frames_behind_a_close_are_dropped() -> None:
    client = Bench().open()
    client.send_bytes(client.codec.encode(Close(9, 1, "bye")) + client.codec.encode(Create(10, "s", {})))
    assert client.only(CloseResponse) == CloseResponse(9, Code.OK)
    assert client.ended


def test_after_its_own_close_the_server_listens_for_the_answer_only() -> None:
    bench = Bench()
    client = bench.open(heartbeat=1)
    client.send(b"\0\0\0\4\0\xc8\0\1", Create(5, "s", {}), Close(9, 1, "crossing"), b"\0\0\0\0")
    assert client.only(Close) == Close(1, 13, "unknown frame")
    bench.advance(9.9)
    assert client.sent == []
    client.send(CloseResponse(1, 1))
    assert client.ended


@pytest.mark.parametrize("ending", ["closing", "refusing", "ended"])
def test_nothing_is_said_any_more_once_the_end_has_begun(ending: str) -> None:
    bench = Bench(V4_3.with_delays())
    client = publishing(bench)
    client.send(subscribe(credit=100))
    stream = bench.broker.stream("s")
    stream.hold_commits()
    client.send(publish(1, [(1, b"x")]))
    if ending == "closing":
        client.send(b"\0\0\0\4\0\xc8\0\1")
    elif ending == "refusing":
        client.send(SaslAuthenticate(1, "PLAIN", b"\0guest\0wrong"))
    else:
        client.session.kick(bench.now)
        client.session.kick(bench.now)
    client.sent.clear()
    assert client.session.state == ending
    stream.release_commits(bench.now)
    bench.broker.delete("s", bench.now)
    assert client.sent == []


def test_a_close_that_is_not_answered_ends_after_ten_seconds() -> None:
    bench = Bench()
    client = bench.open(heartbeat=0)
    client.send(b"\0\0\0\4\0\xc8\0\1")
    bench.advance(30.0)
    assert times(client) == [0.0, 10.0]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("unknown", [13]),
        ("too-large", [14]),
        ("empty", [13]),
        ("crash", []),
        ("bad-offset", []),
        ("what a fault made up", []),
    ],
)
def test_what_cannot_be_read(code: str, expected: list[int]) -> None:
    client = Bench().open()
    client.session.handle(Malformed(b"", "", code), 0.0)
    assert [frame.code for frame in client.frames() if isinstance(frame, Close)] == expected
    assert client.ended is (not expected)


def test_frames_that_a_fault_has_bent_do_no_harm() -> None:
    bench = Bench()
    for frame in (
        Subscribe(1, 1, "s", 9, None, 1),
        ResolveOffsetSpec(1, "s", 0xFFFF, None),
        ConsumerUpdateResponse(77, 1, 99),
        MetadataUpdate(6, "s"),
        CloseResponse(1, 1),
    ):
        client = with_stream(bench)
        client.session.handle(frame, 0.0)
        client.leave()


def test_a_connection_that_is_gone_leaves_nothing_behind() -> None:
    bench = Bench()
    client = with_stream(bench)
    client.send(DeclarePublisher(1, 1, "r", "s"), subscribe(1), subscribe(2, properties=SAC))
    stream = bench.broker.stream("s")
    assert (len(stream.publishers), len(stream.subscriptions), len(stream.watchers)) == (1, 2, 1)
    client.leave()
    assert (stream.publishers, stream.subscriptions, stream.watchers) == ([], [], {})
    assert (bench.broker.clients, bench.broker.coordinator.groups) == ({}, {})
    bench.broker.publish("s", [b"x"], bench.now)


# --- what others ask ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (Create(5, "s", {}), CreateResponse(5, 15)),
        (publish(1, [(7, b"a"), (9, b"b")]), PublishError(1, ((7, 15), (9, 15)))),
        (Credit(3, 1), CreditResponse(15, 3)),
        (Metadata(5, ("a",)), MetadataResponse(5, (), (StreamMetadata("a", 15, NO_LEADER, ()),))),
        (Heartbeat(), None),
    ],
)
def test_a_refusal_on_demand(frame: Frame, expected: Frame | None) -> None:
    assert Bench().open().session.refusal(frame, 15, 0.0) == expected


def test_an_inspector_sees_the_connection() -> None:
    bench = Bench()
    client = publishing(bench, "r")
    client.send(subscribe(2, credit=7))
    seen = client.session.describe()
    assert (seen["state"], seen["user"], seen["virtual_host"]) == ("open", "guest", "/")
    assert seen["publishers"] == {1: {"stream": "s", "reference": "r"}}
    assert seen["subscriptions"] == {2: {"stream": "s", "name": None, "credit": 7, "position": 0}}
