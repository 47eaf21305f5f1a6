"""What stock clients get wrong, each root cause once: the list, and the part of a report that shows it.

The list and its programs are in ``docs/findings`` of the repository, and are part of the wheel.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from conformance.clients.adapters.registry import find
from conformance.results import Results, Verdict
from fakebrokers.extras import installing

_HERE = Path(__file__).parent
#: In a checkout, and in an installed wheel.
_PLACES = (_HERE.parent / "docs" / "findings", _HERE / "known-findings")

#: The gravest first.
SEVERITIES = (
    *("data loss", "wrong data", "hang", "crash", "leak", "wrong error"),
    "needs a broken server",  # no server that keeps to the protocol shows it, or none that is known
    "allowed by the standard",  # and surprising all the same
    "cosmetic",
)

#: How a program is marked on a page, by the end of its name.
_LANGUAGES = {".py": "python", ".mjs": "js", ".go": "go", ".java": "java", ".rs": "rust"}


class Place(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A line of a client's source.

    Attributes:
        file: As in the repository of the package.
        line: Counted from 1.
        text: What the line says, without the blanks around it.
        package: Name and version, where it is not the package of the finding.
    """

    file: str
    line: int
    text: str
    package: str = ""


class RootCause(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A root cause.

    Attributes:
        client: Name of the bundled adapter; "" if there is none.
        library: What is installed, where the client is called otherwise.
        versions: In which it was seen.
        sees: What a user sees.
        cause: Why.
        at: Where in the client's source, in the last of the versions.
        real: Whether it was shown against a real server, or why not.
        program: File beside the list.
        prints: Lines that it prints.
        exit: Exit code, or the signal that ends it as a negative number.
        on_real_server: A program that shows the same on a real server, and ends the same way; "" if there is
            none.
        reported: The open issue of the client that says the same, and since when; "" if we know of none.
        scenarios: Those that fail for it.
        change: What would mend it, or what the maintainers have to decide; Markdown.
    """

    title: str
    client: str
    versions: str
    severity: str
    sees: str
    cause: str
    at: list[Place]
    real: str
    program: str
    prints: list[str]
    scenarios: list[str]
    change: str
    exit: int = 0
    library: str = ""
    on_real_server: str = ""
    reported: str = ""

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
    def package(self) -> str:
        """Name and version of the source that `at` is about."""
        return f"{self.name} {self.versions.rpartition(', ')[2]}"

    @property
    def programs(self) -> list[str]:
        """All of its programs."""
        return [each for each in (self.program, self.on_real_server) if each]


def folder() -> Path:
    """Where the list is."""
    return next(place for place in _PLACES if place.is_dir())


def findings() -> list[RootCause]:
    """All of them, the gravest first."""
    found = msgspec.convert(_list()["finding"], list[RootCause])
    return sorted(found, key=lambda each: SEVERITIES.index(each.severity))


def _list() -> dict[str, Any]:
    return tomllib.loads((folder() / "findings.toml").read_text(encoding="utf-8"))


def places(finding: RootCause) -> str:
    """Where in the client's source, as a list in Markdown, with links where its repository is known."""
    sources, lines = _list()["sources"], []
    for each in finding.at:
        package = each.package or finding.package
        name = f"`{each.file}`, line {each.line}"
        if package in sources:
            name = f"[{name}]({sources[package]}{each.file}#L{each.line})"
        of = f" of {each.package}" if each.package else ""
        lines.append(f"* {name}{of}:\n  {_code(each.text)}\n")
    return "".join(lines)


def _code(text: str) -> str:
    """Code in Markdown that may hold backquotes."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def section(finding: RootCause) -> str:
    """One in Markdown."""
    rows = {
        "client": f"{finding.name} {finding.versions}",
        "severity": finding.severity,
        "on a real server": finding.real,
        **({"reported": finding.reported} if finding.reported else {}),
        "scenarios": ", ".join(finding.scenarios) or "of its protocol",
    }
    (head, first), *rest = rows.items()
    table = "\n".join(f"| {name} | {about} |" for name, about in rest)
    parts = [
        f"## {finding.title}",
        f"| {head} | {first} |\n| --- | --- |\n{table}",
        *_parts(finding),
    ]
    if finding.on_real_server:
        parts.append(f"### The same on a real server\n\n{_source(finding.on_real_server)}")
    return "\n\n".join(parts) + "\n"


def _parts(finding: RootCause) -> Iterator[str]:
    """What a page and an issue both say."""
    shown = "\n".join([*finding.prints, *_end(finding.exit)])
    yield f"### What happens\n\n{finding.sees}"
    yield f"### How to see it\n\n{_source(finding.program)}\nIt prints:\n\n```text\n{shown}\n```"
    yield f"### Cause\n\n{finding.cause}\n\n{places(finding)}".rstrip()
    yield f"### Suggested change\n\n{finding.change}".rstrip()


def issue(finding: RootCause) -> str:
    """One as the text of an issue for the client's maintainers, in Markdown."""
    parts = [f"**{finding.title}**", f"Version: {finding.name} {finding.versions}", *_parts(finding)]
    parts.insert(4, f"On a real server: {finding.real}")
    parts.insert(2, _about_the_program(finding))
    if finding.reported:
        parts.insert(0, f"This belongs to {finding.reported}: comment there rather than open another.")
    return "\n\n".join(parts) + "\n"


def _about_the_program(finding: RootCause) -> str:
    """What it needs, for somebody who does not know this project."""
    text = f"The program runs against `fakebrokers`, a test double of the server (`{installing()}`)."
    if Path(finding.program).suffix in (".mjs", ".go", ".java", ".rs"):
        text += " It starts the server with a helper of that package's repository, whose"
        text += " `docs/findings/README.md` says how to run it."
    return text


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
        (place / f"{finding.id}.md").write_text(section(finding), encoding="utf-8")
        for program in finding.programs:
            (place / program).write_bytes((folder() / program).read_bytes())
