"""What code cites from `docs/protocols` is there: document and section; what `docs/pytest.md` shows happens.

A citation is a path and the sections, each a heading's number or its name in quotes, such as
``docs/protocols/pzq.md, "Producer" and "Consumer"`` or ``docs/protocols/rabbitmq-stream.md, 5 "Heartbeats"``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.eventually import PATIENCE_S

TOP = Path(__file__).parents[1]
NOTES = TOP / "docs" / "protocols"

HEADING = re.compile(r"^#+ (?:(\d+(?:\.\d+)*)\.? )?(.+)$", re.MULTILINE)
SECTION = r'(?:\d+(?:\.\d+)*(?: "[^"]+")?|"[^"]+")'
CITATION = re.compile(rf"docs/protocols/([\w-]+\.md)((?:(?:, and |, | and | to ){SECTION})*)")
CODE = {".py", ".go", ".mjs", ".js", ".toml", ".md"}
#: where code, and the comments in it, may cite
FOLDERS = ("fakebrokers", "conformance", "scenarios", "tests")


def headings(document: str) -> set[str]:
    """Numbers and names of a document's headings; names without what stands behind them in brackets."""
    found = HEADING.findall(document)
    return {number for number, _ in found if number} | {re.sub(r" [\[(].*", "", name) for _, name in found}


def sections(cited: str) -> list[str]:
    """The numbers and names in the second half of a citation; ``6 to 9`` stands for its ends."""
    return [number or name for number, name in re.findall(r'(\d+(?:\.\d+)*)|"([^"]+)"', cited)]


def citations() -> Iterator[tuple[str, str, str]]:
    """File, document and what is cited of it, for every citation; one may run over several lines."""
    for folder in FOLDERS:
        for path in sorted((TOP / folder).rglob("*")):
            if path.suffix not in CODE or "node_modules" in path.parts or path == Path(__file__):
                continue
            text = re.sub(r"\s*\n\s*(?:#:?|//|\*)?\s*", " ", path.read_text(encoding="utf-8"))
            for document, cited in CITATION.findall(text):
                yield str(path.relative_to(TOP)), document, cited


def test_every_citation_names_a_document_and_sections_of_it() -> None:
    wrong = []
    for file, document, cited in citations():
        path = NOTES / document
        known = headings(path.read_text(encoding="utf-8")) if path.is_file() else set()
        missing = [section for section in sections(cited) if section not in known]
        if missing or not sections(cited):
            wrong.append(f"{file}: {document}{cited}: {', '.join(missing) or 'no section is named'}")
    assert wrong == []


def test_the_fakes_cite_their_notes() -> None:
    """So that the test above is not content with finding nothing."""
    cited = {document for file, document, _ in citations() if file.startswith("fakebrokers")}
    assert cited >= {"rabbitmq-stream.md", "pzq.md", "narconi.md"}


def test_no_comment_cites_notes_without_saying_where_they_are() -> None:
    vague = [
        f"{path.relative_to(TOP)}:{number}"
        for folder in FOLDERS
        for path in sorted((TOP / folder).rglob("*.py"))
        if path != Path(__file__)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if "protocol notes" in line.lower()
    ]
    assert vague == []


def test_there_are_notes_for_every_protocol_and_the_readme_lists_them_all() -> None:
    documents = {path.name for path in NOTES.glob("*.md")} - {"README.md"}
    fakes = {path.parent.name.replace("_", "-") for path in (TOP / "fakebrokers").glob("*/profile.py")}
    assert {"rabbitmq-stream", "pzq", "narconi"} <= fakes
    assert {f"{name}.md" for name in fakes} <= documents
    listed = set(re.findall(r"\]\(([\w-]+\.md)\)", (NOTES / "README.md").read_text(encoding="utf-8")))
    assert listed == documents


@pytest.mark.parametrize("path", sorted(NOTES.glob("*.md")), ids=lambda path: path.name)
def test_files_that_the_notes_name_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    links = [path.parent / name for name in re.findall(r"\]\(([^)#:]+)\)", text)]
    named = [TOP / name for name in re.findall(r"`((?:tests|docs|fakebrokers)/[\w./-]+\.\w+)`", text)]
    assert [str(target) for target in (*links, *named) if not target.exists()] == []


def test_the_notes_come_along_with_the_source_distribution() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))
    assert "/docs" in project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]


# docs/pytest.md

PYTEST_PAGE = (TOP / "docs" / "pytest.md").read_text(encoding="utf-8")
FILES = re.findall(r"^```python\n# (\S+)\n(.*?)^```$", PYTEST_PAGE, re.MULTILINE | re.DOTALL)
SHOWN = re.findall(r"^```console\n\$ pytest ([^\n]*)\n(.*?)^```$", PYTEST_PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def page_folder(tmp_path: Path) -> Path:
    """All files of the page in one folder."""
    pytest.importorskip("rstream", reason="missing: rstream (pip install rstream)")
    for name, text in FILES:
        (tmp_path / name).write_text(text)
    return tmp_path


def run_pytest(folder: Path, *arguments: str) -> str:
    """What pytest prints, on a terminal of 80 columns."""
    path = os.pathsep.join([str(TOP), str(folder)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=folder, env={"PATH": "/usr/bin", "COLUMNS": "80", "PYTHONPATH": path},
        capture_output=True, text=True, check=False, timeout=PATIENCE_S,
    )  # fmt: skip
    return done.stdout


def test_every_block_of_the_page_on_pytest_is_tried() -> None:
    blocks = re.findall(r"^```(\w+)$", PYTEST_PAGE, re.MULTILINE)
    assert blocks.count("python") == len(FILES) == len({name for name, _ in FILES})
    assert blocks.count("console") == len(SHOWN)
    assert set(blocks) == {"python", "console"}


@pytest.mark.full
def test_the_files_of_the_page_on_pytest_pass(page_folder: Path) -> None:
    printed = run_pytest(page_folder, "-v")
    passed = {line.partition("::")[0] for line in printed.splitlines() if " PASSED " in line}
    assert passed == {name for name, _ in FILES if name.startswith("test_")}, printed
    assert re.search(r"= \d+ passed in", printed), printed  # and nothing else


@pytest.mark.parametrize(("arguments", "promised"), SHOWN, ids=[arguments[:12] for arguments, _ in SHOWN])
def test_what_the_page_on_pytest_shows_is_printed(page_folder: Path, arguments: str, promised: str) -> None:
    printed = run_pytest(page_folder, *arguments.split())
    left = iter([without_numbers(line) for line in printed.splitlines()])
    for line in promised.splitlines():
        # `in` on an iterator reads on to the first match: the lines must come in this order
        assert line == "..." or without_numbers(line) in left, f"not printed: {line}\n\n{printed}"


def without_numbers(line: str) -> str:
    """How many frames a client of another version says is its own affair."""
    return re.sub(r"^\.\.\. \d+ ", "... n ", line)
