"""Which mutants there are.

The modules ``mutants_*.py`` of a protocol's package beside this file declare them; a mutant is a subclass of
the part of the reference client that it replaces, which may be one of the kit's:

    @mutant("confirm-by-position", breaks=["R7"])
    class ConfirmByPosition(Publisher):
        '''Takes the ids of a confirm for a mere count.'''
"""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import NamedTuple, TypeVar

from conformance.adapter.kit import AdapterBase
from conformance.reference import registry
from conformance.reference.kit import adapter_of
from fakebrokers.errors import UsageError
from fakebrokers.protocol import instead_of

T = TypeVar("T", bound=type)

_PACKAGE = __name__.rpartition(".")[0]
_declared: dict[str, dict[str, Mutant]] = {}


class Mutant(NamedTuple):
    """A client with one defect.

    Attributes:
        name: Such as ``confirm-by-position``.
        title: What is wrong with it, one sentence.
        breaks: Codes of the source sentences (``R7``, ``X3``) that it breaks.
        aims: Ids of costly scenarios for which it was made; see `matrix.affordable`.
        part: The subclass of one of the client's parts that has the defect.
        also: Further parts that the defect needs.
    """

    name: str
    title: str
    breaks: tuple[str, ...]
    protocol: str
    part: type
    aims: tuple[str, ...] = ()
    also: tuple[type, ...] = ()

    @property
    def adapter(self) -> type[AdapterBase]:
        """The client behind its adapter."""
        if self.protocol in registry.protocols():
            parts = (self.part, *self.also)
            return adapter_of(registry.definition(self.protocol), parts, self.part.__name__)
        made: type[AdapterBase] = _adapters(self.protocol).adapter_with(self.part)
        return made


def mutant(
    name: str, *, breaks: Sequence[str], aims: Sequence[str] = (), also: Sequence[type] = ()
) -> Callable[[T], T]:
    """Declare a mutant; its docstring says what is wrong with it. See `Mutant` for the arguments."""

    def register(part: T) -> T:
        title = " ".join((part.__doc__ or "").split())
        if not title:
            raise UsageError(f"the mutant {name} needs a docstring: what is wrong with it?")
        protocol = part.__module__.split(".")[-2].replace("_", "-")
        there = _declared.setdefault(protocol, {})
        if name in there and there[name].part.__qualname__ != part.__qualname__:
            raise UsageError(f"there are two mutants {name}")
        there[name] = Mutant(name, title, tuple(breaks), protocol, part, tuple(aims), tuple(also))
        return part

    return register


@cache
def mutants_of(protocol: str) -> tuple[Mutant, ...]:
    """All mutants of a protocol's reference client, by name."""
    package = import_module(_module(protocol))
    for module in pkgutil.iter_modules(package.__path__):
        if module.name.startswith("mutants_"):
            import_module(f"{package.__name__}.{module.name}")
    return tuple(one for _, one in sorted(_declared.get(protocol, {}).items()))


def find_mutant(protocol: str, name: str) -> Mutant:
    """The mutant of that name. Raises `UsageError` with the close ones."""
    there = {one.name: one for one in mutants_of(protocol)}
    if name not in there:
        raise UsageError(f"there is no mutant {name!r}{instead_of(name, there)}")
    return there[name]


def reference(protocol: str) -> type[AdapterBase]:
    """The adapter class of the correct client. Raises `UsageError` if there is none."""
    if protocol in registry.protocols():
        return registry.reference(protocol)
    found: type[AdapterBase] = _adapters(protocol).REFERENCE
    return found


def without_sockets(protocol: str, adapter: type[AdapterBase]) -> type[AdapterBase]:
    """The same client, for fakes that were made with ``memory=True``."""
    if protocol in registry.protocols():
        return registry.without_sockets(adapter)
    found: type[AdapterBase] = _adapters(protocol).in_memory(adapter)
    return found


def protocols() -> list[str]:
    """The protocols that have a reference client."""
    package = import_module(_PACKAGE)
    return [one.name.replace("_", "-") for one in pkgutil.iter_modules(package.__path__) if one.ispkg]


def command(protocol: str, mutant: str | None = None) -> list[str]:
    """The command line of the reference client, or of a mutant, as a child process."""
    if protocol in registry.protocols():
        if mutant is None:
            return registry.command(protocol)
        return [sys.executable, "-m", _PACKAGE, protocol, mutant]
    more = ["--mutant", mutant] if mutant else []
    return [sys.executable, "-m", _module(protocol), *more]


def _module(protocol: str) -> str:
    name = f"{_PACKAGE}.{protocol.replace('-', '_')}"
    if find_spec(name) is None:
        there = ", ".join(protocols())
        raise UsageError(f"there is no reference client for {protocol}, only for {there}")
    return name


def _adapters(protocol: str) -> ModuleType:
    return import_module(f"{_module(protocol)}.adapter")
