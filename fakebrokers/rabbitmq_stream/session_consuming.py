"""The consuming half of a session (docs/protocols/rabbitmq-stream.md, 8)."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from fakebrokers.rabbitmq_stream.codes import Code, OffsetType
from fakebrokers.rabbitmq_stream.frames import (
    ConsumerUpdate,
    ConsumerUpdateResponse,
    Credit,
    CreditResponse,
    Deliver,
    QueryOffset,
    QueryOffsetResponse,
    ResolveOffsetSpec,
    ResolveOffsetSpecResponse,
    StoreOffset,
    Subscribe,
    Unsubscribe,
)
from fakebrokers.rabbitmq_stream.groups import GroupKey
from fakebrokers.rabbitmq_stream.refusals import Crashed, Refused
from fakebrokers.rabbitmq_stream.session_base import Handlers, SessionBase
from fakebrokers.rabbitmq_stream.states import OPEN
from fakebrokers.rabbitmq_stream.stream import Stream
from fakebrokers.rabbitmq_stream.subscription import Subscription

#: bytes of chunks that one subscription is sent at once; then other work gets its turn
_BURST = 4 * 1024 * 1024

#: longest reference of a stored offset, bytes
_MAX_NAME = 255


class GroupMember:
    """A single active consumer: implements `groups.Member`.

    Attributes:
        key: Its group.
        subscription: What it reads with while it is active.
        active: What the coordinator wants.
    """

    def __init__(self, consuming: Consuming, key: GroupKey, subscription: Subscription) -> None:
        self.key = key
        self.subscription = subscription
        self.active = False
        self._consuming = consuming

    def activate(self, now: float) -> None:
        """Ask the client where to read from; its answer starts the delivery."""
        self.active = True
        self._consuming.ask(self, now)

    def step_down(self, now: float) -> None:
        """Stop delivering and tell the client; its answer lets the group go on."""
        self.active = False
        self.subscription.detach()
        self._consuming.ask(self, now)


class _Question(msgspec.Struct, frozen=True):
    """A ConsumerUpdate without an answer yet."""

    member: GroupMember
    active: bool
    deadline: float


class Consuming:
    """Subscriptions of one connection.

    Attributes:
        subscriptions: By the client's id.
        members: Those that are single active consumers.
        deliver_v2: The client understands Deliver version 2.
    """

    def __init__(self, session: SessionBase) -> None:
        self.subscriptions: dict[int, Subscription] = {}
        self.members: dict[int, GroupMember] = {}
        self.deliver_v2 = False
        self._session = session
        self._questions: dict[int, _Question] = {}
        self._next_question = 0

    def opened(self) -> None:
        """The connection was accepted."""
        link = self._session.link
        self._answer_timer = link.session_timer(self._is_overdue)
        self._push_timer = link.session_timer(self.push_all)

    def _expect_answers(self) -> None:
        """A ConsumerUpdate waits for its answer, or does so no more."""
        self._answer_timer.set(min((each.deadline for each in self._questions.values()), default=None))

    def _is_overdue(self, now: float) -> None:
        if self._session.state is OPEN:
            self._session.end()

    def uses(self, stream: Stream) -> bool:
        """Whether a subscription reads from `stream`."""
        return any(one.stream is stream for one in self.subscriptions.values())

    def drop(self, stream: Stream, now: float) -> None:
        """Forget the subscriptions of a stream."""
        for subscription in [one for one in self.subscriptions.values() if one.stream is stream]:
            self._leave(self._forget(subscription), now)

    def drop_all(self, now: float) -> None:
        """Forget all subscriptions and leave their groups."""
        for subscription in list(self.subscriptions.values()):
            self._leave(self._forget(subscription), now)

    def push_all(self, now: float) -> None:
        """Go on delivering what was held back: the client reads again, or `_BURST` bytes were sent before."""
        for subscription in list(self.subscriptions.values()):
            self._push(subscription, now)

    def ask(self, member: GroupMember, now: float) -> None:
        """Send a ConsumerUpdate; the ids are the server's own, from 0."""
        question, self._next_question = self._next_question, self._next_question + 1
        deadline = now + self._session.profile.request_timeout_s
        self._questions[question] = _Question(member, member.active, deadline)
        self._expect_answers()
        self._session.say(ConsumerUpdate(question, member.subscription.subscription_id, int(member.active)))

    # --- frames -------------------------------------------------------------------------------

    def _subscribe(self, frame: Subscribe, now: float) -> None:
        session = self._session
        session.require("read", frame.stream)
        properties = dict(frame.properties or {})
        single = session.profile.single_active_consumer and properties.get("single-active-consumer") == "true"
        name = properties.get("name")
        if name is not None and not session.profile.reference_fits(name):
            raise Refused(Code.PRECONDITION_FAILED)
        stream = session.broker.find_member(session.host, frame.stream, session.node)
        if frame.subscription_id in self.subscriptions:
            raise Refused(Code.SUBSCRIPTION_ID_ALREADY_EXISTS)
        if single and name is None:
            raise Refused(Code.PRECONDITION_FAILED)
        if not session.profile.filters:
            properties = {key: text for key, text in properties.items() if not key.startswith("filter.")}
        subscription = Subscription(
            stream,
            frame.subscription_id,
            _spec(frame),
            frame.credit,
            session.profile.send_limit(frame.credit),
            properties,
            self._push,
        )
        group = GroupKey(session.host, stream.name, name or "")
        partition = self._partition(subscription)
        if single:
            session.broker.coordinator.check_partition(group, partition)
        self.subscriptions[frame.subscription_id] = subscription
        stream.subscriptions.insert(0, subscription)  # the newest of a connection is served first
        session.watch(stream)
        session.answer(frame)  # always in front of the first Deliver
        if single:
            member = GroupMember(self, group, subscription)
            self.members[subscription.subscription_id] = member
            session.broker.coordinator.join(group, member, partition, now)
        else:
            subscription.attach(None, now)
            self._push_first(subscription, now)

    def _credit(self, frame: Credit, now: float) -> None:
        subscription = self.subscriptions.get(frame.subscription_id)
        if subscription is None:
            code = Code.SUBSCRIPTION_ID_DOES_NOT_EXIST
            self._session.say(CreditResponse(code, frame.subscription_id))
            return
        subscription.add_credit(frame.credit)
        # an inactive single active consumer gets code 17, but keeps the credit
        if subscription.active:
            self._push(subscription, now)
        else:
            self._session.say(CreditResponse(Code.PRECONDITION_FAILED, frame.subscription_id))

    def _unsubscribe(self, frame: Unsubscribe, now: float) -> None:
        subscription = self.subscriptions.get(frame.subscription_id)
        if subscription is None:
            raise Refused(Code.SUBSCRIPTION_ID_DOES_NOT_EXIST)
        member = self._forget(subscription)
        self._session.unwatch_if_unused(subscription.stream)
        self._session.answer(frame)
        self._leave(member, now)

    def _store_offset(self, frame: StoreOffset, now: float) -> None:
        """Never answered: an unknown stream, no permission and a reference over 255 bytes are ignored.

        Raises:
            Crashed: A reference over 255 bytes, if the server takes references of any length.
        """
        session = self._session
        try:
            session.require("read", frame.stream)
            stream = session.broker.find_led(session.host, frame.stream)
        except Refused:
            return
        if len(frame.reference.encode(errors="surrogateescape")) <= _MAX_NAME:
            session.watch(stream)
            stream.writer.store_offset(frame.reference, frame.offset, now)
        elif session.profile.max_reference is None:
            raise Crashed("the length of a stored reference is one byte")

    def _query_offset(self, frame: QueryOffset, now: float) -> None:
        session = self._session
        session.require("read", frame.stream)
        stream = session.broker.find_led(session.host, frame.stream)
        session.watch(stream)
        stream.writer.touch(now)
        offset = stream.tracking.offsets.get(frame.reference)
        code = Code.NO_OFFSET if offset is None and session.profile.no_offset_code else Code.OK
        session.say(QueryOffsetResponse(frame.correlation_id, code, offset or 0))

    def _resolve(self, frame: ResolveOffsetSpec, now: float) -> None:
        session = self._session
        session.require("read", frame.stream)
        stream = session.broker.find_member(session.host, frame.stream, session.node)
        offset = stream.resolve(*_spec(frame), now)
        session.say(ResolveOffsetSpecResponse(frame.correlation_id, Code.OK, OffsetType.OFFSET, offset))

    def _updated(self, frame: ConsumerUpdateResponse, now: float) -> None:
        """The answer to a ConsumerUpdate; one with an unknown id is ignored, and so is its code."""
        question = self._questions.pop(frame.correlation_id, None)
        if question is None:
            return
        self._expect_answers()
        # what counts is what the consumer is now, not what it was asked then
        member = question.member
        if member.active:
            member.subscription.attach(_spec(frame), now)
            self._push(member.subscription, now)
        elif not question.active:
            self._session.broker.coordinator.stepped_down(member.key, now)

    # --- the rest -----------------------------------------------------------------------------

    def _partition(self, subscription: Subscription) -> int | None:
        """Place of the stream in the super stream that a consumer names; None: it names none that has it."""
        super_stream = subscription.properties.get("super-stream")
        if super_stream is None:
            return None
        return self._session.broker.partition_index(
            self._session.host, super_stream, subscription.stream.name
        )

    def _forget(self, subscription: Subscription) -> GroupMember | None:
        subscription.detach()
        del self.subscriptions[subscription.subscription_id]
        if subscription in subscription.stream.subscriptions:
            subscription.stream.subscriptions.remove(subscription)
        member = self.members.pop(subscription.subscription_id, None)
        self._questions = {
            number: question for number, question in self._questions.items() if question.member is not member
        }
        self._expect_answers()
        return member

    def _leave(self, member: GroupMember | None, now: float) -> None:
        if member is not None:
            self._session.broker.coordinator.leave(member.key, member, now)

    def _push_first(self, subscription: Subscription, now: float) -> None:
        """Begin to deliver a little after the answer to Subscribe, so not in the same TCP segment."""
        delay_s = self._session.profile.first_delivery_delay_s
        if delay_s > 0 and (subscription.position or 0) < subscription.stream.committed_offset:
            self._push_timer.set(now + delay_s)
        else:
            self._push(subscription, now)

    def _push(self, subscription: Subscription, now: float) -> None:
        session = self._session
        left = _BURST
        while session.state is OPEN and session.link.writable:
            if left <= 0:
                self._push_timer.set(now)
                return
            chunk = subscription.next_chunk()
            if chunk is None:
                if subscription.at_end:
                    subscription.stream.writer.touch_later(now)
                return
            committed = subscription.stream.committed_chunk_id if self.deliver_v2 else None
            session.say(Deliver(subscription.subscription_id, chunk, committed))
            left -= len(chunk.data)

    #: Who handles what.
    HANDLERS: ClassVar[Handlers] = {
        Subscribe: _subscribe,
        Credit: _credit,
        Unsubscribe: _unsubscribe,
        StoreOffset: _store_offset,
        QueryOffset: _query_offset,
        ResolveOffsetSpec: _resolve,
        ConsumerUpdateResponse: _updated,
    }


def _spec(frame: Subscribe | ResolveOffsetSpec | ConsumerUpdateResponse) -> tuple[OffsetType, int]:
    """The offset specification in a frame.

    Raises:
        Crashed: There is no such offset type.
    """
    try:
        return OffsetType(frame.offset_type), frame.offset or 0
    except ValueError:
        raise Crashed(f"expected an offset type, got {frame.offset_type}") from None
