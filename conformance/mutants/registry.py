"""Which mutants there are.

A protocol's package beside this file has a module ``adapter`` with `REFERENCE` (the adapter class of the
correct client), `adapter_with(part)` (the same with one part of the client replaced by a subclass) and
`in_memory(adapter)` (the same without sockets). Its modules ``mutants_*.py`` declare the mutants:

    @mutant("confirm-by-position", breaks=["R7"])
    class ConfirmByPosition(Publisher):
        '''Takes the ids of a confirm for a mere count.'''
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import NamedTuple, TypeVar

from conformance.adapter.kit import AdapterBase
from conformance.suite import outside
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
        part: The subclass of the client, or of one of its parts, that has the defect.
    """

    name: str
    title: str
    breaks: tuple[str, ...]
    protocol: str
    part: type
    aims: tuple[str, ...] = ()

    @property
    def adapter(self) -> type[AdapterBase]:
        """The client behind its adapter."""
        made: type[AdapterBase] = _adapters(self.protocol).adapter_with(self.part)
        return made


def mutant(name: str, *, breaks: Sequence[str], aims: Sequence[str] = ()) -> Callable[[T], T]:
    """Declare a mutant; its docstring says what is wrong with it. See `Mutant` for the arguments."""

    def register(part: T) -> T:
        title = " ".join((part.__doc__ or "").split())
        if not title:
            raise UsageError(f"the mutant {name} needs a docstring: what is wrong with it?")
        protocol = part.__module__.split(".")[-2].replace("_", "-")
        there = _declared.setdefault(protocol, {})
        if name in there and there[name].part.__qualname__ != part.__qualname__:
            raise UsageError(f"there are two mutants {name}")
        there[name] = Mutant(name, title, tuple(breaks), protocol, part, tuple(aims))
        return part

    return register


def mutants_of(protocol: str) -> tuple[Mutant, ...]:
    """All mutants of a protocol's reference client, by name."""
    return _mutants_of(protocol, outside.folders())


@cache
def _mutants_of(protocol: str, folders: tuple[outside.Folder, ...]) -> tuple[Mutant, ...]:
    package = import_module(_module(protocol))
    for module in pkgutil.iter_modules(package.__path__):
        if module.name.startswith("mutants_"):
            import_module(f"{package.__name__}.{module.name}")
    for folder in folders:
        outside.load_mutants(folder, protocol)
    return tuple(one for _, one in sorted(_declared.get(protocol, {}).items()))


def find_mutant(protocol: str, name: str) -> Mutant:
    """The mutant of that name. Raises `UsageError` with the close ones."""
    there = {one.name: one for one in mutants_of(protocol)}
    if name not in there:
        raise UsageError(f"there is no mutant {name!r}{instead_of(name, there)}")
    return there[name]


def reference(protocol: str) -> type[AdapterBase]:
    """The adapter class of the correct client. Raises `UsageError` if there is none."""
    found: type[AdapterBase] = _adapters(protocol).REFERENCE
    return found


def without_sockets(protocol: str, adapter: type[AdapterBase]) -> type[AdapterBase]:
    """The same client, for fakes that were made with ``memory=True``."""
    found: type[AdapterBase] = _adapters(protocol).in_memory(adapter)
    return found


def protocols() -> list[str]:
    """The protocols that have a reference client."""
    package = import_module(_PACKAGE)
    return [one.name.replace("_", "-") for one in pkgutil.iter_modules(package.__path__) if one.ispkg]


def command(protocol: str, mutant: str | None = None) -> list[str]:
    """The command line of the reference client, or of a mutant, as a child process."""
    import sys

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
