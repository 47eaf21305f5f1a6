"""The handshake, and logging in again later (docs/protocols/rabbitmq-stream.md, 5)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from ipaddress import ip_address
from typing import ClassVar

from fakebrokers.core.frames import Frame
from fakebrokers.rabbitmq_stream.access import User
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.frames import (
    Heartbeat,
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
from fakebrokers.rabbitmq_stream.refusals import Crashed, Refused
from fakebrokers.rabbitmq_stream.sasl import parse_credentials
from fakebrokers.rabbitmq_stream.session_base import Handlers, SessionBase
from fakebrokers.rabbitmq_stream.states import STATES, Reads, State

_INFORMATION = "Licensed under the MPL 2.0. Website: https://rabbitmq.com"

#: longest timer of a real server, milliseconds
_LONGEST_TIMER_MS = 0xFFFFFFFF


class Handshake:
    """The states before an open connection: what the server does with the frames that are due in them."""

    def __init__(self, session: SessionBase, evaluate_rights: Callable[[float], None]) -> None:
        self._session = session
        self._evaluate_rights = evaluate_rights
        self._last: type[Frame] | None = None  # of this segment

    def handle(self, frame: Frame, now: float) -> None:
        """Handle a frame of a connection that is not open yet."""
        session, kind = self._session, type(frame)
        handler = self._HANDLERS.get(kind)
        if handler is not None:
            handler(self, frame, now)
            self._last = kind
        elif kind is Heartbeat:
            self._last = self._last or kind
        else:
            session.end()
        if session.codec.partial == 0:
            self.segment_ended(now)

    def segment_ended(self, now: float) -> None:
        """Go on to the state where the last frame of the segment leads, or end the connection."""
        session, last = self._session, self._last
        self._last = None
        row = STATES[session.state]
        if row.reads is not Reads.HANDSHAKE:  # refused
            return
        if last is Heartbeat:  # nothing else: before 4.3 it was an error to leave the state as it is
            if not session.profile.early_heartbeat:
                session.end()
            return
        if last is None or last is row.repeats:
            # before 4.3 it was an error to leave the state as it is, be it with a part of a frame
            if not session.profile.split_handshake:
                session.end()
        elif last is row.due or last is row.skips:
            session.state = row.next if last is row.due else State.OPEN
            session.limit_step(None if session.state is State.OPEN else now + session.profile.step_timeout_s)
            if session.state is State.TUNING:
                session.say(Tune(session.profile.frame_max, session.profile.heartbeat_s))
        else:
            session.end()

    def authenticate_again(self, frame: SaslAuthenticate, now: float) -> None:
        """Renew the login of an open connection: same mechanism and user; rights are evaluated again."""
        session = self._session
        try:
            if frame.mechanism != session.mechanism:
                raise Refused(Code.SASL_CANNOT_CHANGE_MECHANISM)
            user = self._log_in(frame)
            if session.user is not None and user.name != session.user.name:
                raise Refused(Code.SASL_CANNOT_CHANGE_USERNAME)
            if session.profile.reauthentication_checks_virtual_host:
                session.broker.access.check_access(user, session.host)
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
            # 4.x holds back the answer to a wrong password for 3 s; other refusals come at once
            delay_s = profile.failure_delay_s if refused.code == Code.AUTHENTICATION_FAILURE else 0.0
            refusal = SaslAuthenticateResponse(frame.correlation_id, refused.code)
            session.refuse_and_end(refusal, now, delay_s)
            return
        except Crashed:
            session.end()
            return
        session.mechanism = frame.mechanism
        session.say(SaslAuthenticateResponse(frame.correlation_id, Code.OK))

    def _log_in(self, frame: SaslAuthenticate) -> User:
        access = self._session.broker.access
        if frame.mechanism == "EXTERNAL":
            return access.authenticate(self._session.certificate_name, None, loopback=True)
        who = parse_credentials(frame.mechanism, frame.data, access.anonymous)
        host = self._session.link.address.rpartition(":")[0]
        return access.authenticate(who.user, who.password, loopback=_is_loopback(host))

    def _tune(self, frame: Tune, now: float) -> None:
        """The client's heartbeat as it is; the smaller frame size, 0 being no limit of that side."""
        session = self._session
        sizes = [size for size in (session.profile.frame_max, frame.frame_max) if size]
        session.frame_max = min(sizes, default=0)
        session.heartbeat_s = frame.heartbeat
        if 1000 * frame.heartbeat > _LONGEST_TIMER_MS:  # the process that beats crashes
            session.end()

    def _open(self, frame: Open, now: float) -> None:
        session = self._session
        if session.user is None:
            session.end()
            return
        try:
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
            session.begin_heartbeats(Heartbeats(session.heartbeat_s, now))
            session.silence_limit_s = 2.0 * session.heartbeat_s
        session.link.ready()

    #: Who handles what.
    _HANDLERS: ClassVar[Handlers] = {
        PeerProperties: _introduce,
        SaslHandshake: _tell_mechanisms,
        SaslAuthenticate: _authenticate,
        Tune: _tune,
        Open: _open,
    }


@lru_cache(maxsize=1024)
def _is_loopback(host: str) -> bool:
    """Whether a peer's host such as ``127.0.0.1`` or ``[::1]`` is this machine; memory always is."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return True
