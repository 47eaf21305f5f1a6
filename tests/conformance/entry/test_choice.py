"""Which tests one line makes, which of them pytest runs, and what a wrong line is told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conformance.entry.toys import ALL, CHILD, IN_PROCESS, QUICK, line


def test_collecting_starts_no_client(run, project: Path) -> None:
    result = run("--collect-only", "-q", test=line(CHILD, *ALL))
    assert [row.rpartition("::")[2] for row in result.outlines if "::" in row] == [
        f"test_conformance[{name}]" for name in ALL
    ]
    assert not (project / "started").exists()


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        (("-k", "1.01 or 1.10"), ["TOY-1.01", "TOY-1.10"]),
        (("-m", "SHOULD"), ["TOY-1.08"]),
        (("-m", "conformance and not MUST"), ["TOY-1.08", "TOY-1.09"]),
        (("test_conformance.py::test_conformance[TOY-1.02]",), ["TOY-1.02"]),
        (("--deselect", "test_conformance.py::test_conformance[TOY-1.02]", "-m", "MUST", "-k", "1.02"), []),
    ],
)
def test_pytest_chooses(run, arguments: tuple[str, ...], ids: list[str]) -> None:
    result = run("--collect-only", "-q", *arguments, test=line())
    assert re.findall(r"\[(TOY-.*)\]", "\n".join(result.outlines)) == ids


@pytest.mark.parametrize(
    ("line", "count"),
    [
        (line(IN_PROCESS, "toy-1"), 10),
        (line(IN_PROCESS, "TOY", more="level='SHOULD'"), 1),
        (line(IN_PROCESS, "TOY-1.01", "TOY-1.02", more="variant=''"), 2),
        ("test_all = scenarios(Adapter, level='MAY', folders=['toys'])", 5),
        ("test_gate = scenarios(Adapter, 'PZQ-1.01', which='smoke')", 1),
    ],
)
def test_the_line_chooses(run, line: str, count: int) -> None:
    result = run("--collect-only", "-q", test=line)
    found = re.findall(r"\[([A-Z]+-.*)\]", "\n".join(result.outlines))
    assert len(found) == count or (count == 5 and "TOY-1.09" in found and len(found) > 1)


def test_the_gate_is_what_is_run_unless_something_else_is_said(run) -> None:
    result = run(
        "--collect-only", "-q", "-m", "not MUST", test="test_gate = scenarios(Adapter, folders='toys')"
    )
    result.stdout.fnmatch_lines(["no tests collected*deselected*"])


def test_a_folder_is_for_the_line_that_names_it(run) -> None:
    """Another line, even in the same file, does not get its scenarios."""
    lines = line(IN_PROCESS, "TOY-1.01") + "test_ours = scenarios(Adapter, which='full')\n"
    result = run("--collect-only", "-q", test=lines)
    assert [row for row in result.outlines if "TOY" in row] == [
        "test_conformance.py::test_conformance[TOY-1.01]"
    ]


def test_the_last_failed_are_run_again(run, pytester: pytest.Pytester) -> None:
    run(test=line(IN_PROCESS, "TOY-1.01", "TOY-1.03", "TOY-1.05")).assert_outcomes(
        passed=1, failed=1, errors=1
    )
    pytester.runpytest(*QUICK, "--lf").assert_outcomes(failed=1, errors=1)


def test_the_first_failure_may_end_it(run) -> None:
    run("-x", test=line(IN_PROCESS, "TOY-1.01", "TOY-1.03", "TOY-1.10")).assert_outcomes(passed=1, failed=1)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("scenarios('rstreem')", "there is no bundled client 'rstreem'; did you mean 'rstream'?"),
        ("scenarios('python adapter.py')", "say with protocol=... what the adapter speaks"),
        ("scenarios('python adapter.py', protocol='rabbit')", "no protocol 'rabbit'"),
        ("scenarios('', protocol='pzq')", "expected the command of an adapter, got an empty one"),
        ("scenarios(Adapter, protocol='narconi')", "Adapter does not speak narconi, but pzq"),
        ("scenarios(Adapter, 'PZQ-9.99')", "there is no scenario 'PZQ-9.99' here"),
        ("scenarios(Adapter, which='some')", "there is no set 'some'"),
        ("scenarios(Adapter, level='must')", "expected the level MUST, SHOULD or MAY, got 'must'"),
        ("scenarios(Adapter, variant='9')", "there is no scenario like that"),
        ("scenarios(Adapter, folders='nowhere')", "nowhere: expected a folder of scenarios"),
        ("scenarios(Adapter, expect='nowhere.toml')", "nowhere.toml: expected a file of known defects: No "),
    ],
)
def test_wrong_usage_is_told_with_its_place(run, line: str, problem: str) -> None:
    result = run(test=f"test_conformance = {line}")
    result.assert_outcomes(errors=1)
    reported = "\n".join(result.outlines)
    assert problem in reported
    assert "test_conformance.py:4: " in reported and "Traceback" not in reported and "def " not in reported
