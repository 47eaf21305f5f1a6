"""A broker and connections to it without sockets, clocks or faults: bytes in, bytes out, time by hand.

bench = Bench()
client = bench.connect()
client.open()
client.send(Create(5, "orders", {}))
assert client.frames() == [CreateResponse(5, Code.OK)]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from fakebrokers.core.frames import Frame
from fakebrokers.core.session import HangUp
from fakebrokers.core.timers import Timer
from fakebrokers.rabbitmq_stream.broker import StreamBroker
from fakebrokers.rabbitmq_stream.cluster import Cluster, Node
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.codec_seed import codec_for
from fakebrokers.rabbitmq_stream.codes import OffsetType
from fakebrokers.rabbitmq_stream.frames import (
    Create,
    DeclarePublisher,
    Open,
    PeerProperties,
    SaslAuthenticate,
    SaslHandshake,
    Subscribe,
    Tune,
)
from fakebrokers.rabbitmq_stream.profile import V4_3, Profile
from fakebrokers.rabbitmq_stream.session import StreamSession

F = TypeVar("F", bound=Frame)

EOF = b""
PLAIN = b"\0guest\0guest"

#: frames of a handshake, and the states in front of each
HANDSHAKE = (
    ("connected", PeerProperties(1, {"product": "bench"})),
    ("introduced", SaslHandshake(2)),
    ("authenticating", SaslAuthenticate(3, "PLAIN", PLAIN)),
    ("tuning", Tune(1_048_576, 60)),
    ("tuned", Open(4, "/")),
)


class Sent(NamedTuple):
    """What the fake did: when, and the bytes of one frame; no bytes: it hung up."""

    at: float
    data: bytes


class Client:
    """The client's end of a connection; for the session it is the `Link`."""

    def __init__(self, bench: Bench, node: Node | None = None, address: str = "127.0.0.1:50000") -> None:
        self.name = "c1"
        self.address = address
        self.timers: list[Timer] = []
        self.sent: list[Sent] = []
        self.ended = False
        self.is_ready = False
        self.reading = True
        self.writable = True
        self.bench = bench
        self.codec = codec_for(bench.broker.profile)
        self.session = StreamSession(bench.broker, self.codec, node)
        self.session.link = self
        self._reader = StreamCodec("client")
        self.session.opened(bench.now)

    # Link

    def say(self, frame: Frame) -> None:
        assert not self.ended, f"{frame} after the end"
        self.sent.append(Sent(self.bench.now, self.codec.encode(frame)))

    def hang_up(self, how: HangUp = HangUp.FIN) -> None:
        assert how is HangUp.FIN
        if not self.ended:
            self.ended = True
            self.sent.append(Sent(self.bench.now, EOF))

    def ready(self) -> None:
        self.is_ready = True

    def identify(self, peer: str) -> None:
        raise AssertionError("nobody has a name here")

    def session_timer(self, act: Callable[[float], None]) -> Timer:
        self.timers.append(self.bench.broker.timers.new(lambda now: None if self.ended else act(now)))
        return self.timers[-1]

    def stop_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    # the client

    def send(self, *frames: Frame | bytes) -> None:
        """Send frames, or raw bytes, each in a segment of its own."""
        for frame in frames:
            self.send_bytes(frame if isinstance(frame, bytes) else self._reader.encode(frame))

    def send_bytes(self, data: bytes) -> None:
        """One segment; what follows the end of the connection is lost, as in `Connection.receive`."""
        if self.ended:
            return
        for frame, _ in self.codec.feed(data):
            self.session.handle(frame, self.bench.now)
            if self.ended:
                return
        if self.codec.partial:
            self.session.unfinished(self.codec.partial, self.bench.now)
        self.bench.run_timers()

    def handshake(self, until: str = "open", frame_max: int = 1_048_576, heartbeat: int = 60) -> Client:
        """Go on to a state, and forget what the fake has sent up to there."""
        for state, frame in HANDSHAKE:
            if state == until:
                break
            if self.session.state == state:
                self.send(Tune(frame_max, heartbeat) if isinstance(frame, Tune) else frame)
        assert self.session.state == until
        self.sent.clear()
        return self

    def frames(self) -> list[Frame]:
        """The frames that came since the last call."""
        taken, self.sent = [sent for sent in self.sent if sent.data], [s for s in self.sent if not s.data]
        return [frame for sent in taken for frame, _ in self._reader.feed(sent.data)]

    def only(self, kind: type[F]) -> F:
        """The one frame that came since the last call."""
        (frame,) = self.frames()
        assert isinstance(frame, kind), frame
        return frame

    def leave(self) -> None:
        """Close the connection; the session hears of it, as when a client dies."""
        self.ended = True
        for timer in self.timers:
            timer.drop()
        self.session.closed(self.bench.now)


class Bench:
    """One broker; `now` is monotonic seconds, `wall_offset` puts the wall clock at 1970 + that.

    The first chunk comes at once with the answer to Subscribe, unless `first_delivery_delay_s` is given.
    """

    def __init__(
        self, profile: Profile = V4_3, nodes: list[Node] | None = None, first_delivery_delay_s: float = 0.0
    ) -> None:
        profile = replace(profile, first_delivery_delay_s=first_delivery_delay_s)
        self.now = 0.0
        self.wall_offset = 1_700_000_000.0
        self.broker = StreamBroker(
            profile, wall=lambda now: self.wall_offset + now, cluster=Cluster(nodes) if nodes else None
        )
        self.clients: list[Client] = []

    def connect(self, node: Node | None = None, address: str = "127.0.0.1:50000") -> Client:
        """A new connection, nothing said yet."""
        client = Client(self, node, address)
        self.clients.append(client)
        return client

    def open(self, node: Node | None = None, frame_max: int = 1_048_576, heartbeat: int = 60) -> Client:
        """A new connection, ready to use."""
        return self.connect(node).handshake(frame_max=frame_max, heartbeat=heartbeat)

    def run_timers(self) -> None:
        """Run the timers that are due now."""
        self.broker.timers.run(self.now)

    def advance(self, seconds: float) -> None:
        """Let time pass, timer by timer."""
        self.advance_to(self.now + seconds)

    def advance_to(self, end: float) -> None:
        """Let time pass until `end`."""
        while (due := self.broker.timers.next_due) <= end:
            self.now = max(self.now, due)
            self.run_timers()
        self.now = max(self.now, end)


#: properties of a single active consumer
SAC = {"single-active-consumer": "true", "name": "g"}


def subscribe(
    number: int = 1,
    kind: OffsetType = OffsetType.FIRST,
    credit: int = 10,
    properties: dict[str, str] | None = None,
    stream: str = "s",
) -> Subscribe:
    """A Subscribe with correlation id 50."""
    return Subscribe(50, number, stream, kind, None, credit, properties)


def with_stream(bench: Bench, messages: int = 0) -> Client:
    """A connection after it has created the stream ``s``, with `messages` messages in chunks of one."""
    client = bench.open()
    client.send(Create(5, "s", {}))
    for number in range(messages):
        bench.broker.publish("s", [b"%d" % number], bench.now)
    client.sent.clear()
    return client


def publishing(bench: Bench, reference: str = "") -> Client:
    """A connection with publisher 1 on the stream ``s``."""
    client = with_stream(bench)
    client.send(DeclarePublisher(6, 1, reference, "s"))
    client.sent.clear()
    return client


def times(client: Client) -> list[float]:
    """When the fake said something or hung up."""
    return [sent.at for sent in client.sent]
