"""What a client is known to violate, by root cause."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.invariants import Finding
from conformance.sweep.expected import load_expected
from conformance.sweep.specs import Bend, Change, Spec
from fakebrokers.errors import UsageError

FILE = """
version = 1
client = "toy"

[[known]]
invariant = "one-loss-event"
acts = ["rst*"]
detail = "*0 losses*"
cause = "nobody is told of a reset"

[[known]]
invariant = "limit-exact"
acts = ["order"]
cause = "limits are not looked at"
"""
RESET = Spec("toy", "base", (Bend("c1", "out", 1, "rst-before"),))


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "toy.toml"
    path.write_text(text)
    return path


def test_only_what_fits_is_known(tmp_path: Path) -> None:
    expected = load_expected(written(tmp_path, FILE))
    known = Finding("one-loss-event", "0 losses were reported, there were 2")
    other = Finding("one-loss-event", "3 losses were reported, there were 2")
    assert expected.news([known, other], RESET) == [other]
    assert expected.news([known], Spec("toy", "base")) == [known]
    ordered = Spec("toy", "base", (), (Change(1, "credit", 0),))
    assert expected.news([Finding("limit-exact", "")], ordered) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("limit-exact", "limit-exakt"), "no invariant 'limit-exakt'"),
        (("rst*", "explode"), "no act 'explode'"),
        (("version = 1", "version = 2"), "expected version 1, got 2"),
        (("cause = ", "because = "), "cause"),
        (("[[known]]", "[[known"), "toml"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        load_expected(written(tmp_path, FILE.replace(*change)))


def test_rows_can_be_about_some_bases_and_a_family_of_rules(tmp_path: Path) -> None:
    row = '[[known]]\ninvariant = "*-ends"\nbases = ["clos*"]\nseverity = "high"\ncause = "x"\n'
    expected = load_expected(written(tmp_path, f'version = 1\nclient = "toy"\n{row}'))
    found = Finding("close-ends", "left")
    assert expected.cause_of(found, Spec("toy", "closing")) == "x"
    assert expected.cause_of(found, Spec("toy", "open")) == ""
    assert expected.cause_of(Finding("no-storm", "left"), Spec("toy", "closing")) == ""
