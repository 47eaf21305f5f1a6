"""What a protocol brings along for chaos, found through its `Protocol`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from conformance.run.material import package_of
from conformance.search.random.actions import Actions
from conformance.search.random.nemesis import GENERAL, Nemesis


class ChaosProtocol(NamedTuple):
    """What chaos of one protocol is made of."""

    actions: Actions
    nemeses: Mapping[str, Nemesis]


@cache
def material_of(protocol: str) -> ChaosProtocol:
    """What a protocol has for chaos. Raises `UsageError` if it has nothing."""
    package = package_of(protocol, "chaos")
    actions: Actions = import_module(f"{package}.actions").ACTIONS
    own: Iterable[Nemesis] = (
        import_module(f"{package}.nemeses").NEMESES if find_spec(f"{package}.nemeses") else ()
    )
    nemeses = {one.name: one for one in (*GENERAL, *own) if one.name not in actions.without}
    return ChaosProtocol(actions, nemeses)
