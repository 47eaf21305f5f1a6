"""The page "What of your client was never tried": by file and function, by section, by fault, by base."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

import msgspec

from conformance import printing
from conformance.coverage.document import (
    BASE,
    FAULT,
    SECTION,
    ClientCoverage,
    FileCoverage,
    FunctionCoverage,
    GroupCoverage,
)
from conformance.search.page import STYLE

PAGE, DOCUMENT = "coverage.html", "coverage.json"
TITLE = "What of your client was never tried"
MOST_LINES = 12  #: of a function that are named
HEADINGS = {SECTION: "By section of the rows", FAULT: "By fault", BASE: "By base script"}
TABLE = (
    "table{border-collapse:collapse}td,th{padding:.15em .6em;text-align:right;border-bottom:1px solid #ddd}"
)
LEFT = "td:first-child,th:first-child,td.where{text-align:left}"


def write_coverage(found: ClientCoverage, folder: Path) -> Path:
    """Write the page and the same as JSON into a folder. Returns the path of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / DOCUMENT).write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1))
    path = folder / PAGE
    path.write_text(printing.page("\n".join(_parts(found))), encoding="utf-8")
    return path


def sentence(found: ClientCoverage) -> str:
    """One line for people."""
    functions = [each for file in found.files for each in file.functions if each.name]
    never = sum(not each.is_entered for each in functions)
    return (
        f"coverage of {found.client} {found.version}: {found.executed} of {found.branches} {found.unit} "
        f"({found.share:.0%}), {found.executed_lines} of {found.lines} lines; "
        f"{never} function{'s' * (never != 1)} never entered"
    )


def _parts(found: ClientCoverage) -> Iterator[str]:
    title = escape(f"{TITLE}: {found.client} {found.version}")
    yield f"<!doctype html><meta charset=utf-8><title>{title}</title><style>{STYLE}\n{TABLE}{LEFT}</style>"
    yield f"<h1>{title}</h1><p>{escape(sentence(found))}.</p>"
    yield f"<p>Measured are the modules {escape(', '.join(found.modules))}.</p>"
    if found.compiled:
        yield f"<p>Machine code, which cannot be traced: {escape(', '.join(found.compiled))}.</p>"
    if found.note:
        yield f"<p>{escape(found.note)}</p>"
    yield "<h2>By file and function</h2>"
    for file in sorted(found.files, key=lambda each: each.executed - each.branches):
        yield from _file(file, found.unit)
    for kind, heading in HEADINGS.items():
        yield from _table(heading, found.of(kind), found.groups_unit or found.unit)
    if found.idle:
        yield "<h2>What has added nothing</h2>"
        yield "<p>Each was run, and executed nothing that had not been executed before:</p><ul>"
        yield from (
            f"<li>{escape(each.kind)} {escape(each.name)} ({each.runs} runs)</li>" for each in found.idle
        )
        yield "</ul>"


def _file(file: FileCoverage, unit: str) -> Iterator[str]:
    functions = [each for each in file.functions if each.missing or each.missing_lines]
    yield (
        f"<details><summary><b>{escape(file.path)}</b> {file.executed} of {file.branches} {unit}, "
        f"{file.executed_lines} of {file.lines} lines</summary>"
    )
    if functions:
        yield f"<table><tr><th>Function<th>{unit.capitalize()}<th>of<th>Never executed</tr>"
        for each in sorted(functions, key=lambda each: (each.is_entered, each.line)):
            yield _function(each, unit)
        yield "</table>"
    yield "</details>"


def _function(each: FunctionCoverage, unit: str) -> str:
    where = "never entered" if not each.is_entered else _never(each, unit)
    name = escape(each.name or "(the module itself)")
    return (
        f"<tr><td>{name}, line {each.line}<td>{each.executed}<td>{each.branches}"
        f'<td class="where">{escape(where)}</tr>'
    )


def _never(each: FunctionCoverage, unit: str) -> str:
    branches = list(dict.fromkeys(_step(first, last) for first, last in each.missing))
    lines = list(map(str, each.missing_lines))
    parts = [
        f"{what} {', '.join(some[:MOST_LINES])}{', …' * (len(some) > MOST_LINES)}"
        for what, some in (("lines", lines), (unit, branches))
        if some
    ]
    return "; ".join(parts)


def _step(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first} to {last if last > 0 else 'its end'}"


def _table(heading: str, groups: Sequence[GroupCoverage], unit: str) -> Iterator[str]:
    if not groups:
        return
    yield f"<h2>{heading}</h2><table><tr><th>Name<th>Runs<th>{unit.capitalize()}<th>Only here</tr>"
    for each in sorted(groups, key=lambda each: (-each.only, -each.branches)):
        yield f"<tr><td>{escape(each.name)}<td>{each.runs}<td>{each.branches}<td>{each.only}</tr>"
    yield "</table>"
