"""Files of known defects: read with place and problem, written as they are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.clients.adapters.registry import bundled, find
from conformance.known.defects import Defect, KnownFinding, KnownRow, Part
from conformance.known.files import load, read, written
from conformance.results import Verdict
from fakebrokers.errors import UsageError

FOLDER = Path(__file__).parents[3] / "ci" / "known"
BUNDLED = sorted(FOLDER.glob("*.toml"))
HEAD = 'protocol = "rabbitmq-stream"\n'
DEFECT = '[[defect]]\nid = "reader-dies"\ncause = "the reader dies silently"\n'
WHOLE = f"""\
# What rstream 1.1.* is known to get wrong, each cause once.

version = 2
client = "rstream"
client_version = "1.1.*"
protocol = "rabbitmq-stream"
seeds = ["1", "7"]
drawing = 3

{DEFECT}severity = "high"
report = "https://example.org/1"
rows = ["RMQS-6.06", {{ row = "NET-1.01 in-time", protocol = "pzq", verdict = "non-strict", reason = "r" }}]
sometimes = [
  "RMQS-1.05 a-the-client-s-socket-is-closed b-the-client-s-socket-is-closed",
  "wire-legal in RMQS-1.02 RMQS-1.03",
]
generated = ["op-ends: publish*", "lives"]
sweep = [{{ row = "ok-needs-answer", acts = ["cut*"], bases = ["limits"] }}]
chaos = [{{ row = "lost-write", acts = ["crash"] }}]
"""


def given(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "given.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_says_what_fails_and_for_which_cause(tmp_path: Path) -> None:
    known = read(given(tmp_path, WHOLE))
    defect = Defect("reader-dies", "the reader dies silently", "high", report="https://example.org/1")
    mine = {"defect": defect, "protocol": "rabbitmq-stream"}
    closed = ("a-the-client-s-socket-is-closed", "b-the-client-s-socket-is-closed")
    assert known.rows == (
        KnownRow(id="RMQS-6.06", **mine),
        KnownRow(
            defect=defect,
            protocol="pzq",
            id="NET-1.01",
            criteria=("in-time",),
            verdict=Verdict.NON_STRICT,
            reason="r",
        ),
        KnownRow(id="RMQS-1.05", criteria=closed, sometimes=True, **mine),
        KnownRow(rule="wire-legal", rows=("RMQS-1.02", "RMQS-1.03"), sometimes=True, **mine),
    )
    assert known.findings == (
        KnownFinding(defect=defect, rule="op-ends", detail="publish*"),
        KnownFinding(defect=defect, rule="lives"),
        KnownFinding(
            defect=defect, rule="ok-needs-answer", acts=("cut*",), bases=("limits",), parts=(Part.SWEEP,)
        ),
        KnownFinding(defect=defect, rule="lost-write", acts=("crash",), parts=(Part.CHAOS,)),
    )
    assert (known.client, known.client_version) == ("rstream", "1.1.*")
    assert (known.seeds, known.drawing) == (("1", "7"), 3)


def test_what_is_written_is_what_was_read(tmp_path: Path) -> None:
    assert written(read(given(tmp_path, WHOLE))) == WHOLE


def test_a_variant_stands_behind_a_row_and_signs_in_texts_are_kept(tmp_path: Path) -> None:
    text = (
        HEAD + DEFECT.replace("dies silently", 'says \\"é\\" \\\\ and\\tdies') + 'rows = ["NET-2.01/nats"]\n'
    )
    known = read(given(tmp_path, text))
    assert (known.rows[0].key, known.rows[0].cause) == (
        ("NET-2.01", "rabbitmq-stream", "nats"),
        'the reader says "é" \\ and\tdies',
    )
    assert read(given(tmp_path, written(known))) == known


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("version = 3", "expected version 2, got 3"),
        ("defect = 3", "Expected `array`"),
        ("[[defect", "expected a file of known defects"),
        ('[[defect]]\ncause = "c"', "missing required field `id`"),
        ('[[defect]]\nid = ""\ncause = "c"', "defect 1: expected an id, got none"),
        ('[[defect]]\nid = "x"\ncause = " "', "x: expected a cause, got none"),
        (DEFECT + DEFECT, "reader-dies: expected each id once, and it comes again"),
        (DEFECT + 'command = "rm"', "unknown field `command`"),
        (DEFECT + 'severity = "grave"', "severity"),
        (DEFECT + 'rows = ["RMQS-6.06"]', "reader-dies: expected a protocol at the top of the file or in"),
        (HEAD + DEFECT + 'rows = ["wire-legal NET-1.05"]', "expected a row such as 'RMQS-1.02 in-time' or"),
        (HEAD + DEFECT + 'rows = ["wire-legal in"]', "got 'wire-legal in'"),
        (HEAD + DEFECT + 'rows = [""]', "got ''"),
        (
            HEAD + DEFECT + 'generated = ["op ends"]',
            "expected a rule, or 'RULE: what it says*', got 'op ends'",
        ),
        (HEAD + DEFECT + 'rows = ["RMQS-6.66"]', "no scenario RMQS-6.66/rabbitmq-stream; did you mean"),
        (HEAD + DEFECT + 'rows = ["RMQS-6.06/nats"]', "no scenario RMQS-6.06/rabbitmq-stream/nats"),
        (HEAD + DEFECT + 'rows = ["wire-leagl"]', "there is no rule 'wire-leagl'; did you mean 'wire-legal'"),
        (HEAD + DEFECT + 'rows = ["beats in RMQS-1.99"]', "beats: there is no row RMQS-1.99; did you mean"),
    ],
)
def test_a_wrong_file_is_refused_with_place_and_problem(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=r"given\.toml") as caught:
        load(given(tmp_path, text), Part.SUITE)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("listed", "part", "problem"),
    [
        ('sweep = ["limit-exakt"]', Part.SWEEP, "no rule 'limit-exakt'; did you mean 'limit-exact'"),
        ('sweep = [{ row = "lives", acts = ["explode"] }]', Part.SWEEP, "lives: there is no act 'explode'"),
        ('sweep = [{ row = "lives", acts = ["crash"] }]', Part.SWEEP, "no act 'crash'"),
        ('chaos = [{ row = "lives", acts = ["order"] }]', Part.CHAOS, "no act 'order'"),
        ('generated = ["lost-write"]', Part.SWEEP, "no rule 'lost-write'"),
        ('generated = ["lost-write"]', Part.CHAOS, ""),
        ('sweep = ["limit-exakt"]', Part.CHAOS, ""),
        ('sweep = ["limit-exakt"]', Part.SUITE, ""),
    ],
)
def test_names_are_looked_at_by_whoever_reads_them(
    tmp_path: Path, listed: str, part: Part, problem: str
) -> None:
    path = given(tmp_path, DEFECT + listed)
    if not problem:
        load(path, part, protocol="rabbitmq-stream")
        return
    with pytest.raises(UsageError) as caught:
        load(path, part, protocol="rabbitmq-stream")
    assert problem in str(caught.value)


def test_a_criterion_that_nobody_declares_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = given(tmp_path, HEAD + DEFECT + 'rows = ["RMQS-6.06 the-reader-is-ali in-time"]')
    assert load(path, Part.SUITE).rows[0].criteria == ("the-reader-is-ali", "in-time")
    said = "RMQS-6.06 has no criterion 'the-reader-is-ali'; did you mean 'the-reader-is-alive'"
    out, err = capsys.readouterr()
    assert out == "" and err.startswith(f"warning: {path}: {said}") and err.count("\n") == 1
    warned: list[str] = []
    load(path, Part.SUITE, warned.append)
    assert [f"warning: {each}\n" for each in warned] == [err]


@pytest.mark.parametrize("path", BUNDLED, ids=lambda path: path.stem)
def test_the_files_in_the_tree_can_be_used(path: Path) -> None:
    client, warned = find(path.stem), list[str]()
    for part in Part:
        found = load(path, part, warned.append, client.protocols[0])
    assert warned == []
    assert client.name == found.client
    if client.runnable:
        found.check_names(path, [client.name], client.version or "")
    text = path.read_text(encoding="utf-8")
    reported = [line for line in text.splitlines() if not line.startswith("#")]
    again = [line for line in written(found).splitlines() if not line.startswith("#")]
    assert reported == again, f"run: fakebrokers known {path} --write {path}"


def test_each_cause_stands_once_in_a_file() -> None:
    assert BUNDLED
    for path in BUNDLED:
        causes = [defect.cause for defect in dict.fromkeys(row.defect for row in read(path).shown)]
        assert len(causes) == len({*causes}), path


def test_there_are_no_files_of_clients_that_are_not_there() -> None:
    assert {path.stem for path in BUNDLED} <= {client.name for client in bundled()}
