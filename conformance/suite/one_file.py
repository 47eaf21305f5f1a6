"""Several Python modules as one file: what a root module needs of them, and nothing else.

The root is the text of a module. What it imports from packages that are *inlined* is copied, with all that
this needs in turn; other imports stay imports. Of classes only those methods are copied whose names occur
somewhere in what is copied. That is decided by name alone, so sometimes one too many comes along, but none
is missing (unless it is reached by `getattr` with a name that is put together). Annotations that nobody
evaluates are left out, and the docstrings of modules that are only machinery.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from copy import copy, deepcopy
from pathlib import Path
from typing import Any

from conformance.suite.modules import Definition, Import, Module, Scan, load, read
from fakebrokers.errors import UsageError

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: What comes above the parts of the file, by `OneFile._rank`.
_PARTS = {1: "The scenario.", 2: "The calls of the library.", 3: "What carries the calls and judges them."}

Key = tuple[str, str]  #: module and name


class OneFile:
    """Flattens; see the module's text.

    Args:
        inlined: Packages whose code is copied.
        machinery: Those of them whose docstrings are left out.
        sources: Paths of modules that cannot be imported by their name; they are inlined.
        kept: Modules and packages inside the inlined ones that are imported all the same.
        ops: Methods that are marked with one of these words are needed in any case.
    """

    def __init__(
        self,
        inlined: set[str],
        *,
        machinery: frozenset[str] = frozenset(),
        sources: Mapping[str, Path] | None = None,
        kept: frozenset[str] = frozenset(),
        ops: Iterable[str] = (),
    ) -> None:
        self._inlined = inlined | set(sources or ())
        self._machinery = machinery
        self._sources = sources or {}
        self._kept = kept
        self._modules: dict[str, Module] = {}
        self._resolved: dict[Key, Key | Import | None] = {}
        self._needed: dict[Key, None] = {}
        self._outside: dict[Import, str] = {}  # and how it was called first
        self._attributes: set[str] = set()
        self._texts = set(ops)
        self._seen: set[tuple[str, int]] = set()

    def flatten(self, root: str) -> str:
        """The file's code: imports, then the definitions, those of the root first.

        Raises:
            UsageError: Something cannot be copied, such as a module that is used as a value.
        """
        self._modules[""] = read(root, "")
        self._needed |= dict.fromkeys(("", name) for name in self._modules[""].definitions)
        self._reach()
        names = self._names()
        lines, rank = self._import_lines(names), 0
        for key in self._sorted():
            if rank < (rank := max(rank, self._rank(key[0]))):
                lines += ["", "", f"# {_PARTS[rank]}"]
            lines.append(self._written(key, names))
        return "\n".join(lines) + "\n"

    # where names come from

    def _is_inlined(self, module: str) -> bool:
        return _is_below(module, self._inlined) and not _is_below(module, self._kept)

    def _module(self, name: str) -> Module:
        if name not in self._modules:
            is_machinery = _is_below(name, self._machinery)
            self._modules[name] = load(name, self._sources.get(name), is_machinery)
        return self._modules[name]

    def _resolve(self, module: str, name: str) -> Key | Import | None:
        """Where a name of a module is defined; an import of something outside; None for a builtin."""
        if (module, name) not in self._resolved:
            self._resolved[module, name] = self._looked_up(module, name)
        return self._resolved[module, name]

    def _looked_up(self, module: str, name: str) -> Key | Import | None:
        known = self._module(module)
        if name in known.definitions:
            return (module, name)
        found = known.imports.get(name)
        if found is None or found.name is None or not self._is_inlined(found.module):
            return found
        there = self._module(found.module)
        is_defined = found.name in there.definitions or there.imports.get(found.name, found) != found
        if not is_defined:
            return Import(f"{found.module}.{found.name}", None)
        return self._resolve(found.module, found.name)

    def _named_in(self, module: str, scan: Scan) -> Iterator[tuple[ast.expr, Key | Import]]:
        """The names in a part that name something in the file, with the nodes that say so."""
        for node, name in scan.names:
            found = self._resolve(module, name)
            said: ast.expr = node.value if isinstance(node, ast.Attribute) else node
            if isinstance(found, Import) and self._is_inlined(found.module):
                if not isinstance(node, ast.Attribute):
                    raise UsageError(f"the module {found.module} is used as a value in {module}")
                found, said = self._resolve(found.module, node.attr), node
            if found is not None:
                yield said, found

    # what is needed

    def _reach(self) -> None:
        """Add what is needed by what is needed, until nothing is missing."""
        before = -1
        while before != (before := len(self._needed) + len(self._attributes) + len(self._texts)):
            for module, name in list(self._needed):
                for part in self._parts(self._modules[module].definitions[name]):
                    self._look(module, part)

    def _look(self, module: str, part: ast.AST) -> None:
        if (module, id(part)) in self._seen:
            return
        self._seen.add((module, id(part)))
        scan = self._modules[module].scan(part)
        for node, found in self._named_in(module, scan):
            if isinstance(found, tuple):
                self._needed.setdefault(found)
            else:
                self._outside.setdefault(found, node.id if isinstance(node, ast.Name) else found.name or "")
        if any(name == "__file__" for _, name in scan.names):
            raise UsageError(f"{module} needs files beside it")
        self._attributes |= scan.attributes
        self._texts |= scan.texts

    def _parts(self, definition: Definition) -> Iterator[ast.AST]:
        """The definition, or what is kept of a class."""
        if not isinstance(definition, ast.ClassDef):
            yield definition
            return
        yield from (*definition.bases, *definition.keywords, *definition.decorator_list)
        yield from (each for each in definition.body if self._is_member(each))

    def _is_member(self, statement: ast.stmt) -> bool:
        if not isinstance(statement, _FUNCTIONS):
            return True
        marked = {
            argument.value
            for mark in statement.decorator_list
            if isinstance(mark, ast.Call)
            for argument in mark.args
            if isinstance(argument, ast.Constant)
        }
        name = statement.name
        is_special = name.startswith("__") and name.endswith("__")
        return is_special or (bool(self._texts & marked) if marked else name in self._attributes)

    # what is written

    def _names(self) -> dict[Key | Import, str]:
        """A name of its own for everything that has one in the file."""
        names: dict[Key | Import, str] = {key: key[1] for key in self._needed if not key[0]}
        taken = set(names.values())
        wanted: list[tuple[Key | Import, str]] = [*self._outside.items()]
        wanted += [(key, key[1]) for key in self._needed if key[0]]
        for each, name in wanted:
            free, number = name, 2
            while free in taken:
                free, number = f"{name}_{number}", number + 1
            taken.add(free)
            names[each] = free
        return names

    def _sorted(self) -> list[Key]:
        """What runs when the file is loaded comes after what it needs; machinery comes last if it can."""
        found: dict[Key, None] = {}
        begun: set[Key] = set()

        def place(key: Key, *, fully: bool) -> None:
            if key not in begun:
                begun.add(key)
                for needed in self._needed_by(key, fully=fully):
                    place(needed, fully=True)
                found[key] = None

        for key in sorted(self._needed, key=lambda key: self._rank(key[0])):
            place(key, fully=False)
        once = {id(self._modules[key[0]].definitions[key[1]]): key for key in found}
        return list(once.values())  # one statement may define several names

    def _rank(self, module: str) -> int:
        """The root, then what is imported by name, then what has a path, then the machinery."""
        if not module:
            return 0
        return 3 if _is_below(module, self._machinery) else 2 if module in self._sources else 1

    def _needed_by(self, key: Key, *, fully: bool) -> list[Key]:
        definition = self._modules[key[0]].definitions[key[1]]
        parts = self._parts(definition) if fully else self._atload(definition)
        scans = map(self._modules[key[0]].scan, parts)
        return [each for scan in scans for _, each in self._named_in(key[0], scan) if isinstance(each, tuple)]

    def _atload(self, definition: ast.AST) -> Iterator[ast.AST]:
        """What of a definition is evaluated when the file is loaded."""
        match definition:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from (*definition.decorator_list, *definition.args.defaults)
                yield from (each for each in definition.args.kw_defaults if each is not None)
            case ast.ClassDef():
                for part in self._parts(definition):
                    yield from self._atload(part) if isinstance(part, _FUNCTIONS) else (part,)
            case _:
                yield definition

    def _written(self, key: Key, names: Mapping[Key | Import, str]) -> str:
        module, name = key
        there = self._modules[module]
        written: Any = copy(there.definitions[name])
        if isinstance(written, ast.ClassDef):
            written.body = [each for each in written.body if self._is_member(each)] or [ast.Pass()]
        changed: dict[int, Any] = {
            id(node): ast.Name(names[found], ast.Load())
            for part in self._parts(there.definitions[name])
            for node, found in self._named_in(module, there.scan(part))
            if not (isinstance(node, ast.Name) and node.id == names[found])
        }
        if changed:
            written = deepcopy(written, changed)  # the copy has the new names in the place of these nodes
        if not isinstance(written, ast.Assign):
            written.name = names[key]
            return f"\n\n{ast.unparse(written)}"
        written.targets = [_renamed(each, module, names) for each in written.targets]
        return ast.unparse(written)

    def _import_lines(self, names: Mapping[Key | Import, str]) -> list[str]:
        whole, single = [], []
        for each in self._outside:
            name = names[each]
            if each.name is None:
                is_plain = name == each.module.partition(".")[0]
                whole.append(f"import {each.module}" + ("" if is_plain else f" as {name}"))
            else:
                single.append(
                    f"from {each.module} import {each.name}" + ("" if name == each.name else f" as {name}")
                )
        return ["from __future__ import annotations", "", *sorted(whole), *sorted(single), ""]


def _renamed(target: ast.expr, module: str, names: Mapping[Key | Import, str]) -> ast.expr:
    """The target of an assignment with the names that it has in the file."""
    target = deepcopy(target)
    for each in ast.walk(target):
        if isinstance(each, ast.Name):
            each.id = names.get((module, each.id), each.id)
    return target


def _is_below(module: str, packages: set[str] | frozenset[str]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in packages)
