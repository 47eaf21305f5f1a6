"""The workloads that come along, and those of users, by name."""

from __future__ import annotations

from importlib import import_module

from conformance.search.random.script import Script
from conformance.search.random.workload import SCRIPT, AskOnly, ConsumeOnly, Mixed, PublishOnly, Workload
from fakebrokers.errors import UsageError, instead_of

KINDS: dict[str, type[Workload]] = {
    "publish": PublishOnly,
    "consume": ConsumeOnly,
    "request": AskOnly,
    "mixed": Mixed,
}
ALL = {**KINDS, SCRIPT: Script}


def find_workload(name: str) -> type[Workload]:
    """A workload by its kind, or as ``module:Class``. Raises `UsageError` where there is none."""
    if name in ALL:
        return ALL[name]
    module, _, own = name.partition(":")
    if not own:
        known = instead_of(name, ALL)
        raise UsageError(f"there is no workload {name!r}{known}, or say module:Class")
    try:
        found = getattr(import_module(module), own)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"there is no workload {name}: {error}") from None
    if not (isinstance(found, type) and issubclass(found, Workload)):
        raise UsageError(f"{name} is no subclass of conformance.search.random.Workload")
    return found
