"""The page of what stock clients get wrong, from `docs/findings/findings.toml` and the programs beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from conformance.findings import RootCause, findings, section
from conformance.known.defects import KnownRow
from conformance.known.files import read

TOP = Path(__file__).parents[2]
FOLDER = TOP / "docs" / "findings"
KNOWN = TOP / "ci" / "known"

REST = """## Everything else that is known

From the files of known defects (`ci/known`), by which the project's own CI judges the clients. What
is told above is not repeated. `fakebrokers explain ID` says what a scenario demands; this shows one of them:

    fakebrokers conform --client NAME ID
"""


def listed() -> str:
    """All findings, in Markdown; the page in the repository, `docs/findings/README.md`, comes before it."""
    found = findings()
    parts = ["| severity | client | |", "| --- | --- | --- |"]
    parts += [f"| {each.severity} | {each.name} | [{each.title}](#{each.anchor}) |" for each in found]
    parts += ["", *(section(each) for each in found), REST, *_rest(found)]
    return "\n".join(parts)


def _rest(found: Sequence[RootCause]) -> Iterator[str]:
    """The other known failures, by client: each cause with the scenarios that show it."""
    reported = {(each.client, id) for each in found for id in each.scenarios}
    for path in sorted(KNOWN.glob("*.toml")):
        known = read(path)
        rest = causes(row for row in known.rows if (known.client, row.id or row.rule) not in reported)
        if not rest:
            continue
        yield f"### {known.client} {known.client_version}\n"
        yield "| cause | scenarios |\n| --- | --- |"
        for cause, ids in rest.items():
            yield f"| {cause} | {', '.join(ids)} |"
        yield ""


def causes(rows: Iterable[KnownRow]) -> dict[str, list[str]]:
    """Each cause once, with the ids of its rows; without the version, which is in the heading."""
    found: dict[str, list[str]] = {}
    for row in rows:
        cause = re.sub(r" \(\S+ \d[\d.]*\)$", "", row.cause.replace("|", "\\|"))
        ids = found.setdefault(cause, [])
        if (name := row.id or row.rule) not in ids:
            ids.append(name)
    return found
