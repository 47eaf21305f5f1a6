"""A toy protocol of text lines, to test the core without any real one.

client                      broker
hello NAME                  welcome
put KEY[,KEY...] [BODY]     stored KEY[,KEY...]
get KEY                     value KEY BODY
beat                        (nothing)
bye                         bye, then FIN
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from fakebrokers.core.engine import Clock
from fakebrokers.core.frames import (
    Frame,
    FrameSpec,
    Items,
    KeyType,
    Malformed,
    Role,
    frame_table,
    frames_in,
)
from fakebrokers.core.listeners import Endpoint
from fakebrokers.core.session import Broker, Codec, Session
from fakebrokers.core.wire import Wire
from fakebrokers.protocol import Protocol
from fakebrokers.server import FakeServer


class KeyItems(Items):
    def count(self, frame: Any) -> int:
        return len(frame.keys)

    def keys(self, frame: Any) -> Sequence[str]:
        return tuple(frame.keys)

    def select(self, frame: Any, indices: Sequence[int]) -> Any:
        return type(frame)(tuple(frame.keys[i] for i in indices))


class Hello(Frame, frozen=True):
    spec = FrameSpec(Role.HANDSHAKE, secret=("name",))
    name: str


class Welcome(Frame, frozen=True):
    spec = FrameSpec(Role.HANDSHAKE)


class Put(Frame, frozen=True):
    spec = FrameSpec(Role.PUBLISH, "keys", KeyItems(), keys=KeyType.TEXT, bulk=("body",))
    keys: tuple[str, ...]
    body: str = ""


class Stored(Frame, frozen=True):
    spec = FrameSpec(Role.CONFIRM, "keys", KeyItems(), keys=KeyType.TEXT)
    keys: tuple[str, ...]


class Refused(Frame, frozen=True):
    spec = FrameSpec(Role.REJECT, "key", keys=KeyType.TEXT, status="code")
    key: str
    code: int


class Get(Frame, frozen=True):
    spec = FrameSpec(Role.REQUEST, "key", keys=KeyType.TEXT)
    key: str


class Value(Frame, frozen=True):
    spec = FrameSpec(Role.DELIVER, "key", keys=KeyType.TEXT, bulk=("body",))
    key: str
    body: str


class Beat(Frame, frozen=True):
    spec = FrameSpec(Role.HEARTBEAT)


class Bye(Frame, frozen=True):
    spec = FrameSpec(Role.CLOSE)


FRAMES = frame_table(frames_in(sys.modules[__name__]))
BY_WORD = {kind.__name__.lower(): kind for kind in FRAMES if kind is not Malformed}


class ToyCodec(Codec):
    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, unit: bytes) -> Iterable[tuple[Frame, int]]:
        *lines, self._buffer = (self._buffer + unit).split(b"\n")
        for line in lines:
            yield decode(line), len(line) + 1

    def encode(self, frame: Frame) -> bytes:
        fields = [getattr(frame, name) for name in frame.__struct_fields__]
        words = [",".join(f) if isinstance(f, tuple) else str(f) for f in fields]
        return (" ".join([type(frame).__name__.lower(), *words]).rstrip() + "\n").encode()

    @property
    def partial(self) -> int:
        return len(self._buffer)


def decode(line: bytes) -> Frame:
    word, *rest = line.decode("latin-1").split(" ")
    kind = BY_WORD.get(word)
    if kind is None:
        return Malformed(line[:256], f"expected one of {', '.join(BY_WORD)}, got {word!r}")
    try:
        return kind(
            *[
                tuple(r.split(",")) if f == "keys" else r
                for f, r in zip(kind.__struct_fields__, rest, strict=False)
            ]
        )
    except TypeError:
        return Malformed(line[:256], f"expected {len(kind.__struct_fields__)} words, got {len(rest)}")


class ToyBroker(Broker):
    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.restarts = 0

    def reset(self) -> None:
        self.values.clear()

    def restarted(self, now: float) -> None:
        self.restarts += 1


class ToySession(Session):
    """Beats every second once the client said hello; ends after 10 s without a hello."""

    def __init__(self, broker: ToyBroker) -> None:
        self.broker = broker

    def opened(self, now: float) -> None:
        self.timer = self.link.session_timer(self.beat_or_end)
        self.timer.set(now + 10)

    def handle(self, frame: Frame, now: float) -> None:
        match frame:
            case Hello():
                self.state = "open"
                self.timer.set(now + 1)
                self.link.say(Welcome())
                self.link.ready()
            case Put(keys, body):
                if body == "boom":
                    raise RuntimeError("boom")
                self.broker.values.update(dict.fromkeys(keys, body))
                self.link.say(Stored(keys))
            case Get(key):
                self.link.say(Value(key, self.broker.values.get(key, "")))
            case Bye():
                self.link.say(Bye())
                self.link.hang_up()
            case Malformed():
                self.link.hang_up()

    def beat_or_end(self, now: float) -> None:
        if self.state == "open":
            self.link.say(Beat())
            self.timer.set(now + 1)
        else:
            self.link.hang_up()

    def refusal(self, frame: Frame, code: int, now: float) -> Frame | None:
        return Refused(frame.keys[0], code) if isinstance(frame, Put) else None


WIRE = Wire("toy", FRAMES, port=9)

PROTOCOL = Protocol(
    name="toy", about="words and lines", server="tests.toy:Toy", wires=(WIRE,), judge="tests.scenarios.toy"
)


class Toy(FakeServer):
    """The toy, as tests see it."""

    protocol = PROTOCOL
    broker: ToyBroker

    def _make_broker(self, clock: Clock) -> ToyBroker:
        return ToyBroker()

    def _endpoints(self) -> list[Endpoint]:
        return [Endpoint(WIRE, self.new_session, self._wanted_port)]

    def new_session(self, transport: Any) -> tuple[Session, Codec]:
        return ToySession(self.broker), ToyCodec()


class Lines(asyncio.Protocol):
    """A client on memory or sockets that keeps what it hears."""

    def __init__(self) -> None:
        self.heard = b""
        self.ended: str = ""

    def data_received(self, data: bytes) -> None:
        self.heard += data

    def connection_lost(self, error: Exception | None) -> None:
        self.ended = "rst" if error else "fin"
