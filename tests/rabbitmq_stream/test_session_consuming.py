"""What consumers see, beyond the recordings: credit, codes, groups."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from fakebrokers.rabbitmq_stream.codes import Code, OffsetType
from fakebrokers.rabbitmq_stream.frames import (
    ConsumerUpdate,
    ConsumerUpdateResponse,
    CreateSuperStream,
    Credit,
    CreditResponse,
    Deliver,
    ExchangeCommandVersions,
    MetadataUpdate,
    QueryOffset,
    QueryOffsetResponse,
    Request,
    StoreOffset,
    SubscribeResponse,
    Unsubscribe,
    UnsubscribeResponse,
)
from fakebrokers.rabbitmq_stream.profile import SEED, V3_10, V4_3
from fakebrokers.rabbitmq_stream.wiretypes import CommandVersions
from tests.rabbitmq_stream.bench import (
    SAC,
    Bench,
    Client,
    subscribe,
    with_stream,
)

# --- consuming ---------------------------------------------------------------------------------


def test_chunks_wait_while_the_client_does_not_read() -> None:
    bench = Bench()
    client = with_stream(bench, messages=5)
    client.writable = False
    client.send(subscribe(credit=3))
    assert client.frames() == [SubscribeResponse(50, Code.OK)]
    client.writable = True
    client.session.writable(bench.now)
    assert [frame.first_offset for frame in client.frames() if isinstance(frame, Deliver)] == [0, 1, 2]


def test_the_newest_subscription_of_a_connection_is_served_first() -> None:
    """Measured with 3.10.8: subscribed in this order, a chunk came to 7, 1, 255 and 2."""
    bench = Bench()
    client = with_stream(bench)
    for subscription in (2, 255, 1, 7):
        client.send(msgspec.structs.replace(subscribe(credit=3), subscription_id=subscription))
    client.frames()
    bench.broker.publish("s", [b"x"], bench.now)
    assert [frame.subscription_id for frame in client.frames() if isinstance(frame, Deliver)] == [
        7,
        1,
        255,
        2,
    ]


def test_a_long_stream_is_delivered_in_bursts() -> None:
    bench = Bench()
    client = with_stream(bench)
    for _ in range(10):
        bench.broker.publish("s", [bytes(2**20)], bench.now)
    client.session.handle(subscribe(credit=1000), bench.now)
    assert len(client.frames()) == 1 + 4
    bench.run_timers()
    client.writable = False
    assert len(client.frames()) == 4
    bench.run_timers()
    assert client.frames() == []
    client.writable = True
    client.session.writable(bench.now)
    assert len(client.frames()) == 2


def test_deliver_v2_only_for_clients_that_know_it() -> None:
    bench = Bench()
    client = with_stream(bench, messages=3)
    client.send(ExchangeCommandVersions(1, (CommandVersions(8, 1, 1),)), subscribe(1, credit=1))
    client.send(ExchangeCommandVersions(1, (CommandVersions(8, 1, 2),)), subscribe(2, credit=1))
    deliveries = [frame for frame in client.frames() if isinstance(frame, Deliver)]
    assert [frame.committed_chunk_id for frame in deliveries] == [None, 2]


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (subscribe(stream="nosuch"), 2),
        (subscribe(1), 3),
        (subscribe(2, properties={"name": "x" * 256}), 17),
        (subscribe(2, properties={"name": "x" * 255}), 1),
        (subscribe(2, properties={"single-active-consumer": "true"}), 17),
        (subscribe(2, properties={"single-active-consumer": "True"}), 1),
        (Unsubscribe(50, 9), 4),
    ],
)
def test_codes_of_subscriptions(frame: Request, code: int) -> None:
    client = with_stream(Bench())
    client.send(subscribe(1))
    client.sent.clear()
    client.send(frame)
    answer = client.frames()[0]
    assert isinstance(answer, SubscribeResponse | UnsubscribeResponse)
    assert answer.code == code


def test_256_subscriptions() -> None:
    client = with_stream(Bench(), messages=1)
    client.send(*[subscribe(number, credit=1) for number in range(256)])
    frames = client.frames()
    assert sum(isinstance(frame, SubscribeResponse) and frame.code == 1 for frame in frames) == 256
    assert sorted(frame.subscription_id for frame in frames if isinstance(frame, Deliver)) == list(range(256))


def test_nothing_is_delivered_after_the_answer_to_unsubscribe() -> None:
    bench = Bench()
    client = with_stream(bench, messages=1)
    client.send(subscribe(), Unsubscribe(51, 1))
    client.sent.clear()
    bench.broker.publish("s", [b"x"], bench.now)
    client.send(Credit(1, 5))
    assert client.frames() == [CreditResponse(4, 1)]


def test_the_seed_has_no_code_for_no_offset() -> None:
    for profile, code in ((V4_3, 19), (SEED, 1)):
        client = with_stream(Bench(profile))
        client.send(QueryOffset(1, "app", "s"))
        assert client.only(QueryOffsetResponse) == QueryOffsetResponse(1, code, 0)


def test_a_reference_that_is_too_long_stores_nothing() -> None:
    client = with_stream(Bench())
    client.send(StoreOffset("r" * 256, "s", 5), QueryOffset(1, "r" * 256, "s"))
    client.send(StoreOffset("r" * 255, "s", 6), QueryOffset(2, "r" * 255, "s"))
    assert [frame.code for frame in client.frames()] == [19, 1]  # type: ignore[attr-defined]


def test_profiles_without_filters_send_everything() -> None:
    bench = Bench(V3_10)
    client = with_stream(bench, messages=2)
    client.send(subscribe(properties={"filter.0": "kiwi", **SAC}))
    assert [type(frame) for frame in client.frames()] == [SubscribeResponse, Deliver, Deliver]


# --- single active consumer --------------------------------------------------------------------


def group(bench: Bench, clients: int) -> Sequence[Client]:
    """Connections, each with one member of a group; the first one is active and reads."""
    with_stream(bench, messages=2)
    members = [bench.open() for _ in range(clients)]
    for client in members:
        client.send(subscribe(properties=SAC))
    members[0].send(ConsumerUpdateResponse(0, Code.OK))
    for client in members:
        client.sent.clear()
    return members


@pytest.mark.parametrize("how", ["leave", "unsubscribe", "kick"])
def test_the_next_consumer_takes_over(how: str) -> None:
    bench = Bench()
    first, second = group(bench, 2)
    if how == "unsubscribe":
        first.send(Unsubscribe(9, 1))
    elif how == "kick":
        first.session.kick(bench.now)
        first.leave()
    else:
        first.leave()
    assert second.frames() == [ConsumerUpdate(0, 1, 1)]
    second.send(ConsumerUpdateResponse(0, Code.OK, OffsetType.OFFSET, 1))
    assert [frame.first_offset for frame in second.frames() if isinstance(frame, Deliver)] == [1]


def test_credit_for_a_waiting_consumer_is_kept() -> None:
    bench = Bench()
    first, second = group(bench, 2)
    second.send(Credit(1, 5))
    assert second.frames() == [CreditResponse(17, 1)]
    assert second.session.describe()["subscriptions"][1]["credit"] == 15
    first.leave()


def test_type_0_in_the_answer_means_as_subscribed() -> None:
    bench = Bench()
    with_stream(bench, messages=3)
    client = bench.open()
    client.send(subscribe(kind=OffsetType.LAST, properties=SAC), ConsumerUpdateResponse(0, Code.OK))
    assert [frame.first_offset for frame in client.frames() if isinstance(frame, Deliver)] == [2]


def test_answers_with_unknown_ids_or_other_codes() -> None:
    bench = Bench()
    with_stream(bench, messages=1)
    client = bench.open()
    client.send(subscribe(properties=SAC))
    client.sent.clear()
    client.send(ConsumerUpdateResponse(7, Code.OK))
    assert client.frames() == []
    client.send(ConsumerUpdateResponse(0, Code.INTERNAL_ERROR), ConsumerUpdateResponse(0, Code.OK))
    assert [type(frame) for frame in client.frames()] == [Deliver]


def test_a_consumer_that_never_steps_down_is_dropped_and_the_group_goes_on() -> None:
    bench = Bench()
    admin = bench.open(heartbeat=0)
    admin.send(CreateSuperStream(1, "super", ("p0", "p1"), ("0", "1"), {}))
    first, second = bench.open(heartbeat=0), bench.open(heartbeat=0)
    properties = {**SAC, "super-stream": "super"}
    first.send(subscribe(properties=properties, stream="p1"), ConsumerUpdateResponse(0, Code.OK))
    bench.advance(5.0)
    second.send(subscribe(properties=properties, stream="p1"))
    first.sent.clear()
    second.sent.clear()
    bench.broker.publish("p1", [b"x"], bench.now)
    bench.advance(59.9)
    assert (first.sent, second.sent) == ([], [])
    bench.advance(0.2)
    assert [sent.at for sent in first.sent] == [65.0]
    assert first.ended
    first.leave()
    assert second.frames() == [ConsumerUpdate(0, 1, 1)]


def test_an_answer_that_comes_too_late_starts_nothing() -> None:
    bench = Bench()
    bench.open().send(CreateSuperStream(1, "super", ("p0", "p1"), ("0", "1"), {}))
    bench.broker.publish("p1", [b"x"], bench.now)
    first, second = bench.open(), bench.open()
    for client in (first, second):
        client.send(subscribe(properties={**SAC, "super-stream": "super"}, stream="p1"))
    asked = [frame.active for frame in first.frames() if isinstance(frame, ConsumerUpdate)]
    assert asked == [1, 0]
    first.send(ConsumerUpdateResponse(0, Code.OK, OffsetType.FIRST))
    assert first.frames() == []
    first.send(ConsumerUpdateResponse(1, Code.OK))
    assert second.frames()[-1] == ConsumerUpdate(0, 1, 1)


def test_nobody_waits_for_the_answer_of_a_consumer_that_is_gone() -> None:
    bench = Bench()
    with_stream(bench)
    client = bench.open(heartbeat=0)
    client.send(subscribe(properties=SAC), Unsubscribe(1, 1))
    bench.advance(100.0)
    assert not client.ended


def test_members_of_a_lost_stream_are_told_of_the_loss_only() -> None:
    bench = Bench()
    first, second = group(bench, 2)
    bench.broker.delete("s", bench.now)
    for client in (first, second):
        assert client.frames() == [MetadataUpdate(6, "s")]
    bench.advance(100.0)
    assert not first.ended and not second.ended
