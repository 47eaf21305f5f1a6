"""Defects in consuming: chunks, credit, offsets (catalogue section RMQS-4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, ClassVar

from conformance.mutants.rabbitmq_stream.client import StreamClient
from conformance.mutants.rabbitmq_stream.connection import Connection
from conformance.mutants.rabbitmq_stream.consuming import OnMessage
from conformance.mutants.rabbitmq_stream.deaf import DeafConnection
from conformance.mutants.rabbitmq_stream.errors import ClientError
from conformance.mutants.rabbitmq_stream.subscription import Arrival, Message, Start, Subscription
from conformance.mutants.registry import mutant
from fakebrokers.rabbitmq_stream.chunk import Chunk, ChunkType
from fakebrokers.rabbitmq_stream.codes import OffsetType
from fakebrokers.rabbitmq_stream.frames import ConsumerUpdate, ConsumerUpdateResponse, CreditResponse, Deliver

Report = Callable[[ClientError], None]
Records = Iterator[tuple[int, bytes]]

# entries and positions


@mutant("first-entry-only", breaks=["R10"])
class FirstEntryOnly(Subscription):
    """Surfaces only the first entry of a chunk."""

    def records(self, chunk: Chunk, report: Report) -> Records:
        yield from list(super().records(chunk, report))[:1]


@mutant("last-entry-lost", breaks=["R10"])
class LastEntryLost(Subscription):
    """Stops one entry before the end of a chunk with several."""

    def records(self, chunk: Chunk, report: Report) -> Records:
        found = list(super().records(chunk, report))
        yield from found[:-1] if len(found) > 1 else found


@mutant("one-position-per-chunk", breaks=["R10"])
class OnePositionPerChunk(Subscription):
    """Gives all messages of a chunk the position of its first one."""

    def records(self, chunk: Chunk, report: Report) -> Records:
        for _, body in super().records(chunk, report):
            yield chunk.first_offset, body


@mutant("positions-counted", breaks=["R10"])
class PositionsCounted(Subscription):
    """Counts messages itself instead of reading the offsets of the chunks."""

    counted: int | None = None

    def records(self, chunk: Chunk, report: Report) -> Records:
        for offset, body in super().records(chunk, report):
            self.counted = offset if self.counted is None else self.counted + 1
            yield self.counted, body


@mutant("gaps-are-errors", breaks=["R10"])
class GapsAreErrors(Subscription):
    """Waits for the offsets that are missing between two chunks."""

    expected: int | None = None

    def messages(self, chunk: Chunk, report: Report) -> list[Message]:
        if self.expected is not None and chunk.first_offset > self.expected:
            report(ClientError("protocol", f"offset {self.expected} is missing"))
            return []
        self.expected = chunk.next_offset
        return super().messages(chunk, report)


@mutant("batches-count-from-0", breaks=["R10"])
class BatchesCountFrom0(Subscription):
    """Numbers the messages of a sub-entry batch from 0."""

    def records(self, chunk: Chunk, report: Report) -> Records:
        for offset, body in super().records(chunk, report):
            yield offset if chunk.entries == chunk.records else offset - chunk.first_offset, body


@mutant("first-entry-decides", breaks=["R10"])
class FirstEntryDecides(Subscription):
    """Takes all entries of a chunk for what the first one is, a message or a batch."""

    def records(self, chunk: Chunk, report: Report) -> Records:
        found = list(super().records(chunk, report))
        yield from found if chunk.data[:1] >= b"\x80" or chunk.entries == chunk.records else found[:1]


@mutant("delivers-from-the-chunk", breaks=["R9", "R10"])
class DeliversFromTheChunk(Subscription):
    """Surfaces what stands in the first chunk before the offset that was asked for."""

    def is_wanted(self, offset: int) -> bool:
        return True


@mutant("positions-are-floats", breaks=["R10", "X12"])
class PositionsAreFloats(Subscription):
    """Keeps positions as floating-point numbers."""

    def records(self, chunk: Chunk, report: Report) -> Records:
        for offset, body in super().records(chunk, report):
            yield int(float(offset)), body


# what is checked


@mutant("crc-unchecked", breaks=["R10"])
class CrcUnchecked(Subscription):
    """Surfaces chunks whatever their CRC."""

    def check(self, chunk: Chunk) -> None:
        if not chunk.length_ok:
            super().check(chunk)


@mutant("crc-is-signed", breaks=["R10"])
class CrcIsSigned(Subscription):
    """Refuses a right CRC with the top bit set."""

    def check(self, chunk: Chunk) -> None:
        super().check(chunk)
        if chunk.crc >= 1 << 31:
            raise ClientError("protocol", "the CRC does not match")


@mutant("bad-chunk-stops-consumer", breaks=["R1", "R10", "R20"])
class BadChunkStopsConsumer(Subscription):
    """Surfaces nothing more after a chunk that it could not read, without a word."""

    def messages(self, chunk: Chunk, report: Report) -> list[Message]:
        problems: list[ClientError] = []
        found = super().messages(chunk, problems.append)
        if problems or chunk.chunk_type != ChunkType.USER:
            self.deliver = lambda _: None  # type: ignore[method-assign]
        return found


@mutant("bad-chunk-unreported", breaks=["R10", "R20"])
class BadChunkUnreported(Subscription):
    """Skips what it cannot read without telling anybody."""

    def messages(self, chunk: Chunk, report: Report) -> list[Message]:
        return super().messages(chunk, lambda _: None)


@mutant("any-chunk-is-user-data", breaks=["R10", "R20"])
class AnyChunkIsUserData(Subscription):
    """Surfaces chunks of all types and formats."""

    def messages(self, chunk: Chunk, report: Report) -> list[Message]:
        return [Message(at, body, chunk.timestamp_ms) for at, body in self.records(chunk, report)]


@mutant("broken-batch-is-surfaced", breaks=["R10", "R20"])
class BrokenBatchIsSurfaced(Subscription):
    """Surfaces the packed data of a batch that it cannot open."""

    def open_batch(
        self, compression: int, count: int, plain_size: int, data: bytes, report: Report
    ) -> list[bytes]:
        return super().open_batch(compression, count, plain_size, data, report) or [data]


@mutant("trailer-expected", breaks=["R1", "R10"])
class TrailerExpected(Subscription):
    """Looks for the trailer and the filter that a chunk's header announces inside the frame."""

    def records(self, chunk: Chunk, report: Report) -> Records:
        missing = chunk.trailer_length + chunk.bloom_size
        found = list(super().records(chunk, report))
        yield from found[:-1] if missing else found


@mutant("committed-id-for-position", breaks=["R10", "R20"])
class CommittedIdForPosition(Connection):
    """Takes the committed chunk id of a version 2 Deliver for the position of the chunk."""

    def delivered(self, frame: Deliver) -> None:
        committed = frame.committed_chunk_id
        if committed is not None and committed > frame.chunk.first_offset:
            return
        super().delivered(frame)


@mutant("frame-max-binds-the-server", breaks=["R10", "R16"])
class FrameMaxBindsTheServer(Connection):
    """Closes the connection when a chunk is larger than the agreed frame maximum."""

    def opened(self) -> None:
        super().opened()
        self.codec.max_frame = self.frame_max


# credit


@mutant("credit-never-returned", breaks=["R9", "R11", "X4"])
class CreditNeverReturned(Subscription):
    """Gives no credit after the initial one."""

    def processed(self, chunk: Chunk) -> None:
        connection, self.connection = self.connection, None
        super().processed(chunk)
        self.connection = connection


@mutant("credit-on-arrival", breaks=["R11", "X4"])
class CreditOnArrival(Subscription):
    """Gives credit when a chunk arrives, however slow the application is."""

    def deliver(self, chunk: Chunk) -> None:
        super().deliver(chunk)
        if self.connection is not None:
            self.connection.give_credit(self.subscription_id)

    def processed(self, chunk: Chunk) -> None:
        connection, self.connection = self.connection, None
        super().processed(chunk)
        self.connection = connection


@mutant("credit-when-starved", breaks=["R11"])
class CreditWhenStarved(Subscription):
    """Gives a single credit when all have been used, and waits for a chunk before the next."""

    used = 0

    def processed(self, chunk: Chunk) -> None:
        self.used += 1
        connection = self.connection
        if self.used < self.credit:
            self.connection = None
        super().processed(chunk)
        self.connection = connection


@mutant("surplus-chunk-is-fatal", breaks=["R11"])
class SurplusChunkIsFatal(DeafConnection):
    """Its reader dies when more chunks come than it has given credit for."""

    open_credit: ClassVar[dict[tuple[int, int], int]] = {}

    def delivered(self, frame: Deliver) -> None:
        subscription = self.subscriptions.get(frame.subscription_id)
        if subscription is not None:
            place = (id(self), frame.subscription_id)
            left = self.open_credit.get(place, subscription.credit) - 1
            self.open_credit[place] = left
            if left < 0:
                self.go_deaf()
                return
        super().delivered(frame)

    def give_credit(self, subscription_id: int, chunks: int = 1) -> None:
        place = (id(self), subscription_id)
        subscription = self.subscriptions.get(subscription_id)
        if subscription is not None:
            self.open_credit[place] = self.open_credit.get(place, subscription.credit) + chunks
        super().give_credit(subscription_id, chunks)


@mutant("credit-refusal-ends-a-request", breaks=["R11"])
class CreditRefusalEndsARequest(Connection):
    """Takes a CreditResponse for the answer to the oldest request."""

    def credit_refused(self, frame: CreditResponse) -> None:
        for correlation_id in list(self.waiting)[:1]:
            self.waiting.pop(correlation_id).done(ClientError("refused", "credit", code=frame.code))


@mutant("credit-refusal-ends-subscription", breaks=["R11"])
class CreditRefusalEndsSubscription(Connection):
    """Gives a subscription up when a Credit for it is refused."""

    def credit_refused(self, frame: CreditResponse) -> None:
        self.subscriptions.pop(frame.subscription_id, None)


@mutant("credit-refusal-stops-the-reader", breaks=["R11"])
class CreditRefusalStopsTheReader(DeafConnection):
    """Its reader dies when a Credit is refused."""

    def credit_refused(self, frame: CreditResponse) -> None:
        self.go_deaf()


# which subscription


@mutant("unknown-subscription-is-fatal", breaks=["R9", "R10"])
class UnknownSubscriptionIsFatal(DeafConnection):
    """Its reader dies when a chunk comes for a subscription that it does not know."""

    def delivered(self, frame: Deliver) -> None:
        if frame.subscription_id not in self.subscriptions:
            self.go_deaf()
        super().delivered(frame)


@mutant("subscription-id-ignored", breaks=["R9"])
class SubscriptionIdIgnored(Connection):
    """Gives every chunk to the first subscription of the connection."""

    def delivered(self, frame: Deliver) -> None:
        for subscription in list(self.subscriptions.values())[:1]:
            subscription.deliver(frame.chunk)


@mutant("unsubscribe-keeps-callback", breaks=["R9"])
class UnsubscribeKeepsCallback(StreamClient):
    """Goes on with the callback of a subscription that was ended."""

    def stop(self, subscription: Subscription, drain: bool = False) -> None:
        pass

    async def unsubscribe(self, subscription: Subscription, **more: Any) -> None:
        connection, subscription_id = subscription.connection, subscription.subscription_id
        task = self.subscriptions.pop(subscription, None)
        await super().unsubscribe(subscription, **more)
        if connection is not None and task is not None:
            subscription.attach(connection, subscription_id)
            self.tasks.add(task)


@mutant("refused-subscription-lives", breaks=["R5"])
class RefusedSubscriptionLives(StreamClient):
    """Surfaces chunks for a subscription that the server has refused."""

    async def subscribe(self, stream: str, on_message: OnMessage, **more: Any) -> Subscription:
        kept: list[Subscription] = []
        made = self.Subscription

        class Kept(made):  # type: ignore[misc, valid-type]
            def __init__(self, *args: Any) -> None:
                super().__init__(*args)
                kept.append(self)

        self.Subscription = Kept  # type: ignore[misc]
        try:
            return await super().subscribe(stream, on_message, **more)
        except ClientError:
            for subscription, link in zip(kept, self.links, strict=False):
                subscription.attach(link.core, link.core._next_subscription_id)
                self.subscriptions[subscription] = self.spawn(self.feed(subscription, on_message))
            raise
        finally:
            self.Subscription = made  # type: ignore[misc]


@mutant("failed-subscribe-repeated", breaks=["R5", "R9"])
class FailedSubscribeRepeated(StreamClient):
    """Repeats a refused Subscribe at once, again and again, until the time is over."""

    async def place(self, subscription: Subscription, deadline: float) -> None:
        while True:
            try:
                await super().place(subscription, deadline)
            except ClientError as error:
                if error.kind != "refused" or self.now() >= deadline:
                    raise
                await self.until(lambda: self.control is not None, deadline)
            else:
                return


@mutant("failed-subscribe-leaks", breaks=["R9", "X9"])
class FailedSubscribeLeaks(StreamClient):
    """Leaves a task behind for each Subscribe that failed."""

    async def place(self, subscription: Subscription, deadline: float) -> None:
        try:
            await super().place(subscription, deadline)
        except ClientError:
            self.spawn(self.feed(subscription, _nobody))
            raise


async def _nobody(message: Message) -> None:
    """A callback that does nothing."""


# where to begin, and where to go on


@mutant("milliseconds-are-seconds", breaks=["R9"])
class MillisecondsAreSeconds(Subscription):
    """Sends a timestamp in seconds."""

    def position(self) -> Start:
        start = super().position()
        if start.type == OffsetType.TIMESTAMP and start.value is not None:
            return Start(start.type, start.value // 1000)
        return start


@mutant("last-means-next", breaks=["R9"])
class LastMeansNext(Subscription):
    """Asks for the next messages where the user wants the last chunk."""

    def position(self) -> Start:
        start = super().position()
        return Start(OffsetType.NEXT) if start.type == OffsetType.LAST else start


@mutant("resumes-as-it-began", breaks=["R9"])
class ResumesAsItBegan(Subscription):
    """Begins anew after a reconnect, where the user wanted to begin."""

    def position(self) -> Start:
        return self.start


@mutant("resumes-too-late", breaks=["R9"])
class ResumesTooLate(Subscription):
    """Leaves out one message after a reconnect."""

    def position(self) -> Start:
        start = super().position()
        is_resumed = self.next_offset is not None and start.value is not None and self.connection is None
        return Start(start.type, (start.value or 0) + 1) if is_resumed else start


@mutant("resumes-at-next", breaks=["R9", "X6"])
class ResumesAtNext(Subscription):
    """Asks for new messages only after a reconnect."""

    def position(self) -> Start:
        start = super().position()
        return Start(OffsetType.NEXT) if self.next_offset is not None and self.connection is None else start


@mutant("early-loss-means-first", breaks=["R9"])
class EarlyLossMeansFirst(Subscription):
    """Begins at the first message if the connection is lost before any message came."""

    was_placed = False

    def attach(self, connection: Connection, subscription_id: int) -> None:
        super().attach(connection, subscription_id)
        self.was_placed = True

    def position(self) -> Start:
        if self.was_placed and self.next_offset is None and self.connection is None:
            return Start(OffsetType.FIRST)
        return super().position()


@mutant("resume-counts-entries", breaks=["R9", "R10"])
class ResumeCountsEntries(Subscription):
    """Takes the number of entries of a chunk for the number of its messages when it resumes."""

    def processed(self, chunk: Chunk) -> None:
        super().processed(chunk)
        self.next_offset = chunk.first_offset + chunk.entries


# stored offsets


@mutant("zero-stored-on-close", breaks=["R12"])
class ZeroStoredOnClose(StreamClient):
    """Stores the position of a named consumer when it is closed, 0 if it got nothing."""

    async def close(self, timeout: float | None = None) -> None:
        if self.control is not None:
            for subscription in self.subscriptions:
                name = subscription.properties.get("name")
                if name:
                    await self.store_offset(subscription.stream, name, subscription.next_offset or 0)
        await super().close(timeout)

    async def unsubscribe(self, subscription: Subscription, **more: Any) -> None:
        name = subscription.properties.get("name")
        if name:
            await self.store_offset(subscription.stream, name, subscription.next_offset or 0)
        await super().unsubscribe(subscription, **more)


@mutant("nothing-stored-means-0", breaks=["R5", "R12"])
class NothingStoredMeans0(StreamClient):
    """Says that offset 0 is stored when none is."""

    async def query_offset(self, *args: Any, **more: Any) -> int:
        try:
            return await super().query_offset(*args, **more)
        except ClientError as error:
            if error.kind != "refused":
                raise
            return 0


@mutant("one-reference-for-all", breaks=["R12"])
class OneReferenceForAll(StreamClient):
    """Stores all offsets under the first reference."""

    first: str | None = None

    async def store_offset(
        self, stream: str, reference: str, offset: int, timeout: float | None = None
    ) -> None:
        self.first = self.first or reference
        await super().store_offset(stream, self.first, offset, timeout)


# callbacks


@mutant("callback-error-ends-consumer", breaks=["R10", "X10"])
class CallbackErrorEndsConsumer(StreamClient):
    """A callback that raises ends its consumer, and nobody is told."""

    async def contain_async(self, callback: str, act: Callable[[], Awaitable[None]]) -> None:
        await act()


@mutant("callback-error-skips-chunk", breaks=["R10", "X10"])
class CallbackErrorSkipsChunk(StreamClient):
    """A callback that raises costs the rest of the chunk."""

    async def contain_async(self, callback: str, act: Callable[[], Awaitable[None]]) -> None:
        await act()

    async def surface(self, subscription: Subscription, arrival: Arrival, on_message: OnMessage) -> None:
        try:
            await super().surface(subscription, arrival, on_message)
        except Exception as error:
            self.callback_failed("message", error)
            subscription.processed(arrival.chunk)
            if subscription.connection is not None:
                subscription.connection.owner.flush()


# single active consumer


@mutant("consumer-update-unanswered", breaks=["R9", "R20"])
class ConsumerUpdateUnanswered(Connection):
    """Does not answer a ConsumerUpdate."""

    def consumer_updated(self, frame: ConsumerUpdate) -> None:
        pass


@mutant("consumer-updates-answered-as-0", breaks=["R9", "R20"])
class ConsumerUpdatesAnsweredAs0(Connection):
    """Answers every ConsumerUpdate with the correlation id 0."""

    def consumer_updated(self, frame: ConsumerUpdate) -> None:
        super().consumer_updated(ConsumerUpdate(0, frame.subscription_id, frame.active))


@mutant("single-active-is-true", breaks=["R9", "R20"])
class SingleActiveIsTrue(Subscription):
    """Writes the property as ``True`` instead of ``true``."""

    def __init__(self, stream: str, start: Start, credit: int, properties: dict[str, str]) -> None:
        capital = {key: "True" if value == "true" else value for key, value in properties.items()}
        super().__init__(stream, start, credit, capital)


@mutant("consumer-update-waits-for-callback", breaks=["R9", "R20"])
class ConsumerUpdateWaitsForCallback(StreamClient):
    """Answers a ConsumerUpdate only when the callback that runs has ended."""

    class Connection(Connection):
        """Keeps the questions of the server."""

        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self.questions: list[ConsumerUpdate] = []
            self.is_busy = False

        def consumer_updated(self, frame: ConsumerUpdate) -> None:
            if self.is_busy:
                self.questions.append(frame)
            else:
                super().consumer_updated(frame)

    async def contain_async(self, callback: str, act: Callable[[], Awaitable[None]]) -> None:
        cores: list[Any] = [link.core for link in self.links]
        for core in cores:
            core.is_busy = True
        await super().contain_async(callback, act)
        for core in cores:
            core.is_busy = False
            for question in core.questions:
                core.consumer_updated(question)
            core.questions.clear()
            core.owner.flush()


@mutant("activation-begins-anew", breaks=["R9", "R20"])
class ActivationBeginsAnew(Connection):
    """Answers a ConsumerUpdate with the offset that the consumer began with."""

    def consumer_updated(self, frame: ConsumerUpdate) -> None:
        subscription = self.subscriptions.get(frame.subscription_id)
        start = Start(OffsetType.NONE) if subscription is None else subscription.start
        self.send(ConsumerUpdateResponse(frame.correlation_id, 1, start.type, start.value))


@mutant("step-down-surfaces-the-rest", breaks=["R9", "R20"])
class StepDownSurfacesTheRest(Subscription):
    """Goes on surfacing what has come after it was told to step down."""

    def activate(self, is_active: bool) -> tuple[int, int | None]:
        if is_active:
            return super().activate(True)
        return OffsetType.NONE, None
