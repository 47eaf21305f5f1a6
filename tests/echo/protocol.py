"""A queue that echoes what is put into it: the smallest protocol that joins through the registry alone.

Two wires carry the same conversation: ``lines`` ends each frame with a newline, ``counted`` begins it with
its length. Both have a ``Ping`` of their own. The answer to a `Put` has a status for each message.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from msgspec.structs import astuple

from fakebrokers.core.engine import Clock
from fakebrokers.core.frames import Frame, FrameSpec, Items, KeyType, Malformed, Role, kind_of
from fakebrokers.core.listeners import Endpoint
from fakebrokers.core.session import Broker, Codec, Session
from fakebrokers.core.wire import Wire
from fakebrokers.faults.effect import Action, Effect, Passage
from fakebrokers.protocol import Protocol
from fakebrokers.server import FakeServer

FULL = 5


class Messages(Items):
    mixed = True  # those of an answer have a status each, and may be refusals
    roles = (Role.REJECT,)

    def count(self, frame: Any) -> int:
        return len(frame.names)

    def keys(self, frame: Any) -> Sequence[str]:
        return tuple(frame.names)

    def select(self, frame: Any, indices: Sequence[int]) -> Any:
        return type(frame)(*(tuple(field[i] for i in indices) for field in astuple(frame)))

    def role(self, frame: Any, index: int) -> Role | None:
        return Role.REJECT if self.status(frame, index) else None

    def status(self, frame: Any, index: int) -> int | None:
        return frame.codes[index] if isinstance(frame, Stored) else None


class Put(Frame, frozen=True):
    spec = FrameSpec(Role.PUBLISH, "names", Messages(), keys=KeyType.TEXT)
    names: tuple[str, ...]


class Stored(Frame, frozen=True):
    spec = FrameSpec(Role.CONFIRM, "names", Messages(), keys=KeyType.TEXT)
    names: tuple[str, ...]
    codes: tuple[int, ...]


class Ping(Frame, frozen=True):
    spec = FrameSpec(Role.HEARTBEAT)


class CountedPing(Frame, frozen=True):
    kind = "Ping"
    spec = FrameSpec(Role.HEARTBEAT, key="number")
    number: int


class EchoCodec(Codec):
    kinds: ClassVar[tuple[type[Frame], ...]] = (Put, Stored, Ping)
    buffer = b""

    def feed(self, unit: bytes) -> Iterable[tuple[Frame, int]]:
        *whole, self.buffer = (self.buffer + unit).split(b"\n")
        return [(self.read(text), len(text) + 1) for text in whole]

    def encode(self, frame: Frame) -> bytes:
        words = [",".join(map(str, f)) if isinstance(f, tuple) else str(f) for f in astuple(frame)]
        return " ".join([kind_of(frame), *words]).encode() + b"\n"

    def read(self, text: bytes) -> Frame:
        word, *rest = text.decode("latin-1").split(" ")
        for kind in self.kinds:
            if kind_of(kind) == word and len(rest) == len(kind.__struct_fields__):
                return kind(*[int(r) if kind is CountedPing else tuple(r.split(",")) for r in rest])
        return Malformed(text, f"expected a frame, got {text!r}")


class CountedCodec(EchoCodec):
    kinds = (Put, Stored, CountedPing)

    def feed(self, unit: bytes) -> Iterable[tuple[Frame, int]]:
        self.buffer += unit
        while self.buffer and len(self.buffer) > self.buffer[0]:
            size = self.buffer[0] + 1
            text, self.buffer = self.buffer[1:size], self.buffer[size:]
            yield self.read(text), size

    def encode(self, frame: Frame) -> bytes:
        text = super().encode(frame)[:-1]
        return bytes([len(text)]) + text


class EchoBroker(Broker):
    room, stored = 1000, ()

    def reset(self) -> None:
        self.stored = ()


class EchoSession(Session):
    def __init__(self, broker: EchoBroker) -> None:
        self.broker = broker

    def handle(self, frame: Frame, now: float) -> None:
        if isinstance(frame, Put):
            codes = tuple(0 if i < self.broker.room else FULL for i in range(len(frame.names)))
            self.broker.stored += frame.names[: self.broker.room]
            self.link.say(Stored(frame.names, codes))
        elif not isinstance(frame, Malformed):
            self.link.say(frame)


class FillUp(Action, Effect, frozen=True, tag="fill-up"):
    """The broker has room for nothing more."""

    def apply(self, passage: Passage) -> None:
        passage.host(self)
        passage.pass_through()

    def perform(self, host: Any, fault: str, connection: str) -> None:
        host.server.broker.room = 0


LINES, COUNTED = WIRES = Wire("lines", EchoCodec.kinds, port=7), Wire("counted", CountedCodec.kinds, port=8)
PROTOCOL = Protocol(
    name="echo", about="", server=f"{__name__}:Echo", wires=WIRES, effects=(FillUp,), judge="tests.echo"
)


class Echo(FakeServer):
    protocol = PROTOCOL
    broker: EchoBroker

    def _make_broker(self, clock: Clock) -> EchoBroker:
        return EchoBroker()

    def _endpoints(self) -> list[Endpoint]:
        pairs = ((LINES, EchoCodec), (COUNTED, CountedCodec))
        return [
            Endpoint(wire, lambda _, codec=codec: (EchoSession(self.broker), codec()))
            for wire, codec in pairs
        ]
