"""Which mutants there are.

The modules ``mutants_*.py`` of a protocol's package beside this file declare them; a mutant is a subclass of
the part of the reference client that it replaces:

    @mutant("confirm-by-position", tag="data", breaks=["R7"])
    class ConfirmByPosition(Publisher):
        '''Takes the ids of a confirm for a mere count.'''

Those in ``mutants_kit.py`` replace a part of the kit, and name the protocols whose clients can have them.
"""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Literal, NamedTuple, TypeVar, get_args

from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.reference.kit import adapter_of
from conformance.clients.reference.registry import definition
from conformance.suite import outside
from fakebrokers.errors import UsageError, instead_of

T = TypeVar("T", bound=type)

#: What a defect is about:
#: ``data``: a message or an outcome is lost, invented, doubled, out of order or reported wrongly;
#: ``life-cycle``: connecting, reconnecting, closing, time-outs, hangs, callbacks, resources;
#: ``wire``: bytes or frames are wrong or missing, or are read wrongly;
#: ``wording``: nothing but the text, the kind or the code of a report.
Tag = Literal["data", "life-cycle", "wire", "wording"]

_PACKAGE = __name__.rpartition(".")[0]
_declared: dict[str, dict[str, Mutant]] = {}


class Mutant(NamedTuple):
    """A client with one defect.

    Attributes:
        name: Such as ``confirm-by-position``.
        title: What is wrong with it, one sentence.
        tag: What the defect is about.
        breaks: Codes of the source sentences (``R7``, ``X3``) that it breaks.
        aims: Ids of costly scenarios for which it was made; see `matrix.affordable`.
        part: The subclass of one of the client's parts that has the defect.
        also: Further parts that the defect needs.
    """

    name: str
    title: str
    tag: Tag
    breaks: tuple[str, ...]
    protocol: str
    part: type
    aims: tuple[str, ...] = ()
    also: tuple[type, ...] = ()

    @property
    def adapter(self) -> type[AdapterBase]:
        """The client of an adapter."""
        return adapter_of(definition(self.protocol), (self.part, *self.also), self.part.__name__)

    @property
    def command(self) -> list[str]:
        """The command line of the client as a child process."""
        return [sys.executable, "-m", _PACKAGE, self.protocol, self.name]


def mutant(
    name: str,
    *,
    tag: Tag,
    breaks: Sequence[str],
    aims: Sequence[str] = (),
    also: Sequence[type] = (),
    protocols: Sequence[str] = (),
) -> Callable[[T], T]:
    """Declare a mutant; its docstring says what is wrong with it. See `Mutant` for the arguments.

    Args:
        protocols: Whose clients can have the defect; by default the one in whose package the class is.
    """

    def register(part: T) -> T:
        title = " ".join((part.__doc__ or "").split())
        if not title:
            raise UsageError(f"the mutant {name} needs a docstring: what is wrong with it?")
        if tag not in get_args(Tag):
            raise UsageError(f"the mutant {name} has the tag {tag!r}{instead_of(tag, get_args(Tag))}")
        for protocol in protocols or [part.__module__.split(".")[-2].replace("_", "-")]:
            there = _declared.setdefault(protocol, {})
            if name in there and there[name].part.__qualname__ != part.__qualname__:
                raise UsageError(f"there are two mutants {name}")
            there[name] = Mutant(name, title, tag, tuple(breaks), protocol, part, tuple(aims), tuple(also))
        return part

    return register


def mutants_of(protocol: str) -> tuple[Mutant, ...]:
    """All mutants of a protocol's reference client, by name. Raises `UsageError` if it has no such client."""
    return _mutants_of(protocol, outside.folders())


@cache
def _mutants_of(protocol: str, folders: tuple[outside.Folder, ...]) -> tuple[Mutant, ...]:
    definition(protocol)
    import_module(f"{_PACKAGE}.mutants_kit")
    package = import_module(f"{_PACKAGE}.{protocol.replace('-', '_')}")
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
