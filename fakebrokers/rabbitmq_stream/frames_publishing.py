"""Frames that open and close publishers, and carry and confirm what they publish
(docs/protocols/rabbitmq-stream.md, 3 and 6).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from msgspec.structs import replace

from fakebrokers.core.frames import FrameSpec, Items, Role
from fakebrokers.rabbitmq_stream.binary import unpack_ids
from fakebrokers.rabbitmq_stream.entries import contents, whole_spans
from fakebrokers.rabbitmq_stream.frames_base import Request, Response, Sender, StreamFrame
from fakebrokers.rabbitmq_stream.wiretypes import U8, U64, Errors, PackedIds, Text


class DeclarePublisher(Request, frozen=True):
    """Opens a publisher; an empty reference means none, and no deduplication."""

    spec = FrameSpec(Role.OPEN, key="correlation_id")
    KEY: ClassVar = 0x0001
    publisher_id: U8
    reference: Text
    stream: Text


class DeclarePublisherResponse(Response, frozen=True):
    """2: no such stream; 16: no permission; 17: id or reference taken, or too long."""

    KEY: ClassVar = 0x8001


class PublishedItems(Items):
    """The entries of a Publish, by publishing id."""

    def count(self, frame: Publish) -> int:
        return frame.count

    def keys(self, frame: Publish) -> Sequence[int]:
        return unpack_ids(frame.publishing_ids)

    def bodies(self, frame: Publish) -> Iterable[bytes]:
        return contents(frame.entries)

    def select(self, frame: Publish, indices: Sequence[int]) -> Publish:
        entries = whole_spans(frame.entries)
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


class Publish(StreamFrame, frozen=True):
    """Messages for a stream; `publishing.publish` builds one from ids and bodies.

    Attributes:
        publisher_id: Of this connection.
        count: Entries; of a frame that was read as counted, whatever its count field claimed.
        publishing_ids: One u64 per entry, packed.
        entries: The entries back to back, as a chunk stores them (see `entries`).
        records: Messages, batch counts expanded as their headers claim.
        filter_values: Version 2 only: one per entry, None for none.
        version: 1, or 2 with filter values.
        batches: How many of the entries are sub-entry batches. Not on the wire.
        claimed: What the count field says; None: `count`. Flow control believes it.
    """

    spec = FrameSpec(
        Role.PUBLISH, "publishing_ids", PublishedItems(), bulk=("entries",), scope="publisher_id"
    )
    KEY: ClassVar = 0x0002
    publisher_id: int
    count: int
    publishing_ids: bytes
    entries: bytes
    records: int
    filter_values: tuple[str | None, ...] = ()
    version: int = 1
    batches: int = 0
    claimed: int | None = None


class ConfirmedItems(Items):
    """The publishing ids of a PublishConfirm."""

    def count(self, frame: PublishConfirm) -> int:
        return len(frame.publishing_ids) // 8

    def keys(self, frame: PublishConfirm) -> Sequence[int]:
        return unpack_ids(frame.publishing_ids)

    def select(self, frame: PublishConfirm, indices: Sequence[int]) -> PublishConfirm:
        return replace(frame, publishing_ids=_pick_ids(frame.publishing_ids, indices))


class PublishConfirm(StreamFrame, frozen=True):
    """Messages that are stored: their publishing ids, one u64 each, packed."""

    spec = FrameSpec(Role.CONFIRM, "publishing_ids", ConfirmedItems(), scope="publisher_id")
    KEY: ClassVar = 0x0003
    SENDER: ClassVar[Sender] = "server"
    publisher_id: U8
    publishing_ids: PackedIds


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


class PublishError(StreamFrame, frozen=True):
    """Messages that are not stored: pairs of publishing id and response code."""

    spec = FrameSpec(Role.REJECT, "publishing_ids", FailedItems(), scope="publisher_id")
    KEY: ClassVar = 0x0004
    SENDER: ClassVar[Sender] = "server"
    publisher_id: U8
    errors: Errors

    @property
    def publishing_ids(self) -> tuple[int, ...]:
        """The ids without their codes."""
        return tuple([publishing_id for publishing_id, _ in self.errors])


class QueryPublisherSequence(Request, frozen=True):
    """Asks for the highest publishing id that was stored for a reference."""

    KEY: ClassVar = 0x0005
    reference: Text
    stream: Text


class QueryPublisherSequenceResponse(Response, frozen=True):
    """That id; 0 if there is none, and on error."""

    KEY: ClassVar = 0x8005
    sequence: U64 = 0


class DeletePublisher(Request, frozen=True):
    """Closes a publisher."""

    spec = FrameSpec(Role.SHUT, key="correlation_id")
    KEY: ClassVar = 0x0006
    publisher_id: U8


class DeletePublisherResponse(Response, frozen=True):
    """18: no such publisher."""

    KEY: ClassVar = 0x8006


def _pick_ids(packed: bytes, indices: Sequence[int]) -> bytes:
    return b"".join([packed[8 * i : 8 * i + 8] for i in indices])
