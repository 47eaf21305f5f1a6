"""The handshake, and logging in again later (docs/protocols/rabbitmq-stream.md, 5)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from typing import Any, NamedTuple

from fakebrokers.core.frames import Frame
from fakebrokers.rabbitmq_stream.access import User
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.frames import (
    Open,
    OpenResponse,
    PeerProperties,
    PeerPropertiesResponse,
    SaslAuthenticate,
    SaslAuthenticateResponse,
    SaslHandshake,
    SaslHandshakeResponse,
    Tune,
)
from fakebrokers.rabbitmq_stream.heartbeat import Heartbeats
from fakebrokers.rabbitmq_stream.refusals import Refused
from fakebrokers.rabbitmq_stream.sasl import parse_credentials
from fakebrokers.rabbitmq_stream.session_base import SessionBase, State

_INFORMATION = "Licensed under the MPL 2.0. Website: https://rabbitmq.com"


class Step(NamedTuple):
    """A row of the handshake's transition table."""

    before: State
    handle: Callable[[Any, float], None]
    after: State


class Handshake:
    """Everything in front of an open connection.

    Attributes:
        steps: Which frame is due in which state, and what comes after it.
    """

    def __init__(self, session: SessionBase, evaluate_rights: Callable[[float], None]) -> None:
        self.steps: Mapping[type[Frame], Step] = {
            PeerProperties: Step(State.CONNECTED, self._introduce, State.INTRODUCED),
            SaslHandshake: Step(State.INTRODUCED, self._tell_mechanisms, State.AUTHENTICATING),
            SaslAuthenticate: Step(State.AUTHENTICATING, self._authenticate, State.TUNING),
            Tune: Step(State.TUNING, self._tune, State.TUNED),
            Open: Step(State.TUNED, self._open, State.OPEN),
        }
        self._session = session
        self._evaluate_rights = evaluate_rights
        self._pipelined = False

    def handle(self, frame: Frame, now: float) -> None:
        """Take a frame of a connection that is not open yet.

        A handshake frame at the wrong time is handled and then the connection ends; so it does when two
        of them come in one segment before the login. Any other frame ends it at once.
        """
        session = self._session
        step = self.steps.get(type(frame))
        if step is None or (session.state is not step.before and step.after in {State.TUNED, State.OPEN}):
            session.end()
            return
        in_time = session.state is step.before and not self._pipelined
        self._pipelined = session.codec.partial > 0 and step.after in {State.INTRODUCED, State.AUTHENTICATING}
        step.handle(frame, now)
        if session.state in {State.REFUSING, State.ENDED}:
            return
        if not in_time:
            session.end()
            return
        session.state = step.after
        session.deadline = now + session.profile.step_timeout_s if step.after is not State.OPEN else None

    def unfinished(self) -> None:
        """A frame has arrived in part: what was left in the segment is not another frame."""
        self._pipelined = False

    def authenticate_again(self, frame: SaslAuthenticate, now: float) -> None:
        """Renew the login of an open connection: same mechanism, same user, rights are looked up again."""
        session = self._session
        try:
            if frame.mechanism != session.mechanism:
                raise Refused(Code.SASL_CANNOT_CHANGE_MECHANISM)
            user = self._log_in(frame)
            if session.user is not None and user.name != session.user.name:
                raise Refused(Code.SASL_CANNOT_CHANGE_USERNAME)
        except Refused as refused:
            refusal = SaslAuthenticateResponse(frame.correlation_id, refused.code)
            if session.profile.closes_on_failed_reauthentication:
                session.refuse_and_end(refusal, now, session.profile.failure_delay_s)
            else:
                session.say(refusal)
            return
        session.user = user
        session.say(SaslAuthenticateResponse(frame.correlation_id, Code.OK))
        self._evaluate_rights(now)

    # --- frames -------------------------------------------------------------------------------

    def _introduce(self, frame: PeerProperties, now: float) -> None:
        session = self._session
        session.client_properties = frame.properties
        properties: dict[str, str | None] = {
            "cluster_name": session.broker.cluster.nodes[0].name,
            "copyright": session.profile.copyright,
            "information": _INFORMATION,
            "platform": session.profile.platform,
            "product": "RabbitMQ",
            "version": session.profile.version,
        }
        session.say(PeerPropertiesResponse(frame.correlation_id, Code.OK, properties))

    def _tell_mechanisms(self, frame: SaslHandshake, now: float) -> None:
        mechanisms = self._session.mechanisms
        self._session.say(SaslHandshakeResponse(frame.correlation_id, Code.OK, mechanisms))

    def _authenticate(self, frame: SaslAuthenticate, now: float) -> None:
        session, profile = self._session, self._session.profile
        try:
            if frame.mechanism not in session.mechanisms:
                raise Refused(Code.SASL_MECHANISM_NOT_SUPPORTED)
            session.user = self._log_in(frame)
        except Refused as refused:
            delay_s = profile.failure_delay_s if refused.code == Code.AUTHENTICATION_FAILURE else 0.0
            refusal = SaslAuthenticateResponse(frame.correlation_id, refused.code)
            session.refuse_and_end(refusal, now, delay_s)
            return
        session.mechanism = frame.mechanism
        session.say(SaslAuthenticateResponse(frame.correlation_id, Code.OK))
        session.say(Tune(profile.frame_max, profile.heartbeat_s))

    def _log_in(self, frame: SaslAuthenticate) -> User:
        access = self._session.broker.access
        if frame.mechanism == "EXTERNAL":
            return access.authenticate(self._session.certificate_name, None, loopback=True)
        who = parse_credentials(frame.mechanism, frame.data, access.anonymous)
        return access.authenticate(who.user, who.password, loopback=_is_loopback(self._session.link.peer))

    def _tune(self, frame: Tune, now: float) -> None:
        """The client's heartbeat as it is; the smaller frame size, 0 being no limit of that side."""
        session = self._session
        sizes = [size for size in (session.profile.frame_max, frame.frame_max) if size]
        session.frame_max = min(sizes, default=0)
        session.heartbeat_s = frame.heartbeat

    def _open(self, frame: Open, now: float) -> None:
        session = self._session
        try:
            if session.user is None:
                raise Refused(Code.VIRTUAL_HOST_ACCESS_FAILURE)
            session.broker.check_virtual_host(session.user, frame.virtual_host)
        except Refused as refused:
            refusal = OpenResponse(frame.correlation_id, refused.code)
            session.refuse_and_end(refusal, now, session.profile.failure_delay_s)
            return
        session.virtual_host = frame.virtual_host
        host, port = session.address_of(session.node)
        address: dict[str, str | None] = {"advertised_port": str(port), "advertised_host": host}
        session.say(OpenResponse(frame.correlation_id, Code.OK, address))
        session.codec.max_frame = session.frame_max if session.profile.enforces_frame_max else 0
        session.silence_limit_s = math.inf
        if session.heartbeat_s:
            session.heartbeats = Heartbeats(session.heartbeat_s, now)
            session.silence_limit_s = 2.0 * session.heartbeat_s
        session.link.ready()


def _is_loopback(peer: str) -> bool:
    """Whether a peer such as ``127.0.0.1:5000`` or ``[::1]:5000`` is on this machine; memory always is."""
    try:
        return ip_address(peer.rpartition(":")[0].strip("[]")).is_loopback
    except ValueError:
        return True
