"""Defects in reading broken frames (catalogue section RMQS-6)."""

from __future__ import annotations

from typing import Any

from conformance.clients.mutants.rabbitmq_stream.deaf import DeafConnection
from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.rabbitmq_stream.connection import Connection
from conformance.clients.reference.rabbitmq_stream.requests import Requests
from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.rabbitmq_stream.frames import Deliver, Metadata, MetadataResponse
from fakebrokers.rabbitmq_stream.wiretypes import BrokerAddress, StreamMetadata


@mutant("empty-frame-stops-the-reader", tag="wire", breaks=["R1"])
class EmptyFrameStopsTheReader(DeafConnection):
    """Its reader ends at a frame without a key."""

    def malformed(self, frame: Malformed) -> None:
        if frame.code == "empty" or len(frame.data) < 8:
            self.go_deaf()
        else:
            super().malformed(frame)


@mutant("unknown-key-stops-the-reader", tag="wire", breaks=["R1", "R20", "X5"])
class UnknownKeyStopsTheReader(DeafConnection):
    """Its reader ends at a command key that it does not know."""

    def malformed(self, frame: Malformed) -> None:
        if frame.code == "unknown" and len(frame.data) >= 8:
            self.go_deaf()
        else:
            super().malformed(frame)


class _Forgotten(Requests):
    """Gives no request up once the reader reads no more."""

    def expire(self, now: float) -> None:
        if not getattr(self.connection, "is_deaf", False):
            super().expire(now)

    def deadline(self) -> float | None:
        return None if getattr(self.connection, "is_deaf", False) else super().deadline()


@mutant("broken-frames-stop-the-reader", tag="wire", breaks=["R1", "R4", "X5"], also=[_Forgotten])
class BrokenFramesStopTheReader(DeafConnection):
    """Its reader ends at a frame that breaks its own lengths, and its requests wait forever."""

    def malformed(self, frame: Malformed) -> None:
        if frame.code == "malformed":
            self.go_deaf()
        else:
            super().malformed(frame)


@mutant("waits-for-absurd-frames", tag="wire", breaks=["R1", "R16", "X5"], also=[_Forgotten])
class WaitsForAbsurdFrames(DeafConnection):
    """Waits for a frame of any size, and forgets the time-outs meanwhile."""

    def malformed(self, frame: Malformed) -> None:
        if frame.code == "too-large":
            self.go_deaf()
        else:
            super().malformed(frame)

    def silence_limit(self) -> float | None:
        return None if self.is_deaf else super().silence_limit()


@mutant("allocates-what-the-size-says", tag="life-cycle", breaks=["R1", "R16", "X5"], aims=["RMQS-6.03"])
class AllocatesWhatTheSizeSays(Connection):
    """Allocates memory for a frame as large as its size field says."""

    hoard = bytearray()

    def malformed(self, frame: Malformed) -> None:
        if frame.code == "too-large":
            self.hoard = bytearray(b"\1") * (160 << 20)
        super().malformed(frame)

    def end(self, error: ClientError) -> None:
        super().end(error)
        if self.hoard:
            _hoards[:] = [self.hoard]


_hoards: list[bytearray] = []


@mutant("surfaces-cut-frames", tag="wire", breaks=["R1", "X2"])
class SurfacesCutFrames(Connection):
    """Delivers the messages of a Deliver that was cut off by the end of the connection."""

    def lost(self, now: float, problem: str) -> None:
        cut = bytes(self.codec._buffer)
        if self.state == "open" and len(cut) > 80:
            frame = self.codec.decode(cut[4:])
            if isinstance(frame, Deliver) and (one := self.subscriptions.get(frame.subscription_id)):
                one.check = lambda chunk: None  # type: ignore[method-assign]
                found = []
                try:
                    for record in one.records(frame.chunk, lambda _: None):
                        found.append(record)
                except ClientError:
                    pass
                one.records = lambda chunk, report: iter(found)  # type: ignore[method-assign]
                one.deliver(frame.chunk)
        super().lost(now, problem)


@mutant("loss-in-mid-frame-unnoticed", tag="life-cycle", breaks=["R1", "X2"])
class LossInMidFrameUnnoticed(Connection):
    """Does not notice the end of a connection while it waits for the rest of a frame."""

    def lost(self, now: float, problem: str) -> None:
        if not self.codec.partial:
            super().lost(now, problem)


@mutant("reads-over-the-end", tag="wire", breaks=["R4"])
class ReadsOverTheEnd(Connection):
    """Makes a Metadata answer up from what is there when a string runs over the end of its frame."""

    def malformed(self, frame: Malformed) -> None:
        if frame.problem.startswith("MetadataResponse"):
            for correlation_id, one in self.requests.waiting.items():
                if one.kind is Metadata:
                    streams = (StreamMetadata("orders", 1, 0, ()),)
                    node = BrokerAddress(0, "cut", 5552)
                    self.answered(MetadataResponse(correlation_id, (node,), streams))
                    return
        super().malformed(frame)


@mutant("huge-count-hangs", tag="wire", breaks=["R4"])
class HugeCountHangs(DeafConnection):
    """Its reader ends at an array with more items than the frame holds."""

    def malformed(self, frame: Malformed) -> None:
        if "items" in frame.problem:
            self.go_deaf()
        else:
            super().malformed(frame)


@mutant("strict-utf8-stops-the-reader", tag="wire", breaks=["R4"])
class StrictUtf8StopsTheReader(DeafConnection):
    """Its reader ends at a string that is no UTF-8."""

    def handle(self, frame: Frame) -> None:
        texts: list[Any] = [getattr(frame, name, None) for name in ("reason", "stream")]
        try:
            "".join(text for text in texts if isinstance(text, str)).encode()
        except UnicodeEncodeError:
            self.go_deaf()
        super().handle(frame)
