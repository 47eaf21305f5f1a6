"""Defects that the scenarios about networks are for (catalogue family NET)."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.moleculer.bus import Bus
from conformance.clients.reference.moleculer.caller import Caller, Pending
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.codecs import Came, Message, NatsCodec
from conformance.clients.reference.moleculer.mesh import FrameReader
from conformance.clients.reference.moleculer.post import Post

HASTE_S = 0.5


@mutant("topics-are-latin-1", tag="wire", breaks=["X12"])
class TopicsAreLatin1(NatsCodec):
    """Subscribes to topics in an encoding of one byte for each letter."""

    def subscribe(self, topic: str, queue: str = "") -> bytes:
        return super().subscribe(topic.encode("latin-1", "replace").decode("latin-1"), queue)


@mutant("segments-are-messages", tag="wire", breaks=["X1"])
class SegmentsAreMessages(Bus):
    """Forgets the part of a message that is still incomplete at the end of a read."""

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.codec._buffer.clear()  # type: ignore[attr-defined]  # all codecs have one


@mutant("segments-are-frames", tag="wire", breaks=["X1"])
class SegmentsAreFrames(FrameReader):
    """Forgets the part of a frame of the TCP transporter that is incomplete at the end of a read."""

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        found = super().feed(data)
        self._buffer.clear()
        return found


@mutant("one-message-per-read", tag="data", breaks=["X1"])
class OneMessagePerRead(NatsCodec):
    """Overlooks all messages of a read but the first."""

    def feed(self, data: bytes) -> list[Came]:
        found = super().feed(data)
        first = next((came for came in found if isinstance(came, Message)), None)
        return [came for came in found if came is first or not isinstance(came, Message)]


@mutant("half-a-second-for-answers", tag="life-cycle", breaks=["X1"])
class MoleculerHalfASecondForAnswers(Caller):
    """Waits half a second for an answer, whatever the time-out says."""

    async def answer_of(self, pending: Pending, limit_s: float) -> Any:
        return await super().answer_of(pending, min(limit_s, HASTE_S))


@mutant("stays-away-after-a-loss", tag="life-cycle", breaks=["X6"])
class StaysAwayAfterALoss(MoleculerClient):
    """Does not connect again."""

    async def rejoin(self) -> None:
        """It stays away."""


@mutant("next-answer-for-the-next-call", tag="data", breaks=["X8"])
class NextAnswerForTheNextCall(Caller):
    """Takes an answer that no call waits for any more for that of its oldest call."""

    def waiting(self, id: str) -> Pending | None:
        name = id if id in self.pending else next(iter(self.pending), None)
        return None if name is None else self.pending.pop(name)


@mutant("calls-without-deadline", tag="life-cycle", breaks=["X2", "X5", "X8"])
class CallsWithoutDeadline(Caller):
    """Waits for an answer that cannot be read, whatever the time-out says."""

    async def answer_of(self, pending: Pending, limit_s: float) -> Any:
        return await super().answer_of(pending, 0.0)


@mutant("packets-end-at-nul", tag="data", breaks=["X12"])
class PacketsEndAtNul(Post):
    """Leaves out what follows a NUL in a text, as a text of C ends there."""

    def parsed(self, command: str, payload: bytes) -> dict[str, Any]:
        packet = super().parsed(command, payload)
        if isinstance(packet.get("data"), str):
            packet["data"] = packet["data"].partition("\0")[0]
        return packet


@mutant("comes-back-after-close", tag="life-cycle", breaks=["X7"])
class MoleculerComesBackAfterClose(MoleculerClient):
    """Goes on with a reconnect after it was closed."""

    async def rejoin(self) -> None:
        await asyncio.shield(asyncio.ensure_future(super().rejoin()))


@mutant("close-fails-when-lost", tag="life-cycle", breaks=["M3"])
class CloseFailsWhenLost(MoleculerClient):
    """A close during which the connection is lost ends with an error, and the node goes on."""

    async def close(self, timeout: float | None = None) -> None:
        if self.is_open:
            await self.send_close((timeout or 5.0) / 2)
        self.abort()
