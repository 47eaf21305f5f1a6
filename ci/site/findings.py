"""The page of what stock clients get wrong, from `docs/findings/findings.toml` and the programs beside it.

``python -m ci.site.findings`` writes it, to be read in the repository. On the site all other known failures
stand below.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from conformance.adapters.registry import find

TOP = Path(__file__).parents[2]
FOLDER = TOP / "docs" / "findings"
EXPECTATIONS = TOP / "ci" / "expectations"

#: The gravest first.
SEVERITIES = ("data loss", "wrong data", "hang", "crash", "leak", "wrong error", "cosmetic")

#: How a program is marked on the page, by the end of its name.
LANGUAGES = {".py": "python", ".mjs": "js", ".go": "go", ".java": "java", ".rs": "rust"}

INTRODUCTION = """# Findings

What stock clients get wrong, each root cause once. Each program below is whole: it needs the client's
library and fakebrokers, and runs as printed. They are run by this project's tests. What is shown here was run
by hand against the fake, and against a real server where one could be had; *behind the proxy* means that
`fakebrokers proxy` stood in front of it and made the fault.

Programs in other languages than Python start `fakebrokers serve` by themselves, through a file of
`conformance/helpers` that has to be beside them:

| language | put beside the program | run it with |
| --- | --- | --- |
| JavaScript | `helpers/node/fakebrokers.mjs`, and the client by `npm install` | `node PROGRAM.mjs` |
| Go | the files of `helpers/go` | `go test -v .` |
| Java | `helpers/java/FakeBroker.java` | `javac -cp 'JARS/*' *.java`, `java -cp 'JARS/*:.' PROGRAM` |
| Rust | the files of `helpers/rust`, the program as `src/main.rs` | `cargo run` |
"""

REST = """## Everything else that is known

From the files of known failures (`ci/expectations`), by which the project's own CI judges the clients. What
is told above is not repeated. `fakebrokers explain ID` says what a scenario demands; this shows one of them:

    fakebrokers conform --client NAME ID
"""


class Finding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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
        scenarios: Those that fail for it.
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


def findings() -> list[Finding]:
    """All of them, the gravest first."""
    listed = tomllib.loads((FOLDER / "findings.toml").read_text(encoding="utf-8"))["finding"]
    found = msgspec.convert(listed, list[Finding])
    return sorted(found, key=lambda each: SEVERITIES.index(each.severity))


def page() -> str:
    """The page, in Markdown, as it stands in the repository."""
    found = findings()
    parts = [INTRODUCTION, "| severity | client | |", "| --- | --- | --- |"]
    parts += [
        f"| {each.severity} | {_name(each)} | [{each.title}](#{_anchor(each.title)}) |" for each in found
    ]
    parts += ["", *(_section(each) for each in found)]
    return "\n".join(parts).rstrip() + "\n"


def rest() -> str:
    """What stands below it on the site."""
    return "\n".join([REST, *_rest(findings())])


def _name(finding: Finding) -> str:
    return finding.library or find(finding.client).library


def _anchor(title: str) -> str:
    """As GitHub and MkDocs make it of a heading."""
    return re.sub(r"[^\w\s-]", "", title.lower()).replace(" ", "-")


def _section(finding: Finding) -> str:
    language = LANGUAGES[Path(finding.program).suffix]
    text = (FOLDER / finding.program).read_text(encoding="utf-8")
    shown = "\n".join([*finding.prints, *_end(finding.exit)])
    rows = {
        "severity": finding.severity,
        "what a user sees": finding.sees,
        "where": finding.cause,
        "a real server": finding.real,
        "scenarios": ", ".join(finding.scenarios) or "of its protocol",
    }
    table = "\n".join(f"| {name} | {about} |" for name, about in rows.items())
    return (
        f"## {finding.title}\n\n"
        f"| client | {_name(finding)} {finding.versions} |\n| --- | --- |\n{table}\n\n"
        f"```{language}\n{text}```\n\n```text\n{shown}\n```\n"
    )


def _end(code: int) -> Iterator[str]:
    if code < 0:
        yield f"(the process is ended by signal {-code})"
    elif code:
        yield f"(the process ends with {code})"


def _rest(found: Sequence[Finding]) -> Iterator[str]:
    """The other known failures, by client: each cause with the scenarios that show it."""
    for path in sorted(EXPECTATIONS.glob("*.toml")):
        listed = tomllib.loads(path.read_text(encoding="utf-8"))
        told = {(each.client, id) for each in found for id in each.scenarios}
        rest = causes(row for row in listed["known"] if (listed["client"], row["id"]) not in told)
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
        if row["id"] not in ids:
            ids.append(row["id"])
    return found


if __name__ == "__main__":
    (FOLDER / "README.md").write_text(page(), encoding="utf-8")
