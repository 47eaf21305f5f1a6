"""What the pages of the documentation show is what happens; see `tests.pages`."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from fakebrokers.cli import cli
from tests.pages import DOCS, TOP, Runner, blocks, fakebrokers_commands, skip_without

#: Run block by block. The other pages have tests of their own, which know what they are about.
RUN = sorted(
    page
    for folder in ("tutorial", "how-to", "explanation", "reference")
    for page in (DOCS / folder).rglob("*.md")
    if blocks(page)
)
ALL = [TOP / "README.md", *sorted(DOCS.rglob("*.md"))]
#: Who runs the blocks of the other pages; those of `docs/protocols` are bytes and no programs.
ELSEWHERE = {
    "chaos.md": "tests/conformance/search/random/test_guide.py",
    "contributing.md": "tests/test_contributing.py",
    "control.md": "tests/control/test_documented.py",
    "overview.md": "tests/test_readme.py",
    "own-scenarios.md": "tests/test_own_scenarios.py",
    "proxy.md": "tests/proxy/test_page.py",
    "pytest-conformance.md": "tests/conformance/entry/test_page.py",
    "pytest.md": "tests/test_docs.py",
    "README.md": "tests/test_findings.py",
}


def name_of(page: Path) -> str:
    return str(page.relative_to(TOP))


@pytest.mark.full
@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_a_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    skip_without(page)
    with Runner(tmp_path) as runner:
        runner.run(page)


@pytest.mark.parametrize("page", ALL, ids=name_of)
def test_commands_and_options_that_a_page_shows_exist(page: Path) -> None:
    for words in fakebrokers_commands(page):
        command: click.Command = cli
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            found = command.get_command(click.Context(command), words.pop(0))
            assert found is not None, words
            command = found
        known = {name for each in command.params for name in each.opts} | {"--help", "--version"}
        used = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert used <= known, f"{command.name}: {used - known}"


def test_every_page_with_programs_is_run_by_somebody() -> None:
    pages = [page for page in DOCS.rglob("*.md") if page not in RUN and "protocols" not in page.parts]
    with_programs = {page.name for page in pages if any(block.language == "python" for block in blocks(page))}
    assert with_programs <= ELSEWHERE.keys() | {"index.md"}
    for test in ELSEWHERE.values():
        assert (TOP / test).is_file()
