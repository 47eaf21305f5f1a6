"""What a row of generated runs is about, and whom a file is about."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.clients.adapter.messages import Hello
from conformance.known.defects import Defect, KnownDefects, KnownFinding, KnownFindings, Part
from conformance.rules import Finding
from conformance.run.specs import ArgumentChange, Injection, Spec
from fakebrokers.errors import UsageError

RESETS, LIMITS = Defect("resets", "nobody is told of a reset"), Defect("limits", "limits are not looked at")
ROWS = (
    KnownFinding(defect=RESETS, rule="one-loss-event", acts=("rst*",), detail="*0 losses*"),
    KnownFinding(defect=LIMITS, rule="limit-exact", acts=("order",)),
)
RESET = Spec("toy", "base", (Injection("c1", "out", 1, "rst-before"),))


def test_only_what_fits_is_known() -> None:
    expected = KnownFindings(ROWS)
    known = Finding("one-loss-event", "0 losses were reported, there were 2")
    other = Finding("one-loss-event", "3 losses were reported, there were 2")
    assert expected.news([known, other], RESET) == [other]
    assert expected.news([known], Spec("toy", "base")) == [known]
    ordered = Spec("toy", "base", (), (ArgumentChange(1, "credit", 0),))
    assert expected.news([Finding("limit-exact", "")], ordered) == []


def test_rows_can_be_about_some_bases_and_a_family_of_rules() -> None:
    expected = KnownFindings((KnownFinding(defect=RESETS, rule="*-ends", bases=("clos*",)),))
    found = Finding("close-ends", "left")
    assert expected.cause_of(found, Spec("toy", "closing")) == RESETS.cause
    assert expected.cause_of(found, Spec("toy", "open")) == ""
    assert expected.cause_of(Finding("no-storm", "left"), Spec("toy", "closing")) == ""


def test_of_rows_that_fit_the_first_counts() -> None:
    rows = (KnownFinding(defect=RESETS, rule="lives"), KnownFinding(defect=LIMITS, rule="*"))
    found = Finding("lives", "gone")
    assert KnownFindings(rows).cause_of(found, RESET) == RESETS.cause
    assert KnownFindings(rows[::-1]).cause_of(found, RESET) == LIMITS.cause


def test_a_row_is_about_runs_of_the_sweep_of_chaos_or_of_both() -> None:
    rows = tuple(
        KnownFinding(defect=RESETS, rule=name, parts=parts)
        for name, parts in {"a": (Part.SWEEP,), "b": (Part.CHAOS,), "c": (Part.SWEEP, Part.CHAOS)}.items()
    )
    file = KnownDefects(findings=rows)
    assert [row.rule for row in file.found_in(Part.SWEEP).rows] == ["a", "c"]
    assert [row.rule for row in file.found_in(Part.CHAOS).rows] == ["b", "c"]


@pytest.mark.parametrize(
    ("client", "version", "problem"),
    [
        ("rstream", "1.1.1", ""),
        ("rstream", "1.*", ""),
        ("", "", ""),
        ("rbfly", "1.1.1", "is about 'rbfly'"),
        ("rstream", "1.2.*", "is about rstream 1.2.*, and this is 1.1.1"),
    ],
)
def test_a_file_is_about_one_client_in_one_version(client: str, version: str, problem: str) -> None:
    hello = Hello("rstream-adapter", "rstream", "1.1.1", "python", ["rabbitmq-stream"], [], [])
    file = KnownDefects(client=client, client_version=version)
    if not problem:
        file.check_client(None, "", hello)
        return
    with pytest.raises(UsageError) as caught:
        file.check_client(Path("x.toml"), "", hello)
    assert problem in str(caught.value)
