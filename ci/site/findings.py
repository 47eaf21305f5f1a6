"""The page of what stock clients get wrong, from `docs/findings/findings.toml` and the programs beside it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.findings import Finding, findings, section

TOP = Path(__file__).parents[2]
FOLDER = TOP / "docs" / "findings"
EXPECTATIONS = TOP / "ci" / "expectations"

REST = """## Everything else that is known

From the files of known failures (`ci/expectations`), by which the project's own CI judges the clients. What
is told above is not repeated. `fakebrokers explain ID` says what a scenario demands; this shows one of them:

    fakebrokers conform --client NAME ID
"""


def listed() -> str:
    """All of them, in Markdown; the page in the repository, `docs/findings/README.md`, stands before it."""
    found = findings()
    parts = ["| severity | client | |", "| --- | --- | --- |"]
    parts += [f"| {each.severity} | {each.name} | [{each.title}](#{each.anchor}) |" for each in found]
    parts += ["", *(section(each) for each in found), REST, *_rest(found)]
    return "\n".join(parts)


def _rest(found: Sequence[Finding]) -> Iterator[str]:
    """The other known failures, by client: each cause with the scenarios that show it."""
    for path in sorted(EXPECTATIONS.glob("*.toml")):
        listed = tomllib.loads(path.read_text(encoding="utf-8"))
        told = {(each.client, id) for each in found for id in each.scenarios}
        rest = causes(row for row in listed["known"] if (listed["client"], _name(row)) not in told)
        yield f"### {listed['client']} {listed.get('client_version', '')}\n"
        yield "| cause | scenarios |\n| --- | --- |"
        for cause, ids in rest.items():
            yield f"| {cause} | {', '.join(ids)} |"
        yield ""


def causes(rows: Iterator[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Each cause once, with the ids that it stands at; without the version, which is in the heading."""
    found: dict[str, list[str]] = {}
    for row in rows:
        cause = re.sub(r" \(\S+ \d[\d.]*\)$", "", row["cause"].replace("|", "\\|"))
        ids = found.setdefault(cause, [])
        if _name(row) not in ids:
            ids.append(_name(row))
    return found


def _name(row: Mapping[str, Any]) -> str:
    """The scenario of a known failure, or the rule for all runs."""
    return str(row.get("id") or row["rule"])
