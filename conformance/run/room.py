"""What a protocol brings along: its model and its base scripts, found by its name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from conformance.run.bases import Base, bases_in
from conformance.run.model import Model
from fakebrokers.errors import UsageError

_PACKAGES: dict[str, str] = {}


class SweepProtocol(NamedTuple):
    """Where the sweep of one protocol takes place."""

    model: Model
    bases: Mapping[str, Base]


def join(protocol: str, package: str) -> None:
    """Say where the modules ``model`` and ``bases`` of a protocol are, if not in ``scenarios``."""
    _PACKAGES[protocol] = package


@cache
def room_of(protocol: str) -> SweepProtocol:
    """The room of a protocol. Raises `UsageError` if it has none."""
    package = _PACKAGES.get(protocol, f"scenarios.{protocol.replace('-', '_')}.sweep")
    try:
        found = find_spec(package)
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise UsageError(f"there is no sweep for {protocol} yet: no package {package}")
    model: Model = import_module(f"{package}.model").MODEL
    return SweepProtocol(model, bases_in(import_module(f"{package}.bases")))
