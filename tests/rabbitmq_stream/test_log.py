from __future__ import annotations

import pytest
from msgspec.structs import replace

from fakebrokers.rabbitmq_stream.chunk import Chunk, ChunkType
from fakebrokers.rabbitmq_stream.log import Log


def chunk(log: Log, records: int = 1, at: int = 0, kind: ChunkType = ChunkType.USER) -> Chunk:
    data = b"\0\0\0\1x" * records
    return Chunk.build(
        data,
        entries=records,
        records=records,
        first_offset=log.next_offset,
        timestamp_ms=at,
        chunk_type=kind,
    )


def filled(*records: int, segment_size: int = 10**9) -> Log:
    """A log with one chunk per number, of that many records, written at 0, 10, 20 ... ms."""
    log = Log(segment_size)
    for index, count in enumerate(records):
        if log.segment_is_full:
            log.begin_segment()
        log.append(chunk(log, count, at=10 * index))
    return log


def test_an_empty_log_begins_at_offset_0() -> None:
    log = Log()
    assert (log.first_offset, log.next_offset, log.last_chunk_id, log.last_user_chunk_id) == (
        None,
        0,
        None,
        None,
    )
    assert log.locate(0) == log.locate(99) == log.locate_time(0) == 0
    assert log.next_id(0) is None


def test_an_offset_leads_to_the_chunk_that_contains_it() -> None:
    log = filled(3, 3, 3)
    assert [log.locate(offset) for offset in range(11)] == [0, 0, 0, 3, 3, 3, 6, 6, 6, 9, 9]


def test_a_time_leads_to_the_first_chunk_that_is_not_older() -> None:
    log = filled(3, 3, 3)
    assert [log.locate_time(at) for at in (-5, 0, 1, 10, 11, 20, 21)] == [0, 0, 3, 3, 6, 6, 9]


def test_times_are_found_after_the_clock_went_back() -> None:
    log = Log()
    for at in (100, 50, 60, 200):
        log.append(chunk(log, at=at))
    assert [log.locate_time(at) for at in (0, 55, 101, 201)] == [0, 0, 3, 4]


def test_reading_walks_over_chunk_ids() -> None:
    log = filled(3, 2)
    assert log.next_id(0) == 0
    assert log.next_id(1) == 3
    assert log.next_id(4) is None
    assert log.read(3).records == 2
    assert log.read(3).crc_ok
    assert [one.first_offset for one in log] == [0, 3]


def test_tracking_chunks_are_told_from_messages() -> None:
    log = filled(2)
    log.append(chunk(log, kind=ChunkType.TRACKING_DELTA))
    assert log.is_user(0)
    assert not log.is_user(2)
    assert (log.last_chunk_id, log.last_user_chunk_id) == (2, 0)


def test_the_filter_of_a_chunk_is_kept_as_long_as_the_chunk() -> None:
    log = Log()
    log.append(chunk(log), frozenset({"a"}))
    log.append(chunk(log))
    assert (log.filter_of(0), log.filter_of(1)) == (frozenset({"a"}), None)
    log.truncate(1)
    assert log.filter_of(0) is None


def test_segments_are_begun_when_the_last_one_is_full() -> None:
    log = filled(1, 1, 1, segment_size=100)  # a chunk of one record has 53 bytes
    assert log.segments == 2
    assert not log.segment_is_full


def test_retention_by_size_drops_whole_segments_and_keeps_the_last() -> None:
    log = filled(*[1] * 6, segment_size=100)  # three segments of two chunks: 8 + 2 * 53 bytes each
    assert log.segments == 3
    assert log.retain(max_bytes=3 * 114, oldest_ms=None) == []
    assert log.segments == 3
    (dropped,) = log.retain(max_bytes=3 * 114 - 1, oldest_ms=None)
    assert [one.first_offset for one in dropped] == [0, 1]
    assert (log.segments, log.first_offset, log.size) == (2, 2, 4 * 53)
    log.retain(max_bytes=0, oldest_ms=None)
    assert (log.segments, log.first_offset) == (1, 4)
    log.retain(max_bytes=0, oldest_ms=10**9)
    assert log.first_offset == 4


@pytest.mark.parametrize(("segment_size", "full"), [(114, True), (115, False)])
def test_the_size_of_a_segment_counts_its_header(segment_size: int, full: bool) -> None:
    log = filled(1, 1, segment_size=segment_size)
    assert log.segment_is_full is full


@pytest.mark.parametrize(("trailer", "bloom", "full"), [(12, 16, True), (11, 16, False), (12, 15, False)])
def test_the_size_of_a_segment_counts_trailers_and_filters(trailer: int, bloom: int, full: bool) -> None:
    log = Log(8 + 53 + 12 + 16)
    log.append(replace(chunk(log), trailer_length=trailer, bloom_size=bloom))
    assert log.segment_is_full is full


def test_retention_by_age_looks_at_the_newest_chunk_of_a_segment() -> None:
    log = filled(*[1] * 6, segment_size=100)  # written at 0, 10 | 20, 30 | 40, 50
    log.retain(None, oldest_ms=10)
    assert log.first_offset == 0
    log.retain(None, oldest_ms=11)
    assert log.first_offset == 2


def test_truncation_cuts_in_front_of_a_chunk() -> None:
    log = filled(3, 3, 3)
    log.truncate(4)
    assert (log.first_offset, log.next_offset, len(log)) == (3, 9, 2)
    assert log.locate(0) == 3
    log.truncate(9)
    assert (log.first_offset, log.next_offset, log.size, log.last_user_chunk_id) == (None, 9, 0, None)
    assert log.locate(0) == 9
