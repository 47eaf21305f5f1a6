"""Defects in reading and writing bytes (catalogue sections BMQ-1, BMQ-3, BMQ-4 and BMQ-7)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.blazingmq.frames import EVENT_MAX, Frames, FutureCodec
from conformance.clients.reference.blazingmq.link import Link
from conformance.clients.reference.kit import ClientError
from fakebrokers.blazingmq import ber
from fakebrokers.blazingmq.codec import HEADER_SIZE, BlazingCodec
from fakebrokers.blazingmq.codes import Encoding, EventType
from fakebrokers.blazingmq.frames import HeartbeatResponse, OtherEvent, Push
from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.errors import WireError

SMALL = 8192
LARGE = 16 << 10


@mutant("small-events-only", tag="wire", breaks=["B2", "B13", "X4"])
class SmallEventsOnly(Frames):
    """Reads no event of more than 8 KiB."""

    def __init__(self) -> None:
        self.codec = BlazingCodec(max_event=SMALL)


@mutant("one-event-per-read", tag="wire", breaks=["B2", "B12", "B13", "W1", "X1"])
class OneEventPerRead(Frames):
    """Takes each read for whole events."""

    def feed(self, data: bytes) -> Iterator[Frame]:
        self.codec = self.codec.fresh()
        yield from super().feed(data)


@mutant("one-push-per-read", tag="data", breaks=["B13", "X1"])
class OnePushPerRead(Frames):
    """Overlooks a PUSH event right after another one."""

    def feed(self, data: bytes) -> Iterator[Frame]:
        last: Frame | None = None
        for frame in super().feed(data):
            if not (isinstance(frame, Push) and isinstance(last, Push)):
                yield frame
            last = frame


class BerOnly(BlazingCodec):
    """Reads every control message as BER."""

    def decode(self, event: bytes) -> Frame:
        if event[4] & 0x3F == EventType.CONTROL and event[6] >> 5 == Encoding.JSON:
            return Malformed(event[:64], "expected BER, got JSON", "control")
        return super().decode(event)


@mutant("reads-ber-only", tag="wire", breaks=["B2", "W2", "X5"])
class ReadsBerOnly(Frames):
    """Lists JSON, and cannot read it."""

    def __init__(self) -> None:
        self.codec = BerOnly()


@mutant("skips-garbage", tag="wire", breaks=["B19", "W1", "X1", "X5"])
class SkipsGarbage(Link):
    """Keeps a connection on which the beginning of the next event is not known."""

    def malformed(self, frame: Malformed) -> None:
        if frame.code not in ("framing", "too-large"):
            super().malformed(frame)


@mutant("reads-on-after-garbage", tag="wire", breaks=["B19", "W1", "X5"])
class ReadsOnAfterGarbage(Link):
    """Takes what comes after an impossible header for the next event."""

    def malformed(self, frame: Malformed) -> None:
        if frame.code in ("framing", "too-large"):
            self.frames.codec = self.frames.codec.fresh()
        else:
            super().malformed(frame)


@mutant("other-versions-deafen", tag="wire", breaks=["W1"])
class OtherVersionsDeafen(Frames):
    """Reads nothing any more after an event with other version bits."""

    is_deaf = False

    def feed(self, data: bytes) -> Iterator[Frame]:
        self.is_deaf = self.is_deaf or (len(data) > 4 and data[4] >> 6 != 1)
        if not self.is_deaf:
            yield from super().feed(data)


@mutant("bad-events-deafen", tag="wire", breaks=["B19", "X5"])
class BadEventsDeafen(Link):
    """Reads nothing any more after an event that it could not read."""

    is_deaf = False

    def malformed(self, frame: Malformed) -> None:
        self.is_deaf = True

    def handle(self, frame: Frame) -> None:
        if not self.is_deaf:
            super().handle(frame)


@mutant("bad-control-ends-requests", tag="wire", breaks=["B19"])
class BadControlEndsRequests(Link):
    """A control message that cannot be read ends all requests."""

    def malformed(self, frame: Malformed) -> None:
        if frame.code == "control":
            self.requests.end(ClientError("protocol", frame.problem))
        super().malformed(frame)


@mutant("unknown-types-are-fatal", tag="wire", breaks=["B19", "X5"])
class UnknownTypesAreFatal(Link):
    """An event of an unknown type ends the connection."""

    def other(self, frame: Frame) -> None:
        if isinstance(frame, OtherEvent):
            self.end(ClientError("protocol", "an unknown event"))


@mutant("stray-heartbeats-are-fatal", tag="life-cycle", breaks=["B19"])
class StrayHeartbeatsAreFatal(Link):
    """A HEARTBEAT_RSP that was not asked for ends the connection."""

    def other(self, frame: Frame) -> None:
        if isinstance(frame, HeartbeatResponse):
            self.end(ClientError("protocol", "an answer that was not asked for"))


@mutant("large-events-interleave", tag="wire", breaks=["B10", "X4"])
class LargeEventsInterleave(Link):
    """Writes large events in two halves, between which other events get."""

    def write(self, data: bytes) -> None:
        if len(data) <= LARGE:
            super().write(data)
            return
        super().write(data[: len(data) // 2])
        asyncio.get_running_loop().call_soon(super().write, data[len(data) // 2 :])


class _OneChoice(FutureCodec):
    def decode(self, event: bytes) -> Frame:
        frame = super().decode(event)
        if isinstance(frame, Malformed) and frame.code == "control":
            with suppress(WireError):
                *_, choice = ber.parse(event[HEADER_SIZE:]).parts
                [_] = choice.parts
        return frame


@mutant("fails-without-a-choice", tag="life-cycle", breaks=["B19"])
class FailsWithoutAChoice(Frames):
    """Expects one choice in a control message that is none of the schema, and fails where it has others."""

    def __init__(self) -> None:
        self.codec = _OneChoice(max_event=EVENT_MAX)
