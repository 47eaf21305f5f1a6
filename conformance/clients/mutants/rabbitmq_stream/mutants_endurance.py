"""Defects that show under load, after pauses and without a connection (catalogue family NET)."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from typing import Any

import msgspec

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.connection import Connection
from conformance.clients.reference.rabbitmq_stream.link import Link
from conformance.clients.reference.rabbitmq_stream.publisher import Publisher
from conformance.clients.reference.rabbitmq_stream.publishing import Publishing
from conformance.clients.reference.rabbitmq_stream.recovery import Recovery
from fakebrokers.core.frames import Frame

FRAMES_MAX = 8
PAUSE_S = 4.0


@mutant("eight-frames-per-read", tag="wire", breaks=["R1", "X1"])
class EightFramesPerRead(Connection):
    """Loses the frames after the eighth of a read."""

    taken = 0

    def receive(self, data: bytes, now: float) -> None:
        self.taken = 0
        super().receive(data, now)

    def handle(self, frame: Frame) -> None:
        self.taken += 1
        if self.taken <= FRAMES_MAX:
            super().handle(frame)


@mutant("parked-messages-have-no-deadline", tag="life-cycle", breaks=["R7", "X6", "X9"])
class ParkedMessagesHaveNoDeadline(Publishing):
    """Keeps any number of messages for as long as there is no connection, whatever their deadline."""

    async def ready(self, publisher: Publisher, size: int, deadline: float) -> None:
        self._parked = 0
        await super().ready(publisher, size, math.inf if self.links.control is None else deadline)


@mutant("room-for-waiting-is-used-up", tag="life-cycle", breaks=["X6", "X8"])
class RoomForWaitingIsUsedUp(Publishing):
    """Counts a message that has waited for a connection among those that wait, for ever."""

    async def ready(self, publisher: Publisher, size: int, deadline: float) -> None:
        has_waited = publisher.connection is None
        await super().ready(publisher, size, deadline)
        self._parked += size if has_waited else 0


@mutant("who-has-given-up-stays-in-line", tag="life-cycle", breaks=["X6", "X8"])
class WhoHasGivenUpStaysInLine(Publishing):
    """Counts messages whose time is over among those that wait for room: no other one may wait."""

    def leave_line(self, line: deque[asyncio.Future[None]], turn: asyncio.Future[None]) -> None:
        pass


class _Pausing(Connection):
    """Notes pauses.

    Attributes:
        stood_still: Whether there was one.
    """

    stood_still = False

    def receive(self, data: bytes, now: float) -> None:
        self._look(now)
        super().receive(data, now)

    def handle_timer(self, now: float) -> None:
        self._look(now)
        super().handle_timer(now)

    def lost(self, now: float, problem: str) -> None:
        self._look(now)
        super().lost(now, problem)

    def _look(self, now: float) -> None:
        self.stood_still = self.stood_still or (self.state == "open" and now - self.last_received > PAUSE_S)


@mutant("a-pause-is-the-end", tag="life-cycle", breaks=["X11"], aims=["NET-3.11"], also=[_Pausing])
class StreamAPauseIsTheEnd(Recovery):
    """Does not reconnect when the process had stood still for some seconds before the loss."""

    def link_ended(self, link: Link, error: ClientError) -> None:
        if getattr(link.core, "stood_still", False):
            self.client.settings = msgspec.structs.replace(self.client.settings, auto_reconnect=False)
        super().link_ended(link, error)


@mutant("offsets-are-floats", tag="data", breaks=["R10", "X12"])
class OffsetsAreFloats(StreamClient):
    """Reads stored offsets as numbers of 53 bits."""

    async def query_offset(self, *args: Any, **more: Any) -> int:
        return int(float(await super().query_offset(*args, **more)))
