"""Requests about queues: open, configure, close (docs/protocols/blazingmq.md, 6.4, 7 and 9)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from fakebrokers.blazingmq.codes import (
    RESERVED_QUEUE_ID,
    Category,
    ExpressionVersion,
    QueueFlag,
)
from fakebrokers.blazingmq.frames import (
    CloseQueue,
    CloseQueueResponse,
    ConfigureQueueStream,
    ConfigureQueueStreamResponse,
    ConfigureStream,
    ConfigureStreamResponse,
    OpenQueue,
    OpenQueueResponse,
    Request,
)
from fakebrokers.blazingmq.handle import Handle
from fakebrokers.blazingmq.refusals import Refused, stopping
from fakebrokers.blazingmq.schema import (
    ConfigureQueueStreamRequest,
    ConfigureStreamRequest,
    HandleParameters,
    OpenQueueRequest,
    RoutingConfiguration,
    SubQueueId,
    Subscription,
)
from fakebrokers.blazingmq.session_base import Handlers, SessionBase, unknown
from fakebrokers.blazingmq.stream import Consumer
from fakebrokers.blazingmq.uri import parse_uri

R = TypeVar("R", bound=Request)

_DEFAULT = SubQueueId()


class Queues:
    """The requests of one session."""

    def __init__(self, session: SessionBase) -> None:
        self._session = session
        self.handlers: Handlers = {
            OpenQueue: self._answered(self._open),
            CloseQueue: self._answered(self._close),
            ConfigureStream: self._answered(self._configure),
            ConfigureQueueStream: self._answered(self._configure_older),
        }

    def _answered(self, act: Callable[[R, float], None]) -> Callable[[R, float], None]:
        """With a status for what is refused."""
        return partial(self._carry_out, act)

    def _carry_out(self, act: Callable[[R, float], None], request: R, now: float) -> None:
        try:
            act(request, now)
        except Refused as refused:
            self._session.refuse(request, refused)

    def drop_all(self, *, lost: bool) -> None:
        """Give up all handles; see `Handle.drop`.

        A broker takes back the configuration of each stream that reads, if it has one or not. Their apps hand
        out what waits twice.
        """
        handles = list(self._session.handles.values())
        self._session.handles.clear()
        for handle in handles:
            read = [stream for stream in handle.streams.values() if stream.reads]
            for stream in read:
                if not stream.configured:
                    handle.queue.app(stream.app_id).rebuild()
            handle.drop(lost=lost)
            for app in filter(None, [handle.queue.apps.get(stream.app_id) for stream in read]):
                app.deliver()

    # open

    def _open(self, request: OpenQueue, now: float) -> None:
        session = self._session
        asked = request.handle_parameters
        name = parse_uri(asked.uri)
        _check_open(asked)
        session.broker.domains.find(name.domain)
        if session.node.stopping:
            raise stopping()
        if asked.flags & QueueFlag.ADMIN or min(asked.read_count, asked.write_count) < 0:
            raise Refused(Category.E_INVALID_ARGUMENT, "Invalid handle parameters specified", -1)
        stream = asked.sub_id_info or _DEFAULT
        handle = session.broker.open(
            session, asked.uri, asked.q_id, stream.app_id, stream.sub_id, asked.read_count, asked.write_count
        )
        if session.handles.setdefault(asked.q_id, handle) is not handle:
            handle.drop(lost=False)
            text = "queueId is already in use for a different queue"
            raise Refused(Category.E_INVALID_ARGUMENT, text, -1)
        domain = handle.queue.domain
        routing = RoutingConfiguration(domain.routing_flags)
        original = OpenQueueRequest(asked)
        session.link.say(OpenQueueResponse(request.r_id, original, routing, domain.deduplication_time_ms))

    # close

    def _close(self, request: CloseQueue, now: float) -> None:
        asked = request.handle_parameters
        if max(asked.read_count, asked.write_count, asked.admin_count) <= 0:
            text = "At least one of [read|write|admin]Count must be > 0"
            raise Refused(Category.E_INVALID_ARGUMENT, text)
        handle = self._handle(asked.q_id)
        stream = handle.stream_numbered((asked.sub_id_info or _DEFAULT).sub_id)
        if stream is None:
            raise unknown("No subStream of the queue with specified subId")
        handle.release(
            stream.app_id,
            asked.read_count,
            asked.write_count,
            final=request.is_final,
            consistent=_consistent(asked),
        )
        if not handle.streams:
            del self._session.handles[asked.q_id]
        self._session.link.say(CloseQueueResponse(request.r_id))

    # configure

    def _configure(self, request: ConfigureStream, now: float) -> None:
        asked = request.stream_parameters
        handle = self._handle(request.q_id)
        handle.configure(asked.app_id, [each for one in asked.subscriptions for each in _consumers(one)])
        response = ConfigureStreamRequest(request.q_id, asked)
        self._session.link.say(ConfigureStreamResponse(request.r_id, response))
        self._deliver(handle, asked.app_id)

    def _configure_older(self, request: ConfigureQueueStream, now: float) -> None:
        asked = request.stream_parameters
        stream = asked.sub_id_info or _DEFAULT
        consumer = Consumer(
            stream.sub_id,
            "",
            asked.max_unconfirmed_messages,
            asked.max_unconfirmed_bytes,
            asked.consumer_priority,
            asked.consumer_priority_count,
        )
        handle = self._handle(request.q_id)
        handle.configure(stream.app_id, [consumer])
        response = ConfigureQueueStreamRequest(request.q_id, asked)
        self._session.link.say(ConfigureQueueStreamResponse(request.r_id, response))
        self._deliver(handle, stream.app_id)

    def _deliver(self, handle: Handle, app_id: str) -> None:
        """What waits leaves after the answer; the configuration of a writer changes nothing."""
        app = handle.queue.apps.get(app_id)
        if app is not None and handle.streams[app_id].reads:
            app.deliver()

    def _handle(self, q_id: int) -> Handle:
        handle = self._session.handles.get(q_id)
        if handle is None:
            raise unknown("No queue with specified Id")
        return handle


def _consumers(subscription: Subscription) -> list[Consumer]:
    expression = subscription.expression
    text = expression.text if expression.version == ExpressionVersion.E_VERSION_1 else ""
    return [
        Consumer(
            subscription.s_id,
            text,
            each.max_unconfirmed_messages,
            each.max_unconfirmed_bytes,
            each.consumer_priority,
            each.consumer_priority_count,
        )
        for each in subscription.consumers
    ]


def _consistent(asked: HandleParameters) -> bool:
    """Whether flags and numbers of what is given up say the same."""
    counts = ((QueueFlag.READ, asked.read_count), (QueueFlag.WRITE, asked.write_count))
    fits = all(count > 0 if asked.flags & flag else count == 0 for flag, count in counts)
    return fits and not asked.flags & QueueFlag.ADMIN and not asked.admin_count


def _check_open(asked: HandleParameters) -> None:
    """Raise `Refused` for numbers that make no sense together."""
    for wrong, text in (
        (
            max(asked.read_count, asked.write_count, asked.admin_count) <= 0,
            "At least one of ([read|write]) Count must be >0",
        ),
        (asked.admin_count != 0, "adminCount must be 0"),
        (
            bool(asked.flags & QueueFlag.READ) != (asked.read_count > 0),
            "Read flag and readCount must both be set accordingly",
        ),
        (
            bool(asked.flags & QueueFlag.WRITE) != (asked.write_count > 0),
            "Write flag and writeCount must both be set accordingly",
        ),
        (asked.q_id >= RESERVED_QUEUE_ID, "qId must not be set from the reserved queue ids range"),
        (
            bool(asked.flags & QueueFlag.WRITE) and (asked.sub_id_info or _DEFAULT) != _DEFAULT,
            "AppId should not be specified in the URI if queue is opened in write mode",
        ),
    ):
        if wrong:
            raise Refused(Category.E_INVALID_ARGUMENT, text)
