"""What the packages may import, and how complex a function may be: fences that only get narrower.

The lists hold what is outside of them today. Whoever mends one takes it out; nothing is ever added.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Set
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
        "fakebrokers.faults.rule": {"fakebrokers.core.engine"},
    },
    ("conformance.rules", "conformance.search"): {},
    ("conformance.run", "conformance.rules"): {},
    ("conformance.run", "conformance.search"): {},
}

#: Modules that know one another, for types only or not: a package, and its modules that do.
CIRCLES_TODAY: tuple[tuple[str, str], ...] = (
    (
        "conformance.clients.reference.blazingmq",
        "client deliveries handshake link posts queues requests watchdog",
    ),
    (
        "conformance.clients.reference.rabbitmq_stream",
        "client consuming link links locator publishing recovery super_streams",
    ),
    ("conformance.clients.reference.rabbitmq_stream", "connection handshake publisher requests subscription"),
)

#: Radon's grade D begins here. Ruff's C901 counts neither conditions nor comprehensions, and rules are those.
TOO_COMPLEX = 21
COMPLEX_TODAY = """
conformance.cli.mutants.mutants_command
fakebrokers.control.openapi._of_operation
fakebrokers.journal.keys.row_keys
fakebrokers.journal.stream._frame_rows
fakebrokers.rabbitmq_stream.session_admin._metadata
scenarios.moleculer.sweep.sending._wrong_call
scenarios.moleculer.sweep.tracking._piece
scenarios.rabbitmq_stream.refusals._equal_ids
"""


@cache  # not where tests are collected: each worker would read 1,100 files
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


@cache
def imported(module: str) -> frozenset[str]:
    """What a module imports from elsewhere, wherever in it, for types only or not."""
    return frozenset(_imported(modules()[module]))


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for each in node.names:
                whole = f"{node.module}.{each.name}"
                yield whole if whole in modules() else node.module


def is_in(module: str, package: str) -> bool:
    return f"{module}.".startswith(f"{package}.")


@pytest.mark.parametrize(("of", "to"), [pytest.param(*each, id=" to ".join(each)) for each in FORBIDDEN])
def test_no_arrow_points_the_wrong_way(of: str, to: str) -> None:
    known = {(by, what) for what, users in FORBIDDEN[of, to].items() for by in users}
    found, used = [], set()
    for module in (each for each in modules() if is_in(each, of)):
        for name in (each for each in imported(module) if is_in(each, to)):
            allowed = {each for each in known if is_in(module, each[0]) and is_in(name, each[1])}
            used |= allowed
            found += [] if allowed else [f"{module} imports {name}"]
    assert sorted(found) == []
    assert sorted(known - used) == [], "no longer imported: take it out of the list"


#: Who reads the wire for the judge, and what of a fake these may know: what its frames are, and its numbers.
READERS = (
    "conformance.decoders",
    "scenarios.blazingmq.sweep.records",
    "scenarios.blazingmq.sweep.tracking",
    "scenarios.moleculer.sweep.tracking",
    "scenarios.rabbitmq_stream.sweep.records",
    "scenarios.rabbitmq_stream.sweep.tracking",
)
KNOWN_TO_READERS = ("frames", "codes")
#: Frames that stand beside what reads them.
PACKETS = "Packet Discover Info Disconnect Heartbeat Ping Pong Request Response Event"
FRAMES_TO_READERS = {"fakebrokers.moleculer.packets": frozenset(PACKETS.split())}


def taken_from(module: str, name: str) -> set[str]:
    """The names that a module takes from another one."""
    nodes = (node for node in ast.walk(modules()[module]) if isinstance(node, ast.ImportFrom))
    return {each.name for node in nodes if node.module == name for each in node.names}


def test_the_judge_reads_the_wire_with_no_code_of_a_fake() -> None:
    found = [
        f"{module} imports {name}"
        for module in modules()
        if any(is_in(module, reader) for reader in READERS)
        for name in imported(module)
        if is_in(name, "fakebrokers")
        and not is_in(name, "fakebrokers.core")
        and name.rpartition(".")[2] not in KNOWN_TO_READERS
        and not (name in FRAMES_TO_READERS and taken_from(module, name) <= FRAMES_TO_READERS[name])
    ]
    assert found == []


def test_types_and_imports_in_functions_count() -> None:
    text = "if TYPE_CHECKING:\n    from scenarios.subjects import find\ndef f():\n    import scenarios.net"
    assert {*_imported(ast.parse(text))} == {"scenarios.subjects", "scenarios.net"}


def circles(arrows: Mapping[str, Set[str]]) -> set[frozenset[str]]:
    """Which modules lead to one another; by what each imports."""
    left = dict(arrows)
    while dead_ends := {name for name, to in left.items() if not to & left.keys()}:
        left = {name: to for name, to in left.items() if name not in dead_ends}
    behind: dict[str, set[str]] = {}
    for name in left:
        found, new = set[str](), {name}
        while new:
            new = {each for one in new for each in left[one] if each in left} - found
            found |= new
        behind[name] = found
    return {frozenset(each for each in found if name in behind[each]) for name, found in behind.items()} - {
        frozenset()
    }


def test_modules_that_know_one_another_are_the_known_ones() -> None:
    """What two of them need goes into a third, below; or one of them is given what it needs of the other."""
    arrows = {
        module: {each for each in imported(module) if each in modules()} - {module} for module in modules()
    }
    known = [frozenset(f"{package}.{each}" for each in names.split()) for package, names in CIRCLES_TODAY]
    found = circles(arrows)
    new = [
        f"{module} imports {each}"
        for circle in found
        if not any(circle <= each for each in known)
        for module in circle
        for each in arrows[module] & circle
    ]
    assert sorted(new) == [], "a new circle"
    there = frozenset[str]().union(*found)
    assert sorted(each for circle in known for each in circle - there) == [], "take it out of the list"


def test_a_circle_is_found_whatever_leads_to_it() -> None:
    arrows = {
        "a": {"b"},
        "b": {"c", "f"},
        "c": {"d"},
        "d": {"b", "e"},
        "e": set[str](),
        "f": {"g"},
        "g": {"f"},
    }
    assert circles(arrows) == {frozenset("bcd"), frozenset("fg")}


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
        for module, tree in modules().items()
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
    for module, tree in modules().items():
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
