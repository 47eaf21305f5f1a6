from __future__ import annotations

import gzip
from struct import pack

import pytest

from fakebrokers.rabbitmq_stream.arguments import StreamArguments
from fakebrokers.rabbitmq_stream.binary import pack_ids
from fakebrokers.rabbitmq_stream.chunk import ChunkType
from fakebrokers.rabbitmq_stream.chunking import PerMessage, PerPublish, Seeded
from fakebrokers.rabbitmq_stream.codes import OffsetType
from fakebrokers.rabbitmq_stream.entries import MAX_ENTRIES, simple_entries
from fakebrokers.rabbitmq_stream.writer import Batch
from tests.rabbitmq_stream.writing import WALL, LeftOpen, Writing, bodies, ids, new_stream, reading

# --- writing ----------------------------------------------------------------------------------


def test_a_publish_becomes_one_chunk_with_the_entries_as_they_came() -> None:
    stream = new_stream()
    assert Writing(stream).publish(1, 2, 3, now=1.5) == [(1, 2, 3)]
    (chunk,) = stream.log
    assert chunk.data == simple_entries([b"m1", b"m2", b"m3"])
    assert (chunk.entries, chunk.records, chunk.first_offset, chunk.epoch) == (3, 3, 0, 1)
    assert (chunk.chunk_type, chunk.trailer_length, chunk.bloom_size) == (ChunkType.USER, 0, 0)
    assert chunk.timestamp_ms == (WALL + 1.5) * 1000


def test_without_reference_nothing_is_deduplicated() -> None:
    stream = new_stream()
    writing = Writing(stream)
    writing.publish(1)
    assert writing.publish(1) == [(1,)]
    assert bodies(stream) == [b"m1", b"m1"]


def test_duplicates_are_dropped_but_confirmed_first() -> None:
    stream = new_stream()
    writing = Writing(stream, "ref1")
    assert writing.publish(5, 6, 7) == [(5, 6, 7)]
    assert writing.publish(6, 7, 8) == [(6, 7), (8,)]
    assert writing.publish(1) == [(1,)]
    assert bodies(stream) == [b"m5", b"m6", b"m7", b"m8"]
    assert stream.tracking.sequences == {"ref1": 8}


def test_duplicates_within_one_publish_are_dropped_too() -> None:
    stream = new_stream()
    assert Writing(stream, "r").publish(10, 10, 11) == [(10,), (10, 11)]
    assert bodies(stream) == [b"m10", b"m11"]


def test_ids_that_go_back_within_one_publish_are_duplicates() -> None:
    stream = new_stream()
    assert Writing(stream, "r").publish(3, 1, 2, 9) == [(1, 2), (3, 9)]
    assert bodies(stream) == [b"m3", b"m9"]


def test_id_0_is_new_to_a_new_reference() -> None:
    stream = new_stream()
    assert Writing(stream, "r").publish(0) == [(0,)]
    assert Writing(stream, "r").publish(0) == [(0,)]
    assert bodies(stream) == [b"m0"]


def test_the_same_reference_is_shared_and_others_are_not() -> None:
    stream = new_stream()
    Writing(stream, "r").publish(5)
    Writing(stream, "r").publish(5)
    Writing(stream, "other").publish(5)
    assert len(stream) == 2


def test_filter_values_follow_their_messages_through_deduplication() -> None:
    stream = new_stream()
    writing = Writing(stream, "r")
    writing.publish(1)
    writing.publish(1, 2, values=["dropped", "kept"])
    assert stream.log.filter_of(1) == {"kept"}


def batch_entry(count: int, data: bytes, compression: int = 0) -> bytes:
    return pack(">BHII", 0x80 | compression << 4, count, 100, len(data)) + data


def test_a_batch_takes_one_id_and_an_offset_per_record() -> None:
    stream = new_stream()
    writing = Writing(stream, "r")
    inner = simple_entries([b"a", b"b", b"c"])
    entries = batch_entry(3, inner) + batch_entry(3, gzip.compress(inner), 1) + simple_entries([b"d"])
    writing.publisher.publish(Batch(pack_ids([1, 2, 3]), entries, 3, 7), 0.0)
    assert writing.confirms == [(1, 2, 3)]
    (chunk,) = stream.log
    assert (chunk.entries, chunk.records, chunk.data) == (3, 7, entries)
    assert [(m.offset, m.body) for m in stream.messages()] == list(enumerate([*[b"a", b"b", b"c"] * 2, b"d"]))


def test_a_batch_that_cannot_be_opened_is_shown_as_it_is() -> None:
    stream = new_stream()
    entries = batch_entry(2, b"\0\0\0", 1) + batch_entry(5, b"lz4!", 3) + simple_entries([b"d"])
    Writing(stream).publisher.publish(Batch(pack_ids([1, 2, 3]), entries, 3, 8), 0.0)
    assert [(m.offset, m.body) for m in stream.messages()] == [(0, b"\0\0\0"), (2, b"lz4!"), (7, b"d")]


def test_a_chunk_never_has_more_entries_than_its_header_can_count() -> None:
    stream = new_stream()
    count = MAX_ENTRIES + 5
    writing = Writing(stream)
    writing.publisher.publish(Batch(bytes(8 * count), bytes(4 * count), count, count), 0.0)
    assert [chunk.entries for chunk in stream.log] == [MAX_ENTRIES, 5]
    assert sum(len(confirm) for confirm in writing.confirms) == count


# --- chunk boundaries -------------------------------------------------------------------------


def test_one_chunk_per_message() -> None:
    stream = new_stream(chunking=PerMessage())
    assert Writing(stream).publish(1, 2, 3) == [(1,), (2,), (3,)]
    assert [chunk.records for chunk in stream.log] == [1, 1, 1]


def seeded(seed: int) -> tuple[list[int], list[bytes], list[tuple[int, ...]]]:
    stream = new_stream(chunking=Seeded(seed, longest=4))
    writing = Writing(stream)
    confirms = []
    for first in range(0, 100, 10):
        confirms += writing.publish(*range(first, first + 10))
    writing.confirms.clear()
    stream.timers.run(1.0)
    return [chunk.records for chunk in stream.log], bodies(stream), confirms + writing.confirms


def test_a_seed_decides_where_chunks_are_cut_and_joined() -> None:
    sizes, written, confirms = seeded(1)
    assert written == [b"m%d" % number for number in range(100)]
    assert [number for confirm in confirms for number in confirm] == list(range(100))
    assert len(set(sizes)) > 1
    assert max(sizes) > 4  # two Publishes share a chunk
    assert seeded(1) == (sizes, written, confirms)
    assert seeded(2)[0] != sizes


def test_a_chunk_that_was_left_open_is_written_when_its_time_is_up() -> None:
    stream = new_stream(chunking=LeftOpen())
    writing = Writing(stream)
    assert writing.publish(1, now=1.0) == []
    assert stream.writer.flush_at == 1.5
    stream.timers.run(1.4)
    assert len(stream.log) == 0
    stream.timers.run(1.5)
    assert writing.confirms == [(1,)]
    assert stream.writer.flush_at is None


def test_what_is_left_open_is_lost_with_the_leader() -> None:
    stream = new_stream(chunking=LeftOpen())
    stream.writer.store_offset("app", 1, 0.0)
    Writing(stream).publish(1, now=0.0)
    stream.elect(0.1)
    assert stream.writer.flush_at is None
    stream.writer.chunking = PerPublish()
    stream.publish([b"new"], 0.2)
    assert [(chunk.data[4:], chunk.trailer_length) for chunk in stream.log] == [(b"new", 0)]


def test_an_open_chunk_is_closed_before_it_gets_too_many_entries() -> None:
    stream = new_stream(chunking=LeftOpen())
    stream.publish([b""] * (MAX_ENTRIES - 1), 0.0)
    stream.publish([b""], 0.0)
    stream.publish([b""], 0.0)
    stream.timers.run(1.0)
    assert [chunk.entries for chunk in stream.log] == [MAX_ENTRIES, 1]


def test_publishes_with_and_without_filter_values_may_share_a_chunk() -> None:
    stream = new_stream(chunking=LeftOpen())
    stream.publish([b"a"], 0.0, ["apple"])
    stream.publish([b"b"], 0.0)
    stream.timers.run(1.0)
    assert stream.log.filter_of(0) == {"apple", None}


# --- tracking ---------------------------------------------------------------------------------


def test_a_stored_offset_can_be_read_at_once_and_the_last_one_counts() -> None:
    stream = new_stream()
    stream.writer.store_offset("app", 42, 0.0)
    stream.writer.store_offset("app", 7, 0.0)
    assert stream.tracking.offsets == {"app": 7}


def test_a_stored_offset_takes_an_offset_of_its_own_when_nothing_is_published() -> None:
    stream = new_stream()
    writing = Writing(stream)
    writing.publish(1, 2, now=0.0)
    for now in (1.0, 2.0):
        stream.writer.store_offset("app", 1, now)
        assert stream.writer.flush_at == now
        stream.timers.run(now)
    writing.publish(3, now=3.0)
    assert [(c.first_offset, c.chunk_type) for c in stream.log] == [(0, 0), (2, 1), (3, 1), (4, 0)]
    assert stream.log.read(2).data == bytes.fromhex("0000000d 01 03 617070 0000000000000001")
    assert ids(reading(stream)) == [0, 4]
    assert ids(reading(stream, OffsetType.LAST)) == [4]
    assert ids(reading(stream, chunk_selector="all")) == [0, 2, 3, 4]


def test_a_late_timer_makes_no_difference() -> None:
    stream = new_stream()
    stream.writer.store_offset("app", 1, 1.0)
    stream.writer.store_offset("app", 2, 2.0)
    Writing(stream).publish(1, now=3.0)
    assert [(c.first_offset, c.chunk_type) for c in stream.log] == [(0, 1), (1, 1), (2, 0)]


def test_what_is_stored_in_the_moment_of_a_publish_goes_into_the_trailer() -> None:
    stream = new_stream()
    stream.writer.store_offset("app", 1, 1.0)
    Writing(stream, "ref1").publish(1, now=1.0)
    (chunk,) = stream.log
    assert chunk.trailer_length == (1 + 1 + 4 + 8) + (1 + 1 + 3 + 8)
    assert stream.writer.flush_at is None


def test_a_publisher_with_reference_leaves_14_bytes_for_ref1() -> None:
    stream = new_stream()
    Writing(stream, "ref1").publish(5, 6, 7)
    assert [chunk.trailer_length for chunk in stream.log] == [14]


def test_duplicates_leave_no_trace_in_the_log() -> None:
    stream = new_stream()
    writing = Writing(stream, "ref1")
    writing.publish(5)
    writing.publish(5)
    stream.publish([b"x"], 0.0)
    assert [chunk.trailer_length for chunk in stream.log] == [14, 0]


def test_an_empty_stream_with_a_tracking_chunk_has_no_last_message() -> None:
    stream = new_stream()
    stream.writer.store_offset("app", 1, 0.0)
    stream.timers.run(0.0)
    assert stream.resolve(OffsetType.LAST, 0, 0.0) == 1
    assert stream.resolve(OffsetType.FIRST, 0, 0.0) == 0


# --- retention --------------------------------------------------------------------------------

#: a chunk of one Publish of one of these has 100 bytes, so segments hold two
BODY = b"x" * 47 + b"%d"
SMALL = {"segment_size": 150}


def test_small_streams_never_lose_messages() -> None:
    stream = new_stream(StreamArguments(max_age="1s", max_length=1))
    writing = Writing(stream)
    for now in range(20):
        writing.publish(now, now=100.0 * now)
    assert len(stream) == 20


@pytest.mark.parametrize(
    ("max_length", "expected"),
    # two segments are 8 + 200 and, behind the chunk that opens the newer one, 8 + 100 bytes
    [(316, [0, 0, 0, 0, 2, 2, 4, 4]), (315, [0, 0, 2, 2, 4, 4, 6, 6])],
)
def test_length_is_checked_behind_the_chunk_that_begins_a_segment(
    max_length: int, expected: list[int]
) -> None:
    stream = new_stream(StreamArguments(max_length=max_length, **SMALL))
    writing = Writing(stream)
    first = []
    for number in range(8):
        writing.publish(number, body=BODY)
        first.append(stream.log.first_offset)
    assert first == expected


def test_age_is_checked_when_a_segment_begins() -> None:
    stream = new_stream(StreamArguments(max_age="10s", **SMALL))
    writing = Writing(stream)
    first = []
    for number in range(6):
        writing.publish(number, body=BODY, now=8.0 * number)
        first.append(stream.log.first_offset)
    assert first == [0, 0, 0, 0, 2, 2]


@pytest.mark.parametrize(
    "arguments", [StreamArguments(max_length=-5, **SMALL), StreamArguments(max_age="1 fortnight", **SMALL)]
)
def test_limits_that_make_no_sense_limit_nothing(arguments: StreamArguments) -> None:
    stream = new_stream(arguments)
    writing = Writing(stream)
    for number in range(8):
        writing.publish(number, body=BODY, now=1000.0 * number)
    assert len(stream) == 8


def test_expiring_now_closes_the_segment() -> None:
    stream = new_stream(StreamArguments(max_age="10s"))
    writing = Writing(stream)
    writing.publish(1, 2, 3, now=0.0)
    stream.expire(5.0)
    assert len(stream) == 3
    stream.expire(11.0)
    assert len(stream) == 0
    writing.publish(4, now=12.0)
    assert [message.offset for message in stream.messages()] == [3]


def test_a_new_segment_begins_with_a_snapshot_of_what_is_still_useful() -> None:
    stream = new_stream(StreamArguments(max_length=150, **SMALL))
    writing = Writing(stream, "r")
    writing.publish(0, body=BODY)
    writing.publish(1, body=BODY)
    stream.tracking.offsets.update(old=0, new=99)
    writing.publish(2, body=BODY)  # snapshot at offset 2, message at 3; offsets 0 and 1 are dropped
    assert [(c.first_offset, c.chunk_type) for c in stream.log] == [(2, ChunkType.TRACKING_SNAPSHOT), (3, 0)]
    writing.publish(3, body=BODY)
    writing.publish(4, body=BODY)
    assert stream.tracking.offsets == {"new": 99}
    assert stream.tracking.sequences == {"r": 4}


def test_a_snapshot_keeps_offsets_that_can_still_be_read() -> None:
    tracking = new_stream().tracking
    tracking.offsets.update(below=1, first=2, above=3)
    tracking.snapshot(2)
    assert tracking.offsets == {"first": 2, "above": 3}


def test_only_255_references_survive_a_segment() -> None:
    stream = new_stream(StreamArguments(**SMALL))
    for number in range(300):
        stream.tracking.put_sequence(f"r{number}", 1)
    stream.tracking.put_sequence("r0", 2)  # used again: the most recent now
    stream.tracking.snapshot(0)
    assert len(stream.tracking.sequences) == 255
    assert "r0" in stream.tracking.sequences
    assert "r1" not in stream.tracking.sequences
