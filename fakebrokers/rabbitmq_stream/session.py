"""One connection to the fake RabbitMQ: who handles which frame, and timers.

    connected -> introduced -> authenticating -> tuning -> tuned -> open -> (closing ->) ended

The states and what may happen in each stand in `states`; an open connection looks frames up in the
handlers of its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar

from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.journal.secrets import without_secrets
from fakebrokers.rabbitmq_stream.broker import StreamBroker
from fakebrokers.rabbitmq_stream.cluster import Node
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.codes import NO_LEADER, Code
from fakebrokers.rabbitmq_stream.frames import (
    RESPONSE_BIT,
    Close,
    Credit,
    CreditResponse,
    Deliver,
    ExchangeCommandVersions,
    ExchangeCommandVersionsResponse,
    Heartbeat,
    Metadata,
    MetadataResponse,
    MetadataUpdate,
    Publish,
    PublishError,
    Request,
    SaslAuthenticate,
    StreamFrame,
    answer,
)
from fakebrokers.rabbitmq_stream.heartbeat import Due, Heartbeats
from fakebrokers.rabbitmq_stream.refusals import Crashed, Refused
from fakebrokers.rabbitmq_stream.session_admin import Admin
from fakebrokers.rabbitmq_stream.session_base import Handler, Handlers, SessionBase
from fakebrokers.rabbitmq_stream.session_consuming import Consuming
from fakebrokers.rabbitmq_stream.session_handshake import Handshake
from fakebrokers.rabbitmq_stream.session_publishing import Publishing, refuse_ids
from fakebrokers.rabbitmq_stream.states import OPEN, STATES, Reads, State
from fakebrokers.rabbitmq_stream.stream import Stream
from fakebrokers.rabbitmq_stream.wiretypes import CommandVersions, StreamMetadata

#: keys in the server's list of command versions, before those that a profile does not know are left out
_LISTED = (1, 2, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 22, 23, 24, 25, 28, 29, 30, 31)

_TWO_VERSIONS = frozenset({Publish.KEY})


def refusal_of(frame: Frame, code: int) -> Frame | None:
    """The answer to a frame that carries the error `code`, in the shape that this frame's errors have."""
    match frame:
        case Publish():
            return PublishError(frame.publisher_id, refuse_ids(frame.publishing_ids, code))
        case Credit():
            return CreditResponse(code, frame.subscription_id)
        case Metadata():
            rows = tuple([StreamMetadata(name, code, NO_LEADER, ()) for name in frame.streams])
            return MetadataResponse(frame.correlation_id, (), rows)
    return answer(frame, code)


class StreamSession(SessionBase):
    """The state machine of one connection; also `broker.Client` for its broker.

    Args:
        broker: What all connections share.
        codec: Of this connection.
        listener: The node whose address the client has used; None: the first one.
    """

    def __init__(self, broker: StreamBroker, codec: StreamCodec, listener: Node | None = None) -> None:
        super().__init__(broker, codec, listener or broker.cluster.nodes[0])
        self.handshake = Handshake(self, self._evaluate_rights)
        self.publishing = Publishing(self)
        self.consuming = Consuming(self)
        self.admin = Admin(self)
        self._handlers = _handlers(self.profile.last_command, self.profile.reauthentication)

    # --- what the connection reports ----------------------------------------------------------

    def opened(self, now: float) -> None:
        self.codec.max_frame = self.profile.initial_frame_max or 0
        self._step_timer = self.link.session_timer(self._step_is_over)
        self._heartbeat_timer = self.link.session_timer(self._look_at_heartbeats)
        self.consuming.opened()
        self.limit_step(now + self.profile.step_timeout_s)
        self.broker.connected(self)
        if not self.node.up:
            self.end()

    def handle(self, frame: Frame, now: float) -> None:
        if self.heartbeats is not None:
            self.heartbeats.received()
        if self.state is OPEN:  # the one state that reads commands; it has most of the frames
            self._handle_open(frame, now)
            return
        row = STATES[self.state]
        reads, due = row.reads, row.due
        if reads is Reads.HANDSHAKE:
            self.handshake.handle(frame, now)
        elif reads is Reads.CLOSE_RESPONSE and type(frame) is due:
            self.end()

    def unfinished(self, size: int, now: float) -> None:
        if self.heartbeats is not None:
            self.heartbeats.received()
        if STATES[self.state].reads is Reads.HANDSHAKE:
            self.handshake.segment_ended(now)

    def writable(self, now: float) -> None:
        self.consuming.push_all(now)

    def closed(self, now: float) -> None:
        self.state = State.ENDED
        self.publishing.drop_all()
        self.consuming.drop_all(now)
        for stream in list(self.watched):
            self.unwatch(stream)
        self.broker.disconnected(self)

    # --- time ---------------------------------------------------------------------------------

    def limit_step(self, deadline: float | None) -> None:
        """The present step of the connection's life, whatever that is, must be over by then."""
        self._step_timer.set(deadline)

    def _step_is_over(self, now: float) -> None:
        if self.refusal_held is not None:
            self.link.say(self.refusal_held)
        self.end()

    def begin_heartbeats(self, heartbeats: Heartbeats) -> None:
        """The connection is open: signs of life are expected, and given."""
        self.heartbeats = heartbeats
        self._heartbeat_timer.set(heartbeats.next_look)

    def _look_at_heartbeats(self, now: float) -> None:
        if self.state is not OPEN or self.heartbeats is None:
            return
        due = self.heartbeats.check(now)
        if due is Due.DROP:
            self.end()
            return
        if due is Due.SEND:
            self.say(Heartbeat())
        self._heartbeat_timer.set(self.heartbeats.next_look)

    # --- what the broker reports --------------------------------------------------------------

    def stream_lost(self, stream: Stream, now: float) -> None:
        """Drop the publishers and subscriptions of a stream that is gone, and send MetadataUpdate."""
        self.watched.pop(stream, None)
        self.publishing.drop(stream)
        self.consuming.drop(stream, now)
        self.say(MetadataUpdate(Code.STREAM_NOT_AVAILABLE, stream.name))

    def kick(self, now: float) -> None:
        """End the connection as an operator or a dying node does: without a Close frame."""
        self.end()

    # --- what others ask ----------------------------------------------------------------------

    def refusal(self, frame: Frame, code: int, now: float) -> Frame | None:
        return refusal_of(frame, code)

    def unwatch_if_unused(self, stream: Stream) -> None:
        """Get no MetadataUpdate any more of a stream that has no publisher or subscription here."""
        if not self.publishing.uses(stream) and not self.consuming.uses(stream):
            self.unwatch(stream)

    def describe(self) -> dict[str, Any]:
        """State, identity, publishers and subscriptions."""
        return {
            "state": self.state.value,
            "node": self.node.name,
            "user": None if self.user is None else self.user.name,
            "virtual_host": self.virtual_host,
            "client_properties": without_secrets(self.client_properties),
            "frame_max": self.frame_max,
            "heartbeat_s": self.heartbeat_s,
            "unconfirmed": self.publishing.unconfirmed,
            "publishers": {
                number: {"stream": one.stream.name, "reference": one.reference}
                for number, one in self.publishing.publishers.items()
            },
            "subscriptions": {
                number: {
                    "stream": one.stream.name,
                    "name": one.name,
                    "credit": one.credit,
                    "position": one.position,
                }
                for number, one in self.consuming.subscriptions.items()
            },
        }

    # --- frames on an open connection ---------------------------------------------------------

    def _handle_open(self, frame: Frame, now: float) -> None:
        kind = type(frame)
        if kind is not Publish:
            self.broker.step_ended(now)  # what came in front of it is stored and confirmed first
            if isinstance(frame, Malformed):
                self._handle_malformed(frame, now)
                return
        found = self._handlers.get(kind)
        if found is None:
            self.close_unknown(now)
            return
        part, handler = found
        try:
            handler(part(self), frame, now)
        except Refused as refused:
            if isinstance(frame, Request):
                self.answer(frame, refused.code)
        except Crashed:
            self.end()

    def _handle_malformed(self, frame: Malformed, now: float) -> None:
        """Close 13 or 14 for what the server can tell; where its process would crash, just FIN."""
        if frame.code == "too-large":
            self.close(Code.FRAME_TOO_LARGE, "frame too large", now)
        elif frame.code == "unknown" or (frame.code == "empty" and self.profile.empty_frame_close):
            self.close_unknown(now)
        elif (damaged := self.codec.damaged) is not None and damaged[0] is frame:
            self.publishing.crash_over(damaged[1], now)
        else:
            self.end()

    def _exchange_versions(self, frame: ExchangeCommandVersions, now: float) -> None:
        if not all(1 <= row.key <= self.profile.last_command for row in frame.commands):
            raise Crashed("a client lists a command that the server does not know")
        listed = tuple(
            [
                CommandVersions(key, 1, 2 if key in _TWO_VERSIONS else 1)
                for key in _LISTED
                if key <= self.profile.last_command
            ]
        )
        self.say(ExchangeCommandVersionsResponse(frame.correlation_id, Code.OK, listed))
        # the server's list has no Deliver, but a client's list with Deliver 2 is followed from here on
        if any(row.key == Deliver.KEY and row.max_version == 2 for row in frame.commands):
            self.consuming.deliver_v2 = True

    def _close(self, frame: Close, now: float) -> None:
        self.answer(frame)
        self.end()

    def _nothing(self, frame: Frame, now: float) -> None:
        """A Heartbeat needs no more: `handle` has noted the traffic."""

    def _evaluate_rights(self, now: float) -> None:
        """After a new login: streams that the user may not use any more are lost."""
        user = self.user
        lost = {
            one.stream: None
            for one in self.publishing.publishers.values()
            if user is None or not user.may("write", self.host, one.stream.name)
        } | {
            one.stream: None
            for one in self.consuming.subscriptions.values()
            if user is None or not user.may("read", self.host, one.stream.name)
        }
        for stream in lost:
            self.unwatch(stream)
            self.stream_lost(stream, now)

    #: Who handles what besides the parts.
    HANDLERS: ClassVar[Handlers] = {
        ExchangeCommandVersions: _exchange_versions,
        Close: _close,
        Heartbeat: _nothing,
    }


@cache
def _handlers(
    last_command: int, reauthentication: bool
) -> Mapping[type[Frame], tuple[Callable[[StreamSession], Any], Handler]]:
    """The part of a session that handles a frame, and how, for the commands that the server has."""
    again: Handlers = {SaslAuthenticate: Handshake.authenticate_again} if reauthentication else {}
    parts: list[tuple[Callable[[StreamSession], Any], Handlers]] = [
        (attrgetter("publishing"), Publishing.HANDLERS),
        (attrgetter("consuming"), Consuming.HANDLERS),
        (attrgetter("admin"), Admin.HANDLERS),
        (attrgetter("handshake"), again),
        (lambda session: session, StreamSession.HANDLERS),
    ]
    return {
        kind: (part, handler)
        for part, handlers in parts
        for kind, handler in handlers.items()
        if issubclass(kind, StreamFrame) and last_command >= kind.KEY & ~RESPONSE_BIT
    }
