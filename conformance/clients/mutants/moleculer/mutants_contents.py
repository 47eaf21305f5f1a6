"""Defects about what packets hold, whom they are for, and what happens meanwhile (catalogue family NET)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError, Runtime
from conformance.clients.reference.moleculer.caller import Caller, Pending
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.events import Events
from conformance.clients.reference.moleculer.packing import BYTES, TEXT, UNDEFINED, Packing, Place
from conformance.clients.reference.moleculer.post import Post

Json = dict[str, Any]
LOOK_S = 0.05
ORPHAN_BYTES = 1000  #: about as much as each takes


@mutant("unknown-members-are-errors", tag="wire", breaks=["X5"])
class UnknownMembersAreErrors(Post):
    """Refuses packets with a member that has no name."""

    def parsed(self, command: str, payload: bytes) -> Json:
        packet = super().parsed(command, payload)
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
class MoleculerAnswersToNobodyAreKept(MoleculerClient):
    """Keeps answers that no call waits for."""

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
class MoleculerOneThreadForAll(Events):
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


@mutant("bytes-without-a-type", tag="wire", breaks=["M9"])
class BytesWithoutAType(Packing):
    """Does not say in a serializer with a schema what the bytes of params and data are."""

    def typed(self, name: str, packet: Mapping[str, Any]) -> tuple[bytes | None, int]:
        return super().typed(name, packet)[0], UNDEFINED


@mutant("empty-data-are-nothing", tag="data", breaks=["M9"])
class EmptyDataAreNothing(Packing):
    """Reads 0, false and empty texts of a serializer with a schema as null."""

    def meant(self, data: bytes, kind: int) -> Any:
        return super().meant(data, kind) or None


@mutant("no-place-for-meta", tag="data", breaks=["M9"])
class NoPlaceForMeta(Packing):
    """Leaves meta out in a serializer with a schema."""

    def packed(self, places: list[Place], packet: Mapping[str, Any]) -> Json:
        return super().packed(places, {**packet, "meta": {}})


@mutant("times-of-32-bits", tag="wire", breaks=["M7", "M9"])
class TimesOf32Bits(Packing):
    """Writes the lower half of a long number in a serializer with a schema."""

    def packed(self, places: list[Place], packet: Mapping[str, Any]) -> Json:
        short = {place.name: packet[place.name] % 2**32 for place in places if place.kind == "long"}
        return super().packed(places, {**packet, **short})


@mutant("gossip-is-packed-twice", tag="wire", breaks=["M9"])
class GossipIsPackedTwice(Packing):
    """Writes what it knows of others as a text in a text in a serializer with a schema."""

    def packed(self, places: list[Place], packet: Mapping[str, Any]) -> Json:
        found = super().packed(places, packet)
        return {**found, "online": json.dumps(found["online"])} if "online" in found else found


@mutant("all-bytes-are-json", tag="wire", breaks=["M9"])
class AllBytesAreJson(Packing):
    """Reads the raw bytes of a serializer with a schema as JSON."""

    def meant(self, data: bytes, kind: int) -> Any:
        return super().meant(data, TEXT if kind == BYTES else kind)
