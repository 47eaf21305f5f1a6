"""Which protocols have a reference client."""

from __future__ import annotations

import pkgutil
import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.reference.kit import Reference, adapter_of
from fakebrokers.errors import UsageError

_PACKAGE = __name__.rpartition(".")[0]


def protocols() -> list[str]:
    """The protocols that have a reference client."""
    return list(_protocols())


@cache  # it reads a folder, and lists of scenarios ask for each of theirs
def _protocols() -> tuple[str, ...]:
    package = import_module(_PACKAGE)
    names = [one.name for one in pkgutil.iter_modules(package.__path__) if one.ispkg and one.name != "kit"]
    return tuple(name.replace("_", "-") for name in names)


def definition(protocol: str) -> Reference:
    """What a protocol's package says of its client. Raises `UsageError` if there is none."""
    name = f"{_PACKAGE}.{protocol.replace('-', '_')}"
    if protocol == "kit" or find_spec(name) is None:
        there = ", ".join(protocols())
        raise UsageError(f"there is no reference client for {protocol}, only for {there}")
    found: Reference = import_module(f"{name}.ops").REFERENCE
    return found


def reference(protocol: str) -> type[AdapterBase]:
    """The adapter class of the correct client. Raises `UsageError` if there is none."""
    return adapter_of(definition(protocol))


def without_sockets(adapter: type[AdapterBase]) -> type[AdapterBase]:
    """The same client, for fakes that were made with ``memory=True``."""
    return type(adapter.__name__, (adapter,), {"is_memory": True})


def command(protocol: str) -> list[str]:
    """The command line of the reference client as a child process."""
    definition(protocol)
    return [sys.executable, "-m", _PACKAGE, protocol]
