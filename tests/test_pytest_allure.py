"""What allure-pytest's report says of the fakes of a failed test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("allure_pytest", reason="missing: allure-pytest (pip install allure-pytest)")

from fakebrokers.faults import load_plan
from tests.test_pytest_plugin import CLIENT, IN_WORKERS

TESTS = """
    from fakebrokers.faults import *

    @pytest.mark.fakebrokers(seed=7)
    def test_failing(pzq):
        pzq.faults.add(duplicate(role="confirm", nth=1, name="twice"))
        pzq.expect(role="publish", count=2)
        talk(pzq, "put a")
        assert False

    def test_passing(pzq):
        talk(pzq, "put b")
"""


@pytest.fixture
def results(pytester: pytest.Pytester) -> dict[str, Any]:
    """What Allure says, by the test's name; in a process of its own, since Allure has one report in each."""
    pytester.makeconftest(IN_WORKERS)
    pytester.makepyfile(CLIENT + TESTS)
    done = pytester.runpytest_subprocess("--alluredir=allure", "-p", "no:cacheprovider")
    done.assert_outcomes(passed=1, failed=1)
    rows = [json.loads(path.read_text()) for path in (pytester.path / "allure").glob("*-result.json")]
    return {row["name"]: row for row in rows}


def test_a_failed_test_has_a_step_for_each_fake_with_its_wire(
    results: dict[str, Any], pytester: pytest.Pytester
) -> None:
    [fake] = results["test_failing"]["steps"]
    assert fake["name"].startswith("pzq: ")
    fault, unmet = fake["steps"]
    assert (fault["status"], unmet["status"]) == ("passed", "failed")
    assert fault["name"].startswith("fault twice: duplicate") and "took place 1 x" in fault["name"]
    assert unmet["name"].endswith("expected 2 x publish, got 1")

    texts = {
        each["name"]: (pytester.path / "allure" / each["source"]).read_text() for each in fake["attachments"]
    }
    assert list(texts) == ["wire excerpt", "journal", "reproducer"]
    assert "c1 -> Put" in texts["wire excerpt"]
    kinds = [json.loads(line)["kind"] for line in texts["journal"].splitlines()]
    assert kinds[0] == "accepted" and "Put" in kinds
    command, _, plan = texts["reproducer"].partition("\n")
    assert command.startswith("# pytest ") and command.endswith("::test_failing --fakebrokers-seed=7")
    Path("plan.toml").write_text(plan)
    assert [fault.name for fault in load_plan("plan.toml").faults] == ["twice"]


def test_a_test_that_passes_has_nothing(results: dict[str, Any]) -> None:
    assert not results["test_passing"].get("steps") and not results["test_passing"].get("attachments")
