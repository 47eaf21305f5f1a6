"""Which wrong behaviours the fakes of a protocol can have."""

from __future__ import annotations

import msgspec

from fakebrokers.description import Description
from fakebrokers.errors import PlanError
from fakebrokers.faults import Fault
from fakebrokers.faults.injector import Injector
from fakebrokers.mutate.behaviours import GENERAL, Behaviour
from fakebrokers.protocol import load_behaviours


def behaviours_of(protocol: Description) -> list[Behaviour]:
    """The behaviours that fakes of this protocol can have; each fault is called like its behaviour.

    One of the protocol's own takes the place of the general one of the same name.
    """
    injector = Injector(protocol.wires, own=protocol.own_effects, protocol=protocol.name)
    there = {each.name: each for each in (*GENERAL, *load_behaviours(protocol))}
    return [_with_name(each) for each in there.values() if is_possible(injector, each.fault)]


def _with_name(behaviour: Behaviour) -> Behaviour:
    return behaviour._replace(fault=msgspec.structs.replace(behaviour.fault, name=behaviour.name))


def is_possible(injector: Injector, what: Fault) -> bool:
    """Whether the wires of a fake can have a fault."""
    try:
        injector.check(what, "fault")
    except PlanError:
        return False
    return True
