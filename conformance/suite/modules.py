"""Modules as trees, without what nobody needs at run time, and what their parts mention."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from fakebrokers.errors import UsageError

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign
#: What only enters a script in the suite's list.
_MARKS = frozenset({"scenario"})


class Import(msgspec.Struct, frozen=True):
    """What a name in a module means: a module, or a name in one."""

    module: str
    name: str | None


class Scan(msgspec.Struct, frozen=True):
    """What a part of the code mentions.

    Attributes:
        names: Those that are no local ones, with their nodes; see `_globals`.
    """

    names: tuple[tuple[Any, str], ...]
    attributes: frozenset[str]
    texts: frozenset[str]


class Module:
    """A module's statements by the names that they define. They are never changed."""

    def __init__(self, tree: ast.Module, package: str) -> None:
        self.definitions: dict[str, Definition] = {}
        self.imports: dict[str, Import] = {}
        self._package = package
        self._scans: dict[int, Scan] = {}
        for statement in tree.body:
            self._take(statement)

    def scan(self, part: ast.AST) -> Scan:
        """What a part of this module mentions; looked up once."""
        if id(part) not in self._scans:
            self._scans[id(part)] = scan_of(part)
        return self._scans[id(part)]

    def _take(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Import():
                for each in statement.names:
                    top = each.name.partition(".")[0]
                    self.imports[each.asname or top] = Import(each.name, None)
            case ast.ImportFrom():
                for each in statement.names:
                    self.imports[each.asname or each.name] = Import(self._origin(statement), each.name)
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

    def __init__(self, is_machinery: bool) -> None:
        self._is_machinery = is_machinery
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

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        self.generic_visit(node)
        if self._keeps_fields:
            return node
        return node.value and ast.copy_location(ast.Assign([node.target], node.value), node)


@cache
def load(name: str, path: Path | None, is_machinery: bool) -> Module:
    """A module by its name, or from a path; see `read`. Raises `UsageError` if there is none."""
    is_package = False
    if path is None:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise UsageError(f"no source of the module {name}")
        path, is_package = Path(spec.origin), spec.submodule_search_locations is not None
    package = name if is_package else name.rpartition(".")[0]
    return read(path.read_text("utf-8"), package, is_machinery=is_machinery)


def read(source: str, package: str, *, is_machinery: bool = False) -> Module:
    """A module from its text.

    Args:
        package: What relative imports begin at.
        is_machinery: Its docstrings are left out.
    """
    return Module(_Lean(is_machinery).visit(ast.parse(source)), package)


def _called(node: ast.expr) -> str:
    """The name of what is called; "" if it is none."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def scan_of(part: ast.AST) -> Scan:
    """What a part of the code mentions."""
    attributes, texts = set(), set()
    for each in ast.walk(part):
        if isinstance(each, ast.Attribute):
            attributes.add(each.attr)
        elif isinstance(each, ast.Constant) and isinstance(each.value, str):
            texts.add(each.value)
    return Scan(tuple(_globals(part)), frozenset(attributes), frozenset(texts))


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
            inside = bound | _locals(node)
            for part in node.body if isinstance(node.body, list) else [node.body]:
                yield from _globals(part, inside)
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
