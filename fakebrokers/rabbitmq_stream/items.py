"""How to look into the frames that are batches (`fakebrokers.core.frames.Items`)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from struct import error
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fakebrokers.core.frames import Items
from fakebrokers.rabbitmq_stream.binary import unpack_ids
from fakebrokers.rabbitmq_stream.chunk import Chunk
from fakebrokers.rabbitmq_stream.entries import Span, spans

if TYPE_CHECKING:
    from fakebrokers.rabbitmq_stream.frames_messages import Deliver, Publish, PublishConfirm, PublishError


def _whole_entries(entries: bytes) -> list[Span]:
    """The entries up to the first that is not whole; a fault may have cut them."""
    found = []
    try:
        for span in spans(entries):
            if span.end > len(entries):
                break
            found.append(span)
    except error:
        pass
    return found


def _pick_ids(packed: bytes, indices: Sequence[int]) -> bytes:
    return b"".join([packed[8 * i : 8 * i + 8] for i in indices])


class PublishedItems(Items):
    """The entries of a Publish, by publishing id."""

    def count(self, frame: Publish) -> int:
        return frame.count

    def keys(self, frame: Publish) -> Sequence[int]:
        return unpack_ids(frame.publishing_ids)

    def select(self, frame: Publish, indices: Sequence[int]) -> Publish:
        entries = _whole_entries(frame.entries)
        chosen = [entries[i] for i in indices]
        values = frame.filter_values
        return replace(
            frame,
            count=len(chosen),
            publishing_ids=_pick_ids(frame.publishing_ids, indices),
            entries=b"".join([frame.entries[entry.start : entry.end] for entry in chosen]),
            records=sum(entry.records for entry in chosen),
            filter_values=tuple([values[i] for i in indices]) if values else (),
            batches=sum(frame.entries[entry.start] >> 7 for entry in chosen),
            claimed=None,
        )


class ConfirmedItems(Items):
    """The publishing ids of a PublishConfirm."""

    def count(self, frame: PublishConfirm) -> int:
        return len(frame.publishing_ids) // 8

    def keys(self, frame: PublishConfirm) -> Sequence[int]:
        return unpack_ids(frame.publishing_ids)

    def select(self, frame: PublishConfirm, indices: Sequence[int]) -> PublishConfirm:
        return replace(frame, publishing_ids=_pick_ids(frame.publishing_ids, indices))


class FailedItems(Items):
    """The publishing ids of a PublishError."""

    def count(self, frame: PublishError) -> int:
        return len(frame.errors)

    def keys(self, frame: PublishError) -> Sequence[int]:
        return frame.publishing_ids

    def status(self, frame: PublishError, index: int) -> int:
        return frame.errors[index][1]

    def select(self, frame: PublishError, indices: Sequence[int]) -> PublishError:
        return replace(frame, errors=tuple([frame.errors[i] for i in indices]))


class DeliveredItems(Items):
    """The entries of a chunk, by the offset of their first message.

    A selection is a chunk of its own with a right CRC: it begins at the offset of its first entry, and
    what follows counts on from there, as offsets inside a chunk have no gaps.
    """

    def count(self, frame: Deliver) -> int:
        return frame.chunk.entries

    def keys(self, frame: Deliver) -> Sequence[int]:
        chunk = frame.chunk
        if chunk.entries == chunk.records:
            return range(chunk.first_offset, chunk.first_offset + chunk.records)
        records = [entry.records for entry in _whole_entries(chunk.data)]
        return tuple(accumulate(records[:-1], initial=chunk.first_offset))

    def select(self, frame: Deliver, indices: Sequence[int]) -> Deliver:
        chunk = frame.chunk
        entries = _whole_entries(chunk.data)
        chosen = [entries[i] for i in indices if i < len(entries)]
        selection = Chunk.build(
            b"".join([chunk.data[entry.start : entry.end] for entry in chosen]),
            entries=len(chosen),
            records=sum(entry.records for entry in chosen),
            first_offset=self.keys(frame)[indices[0]] if indices else chunk.first_offset,
            timestamp_ms=chunk.timestamp_ms,
            epoch=chunk.epoch,
            chunk_type=chunk.chunk_type,
            trailer_length=chunk.trailer_length,
            bloom_size=chunk.bloom_size,
        )
        return replace(frame, chunk=selection)
