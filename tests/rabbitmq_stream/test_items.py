"""Batches as faults and journal see them: items, their keys, and selections of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fakebrokers.core.frames import Items
from fakebrokers.rabbitmq_stream.batches import batch_entry
from fakebrokers.rabbitmq_stream.binary import pack_ids
from fakebrokers.rabbitmq_stream.chunk import Chunk
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.entries import messages, simple_entries
from fakebrokers.rabbitmq_stream.frames import FRAMES, Deliver, Publish, PublishConfirm, PublishError
from fakebrokers.rabbitmq_stream.publishing import publish
from tests.rabbitmq_stream.strategies import publishes


def items_of(kind: type) -> Items:
    items = FRAMES[kind].items
    assert items is not None
    return items


def bodies(entries: bytes) -> list[bytes]:
    return [body for _, body in messages(entries)]


@given(publishes(), st.data())
def test_selection_of_a_publish(frame: Publish, data: st.DataObject) -> None:
    items = items_of(Publish)
    keys = items.keys(frame)
    assert len(keys) == items.count(frame) == frame.count
    chosen = data.draw(st.lists(st.sampled_from(range(frame.count)), unique=True) if keys else st.just([]))
    selection = items.select(frame, chosen)
    assert list(items.keys(selection)) == [keys[i] for i in chosen]
    ((received, _),) = StreamCodec().feed(StreamCodec().encode(selection))
    assert received == selection


def test_selection_keeps_ids_bodies_and_filter_values_together() -> None:
    frame = publish(1, [(10, b"a"), (11, b"b"), (12, b"c")], ["x", None, "z"])
    selection = items_of(Publish).select(frame, [2, 0])
    assert selection == publish(1, [(12, b"c"), (10, b"a")], ["z", "x"])


def test_all_items_are_the_frame_itself() -> None:
    frame = Publish(1, 2, pack_ids([5, 6]), simple_entries([b"a"]) + batch_entry([b"b", b"c"]), 3, batches=1)
    assert items_of(Publish).select(frame, [0, 1]) == frame


def test_confirms() -> None:
    items, frame = items_of(PublishConfirm), PublishConfirm(1, pack_ids([5, 6, 7]))
    assert (items.count(frame), list(items.keys(frame))) == (3, [5, 6, 7])
    assert items.select(frame, [0, 2]) == PublishConfirm(1, pack_ids([5, 7]))


def test_errors() -> None:
    items, frame = items_of(PublishError), PublishError(1, ((5, 17), (6, 18)))
    assert (items.count(frame), list(items.keys(frame))) == (2, [5, 6])
    assert items.select(frame, [1]) == PublishError(1, ((6, 18),))


def delivery() -> Deliver:
    """Offsets 100, 101-103 (a batch), 104."""
    data = simple_entries([b"a"]) + batch_entry([b"b", b"c", b"d"]) + simple_entries([b"e"])
    return Deliver(1, Chunk.build(data, entries=3, records=5, first_offset=100, timestamp_ms=1, epoch=2), 50)


def test_deliveries_go_by_the_offset_of_each_entry() -> None:
    items = items_of(Deliver)
    assert (items.count(delivery()), list(items.keys(delivery()))) == (3, [100, 101, 104])


def test_selection_of_a_delivery_is_a_whole_chunk() -> None:
    selection = items_of(Deliver).select(delivery(), [1, 2])
    chunk = selection.chunk
    assert bodies(chunk.data) == [b"b", b"c", b"d", b"e"]
    assert (chunk.entries, chunk.records, chunk.first_offset, chunk.epoch) == (2, 4, 101, 2)
    assert chunk.crc_ok
    assert selection.committed_chunk_id == 50
    assert items_of(Deliver).select(delivery(), [0, 1, 2]) == delivery()


def test_items_of_a_chunk_that_a_fault_has_cut() -> None:
    frame = delivery()
    items = items_of(Deliver)
    for size in range(len(frame.chunk.data)):
        cut = replace(frame, chunk=replace(frame.chunk, data=frame.chunk.data[:size]))
        assert list(items.keys(cut)) == [100, 101, 104][: len(items.keys(cut))]
        assert items.select(cut, [0]).chunk.entries <= 1
