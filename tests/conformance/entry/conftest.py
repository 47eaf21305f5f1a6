"""A project for each test of `conformance.pytest`, and how to run pytest in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import conformance.pytest  # noqa: F401 # here, so that the runs inside do not import it anew
from conformance.suite import outside
from conformance.suite.load import all_scenarios, remove_folder
from tests.conformance.entry.toys import IN_PROCESS, QUICK, furnish, line, write

all_scenarios()  # likewise


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    yield
    for folder in outside.folders():
        remove_folder(folder)


@pytest.fixture
def project(pytester: pytest.Pytester) -> Path:
    """A project with an adapter, scenarios of its own, and no test yet."""
    furnish(pytester.path)
    pytester.makeini("[pytest]\nfilterwarnings = error\naddopts = --strict-markers\n")
    return pytester.path


@pytest.fixture
def run(pytester: pytest.Pytester, project: Path, monkeypatch: pytest.MonkeyPatch):
    """Run pytest on the line, in this process."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str, test: str = line(IN_PROCESS, "TOY-1.01")) -> pytest.RunResult:
        write(project, test)
        pytester.syspathinsert()
        return pytester.runpytest(*QUICK, *arguments)

    return run
