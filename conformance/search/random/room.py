"""What a protocol brings along for chaos, found by its name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from conformance.search.random.actions import Actions
from conformance.search.random.nemesis import GENERAL, Nemesis
from fakebrokers.errors import UsageError

_PACKAGES: dict[str, str] = {}


class ChaosProtocol(NamedTuple):
    """Where the chaos of one protocol takes place."""

    actions: Actions
    nemeses: Mapping[str, Nemesis]


def join(protocol: str, package: str) -> None:
    """Say where the module ``actions`` of a protocol is, if not in ``scenarios``."""
    _PACKAGES[protocol] = package


@cache
def room_of(protocol: str) -> ChaosProtocol:
    """The room of a protocol. Raises `UsageError` if it has none."""
    package = _PACKAGES.get(protocol, f"scenarios.{protocol.replace('-', '_')}.chaos")
    try:
        found = find_spec(package)
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise UsageError(f"there is no chaos for {protocol} yet: no package {package}")
    actions: Actions = import_module(f"{package}.actions").ACTIONS
    own: Iterable[Nemesis] = (
        import_module(f"{package}.nemeses").NEMESES if find_spec(f"{package}.nemeses") else ()
    )
    nemeses = {one.name: one for one in (*GENERAL, *own) if one.name not in actions.without}
    return ChaosProtocol(actions, nemeses)
