"""Which criteria a scenario has, read from its script without running it.

An expectation file names criteria by their ids. A name that no criterion of the scenario can have is a
mistake that nobody would ever notice, so it is refused. What is read is a little more than there is: every
text in the script, and in the functions and classes of the scenarios that it refers to, may be a criterion's.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Hashable, Iterator, Mapping
from functools import cache
from types import FunctionType
from typing import Any, NamedTuple, cast

from conformance.suite.expect import ID_LENGTH, criterion_id
from conformance.suite.scenario import Scenario, Script

#: Where the criterion stands among the positional arguments of the methods of `Expect`.
PLACES: Mapping[str, int] = {
    "that": 1,
    "equal": 2,
    "tolerate": 1,
    "exercised": 1,
    "ok": 1,
    "ended": 1,
    "failed": 2,
    "outcome": 2,
    "within": 2,
    "not_before": 2,
    "wire": 1,
    "socket_closed": 2,
    "reached": 1,
}
#: Criteria of the judge itself, which every scenario has.
GENERAL = frozenset(
    {
        "acked-is-confirmed",
        "adapter-protocol",
        "answer",
        "fault-never-fired",
        "in-time",
        "no-connection",
        "nothing-demanded",
        "op-ends",
        "process-lives",
        "script-ended",
    }
)
SETUP = "setup-"
_PACKAGE = "scenarios"


class Criteria(NamedTuple):
    """The criteria of a scenario.

    Attributes:
        ids: Those that are known word by word.
        patterns: The fixed parts, in order, of those that are put together as the script runs.
    """

    ids: frozenset[str]
    patterns: frozenset[tuple[str, ...]]

    def has(self, wanted: str) -> bool:
        """Whether a criterion may have this id."""
        if wanted in self.ids or wanted in GENERAL or wanted.startswith(SETUP):
            return True
        return any(_fits(wanted, parts) for parts in self.patterns)


class Check(NamedTuple):
    """A call of a method of `Expect`: the criterion's words (None where they are made up), and its id."""

    words: str | None
    id: str


def criteria_of(item: Scenario) -> Criteria:
    """All that a scenario's criteria can be called."""
    return _criteria(item.script, cast(Hashable, item.subject))


@cache
def _criteria(script: Script, subject: Hashable) -> Criteria:
    ids: set[str] = set()
    patterns: set[tuple[str, ...]] = set()
    for node in _nodes(script, subject):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            ids.add(criterion_id(node.value))
        elif isinstance(node, ast.JoinedStr):
            fixed = [part.value for part in node.values if isinstance(part, ast.Constant)]
            parts = tuple(filter(None, (criterion_id(str(text)) for text in fixed)))
            if parts:
                patterns.add(parts)
    return Criteria(frozenset(ids - {""}), frozenset(patterns))


def checks_of(item: Scenario) -> list[Check]:
    """The calls of `Expect` in a script, and in what it refers to, with their criteria."""
    found = []
    for node in _nodes(item.script, item.subject):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        place = PLACES.get(node.func.attr)
        if place is None or "expect" not in ast.unparse(node.func.value):
            continue
        named = {keyword.arg: keyword.value for keyword in node.keywords}
        words = _text(named.get("criterion") or (node.args[place] if len(node.args) > place else None))
        given = _text(named.get("id"))
        if given or words is not None:
            found.append(Check(words, given or criterion_id(words or "")))
    return found


def _text(node: ast.AST | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _fits(wanted: str, parts: tuple[str, ...]) -> bool:
    """Whether the parts stand in it in this order; the last ones may have been cut off."""
    at, met = 0, 0
    for part in parts:
        found = wanted.find(part, at)
        if found < 0:
            break
        at, met = found + len(part), met + 1
    return met == len(parts) or (met > 0 and len(wanted) > ID_LENGTH - max(map(len, parts)))


def _nodes(script: Any, subject: Any) -> Iterator[ast.AST]:
    """The syntax of a script, of its subject, and of what of the scenarios these refer to."""
    waiting, seen = [script, subject], {None}
    while waiting:
        what = waiting.pop()
        if what in seen:
            continue
        seen.add(what)
        tree = _tree(what)
        scope = vars(sys.modules[what.__module__])
        for node in ast.walk(tree) if tree is not None else ():
            yield node
            for found in _behind(scope.get(node.id)) if isinstance(node, ast.Name) else ():
                if isinstance(found, str):
                    yield ast.Constant(found)
                elif _is_ours(found):
                    waiting.append(found)
        if isinstance(what, type):
            waiting += [base for base in what.__mro__[1:] if _is_ours(base)]


def _behind(value: Any) -> Iterator[Any]:
    """What a global name stands for, or the things that it holds."""
    inside = value.values() if isinstance(value, Mapping) else value
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        yield from inside
    else:
        yield inside


def _is_ours(what: Any) -> bool:
    is_code = isinstance(what, FunctionType | type)
    return is_code and str(what.__module__).partition(".")[0] == _PACKAGE


@cache
def _tree(what: Any) -> ast.AST | None:
    """The definition of a function or class."""
    if isinstance(what, type | FunctionType):
        definitions = _definitions(inspect.getsourcefile(what) or "")
        return definitions.get(what.__qualname__)
    return None


@cache
def _definitions(path: str) -> Mapping[str, ast.AST]:
    """All functions and classes of a file, by their qualified names."""
    with open(path, encoding="utf-8") as file:
        waiting: list[tuple[str, ast.AST]] = [("", ast.parse(file.read()))]
    found: dict[str, ast.AST] = {}
    while waiting:
        prefix, node = waiting.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found[prefix + child.name] = child
                if isinstance(child, ast.ClassDef):
                    waiting.append((f"{prefix}{child.name}.", child))
    return found
