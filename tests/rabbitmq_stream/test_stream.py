from __future__ import annotations

import tracemalloc

import pytest

from fakebrokers.rabbitmq_stream.codes import OffsetType
from fakebrokers.rabbitmq_stream.stream import Stream
from fakebrokers.rabbitmq_stream.subscription import Subscription
from tests.rabbitmq_stream.writing import WALL, Writing, ids, new_stream, read, reading

# --- reading ----------------------------------------------------------------------------------


def three_chunks() -> Stream:
    stream = new_stream()
    for first in (0, 3, 6):
        stream.publish([b"%d" % number for number in range(first, first + 3)], now=float(first))
    return stream


@pytest.mark.parametrize(
    ("kind", "value", "start"),
    [
        (OffsetType.FIRST, 0, 0),
        (OffsetType.LAST, 0, 6),
        (OffsetType.NEXT, 0, 9),
        (OffsetType.OFFSET, 4, 3),
        (OffsetType.OFFSET, 3, 3),
        (OffsetType.OFFSET, 8, 6),
        (OffsetType.OFFSET, 9, 9),
        (OffsetType.OFFSET, 100, 9),
        (OffsetType.TIMESTAMP, 0, 0),
        (OffsetType.TIMESTAMP, int(WALL * 1000) + 1, 3),
        (OffsetType.TIMESTAMP, int(WALL * 1000) + 3000, 3),
        (OffsetType.TIMESTAMP, int(WALL * 1000) + 6001, 9),
    ],
)
def test_where_readers_begin(kind: OffsetType, value: int, start: int) -> None:
    stream = three_chunks()
    assert stream.resolve(kind, value, 10.0) == start
    reader = reading(stream, kind, value)
    assert ids(reader) == list(range(start, 9, 3))
    stream.publish([b"late"], 11.0)
    assert ids(reader) == [9]


def test_an_offset_that_was_dropped_leads_to_the_first_that_was_not() -> None:
    stream = three_chunks()
    behind = reading(stream)
    stream.truncate(4)
    assert ids(reading(stream, OffsetType.OFFSET, 0)) == [3, 6]
    assert ids(behind) == [3, 6]


def with_credit(credit: int, limit: int) -> tuple[Stream, Subscription]:
    stream = new_stream()
    for _ in range(30):
        stream.publish([b"x"], 0.0)
    subscription = Subscription(stream, 1, (OffsetType.FIRST, 0), credit, limit, {}, lambda *_: None)
    subscription.attach(None, 0.0)
    return stream, subscription


def test_one_credit_is_one_chunk() -> None:
    _, subscription = with_credit(2, 0)
    assert ids(subscription) == [0, 1]
    subscription.add_credit(0)
    subscription.add_credit(-1)
    assert ids(subscription) == []
    subscription.add_credit(3)
    assert ids(subscription) == [2, 3]


def test_nothing_is_begun_at_or_below_the_send_limit() -> None:
    _, subscription = with_credit(10, 5)
    assert len(read(subscription)) == 10
    counts = []
    for _ in range(12):
        subscription.add_credit(1)
        counts.append(len(read(subscription)))
    assert counts == [0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 6]


def test_credit_that_is_left_at_the_send_limit_is_not_used_for_new_chunks() -> None:
    stream, subscription = with_credit(10, 5)
    stream.truncate(25)
    assert len(read(subscription)) == 5
    stream.publish([b"x"], 0.0)
    assert read(subscription) == []
    subscription.add_credit(1)
    assert len(read(subscription)) == 1


def filtered() -> Stream:
    stream = new_stream()
    for values in (["apple"], ["pear"], [None], ["apple", None], []):
        stream.publish([b"x"] * (len(values) or 1), 0.0, values)
    return stream  # chunks 0, 1, 2, 3 (two messages), 5


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, [0, 1, 2, 3, 5]),
        ({"filter__0": "apple"}, [0, 3]),
        ({"filter__0": "apple", "filter__x": "pear"}, [0, 1, 3]),
        ({"filter__0": "apple", "match-unfiltered": "true"}, [0, 2, 3, 5]),
        ({"filter__0": "pear", "match-unfiltered": "true"}, [1, 2, 3, 5]),
        ({"filter__0": "kiwi"}, []),
        ({"match-unfiltered": "true"}, [0, 1, 2, 3, 5]),
    ],
)
def test_filters_choose_chunks_at_no_cost(properties: dict[str, str], expected: list[int]) -> None:
    reader = reading(filtered(), credit=5, **properties)
    assert ids(reader) == expected
    assert reader.credit == 5 - len(expected)


def test_a_chunk_with_a_filter_tells_the_size_of_the_filter() -> None:
    assert [chunk.bloom_size for chunk in filtered().log] == [16, 16, 0, 16, 0]


def test_false_positives_can_be_had() -> None:
    stream = filtered()
    stream.false_positives = True
    assert ids(reading(stream, filter__0="kiwi")) == [0, 1, 3]


def test_subscribers_are_woken_when_something_is_there() -> None:
    stream = new_stream()
    woken: list[float] = []
    subscription = Subscription(stream, 1, (OffsetType.NEXT, 0), 1, 0, {}, lambda one, now: woken.append(now))
    stream.subscriptions.append(subscription)
    stream.publish([b"x"], 1.0)
    assert woken == [1.0]


# --- commits and elections --------------------------------------------------------------------


def test_without_majority_nothing_is_confirmed_or_delivered() -> None:
    stream = new_stream()
    writing, reader = Writing(stream), reading(stream)
    stream.hold_commits()
    assert writing.publish(1, now=1.0) == []
    assert writing.publish(2, now=2.0) == []
    assert ids(reader) == []
    assert stream.stats(2.0).committed_chunk_id == -1
    assert stream.stats(2.0).last_chunk_id == 1
    stream.release_commits(3.0)
    assert writing.confirms == [(1,), (2,)]
    assert ids(reader) == [0, 1]
    assert stream.stats(3.0).committed_chunk_id == 1


def test_what_was_not_confirmed_when_the_stream_was_lost_never_is() -> None:
    stream = new_stream()
    writing = Writing(stream)
    stream.hold_commits()
    writing.publish(1)
    stream.lost(1.0)
    stream.release_commits(2.0)
    assert writing.confirms == []


def test_a_new_leader_begins_a_new_epoch() -> None:
    stream = new_stream()
    stream.publish([b"x"], 0.0)
    stream.lost(1.0)
    stream.elect(1.0)
    stream.publish([b"x"], 1.0)
    assert [(chunk.first_offset, chunk.epoch) for chunk in stream.log] == [(0, 1), (1, 2)]


def test_numbers_of_a_stream() -> None:
    stream = new_stream()
    stats = stream.stats(0.0)
    assert (stats.committed_chunk_id, stats.committed_offset, stats.first_chunk_id, stats.last_chunk_id) == (
        -1,
        -1,
        -1,
        -1,
    )
    stream.publish([b"x"] * 3, 0.0)
    stream.publish([b"x"] * 3, 0.0)
    stats = stream.stats(0.0)
    assert (stats.committed_chunk_id, stats.committed_offset, stats.first_chunk_id, stats.last_chunk_id) == (
        3,
        5,
        0,
        3,
    )


@pytest.mark.benchmark
def test_small_messages_cost_little_more_than_their_bytes() -> None:
    """250 MB for a million messages of 100 bytes, even if each is a chunk of its own."""
    stream = new_stream()
    body = bytes(100)
    tracemalloc.start()
    try:
        for _ in range(20_000):
            stream.publish([body], 0.0)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used * 50 < 250e6
