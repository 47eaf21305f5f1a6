"""Where documents and examples say that pip finds this project: all of them as `fakebrokers.extras` says.

`ci.generate` writes them, on the day of a release for instance.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from fakebrokers.extras import ADDRESS, installing

TOP = Path(__file__).parents[1]
#: Written above the installation in examples for pipelines as long as no index has this project.
NOTE = "# fakebrokers is on no index yet: its wheels lie in this repository, and ci/package makes them."

#: Ours in a command of pip: by any of its addresses, with its extras, and the suite after it.
_OURS = re.compile(
    r"""
    (?P<before> pip\ install\ (?:-\S+\ )*)
    (?P<quote>["']?)
    (?: \./fakebrokers-[\d.]+-py3-none-any\.whl | fakebrokers )
    (?: \[(?P<extras>[\w,-]+)\] )?
    (?P=quote)
    (?: \ (?: \./fakebrokers_suite-[\d.]+-py3-none-any\.whl | fakebrokers-suite ) )?
    (?= [\s`);] | $ )
    """,
    re.VERBOSE,
)


def files() -> Iterator[Path]:
    """The files that say what users type."""
    yield TOP / "README.md"
    for folder in ("docs", "conformance"):
        yield from (path for path in sorted((TOP / folder).rglob("*.md")) if "node_modules" not in path.parts)
    yield from sorted((TOP / "ci" / "examples").glob("*.yml"))


def with_addresses(text: str, *, is_yaml: bool) -> str:
    """The text with the address that is true now."""
    text = _OURS.sub(_installing, text)
    if not is_yaml:
        return text
    lines = [line for line in text.splitlines() if line.strip() != NOTE]
    noted = []
    for line in lines:
        if "/" in ADDRESS and ADDRESS in line and "pip install " in line:
            noted.append(" " * (len(line) - len(line.lstrip())) + NOTE)
        noted.append(line)
    return "\n".join(noted) + "\n"


def _installing(found: re.Match[str]) -> str:
    extras = found["extras"].split(",") if found["extras"] else []
    return found["before"] + installing(*extras).removeprefix("pip install ")
