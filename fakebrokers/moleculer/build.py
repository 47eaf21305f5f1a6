"""The faults that only Moleculer has, in one line of Python each.

    duplicate_node(kind="Heartbeat", nth=2)

See `fakebrokers.faults.build`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack

from fakebrokers.faults.making import FaultArgs, builder
from fakebrokers.faults.plan import Fault
from fakebrokers.moleculer.faults import BreakPacket, DuplicateNode, HealBus, PartitionBus


@builder(BreakPacket)
def break_packet(
    how: Literal["cut", "empty", "null", "number", "list", "garbage", "other"] = "cut",
    serializer: str = "MsgPack",
    **fault: Unpack[FaultArgs],
) -> Fault:
    """The message comes, but what is inside is no packet."""


@builder(DuplicateNode)
def duplicate_node(node: str = "", **fault: Unpack[FaultArgs]) -> Fault:
    """Another instance with a node's id announces itself. Real nodes of that id end their process."""


@builder(HealBus)
def heal_bus(**fault: Unpack[FaultArgs]) -> Fault:
    """All partitions of the bus end."""


@builder(PartitionBus)
def partition_bus(
    senders: Sequence[str] = (),
    receivers: Sequence[str] = (),
    one_way: bool = False,
    for_s: float | None = None,
    **fault: Unpack[FaultArgs],
) -> Fault:
    """From here on some nodes do not hear each other; the bus itself and all connections go on."""
