"""What the parts of a session share: the connection's identity, its answers and its end."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from fakebrokers.core.frames import Frame
from fakebrokers.core.session import HangUp, Session
from fakebrokers.rabbitmq_stream.access import Right, User
from fakebrokers.rabbitmq_stream.broker import StreamBroker
from fakebrokers.rabbitmq_stream.cluster import Node
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.frames import Close, Request, answer
from fakebrokers.rabbitmq_stream.heartbeat import Heartbeats
from fakebrokers.rabbitmq_stream.refusals import Refused
from fakebrokers.rabbitmq_stream.states import OPEN, STATES, State
from fakebrokers.rabbitmq_stream.stream import Stream

#: What a part of a session does with a frame; called with the part, the frame and the time.
Handler = Callable[[Any, Any, float], None]
Handlers = Mapping[type[Frame], Handler]


class SessionBase(Session):
    """The core that handlers work with.

    Attributes:
        broker: What all connections share.
        profile: Which server version this is.
        codec: Of this connection; its largest frame depends on the state.
        node: The node that the connection has reached.
        user: Set by the login.
        virtual_host: Set by Open.
        mechanism: The SASL mechanism of the login.
        client_properties: The client's peer properties.
        frame_max: Largest frame the client may send, bytes; 0: any.
        heartbeat_s: Interval that the client chose; 0: none.
        heartbeats: Their timers, once the connection is open.
        watched: The streams of which it is told when they go away.
        tls: The client came over TLS.
        certificate_name: Common name in the client's certificate; empty if it has sent none.
    """

    def __init__(self, broker: StreamBroker, codec: StreamCodec, listener: Node) -> None:
        self.broker = broker
        self.profile = broker.profile
        self.codec = codec
        self.node = broker.cluster.accept(listener)
        self.user: User | None = None
        self.virtual_host: str | None = None
        self.mechanism = ""
        self.client_properties: dict[str, str] = {}
        self.frame_max = self.profile.frame_max
        self.heartbeat_s = self.profile.heartbeat_s
        self.heartbeats: Heartbeats | None = None
        self.state: State = State.CONNECTED
        self.refusal_held: Frame | None = None
        self.watched: dict[Stream, None] = {}
        self.tls = False
        self.certificate_name = ""

    def address_of(self, node: Node) -> tuple[str, int]:
        """Host and port at which this client is told to find a node."""
        return node.host, node.tls_port if self.tls else node.port

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The SASL mechanisms that are offered here; a broker offers EXTERNAL on TLS listeners only."""
        return (*self.profile.mechanisms, "EXTERNAL") if self.tls else self.profile.mechanisms

    @abstractmethod
    def limit_step(self, deadline: float | None) -> None:
        """The present step of the connection's life, whatever that is, must be over by then."""

    @abstractmethod
    def begin_heartbeats(self, heartbeats: Heartbeats) -> None:
        """The connection is open: signs of life are expected, and given."""

    @abstractmethod
    def stream_lost(self, stream: Stream, now: float) -> None:
        """The stream is gone or has lost its member (see `stream.Watcher`)."""

    @abstractmethod
    def unwatch_if_unused(self, stream: Stream) -> None:
        """Get no MetadataUpdate any more of a stream that has no publisher or subscription here."""

    def watch(self, stream: Stream) -> None:
        """Get a MetadataUpdate when the stream goes away: the connection has cached its leader."""
        stream.watchers[self] = None
        self.watched[stream] = None

    def unwatch(self, stream: Stream) -> None:
        """Do not be told about a stream any more."""
        stream.watchers.pop(self, None)
        self.watched.pop(stream, None)

    @property
    def host(self) -> str:
        """The virtual host of an open connection."""
        return self.virtual_host or ""

    def say(self, frame: Frame) -> None:
        """Send a frame, unless the connection is ending (see `states.STATES`)."""
        if self.state is not OPEN and not STATES[self.state].says:
            return
        if self.heartbeats is not None:
            self.heartbeats.sent()
        self.link.say(frame)

    def answer(self, request: Request, code: int = Code.OK) -> None:
        """Answer a request with nothing but a code."""
        response = answer(request, code)
        if response is not None:
            self.say(response)

    def end(self) -> None:
        """End the connection without a Close frame, after everything that was sent."""
        if self.state is State.ENDED:
            return
        self.state = State.ENDED
        self.limit_step(None)
        self.link.hang_up(HangUp.FIN)

    def close(self, code: Code, reason: str, now: float) -> None:
        """Send Close; the connection ends with its answer, or without one after `close_timeout_s`."""
        self.say(Close(1, code, reason))
        self.state = State.CLOSING
        self.limit_step(now + self.profile.close_timeout_s)

    def close_unknown(self, now: float) -> None:
        """Send Close 13: what came is no frame, or none that an open connection may receive."""
        self.close(Code.UNKNOWN_FRAME, "unknown frame", now)

    def refuse_and_end(self, refusal: Frame, now: float, delay_s: float = 0.0) -> None:
        """Send a refusal after `delay_s` and end the connection; nothing is read in between."""
        if delay_s > 0:
            self.state = State.REFUSING
            self.refusal_held = refusal
            self.limit_step(now + delay_s)
        else:
            self.say(refusal)
            self.end()

    def require(self, right: Right, resource: str) -> None:
        """Demand a right of the user on a stream or super stream.

        Raises:
            Refused: Code 16.
        """
        if self.user is None or not self.user.may(right, self.host, resource):
            raise Refused(Code.ACCESS_REFUSED)
