"""What a protocol brings along for the judge, found through its `Protocol`: traits and base scripts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from conformance.run.bases import Base, bases_in
from conformance.run.traits import Traits
from fakebrokers.errors import UsageError
from fakebrokers.protocol import find_protocol


class SweepProtocol(NamedTuple):
    """What runs of one protocol are made of."""

    traits: Traits
    bases: Mapping[str, Base]


def package_of(protocol: str, part: str) -> str:
    """The package of a part of what a protocol brings along, such as ``sweep``.

    Raises:
        UsageError: There is none.
    """
    found = find_protocol(protocol)
    package = f"{found.judge or f'scenarios.{found.folder}'}.{part}"
    try:
        is_there = find_spec(package) is not None
    except ModuleNotFoundError:
        is_there = False
    if not is_there:
        raise UsageError(f"there is no {part} for {protocol} yet: no package {package}")
    return package


@cache
def traits_of(protocol: str) -> Traits:
    """The traits of a protocol. Raises `UsageError` if it has none."""
    traits: Traits = import_module(package_of(protocol, "traits")).TRAITS
    return traits


@cache
def material_of(protocol: str) -> SweepProtocol:
    """Traits and base scripts of a protocol. Raises `UsageError` if it has none."""
    return SweepProtocol(
        traits_of(protocol), bases_in(import_module(f"{package_of(protocol, 'sweep')}.bases"))
    )
