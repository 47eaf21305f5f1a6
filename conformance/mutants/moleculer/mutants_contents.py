"""Defects about what packets hold, whom they are for, and what happens meanwhile (catalogue family NET)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from conformance.mutants.registry import mutant
from conformance.reference.kit import ClientError, Runtime
from conformance.reference.moleculer.caller import Caller, Pending
from conformance.reference.moleculer.client import MoleculerClient
from conformance.reference.moleculer.events import Events
from conformance.reference.moleculer.post import Post

Json = dict[str, Any]
LOOK_S = 0.05
ORPHAN_BYTES = 1000  #: about as much as each takes


@mutant("unknown-members-are-errors", tag="wire", breaks=["X5"])
class UnknownMembersAreErrors(Post):
    """Refuses packets with a member that has no name."""

    def parsed(self, payload: bytes) -> Json:
        packet = super().parsed(payload)
        if "" in packet:
            raise ClientError("protocol", "a member that is not known")
        return packet


class _KeepingCaller(Caller):
    def response(self, packet: Json) -> None:
        if packet.get("id") not in self.pending:
            self._runtime.__dict__.setdefault("orphans", []).append(packet)
        super().response(packet)


@mutant(
    "answers-to-nobody-are-kept", tag="life-cycle", breaks=["X9"], aims=["NET-3.05"], also=[_KeepingCaller]
)
class AnswersToNobodyAreKept(MoleculerClient):
    """Keeps answers that nobody waits for."""

    @property
    def buffered_bytes(self) -> int:  # type: ignore[override]
        """Of what is kept."""
        return ORPHAN_BYTES * len(self.runtime.__dict__.get("orphans", ()))


class _HeldAnswers(Caller):
    def __init__(self, runtime: Runtime, *given: Any) -> None:
        super().__init__(runtime, *given)
        runtime.__dict__["caller"] = self

    def response(self, packet: Json) -> None:
        held: list[Json] | None = self._runtime.__dict__.get("held")
        if held is None:
            super().response(packet)
        else:
            held.append(packet)

    def release(self, held: list[Json]) -> None:
        """Look at those that have waited."""
        for packet in held:
            super().response(packet)


@mutant("one-thread-for-all", tag="life-cycle", breaks=["X10"], also=[_HeldAnswers])
class OneThreadForAll(Events):
    """Looks at no answer while an event handler runs."""

    def listen(self, pattern: str, group: str, handle: Callable[[Json], Awaitable[None]]) -> None:
        state = self._runtime.__dict__

        async def alone(packet: Json) -> None:
            state["held"] = []
            try:
                await handle(packet)
            finally:
                state["caller"].release(state.pop("held"))

        super().listen(pattern, group, alone)


@mutant("deadlines-by-the-wall-clock", tag="life-cycle", breaks=["X11"])
class DeadlinesByTheWallClock(Caller):
    """Looks at the wall clock to see whether the time of a call is up."""

    async def answer_of(self, pending: Pending, limit_s: float) -> Any:
        clock = self._runtime.clock
        end = clock.wall() + limit_s
        while not pending.answer.done() and (not limit_s or clock.wall() < end):
            await asyncio.sleep(LOOK_S)
        return await super().answer_of(pending, 0.001)
