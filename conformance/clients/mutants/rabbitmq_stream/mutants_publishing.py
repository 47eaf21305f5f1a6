"""Defects in publishing (catalogue section RMQS-3)."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from typing import TypeVar

from conformance.clients.mutants.rabbitmq_stream.deaf import DeafConnection
from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError, WaitQueue
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.connection import Connection
from conformance.clients.reference.rabbitmq_stream.link import Link
from conformance.clients.reference.rabbitmq_stream.publisher import HEAD, PER_ENTRY, Entry, Publisher
from conformance.clients.reference.rabbitmq_stream.publishing import Publishing
from conformance.decoders.rabbitmq_stream.messages import batch_bodies, entry_at
from fakebrokers.rabbitmq_stream.binary import unpack_ids
from fakebrokers.rabbitmq_stream.codes import Code, Compression
from fakebrokers.rabbitmq_stream.entries import simple_entries
from fakebrokers.rabbitmq_stream.frames import PublishConfirm, PublishError

T = TypeVar("T")

PATIENCE_S = 0.2  #: until what has no confirm is published again

# confirms


@mutant("one-confirm-per-frame", tag="data", breaks=["R7"])
class OneConfirmPerFrame(Publisher):
    """Reads only the first id of a PublishConfirm."""

    def confirmed(self, ids: Sequence[int]) -> None:
        super().confirmed(ids[:1])


@mutant("confirm-by-position", tag="data", breaks=["R7"])
class ConfirmByPosition(Publisher):
    """Takes the ids of a confirm for a mere count, and confirms as many of the oldest messages."""

    def confirmed(self, ids: Sequence[int]) -> None:
        super().confirmed(list(self.pending)[: len(ids)])


@mutant("confirm-covers-all-before", tag="data", breaks=["R7"])
class ConfirmCoversAllBefore(Publisher):
    """Takes a confirm for one of all messages up to that id."""

    def confirmed(self, ids: Sequence[int]) -> None:
        super().confirmed([one for one in self.pending if one <= max(ids, default=0)])


@mutant("confirms-go-by-stream", tag="data", breaks=["R6", "R7"])
class ConfirmsGoByStream(Connection):
    """Takes what the server says to a publisher for the first one of the same stream."""

    def find_publisher(self, publisher_id: int) -> Publisher | None:
        meant = super().find_publisher(publisher_id)
        same = (one for one in self.publishers.values() if meant is not None and one.stream == meant.stream)
        return next(same, None)


@mutant("first-error-only", tag="data", breaks=["R7"])
class FirstErrorOnly(Publisher):
    """Reads only the first entry of a PublishError."""

    def refused(self, errors: Sequence[tuple[int, int]]) -> None:
        super().refused(errors[:1])


@mutant("errors-confirm", tag="data", breaks=["R7"])
class StreamErrorsConfirm(Publisher):
    """Takes a PublishError for a confirm."""

    def refused(self, errors: Sequence[tuple[int, int]]) -> None:
        self.confirmed([publishing_id for publishing_id, _ in errors])


@mutant("publish-error-without-code", tag="wording", breaks=["R5", "R7"])
class PublishErrorWithoutCode(Publisher):
    """Reports every refused message as an internal error of the server."""

    def refused(self, errors: Sequence[tuple[int, int]]) -> None:
        super().refused([(publishing_id, Code.INTERNAL_ERROR) for publishing_id, _ in errors])


@mutant("unknown-publish-error-ignored", tag="data", breaks=["R7", "R20"])
class UnknownPublishErrorIgnored(Publisher):
    """Ignores a PublishError with a code that it does not know."""

    def refused(self, errors: Sequence[tuple[int, int]]) -> None:
        known = {code.value for code in Code}
        super().refused([error for error in errors if error[1] in known])


@mutant("stray-confirm-stops-the-reader", tag="wire", breaks=["R7"])
class StrayConfirmStopsTheReader(DeafConnection):
    """Its reader ends when an id is confirmed that is not open."""

    def confirmed(self, frame: PublishConfirm) -> None:
        publisher = self.find_publisher(frame.publisher_id)
        if publisher is None or any(one not in publisher.pending for one in unpack_ids(frame.publishing_ids)):
            self.go_deaf()
        else:
            super().confirmed(frame)


@mutant("publisher-id-ignored", tag="data", breaks=["R6", "R7"])
class PublisherIdIgnored(Connection):
    """Gives every confirm to the first publisher of the connection."""

    def find_publisher(self, publisher_id: int) -> Publisher | None:
        return next(iter(self.publishers.values()), None)


@mutant("repeated-confirm-is-an-error", tag="wording", breaks=["R7"])
class RepeatedConfirmIsAnError(Publisher):
    """Reports a confirm that comes twice as an error."""

    def settle(self, publishing_id: int, error: ClientError | None) -> None:
        if publishing_id not in self.pending and self.connection is not None:
            self.connection.owner.trouble("other", ClientError("protocol", "a confirm out of the blue"))
        super().settle(publishing_id, error)


@mutant("batch-takes-an-id-per-message", tag="data", breaks=["R7"])
class BatchTakesAnIdPerMessage(Publisher):
    """Waits for the confirm of the last message of a sub-entry batch, which has only one id."""

    def remember(self, publishing_id: int, entry: Entry) -> None:
        super().remember(publishing_id + entry.records - 1, entry)


@mutant("batch-takes-the-last-id", tag="data", breaks=["R7", "R8"])
class BatchTakesTheLastId(Publisher):
    """Gives a sub-entry batch the id that was used last: of a named publisher the server drops it."""

    def send(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if entry.records > 1 and entry.publishing_id is None:
                entry.publishing_id = self.next_id - 1
        super().send(entries)


# publishing ids


@mutant("sequence-never-asked", tag="data", breaks=["R7", "R8"])
class SequenceNeverAsked(Publishing):
    """Counts from 1 in each session, whatever the server has of a publisher's reference."""

    async def sequence_of(self, publisher: Publisher, link: Link, deadline: float) -> int:
        return 0


@mutant("sequence-taken-for-next", tag="data", breaks=["R7", "R8"])
class SequenceTakenForNext(Publisher):
    """Takes the last publishing id that the server has for the next one to use."""

    def attach(self, connection: Connection, publisher_id: int, sequence: int | None) -> None:
        super().attach(connection, publisher_id, sequence - 1 if sequence else sequence)


@mutant("repeats-with-new-ids", tag="data", breaks=["R7", "R8"])
class RepeatsWithNewIds(Publisher):
    """Publishes the unconfirmed again under new ids, so that the server cannot recognise repeats."""

    def attach(self, connection: Connection, publisher_id: int, sequence: int | None) -> None:
        entries = list(self.pending.values())
        self.pending.clear()
        self.unconfirmed_bytes = 0
        super().attach(connection, publisher_id, sequence)
        for entry in entries:
            entry.publishing_id = None
        self.send(entries)


@mutant("newest-is-repeated-first", tag="data", breaks=["R7", "R8"])
class NewestIsRepeatedFirst(Publisher):
    """Publishes the unconfirmed again from the newest to the oldest."""

    def attach(self, connection: Connection, publisher_id: int, sequence: int | None) -> None:
        self.pending = dict(reversed(self.pending.items()))
        super().attach(connection, publisher_id, sequence)


@mutant("newcomers-overtake-repeats", tag="data", breaks=["R7", "R8"])
class NewcomersOvertakeRepeats(Publisher):
    """Publishes what was waiting for the connection first, and the unconfirmed again after it."""

    def attach(self, connection: Connection, publisher_id: int, sequence: int | None) -> None:
        unconfirmed, self.pending = self.pending, {}
        super().attach(connection, publisher_id, sequence)
        self.pending = unconfirmed

        def repeat() -> None:
            if self.connection is connection:
                self.write([one for number, one in unconfirmed.items() if self.pending.get(number) is one])

        asyncio.get_running_loop().call_later(PATIENCE_S, repeat)


@mutant("repeats-are-not-packed", tag="data", breaks=["R7", "R8"])
class RepeatsAreNotPacked(Publisher):
    """Publishes of a batch without its confirm only the first message again."""

    def attach(self, connection: Connection, publisher_id: int, sequence: int | None) -> None:
        whole = {number: entry.data for number, entry in self.pending.items()}
        for entry in self.pending.values():
            batch = entry_at(entry.data, 0)
            if batch.compression is not None:
                entry.data = simple_entries((batch_bodies(batch, entry.data[batch.body :]) or [b""])[:1])
        super().attach(connection, publisher_id, sequence)
        for number, data in whole.items():
            self.pending[number].data = data


@mutant("empty-bodies-are-not-packed", tag="data", breaks=["R7", "X12"])
class EmptyBodiesAreNotPacked(Publisher):
    """Leaves messages without a body out of a batch, and takes them for stored with the others."""

    def entry(self, bodies: Sequence[bytes], compression: Compression | None) -> bytes:
        kept = [body for body in bodies if body or compression is None]
        return super().entry(kept or bodies, compression)


@mutant("counter-falls-back", tag="data", breaks=["R7", "R8"])
class CounterFallsBack(Publisher):
    """Continues after a reconnect from the server's sequence, though higher ids were used."""

    def attach(self, connection: Connection, publisher_id: int, sequence: int | None) -> None:
        if sequence is not None:
            self.next_id = sequence + 1
        super().attach(connection, publisher_id, sequence)


@mutant("ids-repeat", tag="data", breaks=["R7"], aims=["RMQS-3.18"])
class IdsRepeat(Publisher):
    """Every fiftieth publishing id is used twice."""

    given_twice = 0

    def take_id(self) -> int:
        if self.next_id % 50 == 0 and self.given_twice != self.next_id:
            self.given_twice = self.next_id
            return self.next_id
        return super().take_id()


# frames


@mutant("frame-max-ignored", tag="wire", breaks=["R16"])
class FrameMaxIgnored(Publisher):
    """Puts a batch into one frame, however large."""

    def groups(self, entries: Iterable[Entry]) -> Iterator[list[Entry]]:
        yield list(entries)


@mutant("oversize-is-sent", tag="wire", breaks=["R16", "X12"])
class OversizeIsSent(Publisher):
    """Sends a message that does not fit into a frame."""

    def check_size(self, size: int) -> None:
        pass


@mutant("bodies-end-at-64k", tag="data", breaks=["R4", "X12"])
class BodiesEndAt64k(Publisher):
    """Cuts bodies at 65535 bytes."""

    def entry(self, bodies: Sequence[bytes], compression: Compression | None) -> bytes:
        return super().entry([body[:65535] for body in bodies], compression)


@mutant("empty-bodies-become-blank", tag="data", breaks=["R4", "X12"])
class EmptyBodiesBecomeBlank(Publisher):
    """Sends a blank in place of an empty body."""

    def entry(self, bodies: Sequence[bytes], compression: Compression | None) -> bytes:
        return super().entry([body or b" " for body in bodies], compression)


@mutant("bodies-are-text", tag="data", breaks=["X12"])
class StreamBodiesAreText(Publisher):
    """Takes bodies for UTF-8 and repairs what is none."""

    def entry(self, bodies: Sequence[bytes], compression: Compression | None) -> bytes:
        return super().entry([body.decode(errors="replace").encode() for body in bodies], compression)


@mutant("window-never-frees", tag="life-cycle", breaks=["R7"], aims=["RMQS-3.16"])
class WindowNeverFrees(Publisher):
    """Counts what was ever sent against its window of unconfirmed messages."""

    total = 0

    def remember(self, publishing_id: int, entry: Entry) -> None:
        super().remember(publishing_id, entry)
        self.total += 1

    def has_room(self) -> bool:
        return self.total < self.settings.unconfirmed_max


@mutant("refusal-shared-by-all", tag="data", breaks=["R7"])
class RefusalSharedByAll(Connection):
    """A PublishError refuses everything that is open at the publisher."""

    def publish_refused(self, frame: PublishError) -> None:
        publisher = self.find_publisher(frame.publisher_id)
        if publisher is not None and frame.errors:
            publisher.refused([(one, frame.errors[0][1]) for one in list(publisher.pending)])


class _NoQueue(WaitQueue):
    async def after(self, ready: Awaitable[T]) -> T:
        return await ready


@mutant("publishes-overtake", tag="data", breaks=["R7", "R8"])
class PublishesOvertake(Publishing):
    """Lets a message that comes while its publisher is declared go before those that wait for that."""

    def __init__(self, client: StreamClient) -> None:
        super().__init__(client)
        self._lines = defaultdict(_NoQueue)


@mutant("room-for-who-has-left", tag="life-cycle", breaks=["R7", "X8"])
class RoomForWhoHasLeft(Publishing):
    """Gives room in the window to a publish that was cancelled, and wakes no other one."""

    def _next_turn(self, publisher: Publisher) -> None:
        line = self._turns.get(publisher)
        if line and line[0].done() and self.may_send(publisher):
            line.popleft()
        else:
            super()._next_turn(publisher)

    def leave_line(self, line: deque[asyncio.Future[None]], turn: asyncio.Future[None]) -> None:
        if not turn.cancelled():
            super().leave_line(line, turn)


@mutant("id-zero-is-none", tag="data", breaks=["R6", "R7"])
class IdZeroIsNone(Publisher):
    """Takes the publishing id 0 of the application for none, and gives one of its own."""

    def send(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            entry.publishing_id = entry.publishing_id or None
        super().send(entries)


@mutant("flush-waits-for-one", tag="data", breaks=["R6"])
class FlushWaitsForOne(Publishing):
    """A flush returns once one of several publishers has nothing under way."""

    async def flush(self, timeout: float | None = None) -> None:
        if all(publisher.pending for publisher in self.publishers.values()):
            await super().flush(timeout)


@mutant("batches-by-letters", tag="wire", breaks=["R4"])
class BatchesByLetters(Publisher):
    """Fills a frame with as many messages as fit by their letters."""

    def groups(self, entries: Iterable[Entry]) -> Iterator[list[Entry]]:
        group: list[Entry] = []
        size = HEAD
        for entry in entries:
            letters = PER_ENTRY + len(entry.data.decode(errors="replace"))
            if group and size + letters > self.frame_max() > 0:
                yield group
                group, size = [], HEAD
            group.append(entry)
            size += letters
        if group:
            yield group


@mutant("declared-in-vain-stays", tag="life-cycle", breaks=["R6"])
class DeclaredInVainStays(Publishing):
    """Leaves a publisher declared whose last publishing id the server does not say, and declares another."""

    async def last_sequence(
        self, publisher: Publisher, link: Link, publisher_id: int, deadline: float
    ) -> int | None:
        return await self.sequence_of(publisher, link, deadline) if publisher.name else None


@mutant("recovery-and-publish-declare", tag="life-cycle", breaks=["R6", "R16"])
class RecoveryAndPublishDeclare(Publishing):
    """After a loss both the recovery and the next publish declare the publisher."""

    def _may_declare(self, publisher: Publisher) -> bool:
        return self.links.control is not None
