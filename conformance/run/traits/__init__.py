"""What the judge has to know of a protocol, in small parts; rules ask them, and know no protocol.

Each part has defaults that fit most protocols. A protocol overrides what is otherwise with it, in
``traits.py`` of its folder, and puts the parts together: ``TRAITS``, a `Traits`.
"""

from __future__ import annotations

from functools import cached_property

import msgspec

from conformance.run.traits.connecting import Connecting
from conformance.run.traits.delivery import Delivery
from conformance.run.traits.faults import FaultMaterial
from conformance.run.traits.peers import Peers
from conformance.run.traits.questions import (
    AnyOrder,
    Asks,
    Entries,
    OneOf,
    Pairing,
    Questions,
    Whole,
    key_of,
)
from conformance.run.traits.reading import Args, Reading
from conformance.run.traits.settlement import Settlement
from fakebrokers.protocol import find_protocol

__all__ = [
    "AnyOrder",
    "Args",
    "Asks",
    "Connecting",
    "Delivery",
    "Entries",
    "FaultMaterial",
    "OneOf",
    "Pairing",
    "Peers",
    "Questions",
    "Reading",
    "Settlement",
    "Traits",
    "Whole",
    "key_of",
]


class Traits(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One protocol, for the judge.

    Attributes:
        protocol: Its name.
    """

    protocol: str
    reading: Reading
    questions: Questions
    faults: FaultMaterial
    delivery: Delivery = Delivery()
    settlement: Settlement = Settlement()
    peers: Peers = Peers()
    connecting: Connecting = Connecting()

    @cached_property
    def answers_in_order(self) -> bool:
        """Whether answers are told apart by their order alone, so that a connection is given up with a
        question that nobody waits for any more."""
        return find_protocol(self.protocol).answers_in_order
