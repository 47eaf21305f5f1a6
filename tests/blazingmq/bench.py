"""A broker and connections to it without sockets, clocks or faults: bytes in, bytes out, time by hand.

bench = Bench()
client = bench.start()
client.open(read=True, write=True)
client.post(b"hello")
ack, push = client.frames()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from crc32c import crc32c

from fakebrokers.blazingmq.broker import BlazingBroker
from fakebrokers.blazingmq.cluster import Node
from fakebrokers.blazingmq.codec import BlazingCodec
from fakebrokers.blazingmq.codes import (
    DEFAULT_APP,
    ClientType,
    Compression,
    Encoding,
    ExpressionVersion,
    Language,
    PutFlag,
    QueueFlag,
)
from fakebrokers.blazingmq.domains import Domain, Domains
from fakebrokers.blazingmq.frames import (
    Ack,
    BrokerResponse,
    ClientIdentity,
    CloseQueue,
    ConfigureStream,
    Confirm,
    ConfirmMessage,
    Disconnect,
    OpenQueue,
    Push,
    PushMessage,
    Put,
    PutMessage,
    Request,
    Response,
    StatusResponse,
)
from fakebrokers.blazingmq.profile import REAL, Profile
from fakebrokers.blazingmq.properties import Content, Property, PropertyType, Style, write_content
from fakebrokers.blazingmq.schema import (
    ConsumerInfo,
    Expression,
    GuidInfo,
    HandleParameters,
    StreamParameters,
    SubQueueId,
    Subscription,
)
from fakebrokers.blazingmq.session import BlazingSession
from fakebrokers.core.frames import Frame
from fakebrokers.core.session import HangUp
from fakebrokers.core.timers import Timer

F = TypeVar("F", bound=Frame)

Q = "bmq://bmq.test.mem.priority/q"
FANOUT = "bmq://bmq.test.mem.fanout/q"
BROADCAST = "bmq://bmq.test.mem.broadcast/q"

CPP_FEATURES = "PROTOCOL_ENCODING:BER,JSON;MPS:MESSAGE_PROPERTIES_EX"
JAVA_FEATURES = "PROTOCOL_ENCODING:JSON;MPS:MESSAGE_PROPERTIES_EX"

CPP = ClientIdentity(
    1, 999_999, ClientType.E_TCPCLIENT, "bench", features=CPP_FEATURES, guid_info=GuidInfo("0102030405AB", 1)
)
JAVA = ClientIdentity(
    1,
    999_999,
    ClientType.E_TCPCLIENT,
    "bench",
    features=JAVA_FEATURES,
    sdk_language=Language.E_JAVA,
)
ADMIN = ClientIdentity(1, 999_999, ClientType.E_TCPADMIN, "admin", features=JAVA_FEATURES)


def guid(number: int) -> bytes:
    """A GUID, as a client would make it."""
    return b"\x40" + number.to_bytes(15)


class Client:
    """The client's end of a connection; for the session it is the `Link`."""

    def __init__(self, bench: Bench, node: Node | None = None) -> None:
        self.name = "c1"
        self.address = "127.0.0.1:50000"
        self.bench = bench
        self.timers: list[Timer] = []
        self.sent: list[bytes] = []
        self.ended = False
        self.is_ready = False
        self.writable = True
        self.codec = BlazingCodec()
        self.session = BlazingSession(bench.broker, self.codec, node)
        self.session.link = self
        self._reader = BlazingCodec()
        self._requests = 0
        self._posts = 0
        self.session.opened(bench.now)

    # Link

    def say(self, frame: Frame) -> None:
        assert not self.ended, f"{frame} after the end"
        self.sent.append(self.codec.encode(frame))

    def hang_up(self, how: HangUp = HangUp.FIN) -> None:
        assert how is HangUp.FIN
        self.ended = True

    def ready(self) -> None:
        self.is_ready = True

    def identify(self, peer: str) -> None:
        raise AssertionError("nobody has a name here")

    def session_timer(self, act: Callable[[float], None]) -> Timer:
        self.timers.append(self.bench.broker.timers.new(lambda now: None if self.ended else act(now)))
        return self.timers[-1]

    def stop_reading(self) -> None:
        raise AssertionError("reads always")

    def resume_reading(self) -> None:
        raise AssertionError("reads always")

    # the client

    def send(self, *frames: Frame | bytes) -> None:
        """Send frames, or raw bytes, each in a segment of its own."""
        for frame in frames:
            if self.ended:
                return
            data = frame if isinstance(frame, bytes) else self._reader.encode(frame)
            for each, _ in self.codec.feed(data):
                self.session.handle(each, self.bench.now)
        self.bench.broker.timers.run(self.bench.now)

    def frames(self) -> list[Frame]:
        """The frames that came since the last call."""
        taken, self.sent = self.sent, []
        return [frame for data in taken for frame, _ in self._reader.feed(data)]

    def only(self, kind: type[F]) -> F:
        """The one frame that came since the last call."""
        (frame,) = self.frames()
        assert isinstance(frame, kind), frame
        return frame

    def ask(self, kind: type[Request], *fields: object) -> Response:
        """A request with the next number, and its answer; what else came is kept."""
        self._requests += 1
        self.send(kind(self._requests, *fields))
        for data in self.sent:
            frame = BlazingCodec().decode(data)
            if isinstance(frame, Response) and frame.r_id == self._requests:
                self.sent.remove(data)
                return frame
        raise AssertionError(f"{kind.__name__} was not answered")

    def refused(self, kind: type[Request], *fields: object) -> tuple[int, str]:
        """Category and text of the status that a request gets."""
        answer = self.ask(kind, *fields)
        assert isinstance(answer, StatusResponse), answer
        return answer.category, answer.message

    def negotiate(self, identity: ClientIdentity = CPP) -> Client:
        """Say who it is, and be taken."""
        self._reader.encoding = Encoding.BER if "BER" in identity.features else Encoding.JSON
        self.send(identity)
        assert self.only(BrokerResponse).result.category == 0
        return self

    def open(
        self,
        uri: str = Q,
        q_id: int = 0,
        *,
        read: bool = False,
        write: bool = False,
        app: str = "",
        sub_id: int = 0,
        take: int | None = 100,
        **consumer: int,
    ) -> Client:
        """Open a queue; readers configure one subscription for everything, unless `take` is None."""
        answer = self.ask(OpenQueue, parameters(uri, q_id, read=read, write=write, app=app, sub_id=sub_id))
        assert not isinstance(answer, StatusResponse), answer
        if read and take is not None:
            self.configure(q_id, app=app, take=take, number=sub_id or 1, **consumer)
        return self

    def configure(self, q_id: int = 0, *, app: str = "", take: int = 100, **settings: object) -> Response:
        """Configure one subscription; `take` 0: none at all."""
        subscriptions = (subscription(take=take, **settings),) if take else ()  # type: ignore[arg-type]
        return self.ask(ConfigureStream, q_id, StreamParameters(app or DEFAULT_APP, subscriptions))

    def close(self, uri: str = Q, q_id: int = 0, *, final: bool = True, **kind: object) -> Response:
        """Close what `open` opened with these keywords."""
        return self.ask(CloseQueue, parameters(uri, q_id, **kind), final)  # type: ignore[arg-type]

    def post(
        self,
        data: bytes,
        q_id: int = 0,
        *,
        number: int | None = None,
        ack: bool = True,
        properties: Mapping[str, bool | int | str] | None = None,
    ) -> bytes:
        """Post a message; returns its GUID, or what stands in its place."""
        if number is None:
            self._posts += 1
            number = self._posts
        self.send(Put((put(data, q_id, number=number, ack=ack, properties=properties),)))
        return guid(number)

    def confirm(self, *messages: PushMessage | bytes, q_id: int = 0, sub_id: int = 0) -> None:
        """Confirm messages in one event."""
        guids = [each if isinstance(each, bytes) else each.guid for each in messages]
        self.send(Confirm(tuple([ConfirmMessage(q_id, each, sub_id) for each in guids])))

    def pushes(self) -> list[PushMessage]:
        """The deliveries that came since the last call; nothing else may have come but ACKs."""
        found: list[PushMessage] = []
        for frame in self.frames():
            assert isinstance(frame, Push | Ack), frame
            if isinstance(frame, Push):
                found += frame.messages
        return found

    def payloads(self) -> list[bytes]:
        """The data of the deliveries that came since the last call."""
        return [push.data for push in self.pushes()]

    def statuses(self) -> list[int]:
        """Those of the ACKs that came since the last call; nothing else may have come but deliveries."""
        found: list[int] = []
        for frame in self.frames():
            assert isinstance(frame, Push | Ack), frame
            if isinstance(frame, Ack):
                found += [message.status for message in frame.messages]
        return found

    def disconnect(self) -> None:
        """Say that it goes, and go."""
        self.ask(Disconnect)
        self.leave()

    def leave(self) -> None:
        """Close the connection, as a client that dies does."""
        self.ended = True
        for timer in self.timers:
            timer.drop()
        self.session.closed(self.bench.now)


def parameters(
    uri: str = Q, q_id: int = 0, *, read: bool = False, write: bool = False, app: str = "", sub_id: int = 0
) -> HandleParameters:
    """What is opened or closed."""
    return HandleParameters(
        uri,
        q_id,
        SubQueueId(sub_id, app) if app else None,
        (QueueFlag.READ if read else 0) | (QueueFlag.WRITE if write else 0),
        int(read),
        int(write),
    )


def subscription(
    number: int = 1,
    text: str = "",
    *,
    take: int = 100,
    max_bytes: int = 1 << 20,
    priority: int = 0,
    turns: int = 1,
) -> Subscription:
    """A subscription with one consumer."""
    version = ExpressionVersion.E_VERSION_1 if text else ExpressionVersion.E_UNDEFINED
    return Subscription(number, Expression(version, text), (ConsumerInfo(take, max_bytes, priority, turns),))


def put(
    data: bytes,
    q_id: int = 0,
    *,
    number: int = 1,
    ack: bool = True,
    properties: Mapping[str, bool | int | str] | None = None,
) -> PutMessage:
    """A message of the C++ SDK, with properties in the new style."""
    flags = PutFlag.ACK_REQUESTED if ack else 0
    if properties:
        typed = {name: _typed(value) for name, value in properties.items()}
        data = write_content(Content(data, typed), Style.NEW, Compression.NONE)
        flags |= PutFlag.MESSAGE_PROPERTIES
    return PutMessage(
        q_id, guid(number), data, int(flags), crc=crc32c(data), schema_id=1 if properties else 0
    )


def _typed(value: bool | int | str) -> Property:
    if isinstance(value, bool):
        return Property(PropertyType.BOOL, value)
    return Property(PropertyType.INT64 if isinstance(value, int) else PropertyType.STRING, value)


class Bench:
    """One broker; `now` is monotonic seconds."""

    def __init__(
        self,
        profile: Profile = REAL,
        domains: Mapping[str, Domain] | None = None,
        nodes: list[Node] | None = None,
    ) -> None:
        self.now = 0.0
        self.broker = BlazingBroker(profile, domains=Domains(domains), nodes=nodes)

    def connect(self, node: Node | None = None) -> Client:
        """A new connection, nothing said yet."""
        return Client(self, node)

    def start(self, identity: ClientIdentity = CPP, node: Node | None = None) -> Client:
        """A new connection, negotiated."""
        return self.connect(node).negotiate(identity)

    def advance(self, seconds: float) -> None:
        """Let time pass, timer by timer."""
        end = self.now + seconds
        while (due := self.broker.timers.next_due) <= end:
            self.now = max(self.now, due)
            self.broker.timers.run(self.now)
        self.now = end
