"""Defects in posting and in what becomes of posts (catalogue section BMQ-3)."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.blazingmq.contents import Contents, Packed
from conformance.clients.reference.blazingmq.posts import CORRELATION_MAX, Posts
from conformance.clients.reference.blazingmq.queues import Queue
from conformance.clients.reference.kit import ClientError
from fakebrokers.blazingmq.codes import AckStatus, Compression
from fakebrokers.blazingmq.frames import Ack, AckMessage, Put
from fakebrokers.blazingmq.properties import Property, PropertyType, Style

HOURS_S = 10_000.0
Answer = asyncio.Future[dict[str, Any]]


@mutant("shows-made-up-guids", tag="data", breaks=["B12"])
class ShowsMadeUpGuids(Posts):
    """Shows another GUID than that of the ACK."""

    def answer(self, message: AckMessage) -> None:
        super().answer(replace(message, guid=bytes(15) + b"\1"))


@mutant("another-checksum", tag="wire", breaks=["B10"])
class AnotherChecksum(Posts):
    """The checksum is CRC-32, not CRC32-C."""

    def checksum(self, data: bytes) -> int:
        return zlib.crc32(data)


@mutant("no-ack-timer", tag="life-cycle", breaks=["B8", "B11", "X8", "X3"])
class NoAckTimer(Posts):
    """Waits for an ACK without end."""

    async def acked(self, number: int, answer: Answer, timeout: float) -> dict[str, Any]:
        return await super().acked(number, answer, HOURS_S)


@mutant("unexpected-acks-are-fatal", tag="life-cycle", breaks=["B12", "B19", "X8"])
class UnexpectedAcksAreFatal(Posts):
    """An ACK that no post waits for ends the session for good."""

    def unexpected(self, message: AckMessage) -> None:
        self.client.finish(ClientError("protocol", "an ACK for nobody"))


@mutant("acks-by-position", tag="data", breaks=["B12", "X8"])
class AcksByPosition(Posts):
    """Takes each ACK for that of the oldest post."""

    def answer(self, message: AckMessage) -> None:
        if self.pending:
            number = next(iter(self.pending))
            queue_id = self.pending[number].queue_id
            message = replace(message, correlation_id=number, queue_id=queue_id)
        super().answer(message)


@mutant("first-ack-of-an-event", tag="data", breaks=["B12", "X1", "X8"])
class FirstAckOfAnEvent(Posts):
    """Looks at the first ACK of an event only."""

    def acknowledged(self, frame: Ack) -> None:
        super().acknowledged(replace(frame, messages=frame.messages[:1]))


@mutant("refusals-are-all-alike", tag="wording", breaks=["B12"])
class BlazingRefusalsAreAllAlike(Posts):
    """Gives the same reason for every refusal."""

    def refusal(self, message: AckMessage) -> ClientError:
        return ClientError("refused", "the broker did not store it", code="UNKNOWN")


@mutant("unknown-status-is-success", tag="data", breaks=["B12"])
class UnknownStatusIsSuccess(Posts):
    """Takes a status that it does not know for success."""

    def answer(self, message: AckMessage) -> None:
        known = message.status in set(AckStatus)
        super().answer(message if known else replace(message, status=AckStatus.SUCCESS))


@mutant("correlation-ids-never-wrap", tag="wire", breaks=["B9"])
class CorrelationIdsNeverWrap(Posts):
    """Counts beyond the 24 bits of a correlation id."""

    def next_id(self) -> int:
        self.last_id += 1
        return self.last_id


@mutant("posts-to-readers", tag="wire", breaks=["B9"])
class PostsToReaders(Posts):
    """Posts to queues that are not open for write."""

    def send(
        self, queue: Queue, body: bytes, properties: Mapping[str, Property], zlib_wanted: bool, number: int
    ) -> None:
        packed = self.contents.pack(body, properties, zlib_wanted=zlib_wanted, new_style=True)
        self.client.usable().send(Put((self.message(queue, packed, number),)))


@mutant("posts-into-the-void", tag="data", breaks=["B9", "B19", "X6"])
class PostsIntoTheVoid(Posts):
    """Calls a post acknowledged that was made without a connection."""

    async def post(self, target: str, body: bytes, properties: Any, **more: Any) -> dict[str, Any]:
        if self.client.link is None and not self.client.runtime.is_closed:
            return {}
        return await super().post(target, body, properties, **more)


@mutant("lost-posts-are-acked", tag="data", breaks=["B9", "B11", "B12", "B18", "B19", "X6", "X2", "X8"])
class LostPostsAreAcked(Posts):
    """Calls what was not acknowledged before a loss acknowledged."""

    def end(self, error: ClientError) -> None:
        for one in self.pending.values():
            if not one.answer.done():
                one.answer.set_result({})
        self.pending.clear()


@mutant("refusals-of-nobody-are-dropped", tag="life-cycle", breaks=["B12", "B19"])
class RefusalsOfNobodyAreDropped(Posts):
    """Says nothing of a message that was refused and whose outcome nobody waits for."""

    def unexpected(self, message: AckMessage) -> None:
        self.client.runtime.callbacks.note(f"an ACK for no open message: {message.correlation_id}")


@mutant("empty-posts-are-acked", tag="data", breaks=["B10", "X12"])
class EmptyPostsAreAcked(Posts):
    """Calls an empty message acknowledged, and sends nothing."""

    async def post(self, target: str, body: bytes, properties: Any, **more: Any) -> dict[str, Any]:
        return await super().post(target, body, properties, **more) if body else {}


# contents


@mutant("bodies-are-text", tag="data", breaks=["B10", "B13", "X12"])
class BlazingBodiesAreText(Contents):
    """Takes every body for UTF-8."""

    def pack(self, payload: bytes, properties: Mapping[str, Property], **more: bool) -> Packed:
        return super().pack(payload.decode(errors="replace").encode(), properties, **more)


@mutant("narrow-integers", tag="data", breaks=["B10", "B13"])
class NarrowIntegers(Contents):
    """Sends INT64 as INT32."""

    def area(self, properties: Mapping[str, Property], style: Style) -> bytes:
        return super().area({name: _narrow(one) for name, one in properties.items()}, style)


def _narrow(found: Property) -> Property:
    if found.type is not PropertyType.INT64:
        return found
    return Property(PropertyType.INT32, (int(found.value) + 2**31) % 2**32 - 2**31)


@mutant("integers-are-doubles", tag="data", breaks=["X12"], aims=["NET-4.05"])
class IntegersAreDoubles(Contents):
    """Reckons with INT64 as doubles, as JavaScript does with numbers."""

    def area(self, properties: Mapping[str, Property], style: Style) -> bytes:
        return super().area({name: _doubled(one) for name, one in properties.items()}, style)


def _doubled(found: Property) -> Property:
    if found.type is not PropertyType.INT64:
        return found
    return Property(found.type, min(int(float(found.value)), 2**63 - 1))


@mutant("no-property-limits", tag="wire", breaks=["B10"])
class NoPropertyLimits(Contents):
    """Sends properties beyond what a PUT can hold."""

    def check(self, payload: bytes, properties: Mapping[str, Property]) -> None:
        super().check(payload, {})

    def area(self, properties: Mapping[str, Property], style: Style) -> bytes:
        return super().area(dict(list(properties.items())[:255]), style)


@mutant("says-compressed", tag="wire", breaks=["B10", "B13"])
class SaysCompressed(Contents):
    """Says that data are compressed which are not."""

    def squeeze(self, data: bytes) -> tuple[bytes, Compression]:
        return data, Compression.ZLIB


@mutant("posts-share-a-correlation-id", tag="life-cycle", breaks=["B9", "X4"])
class PostsShareACorrelationId(Posts):
    """Begins again with 1 after the largest correlation id, whatever still waits under it."""

    def next_id(self) -> int:
        self.last_id = self.last_id % CORRELATION_MAX + 1
        return self.last_id


@mutant("unknown-ack-ends-its-event", tag="life-cycle", breaks=["B9", "X4"])
class UnknownAckEndsItsEvent(Posts):
    """Reads no further in an event after an ACK that no call waits for."""

    def acknowledged(self, frame: Ack) -> None:
        for number, message in enumerate(frame.messages):
            if message.correlation_id not in self.pending:
                super().acknowledged(replace(frame, messages=frame.messages[: number + 1]))
                return
        super().acknowledged(frame)


@mutant("time-outs-begin-with-the-queue", tag="life-cycle", breaks=["B18", "X8"])
class TimeOutsBeginWithTheQueue(Posts):
    """A post that has waited for its queue has all its time once more for the ACK."""

    given_s = 0.0

    async def post(self, *args: Any, timeout: float, **more: Any) -> dict[str, Any]:
        self.given_s = timeout
        return await super().post(*args, timeout=timeout, **more)

    async def acked(
        self, number: int, answer: asyncio.Future[dict[str, Any]], timeout: float
    ) -> dict[str, Any]:
        return await super().acked(number, answer, self.given_s)
