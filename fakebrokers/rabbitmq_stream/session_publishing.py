"""The publishing half of a session (docs/protocols/rabbitmq-stream.md, 6)."""

from __future__ import annotations

from typing import ClassVar

from fakebrokers.rabbitmq_stream.batches import first_bad
from fakebrokers.rabbitmq_stream.binary import unpack_ids
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.frames import (
    DeclarePublisher,
    DeletePublisher,
    Publish,
    PublishConfirm,
    PublishError,
    QueryPublisherSequence,
    QueryPublisherSequenceResponse,
)
from fakebrokers.rabbitmq_stream.refusals import Refused
from fakebrokers.rabbitmq_stream.session_base import Handlers, SessionBase
from fakebrokers.rabbitmq_stream.stream import Publisher, Stream
from fakebrokers.rabbitmq_stream.writer import Batch


class Publishing:
    """Publishers of one connection.

    Attributes:
        publishers: By the client's id.
        unconfirmed: Messages that were written and are not committed.
    """

    def __init__(self, session: SessionBase) -> None:
        self.publishers: dict[int, Publisher] = {}
        self.unconfirmed = 0
        self._session = session
        self._blocked = False

    def confirmed(self, publisher: Publisher, publishing_ids: bytes, now: float) -> None:
        """Send a confirm, unless the publisher was deleted meanwhile; unblock the connection if it may."""
        self.unconfirmed -= len(publishing_ids) // 8
        if self.publishers.get(publisher.publisher_id) is publisher:
            self._session.say(PublishConfirm(publisher.publisher_id, publishing_ids))
        if self._blocked and self.unconfirmed < self._session.profile.unconfirmed_resume:
            self._block(False)

    def uses(self, stream: Stream) -> bool:
        """Whether a publisher writes to `stream`."""
        return any(publisher.stream is stream for publisher in self.publishers.values())

    def drop(self, stream: Stream) -> None:
        """Forget the publishers of a stream."""
        for publisher in [one for one in self.publishers.values() if one.stream is stream]:
            self._forget(publisher)

    def drop_all(self) -> None:
        """Forget all publishers."""
        for publisher in list(self.publishers.values()):
            self._forget(publisher)

    def _declare(self, frame: DeclarePublisher, now: float) -> None:
        session = self._session
        session.require("write", frame.stream)
        taken = frame.publisher_id in self.publishers or any(
            frame.reference and (one.stream.name, one.reference) == (frame.stream, frame.reference)
            for one in self.publishers.values()
        )
        if session.broker.disk_alarm or taken or not session.profile.reference_fits(frame.reference):
            raise Refused(Code.PRECONDITION_FAILED)
        stream = session.broker.find_led(session.host, frame.stream)
        publisher = Publisher(self, stream, frame.publisher_id, frame.reference)
        self.publishers[frame.publisher_id] = publisher
        stream.publishers.append(publisher)
        session.watch(stream)
        session.answer(frame)

    def _publish(self, frame: Publish, now: float) -> None:
        if frame.version == 2 and not self._session.profile.filters:
            self._session.close_unknown(now)
            return
        publisher = self.publishers.get(frame.publisher_id)
        if publisher is None:
            # one PublishError with code 18 for all ids of the frame, also if there are none
            self._refuse(frame, Code.PUBLISHER_DOES_NOT_EXIST, frame.publishing_ids)
            return
        batch = Batch(frame.publishing_ids, frame.entries, frame.count, frame.records, frame.filter_values)
        bad = first_bad(frame.entries) if frame.batches and self._session.profile.validates_batches else None
        if bad is not None:
            # code 17 for a bad batch and for every entry after it in the frame; those before it are stored
            self._refuse(frame, Code.PRECONDITION_FAILED, frame.publishing_ids[8 * bad :])
            batch = batch.select(list(range(bad)), frame.publishing_ids[: 8 * bad])
        claimed = frame.count if frame.claimed is None else frame.claimed
        self.unconfirmed += claimed - (frame.count - batch.count)
        publisher.publish(batch, now)
        if not self._blocked and self.unconfirmed >= self._session.profile.unconfirmed_max:
            self._block(True)

    def crash_over(self, whole: Publish, now: float) -> None:
        """End the connection over a damaged Publish; what stands in front of the damage is stored."""
        self._session.end()
        self._publish(whole, now)

    def _refuse(self, frame: Publish, code: Code, publishing_ids: bytes) -> None:
        self._session.say(PublishError(frame.publisher_id, refuse_ids(publishing_ids, code)))

    def _query_sequence(self, frame: QueryPublisherSequence, now: float) -> None:
        session = self._session
        session.require("read", frame.stream)
        stream = session.broker.find(session.host, frame.stream)
        stream.writer.touch(now)
        sequence = stream.tracking.sequences.get(frame.reference, 0)
        session.say(QueryPublisherSequenceResponse(frame.correlation_id, Code.OK, sequence))

    def _delete(self, frame: DeletePublisher, now: float) -> None:
        publisher = self.publishers.get(frame.publisher_id)
        if publisher is None:
            raise Refused(Code.PUBLISHER_DOES_NOT_EXIST)
        self._forget(publisher)
        self._session.unwatch_if_unused(publisher.stream)
        self._session.answer(frame)

    def _forget(self, publisher: Publisher) -> None:
        del self.publishers[publisher.publisher_id]
        if publisher in publisher.stream.publishers:
            publisher.stream.publishers.remove(publisher)

    def _block(self, blocked: bool) -> None:
        """Flow control: the server stops reading at 50,000 unconfirmed messages, until they are below 37,500.

        While it does not read, its check for heartbeats is paused.
        """
        self._blocked = blocked
        if self._session.heartbeats is not None:
            self._session.heartbeats.pause(blocked)
        if blocked:
            self._session.link.stop_reading()
        else:
            self._session.link.resume_reading()

    #: Who handles what.
    HANDLERS: ClassVar[Handlers] = {
        DeclarePublisher: _declare,
        Publish: _publish,
        QueryPublisherSequence: _query_sequence,
        DeletePublisher: _delete,
    }


def refuse_ids(publishing_ids: bytes, code: int) -> tuple[tuple[int, int], ...]:
    """The pairs in a PublishError, for packed publishing ids."""
    return tuple([(publishing_id, int(code)) for publishing_id in unpack_ids(publishing_ids)])
