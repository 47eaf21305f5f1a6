"""Defects in the outcomes that no confirm reports: time-outs, losses, closing (catalogue section RMQS-3)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.connection import Connection
from conformance.clients.reference.rabbitmq_stream.publisher import Entry, Publisher
from conformance.clients.reference.rabbitmq_stream.publishing import Publishing
from conformance.clients.reference.rabbitmq_stream.requests import refused
from fakebrokers.rabbitmq_stream.codes import Code


@mutant("two-outcomes", tag="data", breaks=["R7"])
class TwoOutcomes(Publisher):
    """Reports the outcome of a message twice where no call waits for it."""

    def settle(self, publishing_id: int, error: ClientError | None) -> None:
        entry = self.pending.get(publishing_id)
        super().settle(publishing_id, error)
        if entry is not None:
            with suppress(asyncio.InvalidStateError):
                entry.done(error)


@mutant("no-confirm-timeout", tag="life-cycle", breaks=["R7", "X8"])
class NoConfirmTimeout(Publisher):
    """Waits for a confirm forever."""

    def expire(self, now: float) -> None:
        self._deadlines.clear()


@mutant("late-confirm-means-refused", tag="data", breaks=["R7", "X8"])
class LateConfirmMeansRefused(Publisher):
    """Reports a message as refused when its confirm does not come in time."""

    def settle(self, publishing_id: int, error: ClientError | None) -> None:
        if error is not None and error.kind == "timeout":
            error = refused("publish", Code.INTERNAL_ERROR)
        super().settle(publishing_id, error)


@mutant("late-confirm-means-stored", tag="data", breaks=["R7", "X8"])
class LateConfirmMeansStored(Publisher):
    """Reports a message as stored when its confirm does not come in time."""

    def settle(self, publishing_id: int, error: ClientError | None) -> None:
        super().settle(publishing_id, None if error is not None and error.kind == "timeout" else error)


@mutant("lost-confirm-blocks-publisher", tag="life-cycle", breaks=["R7"])
class LostConfirmBlocksPublisher(Publisher):
    """Sends nothing more after a confirm did not come in time."""

    is_stuck = False

    def expire(self, now: float) -> None:
        before = len(self.pending)
        super().expire(now)
        self.is_stuck = self.is_stuck or len(self.pending) < before

    def has_room(self) -> bool:
        return not self.is_stuck and super().has_room()


@mutant("loss-means-refused", tag="data", breaks=["R7", "X6"])
class LossMeansRefused(Publisher):
    """Reports what was unconfirmed at the loss of the connection as refused."""

    def end_all(self, error: ClientError) -> None:
        for publishing_id in list(self.pending):
            self.settle(publishing_id, refused("publish", Code.INTERNAL_ERROR))


@mutant("loss-means-stored", tag="data", breaks=["R7", "X2", "X6"])
class StreamLossMeansStored(Publisher):
    """Reports what was unconfirmed at the loss of the connection as stored."""

    def end_all(self, error: ClientError) -> None:
        self.confirmed(list(self.pending))


@mutant("loss-forgets-messages", tag="data", breaks=["R6", "R7", "R14", "X6", "X7"])
class LossForgetsMessages(Publisher):
    """Never reports an outcome for what was unconfirmed when the publisher ended."""

    def end_all(self, error: ClientError) -> None:
        self.pending.clear()


@mutant("code-18-ignored", tag="data", breaks=["R5", "R7"])
class Code18Ignored(Publisher):
    """Does not report to its user that the server does not know the publisher any more."""

    def refused(self, errors: Sequence[tuple[int, int]]) -> None:
        for publishing_id, code in errors:
            if code == Code.PUBLISHER_DOES_NOT_EXIST:
                self.pending.pop(publishing_id, None)
        super().refused(errors)


@mutant("closing-means-refused", tag="data", breaks=["R6", "R7"])
class ClosingMeansRefused(Publisher):
    """Reports what has no confirm when the publisher is closed as refused."""

    def detach(self, error: ClientError) -> None:
        if self.is_closed:
            error = refused("publish", Code.INTERNAL_ERROR)
            for publishing_id in list(self.pending):
                self.settle(publishing_id, error)
        super().detach(error)


@mutant("one-in-fifty-is-lost", tag="data", breaks=["R7", "X9"], aims=["RMQS-3.18"])
class StreamOneInFiftyIsLost(Publisher):
    """Loses a message now and then, and reports it as stored."""

    def write(self, entries: Sequence[Entry]) -> None:
        kept = [entry for entry in entries if (entry.publishing_id or 0) % 50 != 49]
        super().write(kept)
        for entry in entries:
            if entry not in kept:
                asyncio.get_running_loop().call_soon(self.settle, entry.publishing_id or 0, None)


@mutant("confirms-on-write", tag="data", breaks=["R7", "X2", "X4", "X6", "X8"])
class StreamConfirmsOnWrite(Publisher):
    """Reports messages as stored as soon as they are written."""

    def write(self, entries: Sequence[Entry]) -> None:
        super().write(entries)
        for entry in entries:
            asyncio.get_running_loop().call_soon(self.settle, entry.publishing_id or 0, None)


@mutant("one-repeat-confirms-all", tag="data", breaks=["R7", "X6"])
class OneRepeatConfirmsAll(Publisher):
    """Publishes one of the unconfirmed messages again after a loss, and takes its confirm for all of them."""

    repeated: int | None = None

    def is_repeatable(self) -> bool:
        return self.settings.auto_reconnect and not self.is_closed

    def attach(self, connection: Connection, publisher_id: int, sequence: int | None) -> None:
        self.repeated = next(iter(self.pending), None)
        super().attach(connection, publisher_id, sequence)

    def write(self, entries: Sequence[Entry]) -> None:
        again = [entry for entry in entries if entry.is_sent]
        super().write([*again[:1], *(entry for entry in entries if not entry.is_sent)])

    def confirmed(self, ids: Sequence[int]) -> None:
        super().confirmed(list(self.pending) if self.repeated in ids else ids)


@mutant("deletes-are-refused", tag="wording", breaks=["R7"])
class DeletesAreRefused(Publishing):
    """Takes the answer to DeletePublisher for a refusal, also the one that accepts it."""

    async def delete_publisher(self, stream: str, name: str | None, timeout: float | None) -> None:
        await super().delete_publisher(stream, name, timeout)
        raise refused("DeletePublisher", Code.OK)


@mutant("as-long-as-the-first", tag="life-cycle", breaks=["R6"])
class AsLongAsTheFirst(Publishing):
    """Who waits for a publisher that is being declared waits as long as the first one may."""

    def __init__(self, client: StreamClient) -> None:
        super().__init__(client)
        self._until: dict[Publisher, float] = {}

    async def declared(self, publisher: Publisher, deadline: float) -> None:
        try:
            await super().declared(publisher, self._until.setdefault(publisher, deadline))
        finally:
            self._until.pop(publisher, None)


@mutant("declares-for-each", tag="wire", breaks=["R6"])
class DeclaresForEach(Publishing):
    """Declares a publisher once more for each message that comes while it is being declared."""

    async def declared(self, publisher: Publisher, deadline: float) -> None:
        self._declaring.pop(publisher, None)
        await super().declared(publisher, deadline)
