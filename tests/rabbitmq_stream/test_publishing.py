"""Publish frames and sub-entry batches."""

from __future__ import annotations

from struct import pack

import pytest
from msgspec.structs import replace

from fakebrokers.core.frames import Malformed
from fakebrokers.errors import UsageError
from fakebrokers.rabbitmq_stream.batches import MAX_UNCOMPRESSED, batch_entry, batch_problem, first_bad
from fakebrokers.rabbitmq_stream.binary import pack_ids, unpack_ids
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.codes import Compression
from fakebrokers.rabbitmq_stream.entries import messages, simple_entries
from fakebrokers.rabbitmq_stream.frames import Publish, PublishError
from fakebrokers.rabbitmq_stream.publishing import publish
from tests.rabbitmq_stream.golden import case


def received(case_id: str, server: str = "4.3.6") -> Publish:
    frames = [frame for frame, _ in StreamCodec().feed(case(server, case_id).client_bytes)]
    (frame,) = [frame for frame in frames if isinstance(frame, Publish)]
    return frame


def test_recorded_publish() -> None:
    frame = received("publish_v2_filter")
    assert frame == publish(0, [(60, b"filtered"), (61, b"unfiltered")], ["f1", None])
    assert frame.entries == simple_entries([b"filtered", b"unfiltered"])


@pytest.mark.parametrize(
    ("case_id", "compression"),
    [("publish_subentry_none", Compression.NONE), ("publish_subentry_gzip", Compression.GZIP)],
)
def test_recorded_batch(case_id: str, compression: Compression) -> None:
    frame = received(case_id)
    bodies = [body for _, body in messages(frame.entries)]
    assert (frame.count, frame.records, frame.batches, len(bodies)) == (1, 3, 1, 3)
    assert first_bad(frame.entries) is None
    assert [body for _, body in messages(batch_entry(bodies, compression))] == bodies


@pytest.mark.parametrize("kind", ["count0", "comp7", "huge_uncompressed"])
def test_batches_that_4_3_refuses(kind: str) -> None:
    golden = case("4.3.6", f"publish_subentry_bad_{kind}")
    frame = received(golden.id)
    bad = first_bad(frame.entries)
    ((answer, _),) = StreamCodec("client").feed(golden.server_bytes)
    assert bad == 0
    assert answer == PublishError(0, tuple([(key, 17) for key in unpack_ids(frame.publishing_ids)[bad:]]))


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ((0x80, 1, 4, 4), None),
        ((0x80, 1, 4, 0), None),
        ((0xC0, 1, 4, 4), None),
        ((0x80, 1, MAX_UNCOMPRESSED, 4), None),
        ((0x80, 1, MAX_UNCOMPRESSED + 1, 4), "above 67108864"),
        ((0x80, 0, 4, 4), "count is 0"),
        ((0x80, 2, 7, 4), "2 records do not fit into 7 bytes"),
        ((0xD0, 1, 4, 4), "compression 5 is unknown"),
        ((0x90, 1, 4, 0), "compressed data is empty"),
    ],
)
def test_rule_for_batch_headers(header: tuple[int, int, int, int], problem: str | None) -> None:
    entry = pack(">BHII", *header) + bytes(header[3])
    found = batch_problem(entry)
    assert found == problem if problem is None else problem in str(found)
    assert first_bad(simple_entries([b"good"]) + entry) == (None if problem is None else 1)


def test_only_two_compressions_are_built_in() -> None:
    with pytest.raises(UsageError, match="SNAPPY"):
        batch_entry([b"a"], Compression.SNAPPY)


@pytest.mark.parametrize(
    "sizes",
    [(), (0,), (5,), (3, 3), (3, 3, 3, 4), (4, 3, 3, 3), (0, 0, 0), (256, 0), (1, 256), (100,) * 50, (16, 4)],
)
def test_entries_that_are_alike_and_others_are_read_the_same(sizes: tuple[int, ...]) -> None:
    """Whatever the sizes, also those that look alike by their sum or by one byte of their size field."""
    bodies = [bytes([65 + number % 26]) * size for number, size in enumerate(sizes)]
    frame = publish(7, [(2**40 + number, body) for number, body in enumerate(bodies)])
    ((came, size),) = StreamCodec().feed(StreamCodec("client").encode(frame))
    assert came == frame
    assert size == 13 + sum(12 + each for each in sizes)


def test_a_count_that_is_wrong_is_kept_but_not_believed() -> None:
    frame = replace(publish(7, [(1, b"a"), (2, b"b")]), claimed=5)
    ((came, _),) = StreamCodec().feed(StreamCodec("client").encode(frame))
    assert came == frame


def test_ids() -> None:
    ids = (0, 1, 2**64 - 1)
    assert unpack_ids(pack_ids(ids)) == ids
    assert pack_ids([258]) == b"\0\0\0\0\0\0\1\2"


@pytest.mark.parametrize("filter_values", [(), ("a", "b")])
def test_a_damaged_entry_is_told_with_its_place(filter_values: tuple[str, ...]) -> None:
    """The first entry is whole; the second one ends in its length, or in its body."""
    codec = StreamCodec()
    unit = StreamCodec("client").encode(publish(7, [(1, b"one"), (2, b"second")], filter_values))
    body = unit[4:]
    first = 9 + 8 + (3 if filter_values else 0) + 4 + 3
    for left, problem in (
        (first + 5, f"expected a whole entry at byte {first}, got 5 bytes"),
        (len(body) - 2, f"expected a whole entry at byte {len(body) - 2}, got 2 bytes too few"),
    ):
        malformed = codec.decode(body[:left])
        assert isinstance(malformed, Malformed)
        assert malformed.problem.endswith(problem)
        assert codec.damaged is not None
        whole = codec.damaged[1]
        assert (whole.count, whole.entries) == (1, simple_entries([b"one"]))
