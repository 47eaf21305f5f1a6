"""A client's handle to a queue.

docs/protocols/blazingmq.md, 7 and 9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from fakebrokers.blazingmq.codes import DEFAULT_APP, NO_PRIORITY, AckStatus, Category
from fakebrokers.blazingmq.learner import Received, Sent
from fakebrokers.blazingmq.options import SubscriptionInfo
from fakebrokers.blazingmq.refusals import Refused
from fakebrokers.blazingmq.stream import Consumer, Opened, Stream

if TYPE_CHECKING:
    from fakebrokers.blazingmq.message import Message
    from fakebrokers.blazingmq.queue import Queue


class Client(Protocol):
    """Who has handles: a session."""

    @property
    def handles(self) -> Mapping[int, Handle]:
        """Those that it has, by its numbers of them."""

    @property
    def takes_messages(self) -> bool:
        """False while the client does not read, and once it goes."""

    def push(
        self, handle: Handle, message: Message, infos: Sequence[SubscriptionInfo], out_of_order: bool
    ) -> None:
        """Deliver a message for these subscriptions."""


class Handle(Opened):
    """A client's way to a queue.

    Attributes:
        q_id: The client's number of it.
        sent, received: What is known of the schemas of properties.
    """

    def __init__(self, queue: Queue, client: Client, q_id: int) -> None:
        super().__init__()
        self.queue = queue
        self.client = client
        self.q_id = q_id
        self.sent: Sent = {}
        self.received: Received = {}

    @property
    def takes_messages(self) -> bool:
        return self.client.takes_messages

    @property
    def max_delivery_attempts(self) -> int:
        return self.queue.domain.max_delivery_attempts

    def push(self, message: Message, infos: Sequence[SubscriptionInfo], out_of_order: bool) -> None:
        self.client.push(self, message, infos, out_of_order)

    # what the client asks for

    def open(self, app_id: str, sub_id: int, reads: int, writes: int) -> None:
        """Count readers and writers in."""
        self.queue.touched()
        stream = self.streams.get(app_id)
        if stream is None:
            stream = self.streams[app_id] = Stream(self, app_id, sub_id)
        if reads and not stream.reads:
            self.queue.app(app_id).streams.append(stream)
        stream.reads += reads
        stream.writes += writes

    def configure(self, app_id: str, consumers: Sequence[Consumer]) -> None:
        """Say what a reader takes. Messages flow when `Queue.deliver` is called.

        Raises:
            Refused: There is no such stream; or a priority makes no sense, and holds all the same as soon as
                another consumer of the app is configured or goes.
        """
        self.queue.touched()
        stream = self.streams.get(app_id)
        if stream is None:
            raise Refused(Category.E_UNKNOWN, "No queue with specified appId")
        if not stream.reads:
            return
        stream.configure([each for each in consumers if each.priority != NO_PRIORITY])
        for consumer in consumers:
            if (consumer.priority == NO_PRIORITY) != (consumer.turns == 0) or consumer.turns < 0:
                text = "Attempting to configure stream with invalid priority."
                raise Refused(Category.E_UNKNOWN, text, -1)
        self.queue.app(app_id).rebuild()

    def release(self, app_id: str, reads: int, writes: int, *, final: bool, consistent: bool = True) -> None:
        """Count readers and writers out; all that are left, of every app, if it is final.

        Args:
            consistent: The flags of the request say the same as its numbers.

        Raises:
            Refused: The numbers do not fit.
        """
        self.queue.touched()
        stream = self.streams.get(app_id)
        if final:
            if consistent and reads <= self.reads and writes <= self.writes:
                self.queue.openings.count_on(self, reads=not reads, writes=not writes)
            self.drop(lost=False)
            return
        fits = stream is not None and 0 <= reads <= stream.reads and 0 <= writes <= stream.writes
        if stream is None or not fits or not consistent:
            raise Refused(Category.E_UNKNOWN, "Failed to release handle.")
        self._release(stream, reads, writes)
        if not self.reads and not self.writes:
            self.drop(lost=False)

    def drop(self, *, lost: bool) -> None:
        """Give everything up.

        Args:
            lost: The client did not say that it goes: each delivery counts as a failed attempt.
        """
        self.queue.touched()
        for stream in list(self.streams.values()):
            if lost:
                self.queue.attempts_failed(stream)
            self._release(stream, stream.reads, stream.writes)
        self.queue.handles.pop(self, None)

    def _release(self, stream: Stream, reads: int, writes: int) -> None:
        stream.reads -= reads
        stream.writes -= writes
        if reads:
            self._release_reads(stream)
        if not stream.reads and not stream.writes:
            del self.streams[stream.app_id]

    def _release_reads(self, stream: Stream) -> None:
        app = self.queue.app(stream.app_id)
        if not stream.reads:
            app.streams.remove(stream)
            if stream.configured:
                stream.configure(())
                app.rebuild()
            self.queue.forget_idle(app)
        if not stream.configured:
            app.take_back(stream.give_back())
            app.deliver()

    # messages

    def post(self, message: Message) -> AckStatus:
        """Put a message into the queue."""
        self.queue.touched()
        stream = self.streams.get(DEFAULT_APP)
        if stream is None:
            return AckStatus.UNKNOWN
        message.schema_id = self.queue.learner.collect(self.sent, message.schema_id)
        if not stream.writes:  # what nobody stores is acknowledged before anybody asks who writes
            return AckStatus.SUCCESS if self.queue.domain.mode == "broadcast" else AckStatus.UNKNOWN
        return self.queue.post(message)

    def confirm(self, guid: bytes, sub_id: int) -> None:
        """The client is done with a message; what is unknown is ignored."""
        self.queue.touched()
        stream = self.stream_numbered(sub_id)
        if stream is None or not stream.reads:
            return
        app = self.queue.app(stream.app_id)
        has_room = stream.confirm(guid)
        if has_room is not None:
            app.usable(has_room)
        self.queue.confirm(guid, stream.app_id)
        app.confirmed(stream, guid)
