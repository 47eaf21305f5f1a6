"""The faults that only Moleculer has, in one line of Python each.

    duplicate_node(kind="Heartbeat", nth=2)

The types of these functions are in the stub beside this file; see `fakebrokers.faults.build`.
"""

from __future__ import annotations

from fakebrokers.faults.making import builder
from fakebrokers.moleculer.faults import BreakPacket, DuplicateNode, HealBus, PartitionBus

break_packet = builder(BreakPacket)
duplicate_node = builder(DuplicateNode)
heal_bus = builder(HealBus)
partition_bus = builder(PartitionBus)
