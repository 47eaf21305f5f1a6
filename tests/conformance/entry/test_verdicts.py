"""What the verdicts of scenarios become in pytest, JUnit XML and allure, and what failures say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.conformance.entry.toys import ALL, CHILD, IN_PROCESS, OUTCOMES, QUICK, ROOT, apart, line, write


@pytest.mark.parametrize("client", [IN_PROCESS, CHILD])
def test_every_verdict_has_its_outcome(run, client: str) -> None:
    result = run("-rA", test=line(client, *ALL))
    result.assert_outcomes(**OUTCOMES)
    reported = "\n".join(result.outlines)
    for outcome, number in (("PASSED", 1), ("PASSED", 2), ("PASSED", 8), ("PASSED", 10)):
        assert f"{outcome} test_conformance.py::test_conformance[TOY-1.{number:02}]" in reported
    assert re.search(r"FAILED .*\[TOY-1.03\] - Failed: all is well: it is <not>", reported)
    assert re.search(r"FAILED .*\[TOY-1.04\] - Failed: inconclusive: nobody came", reported)
    assert re.search(r"ERROR .*\[TOY-1.05\] - Failed: harness error: SystemError: a defect", reported)
    assert "SKIPPED [1] test_conformance.py:4: the adapter does not declare pzq.monitor" in reported
    assert "SKIPPED [1] test_conformance.py:4: not for this client: it is no consumer" in reported


def test_a_failure_says_all_there_is_to_say_and_nothing_of_the_suite(run) -> None:
    result = run(test=line(CHILD, "TOY-1.03"))
    text = "\n".join(result.outlines).partition("[TOY-1.03] ___")[2]
    for part in (
        "all is well: it is <not>",
        "FAIL TOY-1.03 It fails MUST · pzq",
        "source      T1: toys",
        "required    All is well",
        "actual      all is well: it is <not>",
        "again       pytest 'test_conformance.py::test_conformance[TOY-1.03]'",
        "or          fakebrokers conform --adapter 'python adapter.py' --protocol pzq --scenarios toys",
        "criterion   all-is-well (for a file of known failures)",
    ):
        assert part in text
    assert "Traceback" not in text and "conformance/suite" not in text and "def " not in text


def test_a_failure_shows_what_went_over_the_wire(pytester: pytest.Pytester) -> None:
    from conformance.clients.mutants.kills import known_kills
    from conformance.clients.mutants.registry import find_mutant

    mutant = known_kills()["PZQ-1.01", "pzq", ""][0]
    pytester.makepyfile(
        "from conformance.pytest import scenarios\n"
        f"test_conformance = scenarios({find_mutant('pzq', mutant).command!r}, 'PZQ-1.01', protocol='pzq')\n"
    )
    result = pytester.runpytest(*QUICK)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*on the wire*", "*client ──▶ fake  *"])


def test_the_commands_of_a_failure_run_it_again(project: Path) -> None:
    """From another folder: both begin there."""
    write(project, line(CHILD, "TOY-1.03"))
    elsewhere = project / "elsewhere"
    elsewhere.mkdir()
    shown = apart(project, "..", cwd=elsewhere).stdout
    again, other = (re.findall(rf"^  {word} +(.+)$", shown, re.MULTILINE)[0] for word in ("again", "or"))
    assert again == "pytest '../test_conformance.py::test_conformance[TOY-1.03]'"
    assert other.startswith("cd .. && fakebrokers conform --adapter 'python adapter.py'")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": path}
    for command in (again, other):
        command = re.sub("(pytest|fakebrokers) ", r"python -m \1 ", command, count=1)
        done = subprocess.run(
            command, shell=True, cwd=elsewhere, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 1, done.stderr
        assert "all is well: it is <not>" in done.stdout


def test_a_failure_is_tried_twice_and_again(run, project: Path) -> None:
    """One that differs is no failure, but is called flaky; see the properties in JUnit XML."""
    run(f"--junitxml={project / 'junit.xml'}", test=line(CHILD, "TOY-1.08")).assert_outcomes(passed=1)
    properties = ElementTree.parse(project / "junit.xml").iter("property")
    assert ("tag", "flaky") in [(one.get("name"), one.get("value")) for one in properties]
    assert len((project / "flaky").read_text()) == 3


def test_junit_tells_failures_from_errors(run, project: Path) -> None:
    run(f"--junitxml={project / 'junit.xml'}", test=line(IN_PROCESS, *ALL))
    suite = ElementTree.parse(project / "junit.xml").getroot()[0]
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["9", "2", "1", "2"]
    cases = {str(case.get("name")): case for case in suite.iter("testcase")}
    [failure] = cases["test_conformance[TOY-1.03]"].iter("failure")
    assert "it is <not>" in str(failure.text) and "again       pytest" in str(failure.text)
    properties = [
        (p.get("name"), p.get("value")) for p in cases["test_conformance[TOY-1.02]"].iter("property")
    ]
    assert properties == [("level", "MUST"), ("verdict", "non-strict"), ("criterion", "all-is-well")]


def test_allure_has_them_all(project: Path) -> None:
    pytest.importorskip("allure_pytest", reason="missing: allure-pytest (pip install allure-pytest)")
    write(project, line(IN_PROCESS, *ALL))
    apart(project, "--alluredir=allure")
    rows = [json.loads(path.read_text()) for path in (project / "allure").glob("*-result.json")]
    found = {row["name"]: row for row in rows}
    assert found["test_conformance[TOY-1.01]"]["status"] == "passed"
    assert found["test_conformance[TOY-1.03]"]["status"] == "failed"
    assert found["test_conformance[TOY-1.06]"]["status"] == "skipped"
    assert "it is <not>" in found["test_conformance[TOY-1.03]"]["statusDetails"]["message"]
    assert {"name": "tag", "value": "MUST"} in found["test_conformance[TOY-1.03]"]["labels"]
    steps = {
        name: [(each["name"], each["status"]) for each in row.get("steps", ())] for name, row in found.items()
    }
    assert steps["test_conformance[TOY-1.01]"] == [("criterion met: all is well", "passed")]
    assert steps["test_conformance[TOY-1.03]"] == [("fail: all is well", "failed")]
    assert steps["test_conformance[TOY-1.04]"] == [("inconclusive: nobody-came", "failed")]
    assert steps["test_conformance[TOY-1.06]"] == []
    failed = {each["name"]: each["source"] for each in found["test_conformance[TOY-1.03]"]["attachments"]}
    assert list(failed) == ["wire excerpt", "journal", "reproducer"]
    assert "# TOY-1.03 It fails (MUST)" in (project / "allure" / failed["reproducer"]).read_text()
