"""One connection without IO: bytes and time in, bytes and calls of its owner out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from conformance.clients.reference.kit import ClientError, Runtime
from conformance.clients.reference.rabbitmq_stream.handshake import Handshake
from conformance.clients.reference.rabbitmq_stream.requests import Requests
from conformance.clients.reference.rabbitmq_stream.settings import Settings
from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.rabbitmq_stream.binary import unpack_ids
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.frames import (
    Close,
    CloseResponse,
    ConsumerUpdate,
    ConsumerUpdateResponse,
    Credit,
    CreditResponse,
    Deliver,
    Heartbeat,
    MetadataUpdate,
    PublishConfirm,
    PublishError,
    StreamFrame,
    Tune,
)

if TYPE_CHECKING:
    from conformance.clients.reference.rabbitmq_stream.publisher import Publisher
    from conformance.clients.reference.rabbitmq_stream.subscription import Subscription


WHOLE_BEATS = 4  #: heartbeat intervals that a frame may take from its first byte to its last


class Owner(Protocol):
    """What a connection reports to."""

    def flush(self) -> None:
        """Something was queued while no bytes came."""

    def connection_opened(self) -> None:
        """The handshake is done."""

    def connection_ended(self, error: ClientError) -> None:
        """It is over; called once."""

    def stream_moved(self, stream: str, code: int) -> None:
        """The server has dropped the publishers and subscriptions of this stream."""

    def publisher_lost(self, publisher: Publisher) -> None:
        """The server does not know this publisher any more."""

    def trouble(self, where: str, error: ClientError) -> None:
        """Something worth reporting that ends nothing."""

    def dropped(self, what: str) -> None:
        """Something came that nobody waits for."""


class Connection:
    """See the module's text. Mutants override its methods.

    Attributes:
        state: ``new``, ``open`` or ``ended``.
        frame_max: Largest frame that the client may send, as agreed; 0: any.
        heartbeat_s: As agreed; 0: none.
        server_properties: What the server is.
        advertised: ``host:port`` under which the server wants to be known; empty if it said nothing.
        publishers, subscriptions: Those that live here, by their ids on the wire.
        last_sent, last_received: When bytes went and came.
        begun: Since when a frame has begun and is not whole; None while none has.
        closing: Close was sent.
    """

    #: What is done with a frame, by the name of the method; all others are answers.
    HANDLERS: ClassVar[Mapping[type[Frame], str]] = {
        Close: "close_asked",
        ConsumerUpdate: "consumer_updated",
        CreditResponse: "credit_refused",
        Deliver: "delivered",
        Heartbeat: "heartbeat",
        Malformed: "malformed",
        MetadataUpdate: "metadata_updated",
        PublishConfirm: "confirmed",
        PublishError: "publish_refused",
        Tune: "tune_offered",
    }

    def __init__(self, runtime: Runtime, settings: Settings, owner: Owner) -> None:
        self.settings = settings
        self.owner = owner
        self.codec = StreamCodec("client", settings.handshake_max)
        self.state = "new"
        self.closing = False
        self.now = 0.0
        self.last_sent = 0.0
        self.last_received = 0.0
        self.begun: float | None = None
        self.publishers: dict[int, Publisher] = {}
        self.subscriptions: dict[int, Subscription] = {}
        self._next_publisher_id = 0
        self._next_subscription_id = 0
        self._out: list[bytes] = []
        self.frame_max = 0
        self.heartbeat_s = 0
        self.server_properties: dict[str, str | None] = {}
        self.advertised = ""
        self.requests = runtime.part(Requests)(self)
        self.handshake = runtime.part(Handshake)(self)

    # bytes and time

    def send(self, frame: StreamFrame) -> None:
        """Queue a frame for the wire. Raises `WireError` if it does not fit."""
        if self.state == "ended":
            return
        self._out.append(self.codec.encode(frame))

    def data_to_send(self, now: float) -> bytes:
        """What has to be written now."""
        if not self._out:
            return b""
        data, self._out = b"".join(self._out), []
        self.last_sent = now
        return data

    def receive(self, data: bytes, now: float) -> None:
        """Bytes came."""
        self.now = now
        self.last_received = now
        for frame, _ in self.codec.feed(data):
            if self.state == "ended":
                return
            self.begun = None
            self.handle(frame)
        if not self.codec.partial:
            self.begun = None
        elif self.begun is None:
            self.begun = now

    def handle(self, frame: Frame) -> None:
        """A frame came."""
        getattr(self, self.HANDLERS.get(type(frame), "answered"))(frame)

    def lost(self, now: float, problem: str) -> None:
        """The transport is gone."""
        self.now = now
        self.end(ClientError("connection", problem))

    def next_deadline(self) -> float | None:
        """When `handle_timer` wants to be called."""
        times = [self.requests.deadline(), self.heartbeat_due(), self.silence_limit(), self.whole_limit()]
        return min([time for time in times if time is not None], default=None)

    def handle_timer(self, now: float) -> None:
        """A deadline has passed."""
        self.now = now
        self.requests.expire(now)
        due, limit = self.heartbeat_due(), self.silence_limit()
        if limit is not None and limit <= now:
            self.end(ClientError("connection", f"nothing came for {2 * self.heartbeat_s} s"))
        elif (whole := self.whole_limit()) is not None and whole <= now:
            text = f"a frame has begun and was not whole within {WHOLE_BEATS * self.heartbeat_s} s"
            self.end(ClientError("protocol", text))
        elif due is not None and due <= now:
            self.send(Heartbeat())

    def answered(self, frame: Any) -> None:
        """An answer came."""
        self.requests.answered(frame)

    # liveness (docs/protocols/rabbitmq-stream.md, 5 "Heartbeats")

    def heartbeat_due(self) -> float | None:
        """When a Heartbeat has to go out, unless something else does."""
        return self.last_sent + self.heartbeat_s / 2 if self.is_beating() else None

    def silence_limit(self) -> float | None:
        """When a silent server counts as dead."""
        return self.last_received + 2 * self.heartbeat_s if self.is_beating() else None

    def whole_limit(self) -> float | None:
        """When a frame that has begun has to be whole.

        Its size may be wrong: then all that comes, heartbeats too, is taken for the rest of it.
        """
        if self.begun is None or not self.is_beating():
            return None
        return self.begun + WHOLE_BEATS * self.heartbeat_s

    def is_beating(self) -> bool:
        """Whether heartbeats are exchanged."""
        return self.state == "open" and self.heartbeat_s > 0

    # life

    def start(self, now: float, deadline: float) -> None:
        """TCP is connected: shake hands until `deadline`."""
        self.now = now
        self.handshake.start(deadline)

    def tune_offered(self, frame: Tune) -> None:
        """A step of the handshake."""
        self.handshake.tuned(frame)

    def opened(self) -> None:
        """The handshake is done."""
        self.state = "open"
        self.codec.max_frame = self.settings.inbound_max
        self.owner.connection_opened()

    def end(self, error: ClientError) -> None:
        """It is over, for whatever reason."""
        if self.state == "ended":
            return
        self.state = "ended"
        self.requests.end(ClientError(error.kind, error.text, code=error.code, definite=error.definite))
        self.owner.connection_ended(error)

    def close_asked(self, frame: Close) -> None:
        """The server sends Close."""
        self.send(CloseResponse(frame.correlation_id, Code.OK))
        text = f"the server closed the connection: {frame.reason}"
        self.end(ClientError("closed", text, code=frame.code, definite=False))

    def malformed(self, frame: Malformed) -> None:
        """An unknown frame is skipped by its size; what is broken ends the connection."""
        if frame.code != "unknown" or len(frame.data) < 8:
            self.end(ClientError("protocol", frame.problem))
        else:
            self.owner.dropped(f"a frame that is not known here ({frame.problem})")

    def heartbeat(self, frame: Heartbeat) -> None:
        """The bytes alone have shown that the server lives."""

    def metadata_updated(self, frame: MetadataUpdate) -> None:
        """A stream is gone from here; whatever the code, where it is now has to be asked."""
        self.owner.stream_moved(frame.stream, frame.code)

    # publishers

    def free_publisher_id(self) -> int:
        """A u8 that no publisher has."""
        self._next_publisher_id = _free(self.publishers, self._next_publisher_id)
        return self._next_publisher_id

    def confirmed(self, frame: PublishConfirm) -> None:
        """Messages are stored."""
        publisher = self.find_publisher(frame.publisher_id)
        if publisher is None:
            self.owner.dropped(f"a confirm for publisher {frame.publisher_id}, which is not here")
        else:
            publisher.confirmed(unpack_ids(frame.publishing_ids))

    def publish_refused(self, frame: PublishError) -> None:
        """Messages were not stored."""
        publisher = self.find_publisher(frame.publisher_id)
        if publisher is None:
            self.owner.dropped(f"a PublishError for publisher {frame.publisher_id}, which is not here")
            return
        publisher.refused(frame.errors)
        if any(code == Code.PUBLISHER_DOES_NOT_EXIST for _, code in frame.errors):
            self.owner.publisher_lost(publisher)

    def find_publisher(self, publisher_id: int) -> Publisher | None:
        """The publisher with that id on this connection."""
        return self.publishers.get(publisher_id)

    # subscriptions

    def free_subscription_id(self) -> int:
        """A u8 that no subscription has."""
        self._next_subscription_id = _free(self.subscriptions, self._next_subscription_id)
        return self._next_subscription_id

    def delivered(self, frame: Deliver) -> None:
        """A chunk came; nobody's are dropped."""
        subscription = self.subscriptions.get(frame.subscription_id)
        if subscription is None:
            self.owner.dropped(f"a chunk for subscription {frame.subscription_id}, which is not here")
        else:
            subscription.deliver(frame.chunk)

    def give_credit(self, subscription_id: int, chunks: int = 1) -> None:
        """Let the server send more."""
        self.send(Credit(subscription_id, chunks))

    def credit_refused(self, frame: CreditResponse) -> None:
        """The subscription is gone already, or not active; neither ends anything."""
        self.owner.dropped(f"code {frame.code} for a credit of subscription {frame.subscription_id}")

    def consumer_updated(self, frame: ConsumerUpdate) -> None:
        """A single active consumer is asked to begin or to stop: say from where."""
        subscription = self.subscriptions.get(frame.subscription_id)
        offset_type, offset = (0, None) if subscription is None else subscription.activate(bool(frame.active))
        self.send(ConsumerUpdateResponse(frame.correlation_id, Code.OK, offset_type, offset))
        if subscription is not None and frame.active:
            subscription.repay()


def _free(used: Mapping[int, Any], last: int) -> int:
    """The next u8 after `last` that is not used."""
    for step in range(1, 257):
        if (last + step) % 256 not in used:
            return (last + step) % 256
    raise ClientError("invalid", "all 256 ids of this connection are in use")
