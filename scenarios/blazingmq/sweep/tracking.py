"""What the frames of one connection mean, in order (docs/protocols/blazingmq.md, 2 to 4, 6.4 and 7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crc32c import crc32c

from conformance.decoders import Unreadable
from conformance.decoders.blazingmq.contents import subscriptions_in
from conformance.run.facts import (
    ArrivedFrame,
    Complaint,
    Configured,
    Confirmed,
    Facts,
    IdUse,
    Question,
    Refused,
    Settled,
    Should,
    Window,
    Written,
)
from conformance.run.showing import shown
from conformance.run.trace import Position
from conformance.run.traits import Pairing, Questions
from conformance.run.view import Agreed, Conn
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
    PushMessage,
    Put,
)
from fakebrokers.core.frames import Malformed
from scenarios.blazingmq.sweep.handles import (
    Handle,
    app_of,
    are_of_one_queue,
    options_of,
    subscriptions_of,
    uri_of,
)
from scenarios.blazingmq.sweep.records import content_of, properties_of, record_of

QUEUE = "queue"
CONFIRM = "a confirm"
LONG_S = 5.0  #: without an answer for so long a queue may be given up, as if it were refused


def _number_or_guid(guid: bytes, number: int) -> int | bytes:
    """By what a message is acknowledged: its number, or the GUID that the client has made (chapter 2)."""
    return number if not guid[0] and not any(guid[4:]) else guid


class Tracking:
    """One pass over a connection."""

    def __init__(self, questions: Questions, conn: Conn, facts: Facts) -> None:
        self.conn = conn
        self.facts = facts
        self._pairing = Pairing(questions, conn, facts)
        self._handles: dict[tuple[int, int], Handle] = {}  #: by the numbers of queue and app
        self._asked: dict[int, Handle] = {}  #: by request
        self._ids: dict[tuple[int, int], IdUse] = {}
        self._guids: set[bytes] = set()  #: that the client has made
        self._spoiled = False  #: something else came where the answer to the negotiation was due
        self._introduced = False
        self._steps: dict[tuple[str, type], Callable[[Any, Position], None]] = {
            ("out", Ack): self._ack,
            ("in", CloseQueue): self._close,
            ("in", ConfigureQueueStream): self._configure,
            ("in", ConfigureStream): self._configure,
            ("in", Confirm): self._confirm,
            ("in", OpenQueue): self._open,
            ("out", Push): self._push,
            ("in", Put): self._put,
        }

    def run(self) -> None:
        """Note all frames of the connection."""
        for seen in self.conn.frames:
            frame = seen.frame
            if seen.direction == "in":
                self._said(frame, seen.at)
            elif self.conn.ready is None and not isinstance(frame, BrokerResponse | HeartbeatRequest):
                self._spoiled = True
                if isinstance(frame, Malformed):
                    self.conn.spoiled = self.conn.spoiled or seen.at
            question = self._pairing.see(seen)
            if question is not None and question.answer is frame and seen.direction == "out":
                self._answered(question, seen.at)
            step = self._steps.get((seen.direction, type(frame)))
            if step is not None:
                step(frame, seen.at)
        for handle in self._asked.values():
            if handle.window is not None:
                handle.window.closed = handle.window.closed or self.conn.ended
        self._unanswered()

    # the connection

    def _said(self, frame: Any, at: Position) -> None:
        if isinstance(frame, ClientIdentity):
            if self._introduced:
                self.facts.misused.append((at, "a second clientIdentity"))
            self._introduced = True
        elif self.conn.client_closing is not None and not isinstance(
            frame, HeartbeatRequest | HeartbeatResponse
        ):
            self.facts.misused.append((at, f"a {type(frame).__name__} after the disconnect"))
        if isinstance(frame, Disconnect):
            self.conn.client_closing = self.conn.client_closing or at

    def _negotiated(self, answer: BrokerResponse, at: Position, accepted: bool | None) -> None:
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

    def _answered(self, question: Question, at: Position) -> None:
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

    def _over(self, handle: Handle, at: Position) -> None:
        handle.is_over, handle.over_s = True, at.t
        if handle.window is not None:
            handle.window.closed = handle.window.closed or at
        place = handle.parameters.q_id, handle.sub_id
        if self._handles.get(place) is handle and self._ids[place].freed is None:
            self._ids[place].freed = at

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

    def _open(self, frame: OpenQueue, at: Position) -> None:
        asked = frame.handle_parameters
        self._not_twice(uri_of(asked), at)
        window = None
        if asked.flags & QueueFlag.READ:
            window = Window(self.conn, uri_of(asked), asked.q_id, None, at)
            self.facts.windows.append(window)
        handle = Handle(asked, window)
        is_shared = any(are_of_one_queue(handle, one) for one in self._of(asked.q_id) if not one.is_over)
        self._handles = {
            place: one for place, one in self._handles.items() if place[0] != asked.q_id or not one.is_over
        }
        place = asked.q_id, handle.sub_id
        self._handles[place] = handle
        if frame.r_id is not None:
            self._asked[frame.r_id] = handle
        number = place if is_shared else asked.q_id
        use = self._ids[place] = IdUse(self.conn, QUEUE, number, at, handle.uri)
        self.facts.ids.append(use)

    def _of(self, number: int) -> list[Handle]:
        """The handles of a queue: one for each app that shares its number, or only one."""
        return [handle for (queue, _), handle in self._handles.items() if queue == number & 0xFFFFFFFF]

    def _not_twice(self, uri: str, at: Position) -> None:
        """A queue has one handle for each connection."""
        for handle in self._handles.values():
            if handle.uri == uri and handle.opened is not None and not handle.is_over and not handle.closing:
                self.facts.misused.append((at, f"openQueue of {uri}, which is open"))

    def _find(self, number: int, what: str, at: Position, *, app: str = "", sub_id: int = 0) -> Handle | None:
        """A queue by its number; the app says which one, where several share the number."""
        found = self._of(number)
        apt = [one for one in found if one.app_id == app or (sub_id and one.sub_id == sub_id)]
        handle = next(iter((apt if len(found) > 1 else []) or found), None)
        is_at_once = what == CONFIRM and handle is not None and handle.over_s == at.t
        if handle is None or (handle.is_over and not is_at_once):
            self.facts.misused.append((at, f"{what} of queue {number}, which is not there"))
            return None
        return handle

    def _configure(self, frame: ConfigureStream | ConfigureQueueStream, at: Position) -> None:
        handle = self._find(frame.q_id, type(frame).__name__, at, app=app_of(frame))
        if handle is None:
            return
        if frame.r_id is not None:
            self._asked[frame.r_id] = handle
        options = options_of(frame)
        handle.drained = options is None
        handle.subscriptions |= subscriptions_of(frame, handle)
        if options is not None:
            self.facts.configured.append(Configured(at, handle.uri, options))
        if handle.window is None:
            self.facts.misused.append((at, f"a configuration of {handle.uri}, which is not open to read"))

    def _close(self, frame: CloseQueue, at: Position) -> None:
        asked = frame.handle_parameters
        info = asked.sub_id_info
        handle = self._find(asked.q_id, "closeQueue", at, sub_id=info.sub_id if info is not None else 0)
        if handle is None:
            return
        if frame.r_id is not None:
            self._asked[frame.r_id] = handle
        handle.closing = True
        if asked != handle.parameters:
            text = f"closeQueue has {shown(asked)}, its openQueue had {shown(handle.parameters)}"
            self.facts.broken.append((at, text))
        if handle.window is not None and handle.window.opened is not None and not handle.drained:
            # the broker takes back what is unconfirmed all the same
            self.facts.misused.append((at, Should(f"closeQueue of {handle.uri}, which still takes messages")))

    # messages

    def _put(self, frame: Put, at: Position) -> None:
        for message in frame.messages:
            handle = self._find(message.queue_id, "a message", at)
            if handle is None:
                continue
            if not handle.writes or handle.opened is None:
                self.facts.misused.append((at, f"a message for {handle.uri}, which is not open for write"))
            if crc32c(message.data) != message.crc:
                self.facts.broken.append((at, "the CRC32-C of a message does not fit its bytes"))
            content = content_of(message)
            if content is None:
                self.facts.broken.append((at, "properties or payload of a message cannot be read"))
                continue
            key = _number_or_guid(message.guid, message.correlation_id)
            if isinstance(key, bytes):
                self._guids.add(key)
            place = (handle.uri, "", key)
            self.facts.written.append(
                Written(self.conn, at, place, content.payload, False, properties_of(content))
            )

    def _ack(self, frame: Ack, at: Position) -> None:
        for message in frame.messages:
            handle = next(iter(self._of(message.queue_id)), None)
            if handle is None:
                continue
            known = message.status in set(AckStatus)
            code = AckStatus(message.status).name if known else AckStatus.UNKNOWN.name
            stored = message.status == AckStatus.SUCCESS
            if not stored and not message.correlation_id and message.guid not in self._guids:
                self.facts.complaints.append(Complaint(self.conn, at, code, about_message=True))
            place = (handle.uri, "", message.correlation_id or message.guid)
            details = {"guid": message.guid.hex().upper(), "correlation": message.correlation_id}
            self.facts.settled.append(
                Settled(self.conn, at, place, stored, None if stored else code, details=details)
            )

    def _push(self, frame: Push, at: Position) -> None:
        hurt = bool(frame.rest)
        for message in frame.messages:
            for handle in self._readers(message):
                assert handle.window is not None
                record = record_of(message)
                records = () if record is None else (record,)
                handle.window.arrivals.append(ArrivedFrame(at, records, damaged=record is None or hurt))
                hurt = False

    def _readers(self, message: PushMessage) -> list[Handle]:
        """Those that a delivery is for: where several apps share a queue, those whose numbers it bears;
        none that has not asked for deliveries."""
        found = [one for one in self._of(message.queue_id) if one.subscriptions and not one.is_over]
        found = [one for one in found if one.window is not None]
        if len(self._of(message.queue_id)) < 2:
            return found
        try:
            numbers = subscriptions_in(message.options)
        except Unreadable:
            return []
        return [one for one in found if one.subscriptions & numbers]

    def _confirm(self, frame: Confirm, at: Position) -> None:
        for message in frame.messages:
            handle = self._find(message.queue_id, CONFIRM, at, sub_id=message.sub_id)
            if handle is None:
                continue
            if message.sub_id != handle.sub_id:
                self.facts.broken.append((at, f"a confirm for stream {message.sub_id} of {handle.uri}"))
            key = message.guid.hex().upper()
            self.facts.confirmed.append(Confirmed(self.conn, at, handle.uri, key))
