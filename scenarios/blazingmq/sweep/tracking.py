"""What the frames of one connection mean, in order (docs/protocols/blazingmq.md, 2 to 4, 6.4 and 7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crc32c import crc32c

from conformance.sweep.facts import (
    Arrival,
    Configured,
    Confirmed,
    Facts,
    IdUse,
    Question,
    Refused,
    Settled,
    Window,
    Written,
)
from conformance.sweep.model import Model, Pairing
from conformance.sweep.tape import Moment
from conformance.sweep.view import Agreed, Conn
from fakebrokers.blazingmq.codes import AckStatus, QueueFlag
from fakebrokers.blazingmq.frames import (
    Ack,
    BrokerResponse,
    ClientIdentity,
    CloseQueue,
    ConfigureQueueStream,
    ConfigureStream,
    Confirm,
    Disconnect,
    HeartbeatRequest,
    HeartbeatResponse,
    OpenQueue,
    Push,
    Put,
)
from fakebrokers.blazingmq.schema import HandleParameters
from fakebrokers.core.frames import Frame
from scenarios.blazingmq.sweep.records import content_of, properties_of, record_of

QUEUE = "queue"
CONFIRM = "a confirm"
LONG_S = 5.0  #: without an answer for so long a queue may be given up, as if it were refused


class Handle:
    """A queue on one connection.

    Attributes:
        window: Its life as a reader, if it is one.
        opened: When the broker said yes.
        is_over: The broker has closed it, or never opened it.
        over_s: Since when, seconds; a callback that ends in this instant may not know it.
        closing: The client has asked to close it.
        drained: The client has taken back its configuration, or tried to.
    """

    def __init__(self, parameters: HandleParameters, window: Window | None) -> None:
        self.parameters = parameters
        self.uri = uri_of(parameters)
        self.window = window
        self.opened: Moment | None = None
        self.is_over = False
        self.over_s = 0.0
        self.closing = False
        self.drained = False

    @property
    def writes(self) -> bool:
        """Whether messages may be put into it."""
        return bool(self.parameters.flags & QueueFlag.WRITE)


def uri_of(parameters: HandleParameters) -> str:
    """The URI as the application gave it; some clients write it whole, and the id of a fanout besides."""
    info = parameters.sub_id_info
    if info is None or "?id=" in parameters.uri:
        return parameters.uri
    return f"{parameters.uri}?id={info.app_id}"


def options_of(frame: Frame) -> dict[str, int] | None:
    """Limits and priority that a reader is configured with; None: it takes nothing."""
    if not isinstance(frame, ConfigureStream | ConfigureQueueStream):
        return None
    asked: Any = frame.stream_parameters
    if isinstance(frame, ConfigureStream):
        consumers = [each for one in asked.subscriptions for each in one.consumers]
        if not consumers:
            return None
        asked = consumers[0]
    elif not asked.consumer_priority_count:
        return None
    return {
        "max_unconfirmed_messages": asked.max_unconfirmed_messages,
        "max_unconfirmed_bytes": asked.max_unconfirmed_bytes,
        "consumer_priority": asked.consumer_priority,
    }


def _number_or_guid(guid: bytes, number: int) -> int | bytes:
    """By what a message is acknowledged: its number, or the GUID that the client has made (chapter 2)."""
    return number if not guid[0] and not any(guid[4:]) else guid


class Tracking:
    """One pass over a connection."""

    def __init__(self, model: Model, conn: Conn, facts: Facts) -> None:
        self.conn = conn
        self.facts = facts
        self._pairing = Pairing(model, conn, facts)
        self._handles: dict[int, Handle] = {}
        self._asked: dict[int, Handle] = {}  #: by request
        self._ids: dict[int, IdUse] = {}
        self._spoiled = False  #: something else came where the answer to the negotiation was due
        self._introduced = False
        self._steps: dict[type, Callable[[Any, Moment], None]] = {
            Ack: self._ack,
            CloseQueue: self._close,
            ConfigureQueueStream: self._configure,
            ConfigureStream: self._configure,
            Confirm: self._confirm,
            OpenQueue: self._open,
            Push: self._push,
            Put: self._put,
        }

    def run(self) -> None:
        """Note everything."""
        for seen in self.conn.frames:
            frame = seen.frame
            if seen.direction == "in":
                self._said(frame, seen.at)
            elif self.conn.ready is None and not isinstance(frame, BrokerResponse | HeartbeatRequest):
                self._spoiled = True
            question = self._pairing.see(seen)
            if question is not None and question.answer is frame and seen.direction == "out":
                self._answered(question, seen.at)
            if type(frame) in self._steps:
                self._steps[type(frame)](frame, seen.at)
        for handle in self._asked.values():
            if handle.window is not None:
                handle.window.closed = handle.window.closed or self.conn.ended
        self._unanswered()

    # the connection

    def _said(self, frame: Any, at: Moment) -> None:
        if isinstance(frame, ClientIdentity):
            if self._introduced:
                self.facts.misused.append((at, "a second clientIdentity"))
            self._introduced = True
        elif self.conn.parting is not None and not isinstance(frame, HeartbeatResponse):
            self.facts.misused.append((at, f"a {type(frame).__name__} behind the disconnect"))
        if isinstance(frame, Disconnect):
            self.conn.parting = self.conn.parting or at

    def _negotiated(self, answer: BrokerResponse, at: Moment, accepted: bool | None) -> None:
        if self._spoiled:
            return
        if not accepted:
            self.conn.turned_away = self.conn.turned_away or (at, answer.category)
            return
        self.conn.ready = at
        interval_s, missed = answer.heartbeat_interval_ms / 1000, answer.max_missed_heartbeats
        quiet_s = None
        if interval_s > 0 and missed > 0:
            quiet_s = (missed + 1) * interval_s, (missed + 2) * interval_s
        self.conn.agreed = Agreed(at=at, quiet_s=quiet_s)

    def _answered(self, question: Question, at: Moment) -> None:
        asked, answer = question.frame, question.answer
        if isinstance(answer, BrokerResponse):
            self._negotiated(answer, at, question.accepted)
            return
        handle = self._asked.get(question.key) if isinstance(question.key, int) else None
        if handle is None:
            return
        if not question.accepted:
            self.facts.refused.append(Refused(at, handle.uri, question.code))
        if isinstance(asked, OpenQueue):
            handle.opened, handle.is_over = (at, False) if question.accepted else (None, True)
            if not question.accepted:
                self._over(handle, at)
        elif isinstance(asked, CloseQueue) and question.accepted:
            self._over(handle, at)
        elif question.accepted and handle.window is not None and options_of(asked) is not None:
            handle.window.opened = handle.window.opened or at

    def _over(self, handle: Handle, at: Moment) -> None:
        handle.is_over, handle.over_s = True, at.t
        if handle.window is not None:
            handle.window.closed = handle.window.closed or at
        number = handle.parameters.q_id
        if self._handles.get(number) is handle and self._ids[number].freed is None:
            self._ids[number].freed = at

    def _unanswered(self) -> None:
        """A question about a queue that has no answer for long is a reason to give the queue up."""
        for question in self.facts.questions:
            if question.conn is not self.conn or not isinstance(question.key, int):
                continue
            handle = self._asked.get(question.key)
            late = question.answered is None or question.answered.t > question.asked.t + LONG_S
            if handle is not None and late:
                self.facts.refused.append(Refused(question.asked, handle.uri, None))

    # queues

    def _open(self, frame: OpenQueue, at: Moment) -> None:
        asked = frame.handle_parameters
        self._not_twice(uri_of(asked), at)
        window = None
        if asked.flags & QueueFlag.READ:
            window = Window(self.conn, uri_of(asked), asked.q_id, None, at)
            self.facts.windows.append(window)
        handle = self._handles[asked.q_id] = Handle(asked, window)
        if frame.r_id is not None:
            self._asked[frame.r_id] = handle
        use = self._ids[asked.q_id] = IdUse(self.conn, QUEUE, asked.q_id, at, handle.uri)
        self.facts.ids.append(use)

    def _not_twice(self, uri: str, at: Moment) -> None:
        """A queue has one handle for each connection."""
        for handle in self._handles.values():
            if handle.uri == uri and handle.opened is not None and not handle.is_over and not handle.closing:
                self.facts.misused.append((at, f"openQueue of {uri}, which is open"))

    def _find(self, number: int, what: str, at: Moment) -> Handle | None:
        handle = self._handles.get(number & 0xFFFFFFFF)
        is_at_once = what == CONFIRM and handle is not None and handle.over_s == at.t
        if handle is None or (handle.is_over and not is_at_once):
            self.facts.misused.append((at, f"{what} of queue {number}, which is not there"))
            return None
        return handle

    def _configure(self, frame: ConfigureStream | ConfigureQueueStream, at: Moment) -> None:
        handle = self._find(frame.q_id, type(frame).__name__, at)
        if handle is None:
            return
        if frame.r_id is not None:
            self._asked[frame.r_id] = handle
        options = options_of(frame)
        handle.drained = options is None
        if options is not None:
            self.facts.configured.append(Configured(at, handle.uri, options))
        if handle.window is None:
            self.facts.misused.append((at, f"a configuration of {handle.uri}, which is not read"))

    def _close(self, frame: CloseQueue, at: Moment) -> None:
        asked = frame.handle_parameters
        handle = self._find(asked.q_id, "closeQueue", at)
        if handle is None:
            return
        if frame.r_id is not None:
            self._asked[frame.r_id] = handle
        handle.closing = True
        if asked != handle.parameters:
            self.facts.broken.append((at, f"closeQueue says {asked}, and openQueue said {handle.parameters}"))
        if handle.window is not None and handle.window.opened is not None and not handle.drained:
            self.facts.misused.append((at, f"closeQueue of {handle.uri}, which still takes messages"))

    # messages

    def _put(self, frame: Put, at: Moment) -> None:
        for message in frame.messages:
            handle = self._find(message.queue_id, "a message", at)
            if handle is None:
                continue
            if not handle.writes or handle.opened is None:
                self.facts.misused.append((at, f"a message for {handle.uri}, which is not open for write"))
            if crc32c(message.data) != message.crc:
                self.facts.broken.append((at, "the checksum of a message is another one"))
            content = content_of(message)
            if content is None:
                self.facts.broken.append((at, "properties or payload of a message cannot be read"))
                continue
            place = (handle.uri, "", _number_or_guid(message.guid, message.correlation_id))
            self.facts.written.append(
                Written(self.conn, at, place, content.payload, False, properties_of(content))
            )

    def _ack(self, frame: Ack, at: Moment) -> None:
        for message in frame.messages:
            handle = self._handles.get(message.queue_id & 0xFFFFFFFF)
            if handle is None:
                continue
            known = message.status in set(AckStatus)
            code = AckStatus(message.status).name if known else AckStatus.UNKNOWN.name
            stored = message.status == AckStatus.SUCCESS
            place = (handle.uri, "", message.correlation_id or message.guid)
            details = {"guid": message.guid.hex().upper(), "correlation": message.correlation_id}
            self.facts.settled.append(
                Settled(self.conn, at, place, stored, None if stored else code, details=details)
            )

    def _push(self, frame: Push, at: Moment) -> None:
        hurt = bool(frame.rest)
        for message in frame.messages:
            handle = self._handles.get(message.queue_id & 0xFFFFFFFF)
            if handle is None or handle.window is None or handle.is_over:
                continue
            record = record_of(message)
            records = () if record is None else (record,)
            handle.window.arrivals.append(Arrival(at, records, damaged=record is None or hurt))
            hurt = False

    def _confirm(self, frame: Confirm, at: Moment) -> None:
        for message in frame.messages:
            handle = self._find(message.queue_id, CONFIRM, at)
            if handle is None:
                continue
            info = handle.parameters.sub_id_info
            if message.sub_id != (info.sub_id if info is not None else 0):
                self.facts.broken.append((at, f"a confirm for stream {message.sub_id} of {handle.uri}"))
            key = message.guid.hex().upper()
            self.facts.confirmed.append(Confirmed(self.conn, at, handle.uri, key))
