"""What can be changed in a client, one statement at a time, and the client with such a change."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from itertools import zip_longest
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple

from tests.conformance.planted.operators import DEFINED, OPERATORS, Block

TEXT = 90  #: characters of a statement that are shown


class Change(NamedTuple):
    """One statement that is taken away or says something else.

    Attributes:
        line, column: Where the statement begins.
        kind: Its operator, see `OPERATORS`.
        number: Which of the operator's variants of this statement.
        text: The first line that differs, and what stands there if that is anything.
    """

    path: Path
    line: int
    column: int
    kind: str
    number: int
    text: str
    function: str

    def __str__(self) -> str:
        return f"{self.path.name}:{self.line} {self.kind} [{self.text}] in {self.function}"


def changes_in(path: Path, kinds: Sequence[str] = tuple(OPERATORS)) -> Iterator[Change]:
    """All changes of these kinds of the functions of a file."""
    for function in ast.walk(ast.parse(path.read_text())):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for block, at in _statements(function):
            place = block[at].lineno, block[at].col_offset
            for kind in kinds:
                for number, new in enumerate(OPERATORS[kind](block, at)):
                    text = _difference(block[at:], new[at:])
                    yield Change(path, *place, kind, number, text, function.name)


def _statements(function: ast.AST) -> Iterator[tuple[Block, int]]:
    """The statements of a function in their blocks, without those of functions and classes in it."""
    for block in _blocks(function):
        for at, node in enumerate(block):
            if not isinstance(node, DEFINED):
                yield block, at
                yield from _statements(node)


def _blocks(node: ast.AST) -> Iterator[Block]:
    """The blocks of one statement, or of the handlers and cases in it."""
    for _, value in ast.iter_fields(node):
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            yield value
        elif isinstance(value, list):
            for one in value:
                if isinstance(one, ast.ExceptHandler | ast.match_case):
                    yield from _blocks(one)


def _difference(old: Block, new: Block) -> str:
    lines = (ast.unparse(ast.fix_missing_locations(ast.Module(each, []))).splitlines() for each in (old, new))
    for one, other in zip_longest(*lines, fillvalue=""):
        if one != other:
            there = other.strip()[:TEXT]
            return one.strip()[:TEXT] + (f" => {there}" if there not in ("", "pass") else "")
    return "no difference"


def changed(source: str, change: Change) -> str:
    """The source with this change."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for block in _blocks(node):
            for at, one in enumerate(block):
                if (one.lineno, one.col_offset) == (change.line, change.column):
                    block[:] = list(OPERATORS[change.kind](block, at))[change.number]
                    return ast.unparse(ast.fix_missing_locations(tree))
    raise ValueError(f"{change} is not in the source")


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
