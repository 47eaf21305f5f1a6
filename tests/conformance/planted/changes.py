"""What can be changed in a client, one statement at a time, and the client with such a change."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple

TEXT = 90  #: characters of a statement that are shown


class Change(NamedTuple):
    """One statement that is taken away or says something else.

    Attributes:
        line, column: Where the statement begins.
        kind: ``delete``; ``true`` or ``false`` in place of a condition; ``drop0`` or ``drop1``: without one
            of its operands; ``body`` or ``orelse``: one side of a conditional value; ``nofinal``.
    """

    path: Path
    line: int
    column: int
    kind: str
    text: str
    function: str

    def __str__(self) -> str:
        return f"{self.path.name}:{self.line} {self.kind} [{self.text}] in {self.function}"


def changes_in(path: Path) -> Iterator[Change]:
    """All changes of the functions of a file."""
    for function in ast.walk(ast.parse(path.read_text())):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in _own_statements(function):
            text = ast.unparse(node).splitlines()[0][:TEXT]
            for kind in _kinds(node):
                yield Change(path, node.lineno, node.col_offset, kind, text, function.name)


def _own_statements(function: ast.AST) -> Iterator[ast.stmt]:
    """The statements of a function, without those of functions and classes in it."""
    for node in ast.iter_child_nodes(function):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if isinstance(node, ast.stmt):
            yield node
        yield from _own_statements(node)


def _kinds(node: ast.stmt) -> list[str]:
    match node:
        case ast.Expr(value=ast.Constant()):
            return []  # a docstring
        case ast.Expr() | ast.AugAssign() | ast.Continue() | ast.Break() | ast.Delete() | ast.Raise():
            return ["delete"]
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript(), *_]):
            return ["delete"]
        case ast.If(test=ast.BoolOp()):
            return ["true", "false", "drop0", "drop1"]
        case ast.If():
            return ["true", "false"]
        case ast.While(test=ast.BoolOp()) | ast.Return(value=ast.BoolOp()):
            return ["drop0", "drop1"]
        case ast.Return(value=ast.IfExp()):
            return ["body", "orelse"]
        case ast.Try(finalbody=[_, *_]):
            return ["nofinal"]
    return []


def changed(source: str, change: Change) -> str:
    """The source with this change."""
    tree = ast.parse(source)
    return ast.unparse(ast.fix_missing_locations(_Changer(change).visit(tree)))


class _Changer(ast.NodeTransformer):
    def __init__(self, change: Change) -> None:
        self.change = change

    def generic_visit(self, node: ast.AST) -> ast.AST:
        place = self.change.line, self.change.column
        if isinstance(node, ast.stmt) and (node.lineno, node.col_offset) == place:
            return _changed(node, self.change.kind)
        return super().generic_visit(node)


def _changed(node: ast.stmt, kind: str) -> ast.stmt:
    if kind == "delete":
        return ast.Pass()
    new = copy.deepcopy(node)
    if kind == "nofinal" and isinstance(new, ast.Try):
        new.finalbody = [ast.Pass()]
    elif isinstance(new, ast.If | ast.While):
        new.test = ast.Constant(kind == "true") if kind in ("true", "false") else _side(new.test, kind)
    elif isinstance(new, ast.Return) and new.value is not None:
        new.value = _side(new.value, kind)
    return new


def _side(value: ast.expr, kind: str) -> ast.expr:
    """What is left of a condition or a value."""
    if isinstance(value, ast.IfExp):
        return value.body if kind == "body" else value.orelse
    assert isinstance(value, ast.BoolOp)
    dropped = min(int(kind[-1]), len(value.values) - 1)
    left = [each for place, each in enumerate(value.values) if place != dropped]
    return left[0] if len(left) == 1 else ast.BoolOp(value.op, left)


# the client with a change


class _Loader(SourceFileLoader):
    def __init__(self, name: str, change: Change) -> None:
        super().__init__(name, str(change.path))
        self.change = change

    def get_code(self, fullname: str) -> CodeType:
        return compile(changed(self.change.path.read_text(), self.change), self.path, "exec")


class Planted(MetaPathFinder):
    """Finds the module with the change in place of the correct one, from here on in this process."""

    def __init__(self, change: Change) -> None:
        self.change = change

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        found = PathFinder.find_spec(fullname, path, target)
        if found is not None and found.origin == str(self.change.path):
            found.loader = _Loader(fullname, self.change)
        return found
