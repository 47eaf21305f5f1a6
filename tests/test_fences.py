"""What the packages may import, and how complex a function may be: fences that only get narrower.

The lists hold what is outside of them today. Whoever mends one takes it out; nothing is ever added.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]
PACKAGES = ("conformance", "fakebrokers", "scenarios")

#: Who does not import whom, and which modules of it are imported all the same, by whom.
FORBIDDEN: dict[tuple[str, str], dict[str, set[str]]] = {
    ("conformance", "scenarios"): {},
    ("fakebrokers", "conformance"): {  # the entrance to the suite, for those who have it
        "conformance": {"fakebrokers.suite"},
    },
    ("fakebrokers", "scenarios"): {},
    ("fakebrokers.core", "fakebrokers.faults"): {
        "fakebrokers.faults.control": {"fakebrokers.core.parts"},
        "fakebrokers.faults.effect": {"fakebrokers.core.engine"},
        "fakebrokers.faults.injector": {"fakebrokers.core.connection", "fakebrokers.core.engine"},
        "fakebrokers.faults.match": {"fakebrokers.core.connection", "fakebrokers.core.receive_path"},
        "fakebrokers.faults.parcel": {
            "fakebrokers.core.connection",
            "fakebrokers.core.receive_path",
            "fakebrokers.core.send_path",
        },
        "fakebrokers.faults.pipe": {
            "fakebrokers.core.connection",
            "fakebrokers.core.receive_path",
            "fakebrokers.core.send_path",
        },
        "fakebrokers.faults.plan": {"fakebrokers.core.engine"},
    },
    ("conformance.rules", "conformance.search"): {},
    ("conformance.run", "conformance.rules"): {},
    ("conformance.run", "conformance.search"): {},
}

#: Radon's grade D begins here. Ruff's C901 counts neither conditions nor comprehensions, and rules are those.
TOO_COMPLEX = 21
COMPLEX_TODAY = """
conformance.cli.mutants.mutants_command
fakebrokers.control.openapi._of_operation
fakebrokers.journal.keys.row_keys
fakebrokers.journal.stream._frame_rows
fakebrokers.rabbitmq_stream.session_admin._metadata
scenarios.moleculer.sweep.offering.unheard
scenarios.moleculer.sweep.sending._wrong_call
scenarios.moleculer.sweep.tracking._piece
scenarios.rabbitmq_stream.refusals._equal_ids
"""


def modules() -> dict[str, ast.Module]:
    """All modules of the packages, by name."""
    paths = (path for package in PACKAGES for path in (TOP / package).rglob("*.py"))
    ours = (path for path in paths if "node_modules" not in path.parts and "build" not in path.parts)
    return {
        ".".join(path.relative_to(TOP).with_suffix("").parts).removesuffix(".__init__"): ast.parse(
            path.read_text("utf-8")
        )
        for path in ours
    }


MODULES = modules()


@cache
def imported(module: str) -> frozenset[str]:
    """What a module imports from elsewhere, wherever in it, for types only or not."""
    return frozenset(_imported(MODULES[module]))


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for each in node.names:
                whole = f"{node.module}.{each.name}"
                yield whole if whole in MODULES else node.module


def is_in(module: str, package: str) -> bool:
    return f"{module}.".startswith(f"{package}.")


@pytest.mark.parametrize(("of", "to"), [pytest.param(*each, id=" to ".join(each)) for each in FORBIDDEN])
def test_no_arrow_points_the_wrong_way(of: str, to: str) -> None:
    known = {(by, what) for what, users in FORBIDDEN[of, to].items() for by in users}
    found, used = [], set()
    for module in (each for each in MODULES if is_in(each, of)):
        for name in (each for each in imported(module) if is_in(each, to)):
            allowed = {each for each in known if is_in(module, each[0]) and is_in(name, each[1])}
            used |= allowed
            found += [] if allowed else [f"{module} imports {name}"]
    assert sorted(found) == []
    assert sorted(known - used) == [], "no longer imported: take it out of the list"


def test_types_and_imports_in_functions_count() -> None:
    text = "if TYPE_CHECKING:\n    from scenarios.subjects import find\ndef f():\n    import scenarios.net"
    assert {*_imported(ast.parse(text))} == {"scenarios.subjects", "scenarios.net"}


def complexity(function: ast.AST) -> int:
    """The ways through a function, as radon counts them: cyclomatic complexity with its conditions."""
    count = 1
    for node in ast.walk(function):
        match node:
            case ast.If() | ast.IfExp() | ast.ExceptHandler() | ast.Assert() | ast.match_case():
                count += 1
            case ast.For() | ast.AsyncFor() | ast.While():
                count += 1 + bool(node.orelse)
            case ast.BoolOp():
                count += len(node.values) - 1
            case ast.comprehension():
                count += 1 + len(node.ifs)
    return count


def functions(module: str, tree: ast.Module) -> Iterable[tuple[str, int]]:
    return (
        (f"{module}.{node.name}", complexity(node))
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def test_no_function_is_more_complex_than_one_can_follow() -> None:
    found = {
        name: count
        for module, tree in MODULES.items()
        for name, count in functions(module, tree)
        if count >= TOO_COMPLEX
    }
    today = set(COMPLEX_TODAY.split())
    assert {name: count for name, count in found.items() if name not in today} == {}, "split it"
    assert sorted(today - found.keys()) == [], "no longer so complex: take it out of the list"
    assert len(today) <= 10
    assert [name for name in today if is_in(name, "conformance.rules")] == []


def test_complexity_counts_conditions() -> None:
    (function,) = ast.parse("def f(a):\n    return [b for b in a if b and b > 1 or not a]").body
    assert complexity(function) == 1 + 2 + 2


#: An adapter is a program of its own; a class of an op is named after the op, in each protocol that has it;
#: mutants of users name the parts of a reference client, which are called alike in all of them.
OWN_NAMES = (
    "conformance.clients.adapters.",
    "conformance.clients.adapter.ops.",
    "conformance.clients.reference.",
)


def test_a_class_of_the_judge_has_a_name_of_its_own() -> None:
    places: dict[str, list[str]] = {}
    for module, tree in MODULES.items():
        if module.startswith("conformance.") and not module.startswith(OWN_NAMES):
            for node in tree.body:
                if isinstance(node, ast.ClassDef):
                    places.setdefault(node.name, []).append(module)
    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {}, (
        "name what it is for"
    )


def test_the_glossary_stays_short() -> None:
    rows = [line for line in (TOP / "docs/glossary.md").read_text().splitlines() if line.startswith("| ")]
    assert 0 < len(rows) - 2 <= 40, "a word of the field's needs no row"
