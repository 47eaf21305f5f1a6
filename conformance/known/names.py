"""Whether there is what a file of known defects names: scenarios, criteria, rules, acts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path

from conformance.known.defects import RULES, Key, KnownDefects, KnownFinding, KnownRow, Part
from fakebrokers.errors import UsageError


def check(
    path: Path, known: KnownDefects, part: Part, warn: Callable[[str], object], protocol: str = ""
) -> None:
    """Look at the names of one part.

    Args:
        warn: Gets criteria that the suite does not declare.
        protocol: What chaos speaks.

    Raises:
        UsageError: A row can never be true.
    """
    if part is Part.SUITE:
        for row in known.rows:
            for problem in _check_row(path, row):
                warn(problem)
        return
    names, acts = names_of_sweep() if part is Part.SWEEP else _names_of_chaos(protocol)
    for found in known.findings:
        if part in found.parts:
            _check_finding(path, found, names, acts)


def _check_row(path: Path, row: KnownRow) -> list[str]:
    """What is wrong with the criteria of a row."""
    from conformance.suite.declared import declared_by
    from conformance.suite.load import all_scenarios

    rows = {item.key: item for item in all_scenarios()}
    if row.rule:
        _check_rule(path, row, rows)
        return []
    if row.key not in rows:
        ids = sorted({item.id for item in rows.values() if item.protocol == row.protocol})
        name = "/".join(part for part in row.key if part)
        raise UsageError(f"{path}: there is no scenario {name}{_meant(row.id, ids)}")
    declared = declared_by(rows[row.key])
    return [
        f"{path}: {row.id} has no criterion {wanted!r}{_meant(wanted, sorted(declared.ids))}"
        for wanted in row.criteria
        if wanted not in RULES and not declared.has(wanted)
    ]


def _check_rule(path: Path, row: KnownRow, rows: Iterable[Key]) -> None:
    if row.rule not in RULES:
        raise UsageError(f"{path}: there is no rule {row.rule!r}{_meant(row.rule, sorted(RULES))}")
    ids = sorted({key[0] for key in rows if key[1] == row.protocol})
    for wanted in row.rows:
        if wanted not in ids:
            raise UsageError(f"{path}: {row.rule}: there is no row {wanted}{_meant(wanted, ids)}")


def _meant(word: str, names: list[str]) -> str:
    close = get_close_matches(word, names, n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


def _check_finding(path: Path, row: KnownFinding, names: Collection[str], acts: Collection[str]) -> None:
    if not any(fnmatchcase(name, row.rule) for name in names):
        raise UsageError(f"{path}: there is no rule {row.rule!r}{_meant(row.rule, sorted(names))}")
    for act in row.acts:
        if not any(fnmatchcase(name, act) for name in acts):
            raise UsageError(f"{path}: {row.rule}: there is no act {act!r}{_meant(act, sorted(acts))}")


def names_of_sweep() -> tuple[Collection[str], Collection[str]]:
    """What can be found, and what can be done."""
    from conformance.run.acts import ACTS
    from conformance.run.concurrent_actions import CONCURRENT, HURRIED
    from conformance.run.specs import ORDER, PLAIN

    return RULES, {*ACTS, PLAIN, ORDER, *(f"aside-{what}" for what in (*CONCURRENT, HURRIED))}


def _names_of_chaos(protocol: str) -> tuple[Collection[str], Collection[str]]:
    """What can be found, and what can be done."""
    from conformance.rules.anomalies import NAMES
    from conformance.run.specs import PLAIN
    from conformance.search.random.acts import REALISM
    from conformance.search.random.material import material_of
    from conformance.search.random.toxics import TOXIC
    from fakebrokers.faults.drawing import BY_NAME

    return {*NAMES, *RULES}, {PLAIN, *BY_NAME, *REALISM, *TOXIC, *material_of(protocol).nemeses}
