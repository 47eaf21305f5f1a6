"""Files of the forms before 0.3: what they said is still known, and somebody says how to make new ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.known.defects import Part
from conformance.known.files import load, read
from conformance.results import Verdict
from fakebrokers.errors import UsageError

ROW = '[[known]]\nid = "RMQS-6.06"\nprotocol = "rabbitmq-stream"\n'
RULE = '[[known]]\nrule = "wire-legal"\nprotocol = "moleculer"\ncause = "c"\n'
SWEPT = """
version = 1
client = "toy"

[[known]]
invariant = "one-loss-event"
cause = "nobody is told"

[[known]]
invariant = "limit-exact"
acts = ["order"]
detail = "*3*"
severity = "high"
cause = "limits are not looked at"
"""


def given(tmp_path: Path, text: str, name: str = "old.toml") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_a_row_of_the_suite_is_read_as_before(tmp_path: Path) -> None:
    more = 'cause = "c"\nreason = "r"\nverdict = "inconclusive"\nvariant = ""\nsometimes = true\n'
    rows = ROW + 'criterion = "in-time"\n' + more + RULE + 'rows = ["MOL-1.02"]\nvariant = "nats"\n'
    row, rule = load(given(tmp_path, rows), Part.SUITE).rows
    assert (row.key, row.criteria, row.why) == (("RMQS-6.06", "rabbitmq-stream", ""), ("in-time",), "c; r")
    assert (row.verdict, row.sometimes) == (Verdict.INCONCLUSIVE, True)
    assert (rule.rule, rule.rows, rule.variant, rule.sometimes) == (
        "wire-legal",
        ("MOL-1.02",),
        "nats",
        False,
    )


def test_a_reason_alone_is_the_cause(tmp_path: Path) -> None:
    (row,) = load(given(tmp_path, ROW + 'criterion = ["a", "in-time"]\nreason = "r"'), Part.SUITE, list).rows
    assert (row.cause, row.why, row.criteria) == ("r", "r", ("a", "in-time"))


def test_it_is_said_how_to_make_a_new_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = given(tmp_path, ROW + 'cause = "c"')
    load(path, Part.SUITE)
    command = f"fakebrokers known {path} --write {path}"
    assert capsys.readouterr().err == (
        f"warning: {path}: is of the form before 0.3: `{command}` writes the new one\n"
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("version = 2\nknown = []", "expected version 1, got 2"),
        ("known = 3", "Expected `array`"),
        (ROW + 'cause = " "', "RMQS-6.06: expected a cause"),
        (ROW + 'cause = "c"\ncommand = "rm"', "unknown field `command`"),
        (ROW.replace("6.06", "6.66") + 'cause = "c"', "no scenario RMQS-6.66/rabbitmq-stream; did you mean"),
        (ROW + 'cause = "c"\nrule = "beats"', "expected either an id or a rule in each row, got 'RMQS-6.06'"),
        ("[[known]]\nprotocol = 'pzq'\ncause = 'c'", "either an id or a rule in each row, got neither"),
        (RULE.replace("legal", "leagl"), "there is no rule 'wire-leagl'; did you mean 'wire-legal'"),
        (RULE + 'criterion = "in-time"', "wire-legal: a rule has no criteria, got in-time"),
        (SWEPT, "expected what the suite is known to find, got that of the sweep"),
    ],
)
def test_a_wrong_file_is_refused_with_place_and_problem(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=r"old\.toml") as caught:
        load(given(tmp_path, text), Part.SUITE)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("limit-exact", "limit-exakt"), "no rule 'limit-exakt'"),
        (("order", "explode"), "no act 'explode'"),
        (("version = 1", "version = 7"), "expected version 1, got 7"),
        (("cause = ", "because = "), "cause"),
        (("client = ", "seeds = "), "expected what the sweep is known to find, got that of the chaos"),
    ],
)
def test_a_wrong_file_of_the_sweep_is_refused(change: tuple[str, str], problem: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=problem):
        load(given(tmp_path, SWEPT.replace(*change)), Part.SWEEP)


def test_a_file_of_the_sweep_is_read_as_before(tmp_path: Path) -> None:
    loss, limit = load(given(tmp_path, SWEPT), Part.SWEEP).findings
    assert (loss.rule, loss.acts, loss.detail, loss.defect.severity) == (
        "one-loss-event",
        ("*",),
        "*",
        "medium",
    )
    assert (limit.rule, limit.acts, limit.detail, limit.defect.severity) == (
        "limit-exact",
        ("order",),
        "*3*",
        "high",
    )
    assert loss.parts == limit.parts == (Part.SWEEP,)


def test_a_file_of_chaos_knows_what_that_of_the_sweep_says_of_all_runs(tmp_path: Path) -> None:
    given(tmp_path, SWEPT, "swept.toml")
    text = 'version = 1\nclient = "toy"\nsweep = "swept.toml"\nseeds = ["4"]\ndrawing = 2\n'
    row = '[[known]]\ninvariant = "lost-write"\nacts = ["crash"]\ncause = "c"\n'
    known = load(given(tmp_path, text + row), Part.CHAOS, protocol="pzq")
    assert [(each.rule, each.parts) for each in known.findings] == [
        ("lost-write", (Part.CHAOS,)),
        ("one-loss-event", (Part.CHAOS,)),
    ]
    assert (known.seeds, known.drawing) == (("4",), 2)
    given(tmp_path, 'version = 2\nclient = "toy"', "swept.toml")
    with pytest.raises(UsageError, match="is of the new form"):
        load(tmp_path / "old.toml", Part.CHAOS, protocol="pzq")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (SWEPT, Part.SWEEP),
        (SWEPT.replace("limit-exact", "lost-write"), Part.CHAOS),
        (SWEPT.replace('"order"', '"crash"'), Part.CHAOS),
        ('seeds = ["1"]' + SWEPT, Part.CHAOS),
    ],
)
def test_what_a_file_of_generated_runs_is_about_is_seen_from_its_words(
    tmp_path: Path, text: str, part: Part
) -> None:
    assert {row.parts for row in read(given(tmp_path, text), warn=list).findings} == {(part,)}


def test_a_file_without_rows_may_be_about_anything(tmp_path: Path) -> None:
    path = given(tmp_path, 'version = 1\nclient = "toy"\n')
    assert [load(path, part, list, "pzq").client for part in Part] == ["toy"] * 3
