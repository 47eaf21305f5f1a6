"""The project's own workflows: they call the scripts in `ci`, and may do no more than they have to."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

yaml: Any = pytest.importorskip("yaml", reason="missing: yaml (pip install pyyaml)")

TOP = Path(__file__).parents[1]
GITHUB = TOP / ".github"
WORKFLOWS = {path.stem: path for path in (GITHUB / "workflows").glob("*.yml")}
#: Jobs that may do more than read, and what.
MORE = {
    ("docs", "publish"): {"pages": "write", "id-token": "write"},
    ("release", "publish"): {"id-token": "write"},
}


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


def jobs() -> list[tuple[str, str, dict[str, Any]]]:
    return [(flow, name, job) for flow, path in WORKFLOWS.items() for name, job in read(path)["jobs"].items()]


def test_there_is_a_workflow_for_each_lane() -> None:
    assert set(WORKFLOWS) == {"fast", "test", "conform", "docs", "nightly", "release"}


def test_they_call_scripts_that_are_there() -> None:
    called = {
        script
        for _, _, job in jobs()
        for step in job["steps"]
        for script in re.findall(r"(?<![\w/])ci/[\w-]+", step.get("run", ""))
    }
    assert called >= {"ci/fast", "ci/test", "ci/pythons", "ci/conform", "ci/docs", "ci/nightly", "ci/package"}
    assert [each for each in sorted(called) if not os.access(TOP / each, os.X_OK)] == []


@pytest.mark.parametrize("flow", sorted(WORKFLOWS))
def test_none_may_write_but_what_publishes(flow: str) -> None:
    document = read(WORKFLOWS[flow])
    assert document["permissions"] == {"contents": "read"}
    more = {
        (flow, name): job["permissions"] for name, job in document["jobs"].items() if "permissions" in job
    }
    assert more == {key: rights for key, rights in MORE.items() if key[0] == flow}


def test_no_job_runs_without_end_but_what_publishes_pages() -> None:
    assert [job for flow, job, what in jobs() if "timeout-minutes" not in what] == ["publish"]


def test_no_text_from_outside_becomes_a_command() -> None:
    """What somebody chooses (a branch, a title) comes as a variable, never into the text of a script."""
    commands = [step.get("run", "") for _, _, job in jobs() for step in job["steps"]]
    assert [each for each in commands if "${{" in each] == []


def test_a_release_needs_no_password() -> None:
    publish = read(WORKFLOWS["release"])["jobs"]["publish"]
    assert "secrets." not in WORKFLOWS["release"].read_text("utf-8")
    assert publish["permissions"] == {"id-token": "write"} and publish["environment"] == "pypi"


def test_what_a_visitor_looks_for_is_there() -> None:
    for name in ("CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md", "LICENSE"):
        assert (TOP / name).is_file()
    forms = [read(path) for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config"]
    assert all(form["name"] and form["description"] and form["body"] for form in forms) and len(forms) == 3
    named = re.findall(r"`((?:ci|docs)/[\w./-]+)`", (TOP / "CONTRIBUTING.md").read_text("utf-8"))
    assert named and [each for each in named if not (TOP / each).exists()] == []


def test_the_checks_before_a_commit_are_those_of_the_fast_lane() -> None:
    [local] = read(TOP / ".pre-commit-config.yaml")["repos"]
    entries = {hook["id"]: hook["entry"] for hook in local["hooks"]}
    fast = (TOP / "ci" / "fast").read_text("utf-8")
    assert set(entries) == {"ruff", "format", "types", "generated"}
    assert all(word in fast for word in ("ruff check", "ruff format", "mypy"))
