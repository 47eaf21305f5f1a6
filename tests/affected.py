"""Runs the tests that a change concerns, nearest first, and says why; ``ci/fast`` calls it.

    python -m tests.affected [REV] [--list]     of all changes since REV, or since main; or only shows them

The order: tests that have changed; that are named like a changed file; that import or read it; those in the
folder that mirrors its own; those that import what imports it. Protocols, scenarios and mutants are loaded by
name, which is no import: so a change in one protocol does not concern the tests of all others. Whatever is
farther away is left to ``ci/test``.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import NamedTuple

TOP = Path(__file__).parents[1]
#: The most files of tests, and the most steps from the change: beyond that `ci/test` is the better choice.
MOST_FILES, MOST_STEPS = 40, 4
#: Tests with these marks are left to the other lanes.
LEFT_OUT = ("benchmark", "full", "nightly")

PROTOCOLS = ("blazingmq", "moleculer", "narconi", "pzq", "rabbitmq_stream")
PROOFS = "tests/scenarios/test_proofs.py"
SUITE = "tests/conformance/suite"
GENERATED = "tests/test_generate.py"
#: Folders that are read as a whole, without a file being named, and the tests that do.
READ_BY = {
    "ci/examples": ["tests/test_ci_examples.py"],
    "ci/fast": ["tests/test_affected.py"],
    "ci/known": [
        "tests/conformance/known/test_files.py",
        "tests/conformance/search/systematic/test_fixed.py",
    ],
    "ci/site": ["tests/test_site.py"],
    "conformance/clients/adapters": ["tests/conformance/clients/adapter/test_registry.py"],
    "conformance/clients/mutants/kills.json": [PROOFS],
    "docs": [GENERATED, "tests/test_docs.py", "tests/test_pages.py", "tests/test_readme.py"],
    "docs/findings": ["tests/test_findings.py"],
    "scenarios": [f"{SUITE}/test_catalogue.py", GENERATED],
}
#: What all scenarios of a protocol rest on, beside the fake itself.
PROVED = ("scenarios/", "conformance/clients/mutants/", "conformance/clients/reference/")


class Reason(NamedTuple):
    """Why a test is chosen, and how far it is from the change."""

    steps: int
    why: str


def is_test(path: str) -> bool:
    return path.startswith("tests/") and PurePath(path).match("test_*.py")


def imported(path: str, text: str) -> Iterator[str]:
    """The names that a file imports, wherever in it: modules, or what stands in them."""
    package = PurePath(path).parent.parts
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            yield from (".".join(filter(None, [*above, node.module, each.name])) for each in node.names)


def find_users(texts: Mapping[str, str]) -> dict[str, set[str]]:
    """Who imports each file."""
    modules = {path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): path for path in texts}
    users = defaultdict(set)
    for path, text in texts.items():
        for name in imported(path, text):
            module = name if name in modules else name.rpartition(".")[0]
            if module in modules:
                users[modules[module]].add(path)
    return users


def readers(path: str, texts: Mapping[str, str]) -> set[str]:
    """Who names a file that cannot be imported: its name ends a string there."""
    end = f'{PurePath(path).name}"'
    return set() if path.endswith(".py") else {each for each, text in texts.items() if end in text}


def beside(path: str, texts: Mapping[str, str]) -> set[str]:
    """The tests in the folder that mirrors that of a file, or in the next one above that has any."""
    parts = PurePath(path).parent.parts
    if parts[:1] != ("tests",):
        parts = ("tests", *parts[parts[:1] == ("fakebrokers",) :])
    for length in range(len(parts), 0, -1):
        tests = {each for each in texts if is_test(each) and PurePath(each).parent.parts == parts[:length]}
        if tests:
            return tests
    return set()


def far_users(path: str, texts: Mapping[str, str], users: Mapping[str, set[str]]) -> Iterator[set[str]]:
    """Who imports or reads a file, then who imports these, and so on; each only once."""
    level, seen = users.get(path, set()) | readers(path, texts), {path}
    while level := level - seen:
        yield level
        seen |= level
        level = {user for each in level for user in users.get(each, ())}


def ways(path: str, texts: Mapping[str, str], users: Mapping[str, set[str]]) -> Iterator[tuple[str, Reason]]:
    """Files that a changed one concerns, tests or not."""
    yield path, Reason(0, "has changed")
    for test in beside(path, texts):
        if PurePath(test).stem.startswith(f"test_{PurePath(path).stem}".lower()):
            yield test, Reason(1, f"is named like {path}")
        elif PurePath(test).parts[1:-1]:
            yield test, Reason(3, f"is in the folder that mirrors that of {path}")
    for folder, tests in READ_BY.items():
        if PurePath(path).is_relative_to(folder):
            yield from ((test, Reason(2, f"reads {folder}")) for test in tests)
    for distance, level in enumerate(far_users(path, texts, users)):
        why = f"imports what imports {path}" if distance else f"imports or reads {path}"
        yield from ((each, Reason(distance + 3 if distance else 2, why)) for each in level)
    if protocols_of([path]):
        near = path.startswith(PROVED)
        yield PROOFS, Reason(2 if near else 4, f"proves the scenarios of the protocol of {path}")


def reasons(changed: Iterable[str], texts: Mapping[str, str]) -> dict[str, Reason]:
    """Every test file that a change concerns in any way, nearest first, and the shortest way to it."""
    users = find_users(texts)
    found: dict[str, Reason] = {}
    for path in changed:
        for test, reason in ways(path, texts, users):
            if test in texts and is_test(test) and (test not in found or reason.steps < found[test].steps):
                found[test] = reason
    return dict(sorted(found.items(), key=lambda item: (item[1].steps, item[0])))


def protocols_of(paths: Iterable[str]) -> set[str]:
    """The protocols in whose folders something is."""
    return {each for path in paths for each in PurePath(path).parts if each in PROTOCOLS}


def git(*arguments: str, top: Path = TOP) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=top, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def changed_files(revisions: Iterable[str], top: Path = TOP) -> list[str]:
    """What differs from where this branch left the first of some others that is there; commits or not."""
    for revision in revisions:
        if base := git("merge-base", "HEAD", revision, top=top):
            committed = git("diff", "--name-only", "--no-renames", *base, top=top)
            return sorted({*committed, *git("ls-files", "--others", "--exclude-standard", top=top)})
    sys.exit(f"there is no commit called {' or '.join(revisions)} that this one has something in common with")


def main() -> None:
    """Show the tests, and become pytest that runs them."""
    given = [each for each in sys.argv[1:] if each != "--list"]
    changed = changed_files(given or ("main", "origin/main"))
    if not changed:
        print("nothing has changed: no tests")
        return
    files = git("ls-files", "--cached", "--others", "--exclude-standard", "*.py")
    texts = {path: (TOP / path).read_text(encoding="utf-8") for path in files if (TOP / path).exists()}
    found = reasons(changed, texts)
    near = [test for test, reason in found.items() if reason.steps <= MOST_STEPS][:MOST_FILES]
    print(f"changed files: {len(changed)}; files of tests that they concern, nearest first: {len(near)}")
    for test in near:
        print(f"  {test} {found[test].why}")
    print(
        f"left to ci/test: {len(found) - len(near)} that are farther away; whatever is {', '.join(LEFT_OUT)}"
    )
    if not near or "--list" in sys.argv:
        return
    os.environ["FAST_PROTOCOLS"] = " ".join(protocols_of(changed))
    marks = " and ".join(f"not {each}" for each in LEFT_OUT)
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "tests.fast_plugin", "-n", "2", "-m", marks]
    sys.stdout.flush()
    os.execv(sys.executable, [*pytest, *near])


if __name__ == "__main__":
    main()
