"""Toxiproxy's toxics as faults (Toxiproxy 2.12; README and ``toxics/*.go``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from fakebrokers.core.session import HangUp
from fakebrokers.faults import Fault, fault
from fakebrokers.faults.effect import Effect, Passage
from fakebrokers.faults.effects import Drop, Fin, Hold, Latency, Rst, Throttle
from fakebrokers.faults.match import Direction


class Slicer(Effect, frozen=True, tag="toxiproxy-slicer"):
    """Halves a chunk, about in the middle, until the pieces are as small as wanted.

    Attributes:
        average_size: Bytes per piece, about.
        size_variation: By how many bytes a piece may be longer, and a cut off the middle.
        gap_s: Seconds after each piece.
    """

    needs_bytes = True
    takes_raw = True
    average_size: int
    size_variation: int = 0
    gap_s: float = 0.0

    def apply(self, passage: Passage) -> None:
        data = passage.data
        cuts = self._cuts(0, len(data), passage)
        pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
        passage.pass_pieces(pieces, [self.gap_s] * len(pieces))

    def _cuts(self, start: int, end: int, passage: Passage) -> list[int]:
        if end - start <= max(1, self.average_size + self.size_variation):
            return []
        middle = start + (end - start) // 2
        if self.size_variation:
            middle += passage.random.randrange(-self.size_variation, self.size_variation)
        middle = min(max(middle, start + 1), end - 1)
        return [*self._cuts(start, middle, passage), middle, *self._cuts(middle, end, passage)]


class LimitData(Effect, frozen=True, tag="toxiproxy-limit-data"):
    """Ends the connection with FIN once `bytes` bytes have passed.

    Attributes:
        bytes: Counted from the first data on the connection that this fault saw.
    """

    needs_bytes = True
    takes_raw = True
    bytes: int

    def apply(self, passage: Passage) -> None:
        data = passage.data
        left = self.bytes - passage.memory.get("passed", 0)
        passage.memory["passed"] = passage.memory.get("passed", 0) + len(data)
        if left > 0:
            passage.pass_raw(data[:left])
        if len(data) >= left:
            passage.hang_up(HangUp.FIN)


class LatencyToxic(msgspec.Struct):
    """Delay of all data: `latency` plus or minus `jitter`, milliseconds."""

    latency: int = 0
    jitter: int = 0

    def effects(self) -> list[list[Effect]]:
        return [[Latency(seconds=self.latency / 1000, jitter=self.jitter / 1000)]]


class BandwidthToxic(msgspec.Struct):
    """`rate` in kilobytes per second; 0 lets nothing pass until the toxic is removed."""

    rate: int = 0

    def effects(self) -> list[list[Effect]]:
        return [[Throttle(bytes_per_s=self.rate * 1000) if self.rate > 0 else Hold(behind=True)]]


class SlowCloseToxic(msgspec.Struct):
    """`delay`: milliseconds by which FIN is late."""

    delay: int = 0

    def effects(self) -> list[list[Effect]]:
        return []


class TimeoutToxic(msgspec.Struct):
    """Loses all data; ends the connection after `timeout` milliseconds without any. 0 never ends it."""

    timeout: int = 0

    def effects(self) -> list[list[Effect]]:
        lost: list[list[Effect]] = [[Drop()]]
        return [*lost, [Fin()]] if self.timeout > 0 else lost


class ResetPeerToxic(msgspec.Struct):
    """Resets the connection `timeout` milliseconds after the first data, which are lost."""

    timeout: int = 0

    def effects(self) -> list[list[Effect]]:
        return [[Rst(pass_frame=False, after_s=self.timeout / 1000)]]


class SlicerToxic(msgspec.Struct):
    """Sizes in bytes; `delay` in microseconds after each piece."""

    average_size: int = 0
    size_variation: int = 0
    delay: int = 0

    def effects(self) -> list[list[Effect]]:
        gap_s = self.delay / 1_000_000
        return [[Slicer(average_size=self.average_size, size_variation=self.size_variation, gap_s=gap_s)]]


class LimitDataToxic(msgspec.Struct):
    """Ends the connection after `bytes` bytes."""

    bytes: int = 0

    def effects(self) -> list[list[Effect]]:
        return [[LimitData(bytes=self.bytes)]]


class NoopToxic(msgspec.Struct):
    """Does nothing."""

    def effects(self) -> list[list[Effect]]:
        return []


Attributes = (
    LatencyToxic
    | BandwidthToxic
    | SlowCloseToxic
    | TimeoutToxic
    | ResetPeerToxic
    | SlicerToxic
    | LimitDataToxic
    | NoopToxic
)

TOXICS: Mapping[str, type[Attributes]] = {
    "latency": LatencyToxic,
    "bandwidth": BandwidthToxic,
    "slow_close": SlowCloseToxic,
    "timeout": TimeoutToxic,
    "reset_peer": ResetPeerToxic,
    "slicer": SlicerToxic,
    "limit_data": LimitDataToxic,
    "noop": NoopToxic,
}

#: ``upstream`` is client to server.
DIRECTIONS: Mapping[str, Direction] = {"upstream": "in", "downstream": "out"}


class Toxic(msgspec.Struct):
    """A toxic of a proxy, with the fields and the order of Toxiproxy's JSON.

    Attributes:
        stream: As it was typed; Toxiproxy echoes it.
        toxicity: Share of the connections that it works on; drawn once for each.
    """

    attributes: Attributes
    name: str
    type: str
    stream: str
    toxicity: float = 1.0

    @property
    def direction(self) -> Direction:
        """In the terms of faults: ``in`` (Toxiproxy's ``upstream``) or ``out``."""
        return DIRECTIONS[self.stream.lower()]

    def faults(self) -> list[Fault]:
        """The faults that do the same; they are named after it."""
        share: dict[str, Any] = {}
        if self.toxicity < 1:
            share = {"probability": max(0.0, self.toxicity), "per": "connection"}
        return [
            fault(*acts, name=name, direction=self.direction, **share, **self._moment(acts))
            for name, acts in zip(self.fault_names(), self.attributes.effects(), strict=True)
        ]

    def _moment(self, acts: list[Effect]) -> dict[str, Any]:
        if isinstance(self.attributes, TimeoutToxic) and isinstance(acts[0], Fin):
            return {"on": "idle", "after_s": self.attributes.timeout / 1000}
        return {}

    def fault_names(self) -> list[str]:
        """The names of `faults`: the toxic's, and with a number after it from the second on."""
        numbers = range(len(self.attributes.effects()))
        return [self.name if number == 0 else f"{self.name} ({number + 1})" for number in numbers]

    def as_json(self) -> dict[str, Any]:
        """The toxic as Toxiproxy prints it."""
        return {
            "attributes": msgspec.to_builtins(self.attributes),
            "name": self.name,
            "type": self.type,
            "stream": self.stream,
            "toxicity": int(self.toxicity) if self.toxicity == int(self.toxicity) else self.toxicity,
        }
