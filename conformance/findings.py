"""What stock clients get wrong, each root cause once: the list, and the part of a report that shows it.

The list and its programs are in ``docs/findings`` of the repository, and are part of the wheel.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from conformance.clients.adapters.registry import find
from conformance.results import Results, Verdict

_HERE = Path(__file__).parent
#: In a checkout, and in an installed wheel.
_PLACES = (_HERE.parent / "docs" / "findings", _HERE / "known-findings")

#: The gravest first.
SEVERITIES = (
    *("data loss", "wrong data", "hang", "crash", "leak", "wrong error"),
    "allowed by the standard",  # and surprising all the same
    "cosmetic",
)

#: How a program is marked on a page, by the end of its name.
_LANGUAGES = {".py": "python", ".mjs": "js", ".go": "go", ".java": "java", ".rs": "rust"}


class RootCause(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A root cause.

    Attributes:
        client: Name of the bundled adapter; "" if there is none.
        library: What is installed, where the client is called otherwise.
        versions: In which it was seen.
        sees: What a user sees.
        cause: Where in the client's source, and why.
        real: Whether it was shown against a real server, or why not.
        program: File beside the list.
        prints: Lines that it prints.
        exit: Exit code, or the signal that ends it as a negative number.
        on_real_server: A program that shows the same on a real server, and ends the same way; "" if there is
            none.
        scenarios: Those that fail for it.
        change: What would mend it, a suggestion; "" if there is none.
    """

    title: str
    client: str
    versions: str
    severity: str
    sees: str
    cause: str
    real: str
    program: str
    prints: list[str]
    scenarios: list[str]
    exit: int = 0
    library: str = ""
    on_real_server: str = ""
    change: str = ""

    @property
    def id(self) -> str:
        """Of the page, by the program, which keeps its name."""
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", Path(self.program).stem)
        return words.replace("_", "-").lower()

    @property
    def name(self) -> str:
        """Of the library, as its registry has it."""
        return self.library or find(self.client).library

    @property
    def anchor(self) -> str:
        """As GitHub and MkDocs make it of a heading."""
        return re.sub(r"[^\w\s-]", "", self.title.lower()).replace(" ", "-")

    @property
    def programs(self) -> list[str]:
        """All of its programs."""
        return [each for each in (self.program, self.on_real_server) if each]


def folder() -> Path:
    """Where the list is."""
    return next(place for place in _PLACES if place.is_dir())


def findings() -> list[RootCause]:
    """All of them, the gravest first."""
    listed = tomllib.loads((folder() / "findings.toml").read_text(encoding="utf-8"))["finding"]
    found = msgspec.convert(listed, list[RootCause])
    return sorted(found, key=lambda each: SEVERITIES.index(each.severity))


def section(finding: RootCause) -> str:
    """One in Markdown."""
    shown = "\n".join([*finding.prints, *_end(finding.exit)])
    rows = {
        "severity": finding.severity,
        "what a user sees": finding.sees,
        "where": finding.cause,
        "a real server": finding.real,
        "scenarios": ", ".join(finding.scenarios) or "of its protocol",
        "suggested change": finding.change,
    }
    table = "\n".join(f"| {name} | {about} |" for name, about in rows.items() if about)
    return (
        f"## {finding.title}\n\n"
        f"| client | {finding.name} {finding.versions} |\n| --- | --- |\n{table}\n\n"
        f"{_source(finding.program)}\n```text\n{shown}\n```\n"
        + (
            f"\nThe same on a real server:\n\n{_source(finding.on_real_server)}"
            * bool(finding.on_real_server)
        )
    )


def issue(finding: RootCause) -> str:
    """One as the text of an issue for the client's maintainers, in Markdown."""
    shown = "\n".join([*finding.prints, *_end(finding.exit)])
    parts = [
        f"**{finding.title}**",
        f"Version: {finding.name} {finding.versions}",
        f"### What happens\n\n{finding.sees}",
        f"### How to see it\n\n{_source(finding.program)}\nIt prints:\n\n```text\n{shown}\n```",
        f"On a real server: {finding.real}",
        f"### Cause\n\n{finding.cause}",
    ]
    if finding.change:
        parts.append(f"### Suggested change\n\n{finding.change}")
    return "\n\n".join(parts) + "\n"


def _source(program: str) -> str:
    """A program in Markdown."""
    if not program:
        return ""
    text = (folder() / program).read_text(encoding="utf-8")
    return f"```{_LANGUAGES[Path(program).suffix]}\n{text}```\n"


def _end(code: int) -> Iterator[str]:
    if code < 0:
        yield f"(the process is ended by signal {-code})"
    elif code:
        yield f"(the process ends with {code})"


def reported_by(results: Results, known: Iterable[RootCause]) -> list[RootCause]:
    """Those of this client in this version of which a scenario has failed."""
    failed = {row.id for row in results.results if row.verdict is Verdict.FAIL}
    return [
        each
        for each in known
        if each.client == results.client
        and results.client_version in each.versions.split(", ")
        and failed & {*each.scenarios}
    ]


def write_findings(runs: Sequence[Results], report: Path) -> None:
    """Put a page and the program of each known root cause into ``findings`` of a report.

    Those of an earlier run go away.
    """
    place = report / "findings"
    for path in place.glob("*") if place.is_dir() else ():
        path.unlink()
    known = findings()
    for each in dict.fromkeys(each.program for run in runs for each in reported_by(run, known)):
        finding = next(one for one in known if one.program == each)
        place.mkdir(exist_ok=True)
        (place / f"{finding.anchor}.md").write_text(section(finding), encoding="utf-8")
        for program in finding.programs:
            (place / program).write_bytes((folder() / program).read_bytes())
