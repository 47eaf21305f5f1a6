"""Defects in where subscriptions start and go on, and in stored offsets (catalogue section RMQS-4)."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.connection import Connection
from conformance.clients.reference.rabbitmq_stream.consuming import Consuming
from conformance.clients.reference.rabbitmq_stream.recovery import Recovery, User
from conformance.clients.reference.rabbitmq_stream.subscription import Message, Start, Subscription
from fakebrokers.rabbitmq_stream.chunk import Chunk
from fakebrokers.rabbitmq_stream.codes import Code, OffsetType
from fakebrokers.rabbitmq_stream.frames import StoreOffset, StreamFrame, Subscribe


@mutant("tracks-what-begins", tag="data", breaks=["R12"])
class TracksWhatBegins(Subscription):
    """Stores the offset of a message whose callback has only begun."""

    def delivered(self, message: Message) -> None:
        super().delivered(message)
        if self.track is not None:
            self.track.handled = message.offset


@mutant("tracks-its-start", tag="data", breaks=["R12"])
class TracksItsStart(Subscription):
    """Stores the offset at which it was told to begin, though nothing came from there."""

    def attach(self, connection: Connection, subscription_id: int) -> None:
        if self.track is not None and self.track.handled is None:
            self.track.handled = self.position().value
        super().attach(connection, subscription_id)


@mutant("tracks-at-the-end-only", tag="data", breaks=["R12"])
class TracksAtTheEndOnly(Consuming):
    """Stores the offset of what was handled when the subscription ends, and not before."""

    def store_handled(self, subscription: Subscription) -> None:
        if subscription.is_closed:
            super().store_handled(subscription)


@mutant("forgets-to-track-the-rest", tag="data", breaks=["R12"])
class ForgetsToTrackTheRest(Consuming):
    """Stores nothing at the end of a subscription."""

    def store_handled(self, subscription: Subscription) -> None:
        if not subscription.is_closed:
            super().store_handled(subscription)


@mutant("offset-zero-is-none", tag="data", breaks=["R12"])
class OffsetZeroIsNone(StreamClient):
    """Takes the offset 0, where it is to be stored, for none, and stores that of the message at hand."""

    async def store_offset(
        self, stream: str, reference: str, offset: int, timeout: float | None = None
    ) -> None:
        at_hand = (one.next_offset for one in self.consuming.subscriptions if one.stream == stream)
        reached = next((offset for offset in at_hand if offset), 1) - 1
        await super().store_offset(stream, reference, offset or reached, timeout)


@mutant("value-behind-next", tag="wire", breaks=["R9"])
class ValueBehindNext(Connection):
    """Sends 8 value bytes after the offset type next, which has none."""

    def send(self, frame: StreamFrame) -> None:
        if not isinstance(frame, Subscribe) or frame.offset_type != OffsetType.NEXT:
            super().send(frame)
            return
        data = self.codec.encode(frame)
        at = 4 + 8 + 1 + 2 + len(frame.stream) + 2
        body = data[4:at] + bytes(8) + data[at:]
        self._out.append(len(body).to_bytes(4, "big") + body)


@mutant("timestamp-in-seconds", tag="data", breaks=["R9"])
class TimestampInSeconds(Subscription):
    """Asks for a time in seconds instead of milliseconds."""

    def position(self) -> Start:
        start = super().position()
        if start.type == OffsetType.TIMESTAMP and start.value is not None:
            return Start(start.type, start.value // 1000)
        return start


@mutant("whole-first-chunk", tag="data", breaks=["R9", "R10"])
class WholeFirstChunk(Subscription):
    """Delivers the messages in front of the offset that was asked for."""

    def is_wanted(self, offset: int) -> bool:
        return True


@mutant("resumes-at-its-start", tag="data", breaks=["R9"])
class ResumesAtItsStart(Subscription):
    """Asks for its first start again after every loss."""

    def position(self) -> Start:
        return self.start


@mutant("resumes-at-the-end", tag="data", breaks=["R9"])
class ResumesAtTheEnd(Subscription):
    """Asks for what is written next after a loss."""

    def position(self) -> Start:
        return super().position() if self.next_offset is None else Start(OffsetType.NEXT)


@mutant("resumes-behind-the-next", tag="data", breaks=["R9"])
class ResumesBehindTheNext(Recovery):
    """Asks for one offset too many after a loss."""

    async def reattach(self, user: User) -> None:
        if isinstance(user, Subscription) and user.next_offset is not None:
            user.next_offset += 1
        await super().reattach(user)


@mutant("resumes-at-zero", tag="data", breaks=["R9"])
class ResumesAtZero(Subscription):
    """Asks for offset 0 after a loss in front of the first message."""

    def position(self) -> Start:
        lost = self.generation > 0 and self.next_offset is None
        return Start(OffsetType.OFFSET, 0) if lost else super().position()


@mutant("counts-entries", tag="data", breaks=["R9", "R10"])
class CountsEntries(Subscription):
    """Goes on after the number of entries, not of records."""

    def processed(self, chunk: Chunk) -> None:
        super().processed(chunk)
        self.next_offset = chunk.first_offset + chunk.entries


@mutant("offset-stored-at-the-end", tag="data", breaks=["R12"])
class OffsetStoredAtTheEnd(Consuming):
    """Stores the position of a named consumer when it ends, 0 if there was no message."""

    async def unsubscribe(self, subscription: Subscription, **options: Any) -> None:
        name, link = subscription.properties.get("name"), self.links.control
        if name is not None and link is not None:
            link.core.send(StoreOffset(name, subscription.stream, subscription.next_offset or 0))
        await super().unsubscribe(subscription, **options)


@mutant("missing-offset-is-zero", tag="data", breaks=["R5", "R12"])
class MissingOffsetIsZero(StreamClient):
    """Takes the offset in the answer for good, whatever its code."""

    async def query_offset(self, stream: str, reference: str, timeout: float | None = None) -> int:
        try:
            return await super().query_offset(stream, reference, timeout)
        except ClientError as error:
            if error.code in (Code.NO_OFFSET, Code.STREAM_DOES_NOT_EXIST):
                return 0
            raise


@mutant("one-reference-for-all-offsets", tag="data", breaks=["R12"])
class OneReferenceForAllOffsets(StreamClient):
    """Stores all offsets of a stream under the reference that came first."""

    first_reference: str | None = None

    async def store_offset(
        self, stream: str, reference: str, offset: int, timeout: float | None = None
    ) -> None:
        self.first_reference = self.first_reference or reference
        await super().store_offset(stream, self.first_reference, offset, timeout)


@mutant("offsets-are-stored-later", tag="data", breaks=["R12", "X7"])
class OffsetsAreStoredLater(StreamClient):
    """Sends an offset half a second after it was stored, and not at all if it is closed before."""

    async def store_offset(
        self, stream: str, reference: str, offset: int, timeout: float | None = None
    ) -> None:
        self._waiting[stream, reference] = offset
        self.runtime.tasks.spawn(self._later(stream, reference))

    async def query_offset(self, stream: str, reference: str, timeout: float | None = None) -> int:
        await self._flush(stream, reference)
        return await super().query_offset(stream, reference, timeout)

    @property
    def _waiting(self) -> dict[tuple[str, str], int]:
        found: dict[tuple[str, str], int] = self.__dict__.setdefault("waiting", {})
        return found

    async def _later(self, stream: str, reference: str) -> None:
        await asyncio.sleep(0.5)
        await self._flush(stream, reference)

    async def _flush(self, stream: str, reference: str) -> None:
        offset = self._waiting.pop((stream, reference), None)
        if offset is not None:
            await super().store_offset(stream, reference, offset)


@mutant("first-offset-is-none", tag="data", breaks=["R12"])
class FirstOffsetIsNone(StreamClient):
    """Reports that no offset is stored where the first one is."""

    async def query_offset(self, stream: str, reference: str, timeout: float | None = None) -> int:
        offset = await super().query_offset(stream, reference, timeout) or None
        if offset is None:
            raise ClientError("refused", "no offset", code=Code.NO_OFFSET)
        return offset
