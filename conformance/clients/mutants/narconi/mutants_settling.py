"""Defects in what is acknowledged, and in what then is left to wait for."""

from __future__ import annotations

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.narconi.consumer import Consumer


@mutant("waits-for-those-below", tag="life-cycle", breaks=["N11"])
class WaitsForThoseBelow(Consumer):
    """After one acknowledgement of many it counts the last alone as settled, and waits for the others."""

    def settle_to(self, ack_id: str) -> None:
        below = self.outstanding[: self.outstanding.index(ack_id)] if ack_id in self.outstanding else []
        super().settle_to(ack_id)
        self.outstanding[:0] = below
