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
from importlib.util import find_spec
from pathlib import Path

import msgspec

from fakebrokers.errors import UsageError
from fakebrokers.protocol import PROTOCOLS

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: What only enters a script in the suite's list.
_MARKS = frozenset({"scenario"})

#: What stands above the parts of the file, by `OneFile._rank`.
_PARTS = {1: "The scenario.", 2: "The calls of the library.", 3: "What carries the calls and judges them."}

Key = tuple[str, str]  #: module and name


class _Import(msgspec.Struct, frozen=True):
    """What a name in a module stands for: a module, or a name in one."""

    module: str
    name: str | None


class _Module:
    """A module's statements by the names that they define."""

    def __init__(self, tree: ast.Module, package: str) -> None:
        self.definitions: dict[str, Definition] = {}
        self.imports: dict[str, _Import] = {}
        self._package = package
        for statement in tree.body:
            self._take(statement)

    def _take(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Import():
                for each in statement.names:
                    top = each.name.partition(".")[0]
                    self.imports[each.asname or top] = _Import(each.name, None)
            case ast.ImportFrom():
                for each in statement.names:
                    self.imports[each.asname or each.name] = _Import(self._origin(statement), each.name)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self.definitions[statement.name] = statement
            case ast.Assign():
                names = [
                    n for target in statement.targets for n in ast.walk(target) if isinstance(n, ast.Name)
                ]
                self.definitions |= dict.fromkeys((each.id for each in names), statement)

    def _origin(self, statement: ast.ImportFrom) -> str:
        if not statement.level:
            return statement.module or ""
        package = self._package.split(".")
        base = package[: len(package) - statement.level + 1]
        return ".".join([*base, *([statement.module] if statement.module else [])])


class _Lean(ast.NodeTransformer):
    """Takes out annotations of functions and variables, marks of scenarios, docstrings of machinery."""

    def __init__(self, is_machinery: bool, protocol: str) -> None:
        self._is_machinery = is_machinery
        self._protocol = protocol
        self._keeps_fields = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        node.decorator_list = [each for each in node.decorator_list if _called(each) not in _MARKS]
        kept, self._keeps_fields = self._keeps_fields, False
        self.generic_visit(node)
        self._keeps_fields = kept
        return self._without_docstring(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        kept, self._keeps_fields = self._keeps_fields, bool(node.bases or node.decorator_list)
        self.generic_visit(node)
        self._keeps_fields = kept
        return self._without_docstring(node)

    def _without_docstring(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> ast.AST:
        if self._is_machinery and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
        node.body = node.body or [ast.Pass()]
        return node

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        """Of a table by protocol only the row that counts."""
        keys = [each.value if isinstance(each, ast.Constant) else None for each in node.keys]
        if self._protocol in keys and all(key in PROTOCOLS for key in keys):
            at = keys.index(self._protocol)
            node.keys, node.values = [node.keys[at]], [node.values[at]]
        self.generic_visit(node)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        self.generic_visit(node)
        if self._keeps_fields:
            return node
        return node.value and ast.copy_location(ast.Assign([node.target], node.value), node)


class OneFile:
    """Flattens; see the module's text.

    Args:
        inlined: Packages whose code is copied.
        machinery: Those of them whose docstrings are left out.
        sources: Paths of modules that cannot be imported by their name; they are inlined.
        kept: Modules and packages inside the inlined ones that are imported all the same.
        protocol: Of tables by protocol only its row is copied; "" copies them whole.
        ops: Methods that are marked with one of these words are needed in any case.
    """

    def __init__(
        self,
        inlined: set[str],
        *,
        machinery: frozenset[str] = frozenset(),
        sources: Mapping[str, Path] | None = None,
        kept: frozenset[str] = frozenset(),
        protocol: str = "",
        ops: Iterable[str] = (),
    ) -> None:
        self._inlined = inlined | set(sources or ())
        self._machinery = machinery
        self._sources = sources or {}
        self._kept = kept
        self._protocol = protocol
        self._modules: dict[str, _Module] = {}
        self._needed: dict[Key, None] = {}
        self._outside: dict[_Import, str] = {}  # and how it was called first
        self._attributes: set[str] = set()
        self._texts = set(ops)

    def flatten(self, root: str) -> str:
        """The file's code: imports, then the definitions, those of the root first.

        Raises:
            UsageError: Something cannot be copied, such as a module that is used as a value.
        """
        self._modules[""] = _Module(_Lean(False, "").visit(ast.parse(root)), "")
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

    def _module(self, name: str) -> _Module:
        if name not in self._modules:
            is_package, path = False, self._sources.get(name)
            if path is None:
                spec = find_spec(name)
                if spec is None or spec.origin is None:
                    raise UsageError(f"no source of the module {name}")
                path, is_package = Path(spec.origin), spec.submodule_search_locations is not None
            lean = _Lean(_is_below(name, self._machinery), self._protocol)
            tree = lean.visit(ast.parse(path.read_text("utf-8")))
            self._modules[name] = _Module(tree, name if is_package else name.rpartition(".")[0])
        return self._modules[name]

    def _resolve(self, module: str, name: str) -> Key | _Import | None:
        """Where a name of a module is defined; an import of something outside; None for a builtin."""
        known = self._module(module)
        if name in known.definitions:
            return (module, name)
        found = known.imports.get(name)
        if found is None or found.name is None or not self._is_inlined(found.module):
            return found
        there = self._module(found.module)
        is_defined = found.name in there.definitions or there.imports.get(found.name, found) != found
        if not is_defined:
            return _Import(f"{found.module}.{found.name}", None)
        return self._resolve(found.module, found.name)

    def _named_in(self, module: str, part: ast.AST) -> Iterator[tuple[ast.expr, Key | _Import]]:
        """The names in a part that stand for something in the file, with the nodes that say so."""
        for node, name in _globals(part):
            found = self._resolve(module, name)
            said: ast.expr = node.value if isinstance(node, ast.Attribute) else node
            if isinstance(found, _Import) and self._is_inlined(found.module):
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
        for node, found in self._named_in(module, part):
            if isinstance(found, tuple):
                self._needed.setdefault(found)
            else:
                self._outside.setdefault(found, node.id if isinstance(node, ast.Name) else found.name or "")
        for each in ast.walk(part):
            if isinstance(each, ast.Name) and each.id == "__file__":
                raise UsageError(f"{module} needs files beside it")
            if isinstance(each, ast.Attribute):
                self._attributes.add(each.attr)
            elif isinstance(each, ast.Constant) and isinstance(each.value, str):
                self._texts.add(each.value)

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

    def _names(self) -> dict[Key | _Import, str]:
        """A name of its own for everything that has one in the file."""
        names: dict[Key | _Import, str] = {key: key[1] for key in self._needed if not key[0]}
        taken = set(names.values())
        wanted: list[tuple[Key | _Import, str]] = [*self._outside.items()]
        wanted += [(key, key[1]) for key in self._needed if key[0]]
        for each, name in wanted:
            free, number = name, 2
            while free in taken:
                free, number = f"{name}_{number}", number + 1
            taken.add(free)
            names[each] = free
        return names

    def _sorted(self) -> list[Key]:
        """What runs when the file is loaded stands behind what it needs; machinery stands last if it can."""
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
        parts = self._parts(definition) if fully else self._at_load(definition)
        return [each for part in parts for _, each in self._named_in(key[0], part) if isinstance(each, tuple)]

    def _at_load(self, definition: ast.AST) -> Iterator[ast.AST]:
        """What of a definition is evaluated when the file is loaded."""
        match definition:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from (*definition.decorator_list, *definition.args.defaults)
                yield from (each for each in definition.args.kw_defaults if each is not None)
            case ast.ClassDef():
                for part in self._parts(definition):
                    yield from self._at_load(part) if isinstance(part, _FUNCTIONS) else (part,)
            case _:
                yield definition

    def _written(self, key: Key, names: Mapping[Key | _Import, str]) -> str:
        module, name = key
        definition = self._modules[module].definitions[name]
        changed = {
            id(node): ast.Name(names[found], ast.Load())
            for part in self._parts(definition)
            for node, found in self._named_in(module, part)
        }
        if isinstance(definition, ast.ClassDef):
            definition.body = [each for each in definition.body if self._is_member(each)] or [ast.Pass()]
        _Renamed(changed).visit(definition)
        if not isinstance(definition, ast.Assign):
            definition.name = names[key]
            return f"\n\n{ast.unparse(definition)}"
        for target in definition.targets:
            for each in ast.walk(target):
                if isinstance(each, ast.Name):
                    each.id = names.get((module, each.id), each.id)
        return ast.unparse(definition)

    def _import_lines(self, names: Mapping[Key | _Import, str]) -> list[str]:
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


class _Renamed(ast.NodeTransformer):
    def __init__(self, changed: Mapping[int, ast.expr]) -> None:
        self._changed = changed

    def visit(self, node: ast.AST) -> ast.AST:
        return self._changed.get(id(node)) or self.generic_visit(node)


def _called(node: ast.expr) -> str:
    """The name of what is called; "" if it is none."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _is_below(module: str, packages: set[str] | frozenset[str]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in packages)


def _globals(node: ast.AST, bound: frozenset[str] = frozenset()) -> Iterator[tuple[ast.expr, str]]:
    """Names that are no local ones; as an attribute (``kit.op``) where one is asked of them."""
    match node:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id=name)):
            if name not in bound and isinstance(getattr(node, "value", node), ast.Name):
                inner = getattr(node, "value", node)
                if isinstance(inner.ctx, ast.Load):
                    yield node, name
            return
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            outer = [*getattr(node, "decorator_list", ()), *node.args.defaults, *node.args.kw_defaults]
            for each in outer:
                if each is not None:
                    yield from _globals(each, bound)
            for part in node.body if isinstance(node.body, list) else [node.body]:
                yield from _globals(part, bound | _locals(node))
            return
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            targets = [each for g in node.generators for each in ast.walk(g.target)]
            bound |= {each.id for each in targets if isinstance(each, ast.Name)}
    for child in ast.iter_child_nodes(node):
        yield from _globals(child, bound)


def _locals(function: ast.AST) -> frozenset[str]:
    """Everything that is bound somewhere in a function."""
    found: set[str] = set()
    for node in ast.walk(function):
        match node:
            case ast.arg(arg=str(name)) | ast.ExceptHandler(name=str(name)) | ast.alias(asname=str(name)):
                found.add(name)
            case (
                ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name))
            ):
                found.add(name)
            case ast.Name(id=name) if not isinstance(node.ctx, ast.Load):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if node is not function:
                found.add(name)
    return frozenset(found)
