"""What publishers see, beyond the recordings."""

from __future__ import annotations

import msgspec

from fakebrokers.rabbitmq_stream.binary import pack_ids
from fakebrokers.rabbitmq_stream.codes import Code, OffsetType
from fakebrokers.rabbitmq_stream.frames import (
    Create,
    DeclarePublisher,
    DeclarePublisherResponse,
    DeletePublisher,
    DeletePublisherResponse,
    Deliver,
    PublishConfirm,
    PublishError,
    SubscribeResponse,
)
from fakebrokers.rabbitmq_stream.publishing import publish
from tests.rabbitmq_stream.bench import (
    Bench,
    publishing,
    subscribe,
    with_stream,
)


def test_confirms_carry_the_ids_as_they_came() -> None:
    client = publishing(Bench())
    client.send(publish(1, [(7, b"a"), (2**64 - 1, b"b")]))
    assert client.frames() == [PublishConfirm(1, pack_ids([7, 2**64 - 1]))]


def test_a_confirm_comes_before_the_delivery_of_the_same_message() -> None:
    client = publishing(Bench())
    client.send(subscribe(3, OffsetType.NEXT), publish(1, [(1, b"a")]))
    assert [type(frame) for frame in client.frames()] == [SubscribeResponse, PublishConfirm, Deliver]


def test_the_same_reference_may_be_used_by_two_connections_but_not_twice_by_one() -> None:
    bench = Bench()
    first = publishing(bench, "r")
    first.send(
        DeclarePublisher(1, 2, "r", "s"), DeclarePublisher(2, 3, "", "s"), DeclarePublisher(3, 4, "", "s")
    )
    assert [frame.code for frame in first.frames()] == [17, 1, 1]  # type: ignore[attr-defined]
    second = bench.open()
    second.send(DeclarePublisher(1, 1, "r", "s"))
    assert second.only(DeclarePublisherResponse).code == Code.OK


def test_a_disk_alarm_refuses_publishers() -> None:
    bench = Bench()
    client = with_stream(bench)
    bench.broker.disk_alarm = True
    client.send(DeclarePublisher(1, 1, "", "s"))
    assert client.only(DeclarePublisherResponse).code == Code.PRECONDITION_FAILED


def test_a_deleted_publisher_is_not_told_of_what_was_stored() -> None:
    bench = Bench()
    client = publishing(bench)
    stream = bench.broker.stream("s")
    stream.hold_commits()
    client.send(publish(1, [(1, b"a")]), DeletePublisher(9, 1))
    stream.release_commits(bench.now)
    assert client.frames() == [DeletePublisherResponse(9, Code.OK)]
    assert [message.body for message in stream.messages()] == [b"a"]
    assert client.session.describe()["unconfirmed"] == 0


def test_the_socket_is_not_read_while_too_much_is_unconfirmed() -> None:
    bench = Bench()
    client = publishing(bench)
    client.send(DeclarePublisher(7, 2, "", "s2"))
    stream = bench.broker.stream("s")
    stream.hold_commits()
    block = [(number, b"") for number in range(10_000)]
    for _ in range(4):
        client.send(publish(1, block))
    assert client.reading
    client.send(publish(1, block))
    assert not client.reading
    stream.release_commits(bench.now)
    assert client.reading


def test_reading_goes_on_below_37500_unconfirmed() -> None:
    bench = Bench()
    client = publishing(bench)
    client.send(Create(7, "t", {}), DeclarePublisher(8, 2, "", "t"))
    first, second = bench.broker.stream("s"), bench.broker.stream("t")
    for stream in (first, second):
        stream.hold_commits()
    client.send(publish(1, [(number, b"") for number in range(12_501)]))
    client.send(publish(2, [(number, b"") for number in range(37_499)]))
    assert not client.reading
    client.send(publish(2, [(1, b"")]))  # was on its way already
    first.release_commits(bench.now)
    assert client.session.describe()["unconfirmed"] == 37_500
    assert not client.reading
    second.release_commits(bench.now)
    assert client.reading


def test_a_server_that_does_not_read_expects_no_heartbeats() -> None:
    bench = Bench()
    client = bench.open(heartbeat=1)
    client.send(Create(5, "s", {}), DeclarePublisher(6, 1, "", "s"))
    bench.broker.stream("s").hold_commits()
    client.send(publish(1, [(number, b"") for number in range(50_000)]))
    bench.advance(30.0)
    assert not client.ended
    bench.broker.stream("s").release_commits(bench.now)
    bench.advance(1.5)
    assert not client.ended
    bench.advance(2.0)
    assert client.ended


def test_entries_in_front_of_a_bad_batch_are_stored() -> None:
    bench = Bench()
    client = publishing(bench)
    good, after = publish(1, [(1, b"good")]), publish(1, [(3, b"after")])
    bad = bytes([0x80]) + bytes(10)
    client.send(
        msgspec.structs.replace(
            good,
            count=3,
            records=2,
            batches=1,
            publishing_ids=pack_ids([1, 2, 3]),
            entries=good.entries + bad + after.entries,
        )
    )
    assert client.frames() == [PublishError(1, ((2, 17), (3, 17))), PublishConfirm(1, pack_ids([1]))]
    assert [message.body for message in bench.broker.stream("s").messages()] == [b"good"]
