"""The types of the functions that build faults; ``python -m fakebrokers.faults.stubs`` writes them anew.

A stub ``build.pyi`` stands beside each ``build.py``: that of all protocols, and that of each protocol. What
is in it is read from the effects' classes and from `Match`, which the functions themselves ask too.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from importlib import import_module
from importlib.util import find_spec
from inspect import cleandoc
from pathlib import Path
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

import msgspec

from fakebrokers.faults.effect import Effect, Realism
from fakebrokers.faults.match import Match
from fakebrokers.faults.registry import COMMON
from fakebrokers.faults.source import function_name
from fakebrokers.protocol import Protocol, protocols

HEAD = '''\
"""Types of the functions in build.py; ``python -m fakebrokers.faults.stubs`` writes them."""

'''
SEVERAL = '"""Several effects in one step: ``fault(truncate(), rst(), role="confirm", nth=2)``."""'


class Parameter(NamedTuple):
    """One of a function's; `default` is source code, None where a value is needed."""

    name: str
    kind: str
    default: str | None

    def __str__(self) -> str:
        return f"    {self.name}: {self.kind}" + ("," if self.default is None else f" = {self.default},")


def stub_files() -> dict[Path, str]:
    """The text of every stub, by where it stands."""
    found = {_beside("fakebrokers.faults.build"): stub_text(COMMON, with_fault=True)}
    for protocol in protocols():
        module = build_module(protocol)
        if find_spec(module) is not None:
            found[_beside(module)] = stub_text(protocol.own_effects)
    return found


def build_module(protocol: Protocol) -> str:
    """Where the functions for the effects are that only this protocol has."""
    return f"{protocol.server.partition(':')[0].rpartition('.')[0]}.build"


def _beside(module: str) -> Path:
    return Path(str(import_module(module).__file__)).with_suffix(".pyi")


def stub_text(kinds: Sequence[type[Effect]], *, with_fault: bool = False) -> str:
    """A stub with a function for each effect.

    Args:
        with_fault: Whether `fault` and `sweep` are in it too.
    """
    source = _Source()
    source.name("fakebrokers.faults.plan", "Fault")
    parts = []
    if with_fault:
        source.name("fakebrokers.faults.effect", "Effect")
        source.name("fakebrokers.faults.making", "sweep as sweep")
        parts.append(_function("fault", ["    *acts: Effect | Fault,", *map(str, _common(source))], SEVERAL))
    parts += [_builder(kind, source) for kind in sorted(kinds, key=function_name)]
    return HEAD + source.head() + "\n" + "\n".join(parts)


def _builder(kind: type[Effect], source: _Source) -> str:
    named = _common(source, besides=kind.__struct_fields__)
    parameters = [*_parameters(kind, source), "    *,", *named]
    return _function(function_name(kind), map(str, parameters), _docstring(kind))


def _common(source: _Source, besides: Sequence[str] = ()) -> Iterator[Parameter]:
    """What all functions take: what stands with a fault, and what has to fit."""
    for each in (
        Parameter("name", "str", '""'),
        Parameter("realism", f"{source.spelled(Realism)} | None", "None"),
        *_parameters(Match, source),
    ):
        if each.name not in besides:
            yield each


def _parameters(kind: type[msgspec.Struct], source: _Source) -> Iterator[Parameter]:
    for field in msgspec.structs.fields(kind):
        default = None if field.required else "..."
        if field.default is None or isinstance(field.default, bool | int | float | str):
            default = repr(getattr(field.default, "value", field.default)).replace("'", '"')
        yield Parameter(field.name, source.spelled(field.type), default)


def _function(name: str, parameters: Iterable[str], docstring: str) -> str:
    return "\n".join([f"def {name}(", *parameters, ") -> Fault:", f"    {docstring}", ""])


def _docstring(kind: type[Effect]) -> str:
    text = cleandoc(kind.__doc__ or "").replace("\n", "\n    ").replace("\n    \n", "\n\n")
    return f'"""{text}\n    """' if "\n" in text else f'"""{text}"""'


class _Source:
    """Types as source code, as wide as what the functions take, and what a stub has to import for them."""

    def __init__(self) -> None:
        self._imports: dict[str, set[str]] = {}
        self._words: dict[str, list[str]] = {}

    def name(self, module: str, name: str) -> str:
        """A name that is imported, unless it is a builtin."""
        if module != "builtins":
            self._imports.setdefault(module, set()).add(name)
        return name

    def head(self) -> str:
        """The imports, and a name for the words of each enumeration."""
        lines = [
            f"from {module} import {', '.join(sorted(names))}"
            for module, names in sorted(self._imports.items())
        ]
        own = [line for line in lines if line.startswith("from fakebrokers")]
        words = [
            f"{name}: TypeAlias = Literal[\n" + "".join(f'    "{word}",\n' for word in listed) + "]"
            for name, listed in sorted(self._words.items())
        ]
        return "\n".join([*(line for line in lines if line not in own), "", *own, "", *words, ""])

    def spelled(self, kind: Any) -> str:
        """A type."""
        origin, inner = get_origin(kind), get_args(kind)
        if origin is Literal:
            words = ", ".join(repr(word).replace("'", '"') for word in inner)
            return f"{self.name('typing', 'Literal')}[{words}]"
        if origin in (Union, types.UnionType):
            return " | ".join(map(self.spelled, inner))
        if origin is tuple:  # a list will do
            of = inner[:1] if inner[1:] == (...,) else dict.fromkeys(inner)
            return f"{self.spelled(Sequence)}[{' | '.join(map(self.spelled, of))}]"
        if origin is not None:
            base = Mapping if issubclass(origin, Mapping) else origin
            return f"{self.spelled(base)}[{', '.join(map(self.spelled, inner))}]"
        if isinstance(kind, type) and issubclass(kind, Enum):
            return f"{self.name(kind.__module__, kind.__name__)} | {self._plain(kind)}"
        if kind is types.NoneType:
            return "None"
        return self.name("typing" if kind is Any else kind.__module__, kind.__name__)

    def _plain(self, kind: type[Enum]) -> str:
        """What may stand for a member of an enumeration."""
        values = [each.value for each in kind]
        if not all(isinstance(value, str) for value in values):
            return "int"
        self.name("typing", "Literal")
        self.name("typing", "TypeAlias")
        alias = f"_{kind.__name__}"
        self._words[alias] = values
        return alias


if __name__ == "__main__":
    for path, text in stub_files().items():
        path.write_text(text, encoding="utf-8")
