"""What stock clients get wrong, from `docs/findings/findings.toml` and the programs beside it: an index with
filters, and a page for each root cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

from conformance.findings import SEVERITIES, RootCause, findings, issue, section
from conformance.known.defects import KnownRow
from conformance.known.files import read

TOP = Path(__file__).parents[2]
FOLDER = TOP / "docs" / "findings"
KNOWN = TOP / "ci" / "known"

SCRIPT = Path(__file__).parent / "findings.js"
FENCE = "`````"  #: longer than those of the programs inside

_FILTERS = """\
<p class="findings-filters" hidden>
<label>client <select data-column="1"><option value="">all</option>{clients}</select></label>
<label>severity <select data-column="0"><option value="">all</option>{severities}</select></label>
<label>words <input type="search" size="16"></label> <output></output>
</p>
"""

REST = """## Everything else that is known

From the files of known defects (`ci/known`), by which the project's own CI judges the clients. What
is told above is not repeated. `fakebrokers explain ID` says what a scenario demands; this shows one of them:

    fakebrokers conform --client NAME ID
"""


def listed() -> str:
    """The index in Markdown."""
    found = findings()
    parts = [_FILTERS.format(clients=_options(each.name for each in found), severities=_options(SEVERITIES))]
    parts += [
        '<div class="findings" markdown>',
        "",
        "| severity | client | what happens |",
        "| --- | --- | --- |",
    ]
    parts += [f"| {each.severity} | {each.name} | [{each.title}]({each.id}.md) |" for each in found]
    parts += ["", "</div>", f"<script>\n{SCRIPT.read_text('utf-8')}</script>", ""]
    return "\n".join(parts)


def page(text: str) -> str:
    """The page of the index in Markdown.

    Args:
        text: That in the repository, `docs/findings/README.md`; the index goes before its first section.
    """
    before, mark, after = text.partition("\n## ")
    return "\n".join([before, "", listed(), f"{mark}{after}", REST, *_rest(findings())])


def pages() -> Iterator[tuple[str, str]]:
    """For each root cause the name of its page, and the page in Markdown."""
    for each in findings():
        text = issue(each)
        body = section(each).replace(f"## {each.title}", f"# {each.title}", 1)
        yield (
            f"{each.id}.md",
            f"{body}\n## As an issue\n\nThe button at its corner copies it.\n\n"
            f"{FENCE}markdown\n{text}{FENCE}\n\n[All findings](README.md)\n",
        )


def _options(values: Iterable[str]) -> str:
    return "".join(f"<option>{escape(each)}</option>" for each in dict.fromkeys(values))


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
