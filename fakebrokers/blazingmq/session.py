"""One connection to the fake BlazingMQ: who handles which frame, and timers.

    connected -> running -> (stopping ->) disconnected -> ended

The states and what may happen in each stand in `states`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fakebrokers.blazingmq import admin
from fakebrokers.blazingmq.broker import BlazingBroker
from fakebrokers.blazingmq.cluster import Node
from fakebrokers.blazingmq.codec import BlazingCodec
from fakebrokers.blazingmq.codes import Category, ClientType, Encoding, EventType
from fakebrokers.blazingmq.frames import (
    Ack,
    AdminCommand,
    AdminCommandResponse,
    AuthenticationRequest,
    AuthenticationResponse,
    BrokerResponse,
    ClientIdentity,
    ConfigureQueueStream,
    ConfigureStream,
    Disconnect,
    DisconnectResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    OtherEvent,
    Put,
    Request,
    StatusResponse,
)
from fakebrokers.blazingmq.handle import Handle
from fakebrokers.blazingmq.heartbeat import Due, Heartbeats
from fakebrokers.blazingmq.message import Message
from fakebrokers.blazingmq.options import SubscriptionInfo
from fakebrokers.blazingmq.schema import GuidInfo, Identity, Status
from fakebrokers.blazingmq.session_base import SessionBase, has_feature
from fakebrokers.blazingmq.session_messages import Messages, refusal
from fakebrokers.blazingmq.session_queues import Queues
from fakebrokers.blazingmq.states import STATES, Reads, State
from fakebrokers.core.frames import Frame, Malformed

_PROCESS = "bmqbrkr.tsk"
_PID = 1  #: as in a container
_MESSAGES = (Reads.EVENTS, Reads.CONFIRMS)


class BlazingSession(SessionBase):
    """The state machine of one connection; also a `broker.Session` for its broker."""

    def __init__(self, broker: BlazingBroker, codec: BlazingCodec, node: Node | None = None) -> None:
        super().__init__(broker, codec, node or broker.nodes[0])
        self.queues = Queues(self)
        self.messages = Messages(self)
        self._heartbeats: Heartbeats | None = None

    # what the connection reports

    def opened(self, now: float) -> None:
        self._deadline = self.link.session_timer(self._time_is_up)
        self._heartbeat_timer = self.link.session_timer(self._look_at_heartbeats)
        self._deadline.set(now + self.profile.negotiation_timeout_s)
        self.broker.connected(self)
        if not self.node.up or self.node.stopping:
            self.kick()

    def handle(self, frame: Frame, now: float) -> None:
        self.broker.now = now
        if self._heartbeats is not None:
            self._heartbeats.heard()
        reads = STATES[self.state].reads
        if reads in _MESSAGES and (act := self.messages.handlers.get(type(frame))) is not None:
            act(frame, now)
        elif reads is Reads.NEGOTIATION:
            self._negotiate(frame, now)
        elif isinstance(frame, Malformed):
            self._handle_malformed(frame)
        elif isinstance(frame, Request):
            self._handle_request(frame, reads, now)
        elif _asks_for_life(frame) and reads is not Reads.NOTHING:
            self.link.say(HeartbeatResponse())
        self.broker.flush()

    def writable(self, now: float) -> None:
        self.broker.now = now
        self.messages.flush()
        for handle in tuple(self.handles.values()):
            for stream in tuple(handle.streams.values()):
                if stream.configured:
                    handle.queue.app(stream.app_id).usable()
        self.broker.flush()

    def closed(self, now: float) -> None:
        self.broker.now = now
        self.state = State.ENDED
        self.messages.forget()
        self.broker.disconnected(self)
        self.queues.drop_all(lost=self.lost)
        self.broker.flush()

    # what the broker reports

    def push(
        self, handle: Handle, message: Message, infos: Sequence[SubscriptionInfo], out_of_order: bool
    ) -> None:
        """Deliver a message with the next `flush`."""
        self.messages.push(handle, message, infos, out_of_order)
        self.broker.pushed(self)

    def flush(self) -> None:
        """Say what was pushed."""
        self.messages.flush()

    @property
    def unconfirmed(self) -> int:
        """Messages that the client has."""
        return sum(handle.unconfirmed for handle in self.handles.values())

    def shut_down(self) -> None:
        """Deliver nothing more, and open and close no queues; the broker will end the connection."""
        self.lost = False
        if self.state is State.RUNNING:
            self.state = State.STOPPING

    def kick(self) -> None:
        """The broker ends the connection."""
        self.lost = False
        self.end()

    # negotiation

    def _negotiate(self, frame: Frame, now: float) -> None:
        if isinstance(frame, AuthenticationRequest):
            self._authenticate(frame)
        elif isinstance(frame, ClientIdentity):
            self._meet(frame, now)
        elif not (isinstance(frame, Malformed) and frame.code == "too-large"):
            self.end()

    def _authenticate(self, request: AuthenticationRequest) -> None:
        mechanisms = self.profile.mechanisms
        if mechanisms is None or request.mechanism in mechanisms:
            self.link.say(AuthenticationResponse(Status(Category.E_SUCCESS, 0)))
            return
        text = f"Authentication mechanism '{request.mechanism}' not supported."
        self.link.say(AuthenticationResponse(Status(Category.E_REFUSED, -2, text)))
        self.end()

    def _meet(self, identity: ClientIdentity, now: float) -> None:
        if identity.client_type == ClientType.E_UNKNOWN:
            self.end()
            return
        self.identity = identity
        self.makes_guids = identity.guid_info is not None and bool(identity.guid_info.client_id)
        self.codec.encoding = _best_encoding(identity.features)
        self.state = State.ADMIN if identity.client_type == ClientType.E_TCPADMIN else State.RUNNING
        self._deadline.cancel()
        self.link.say(self._verdict(identity))
        self._begin_heartbeats(now)
        self.link.ready()

    def _verdict(self, identity: ClientIdentity) -> BrokerResponse:
        """What the client is told. One that is too old is told so, and may go on all the same."""
        version = identity.sdk_version
        oldest, advised = self.profile.oldest_sdks.get(identity.sdk_language, (-1, -1))
        status = Status(Category.E_SUCCESS, 0)
        if version < oldest:
            text = (
                "Client is using an unsupported version of libbmq "
                f"(minimum supported version: {oldest}, client version: {version})."
            )
            status = Status(Category.E_NOT_SUPPORTED, -1, text)
        return self._response(status, deprecated=version < advised)

    def _response(self, result: Status, *, deprecated: bool = False) -> BrokerResponse:
        profile = self.profile
        identity = Identity(
            1,
            profile.broker_version,
            ClientType.E_TCPBROKER,
            _PROCESS,
            _PID,
            self.broker.negotiated(),
            host_name=self.node.name,
            features=profile.features,
            guid_info=GuidInfo(),
            user_agent=profile.user_agent,
        )
        return BrokerResponse(
            result,
            1,
            profile.broker_version,
            deprecated,
            identity,
            profile.heartbeat_interval_ms,
            0 if self.state is State.ADMIN else profile.max_missed_heartbeats,
        )

    # time

    def _begin_heartbeats(self, now: float) -> None:
        profile = self.profile
        self.silence_limit_s = math.inf
        if profile.max_missed_heartbeats and profile.heartbeat_interval_ms > 0:
            self.silence_limit_s = profile.heartbeat_s * (profile.max_missed_heartbeats + 1)
        if self.state is State.ADMIN:  # whom a broker does not watch
            self.silence_limit_s = math.inf
        elif profile.watches_clients and profile.heartbeat_interval_ms > 0:
            self._heartbeats = Heartbeats(
                profile.heartbeat_s,
                profile.max_missed_heartbeats,
                always=profile.asks_always,
                grace_s=profile.heartbeat_grace_s,
            )
            self._heartbeat_timer.set(now + profile.heartbeat_s)

    def _look_at_heartbeats(self, now: float) -> None:
        if self._heartbeats is None or self.state is State.ENDED:
            return
        due = self._heartbeats.look()
        if due is Due.DROP:
            self.end()
            return
        if due is Due.ASK:
            self.link.say(HeartbeatRequest())
        self._heartbeat_timer.set(now + self._heartbeats.interval_s)

    def _time_is_up(self, now: float) -> None:
        """The client did not say who it is."""
        self.end()

    # frames of a client that is known

    def _handle_malformed(self, frame: Malformed) -> None:
        """A broker drops what it cannot read, unless it cannot know where the next event begins.

        It waits for the rest of what is too large.
        """
        if frame.code == "framing":
            self.end()

    def _handle_request(self, request: Request, reads: Reads, now: float) -> None:
        """Requests without a number are ignored, and so is what this kind of session may not ask for."""
        if request.r_id is None or request.r_id < 0:
            return
        if isinstance(request, Disconnect) and STATES[self.state].due is Disconnect:
            self._disconnect(request)
        elif isinstance(request, AdminCommand) and reads is Reads.COMMANDS:
            text = admin.carry_out(self.broker, request.command)
            self.link.say(AdminCommandResponse(request.r_id, text))
        elif reads is Reads.CONFIRMS and not isinstance(request, ConfigureStream | ConfigureQueueStream):
            return
        elif reads in _MESSAGES and (act := self.queues.handlers.get(type(request))) is not None:
            act(request, now)

    def _disconnect(self, request: Disconnect) -> None:
        self.lost = False
        self.state = STATES[self.state].next
        self._deadline.cancel()
        self.queues.drop_all(lost=False)
        self.messages.forget()
        self.link.say(DisconnectResponse(request.r_id))

    # what others ask

    def refusal(self, frame: Frame, code: int, now: float) -> Frame | None:
        """The answer to a frame that carries the error `code`: a category, or of messages an ACK status."""
        match frame:
            case ClientIdentity():
                self.codec.encoding = _best_encoding(frame.features)
                return self._response(Status(code, code, "refused"))
            case AuthenticationRequest():
                return AuthenticationResponse(Status(code, code, "refused"))
            case Put():
                return self._refused_put(frame, code)
            case Request():
                return StatusResponse(frame.r_id, code, code, "refused")
        return None

    def _refused_put(self, event: Put, status: int) -> Ack:
        made = self.makes_guids
        return Ack(tuple([refusal(message, status, makes_guids=made) for message in event.messages]))

    def describe(self) -> dict[str, Any]:
        """State, identity, queues, and the scopes of the checksums that came."""
        identity = self.identity
        return {
            "state": self.state.value,
            "node": self.node.name,
            "process": identity.process_name if identity else "",
            "sdk_version": identity.sdk_version if identity else 0,
            "user_agent": identity.user_agent if identity else None,
            "features": identity.features if identity else "",
            "encoding": self.codec.encoding.name,
            "crcs": dict(self.messages.crcs),
            "queues": {number: _described(handle) for number, handle in self.handles.items()},
        }


def _asks_for_life(frame: Frame) -> bool:
    """Whether it is a heartbeat, even one with a body."""
    heartbeat = isinstance(frame, HeartbeatRequest)
    return heartbeat or (isinstance(frame, OtherEvent) and frame.type == EventType.HEARTBEAT_REQ)


def _described(handle: Handle) -> dict[str, Any]:
    return {
        "uri": handle.queue.uri,
        "reads": handle.reads,
        "writes": handle.writes,
        "unconfirmed": handle.unconfirmed,
        "apps": {name: stream.numbers for name, stream in handle.streams.items()},
    }


def _best_encoding(features: str) -> Encoding:
    """BER if the client can read it, or says nothing about it; else JSON if it can read that."""
    if "PROTOCOL_ENCODING:" not in features or has_feature(features, "PROTOCOL_ENCODING:BER"):
        return Encoding.BER
    return Encoding.JSON if has_feature(features, "PROTOCOL_ENCODING:JSON") else Encoding.BER
