"""The parts of `statements`: what is changed, what the changed client is, and who notices."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.conformance.planted import statements
from tests.conformance.planted.changes import Change, changed, changes_in
from tests.conformance.planted.statements import Covered, chosen, drawn, runs_of

SOURCE = '''\
def work(self, one, two):
    """What it does."""
    self.count = one
    local = two
    if one and two:
        self.note()
    while one or two:
        break
    try:
        return one and two
    finally:
        self.end()


def other(one):
    return one if one else None


def outer():
    def inner():
        raise ValueError
    return inner
'''
TOP = Path(__file__).parents[3]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A file with all that can be changed."""
    path = tmp_path / "client.py"
    path.write_text(SOURCE)
    return path


def test_each_statement_that_matters_is_changed_once_in_each_way(place: Path) -> None:
    kinds = ["delete", "true", "false", "drop", "body", "orelse", "nofinal"]
    found = [
        (each.line, f"{each.kind}{each.number or ''}", each.function) for each in changes_in(place, kinds)
    ]
    assert found == [
        (3, "delete", "work"),
        (5, "true", "work"),
        (5, "false", "work"),
        (5, "drop", "work"),
        (5, "drop1", "work"),
        (6, "delete", "work"),
        (7, "false", "work"),
        (7, "drop", "work"),
        (7, "drop1", "work"),
        (8, "delete", "work"),
        (9, "nofinal", "work"),
        (10, "drop", "work"),
        (10, "drop1", "work"),
        (12, "delete", "work"),
        (16, "body", "other"),
        (16, "orelse", "other"),
        (21, "delete", "inner"),
    ]


@pytest.mark.parametrize(
    ("line", "kind", "there", "gone"),
    [
        (3, "delete", "local = two", "self.count = one"),
        (5, "true", "if True:", "if one and two:"),
        (5, "false", "if False:", "if one and two:"),
        (5, "drop", "if two:", "if one and two:"),
        (7, "drop1", "while one:", "while one or two:"),
        (9, "nofinal", "finally:\n        pass", "self.end()"),
        (10, "drop", "return two", "return one and two"),
        (16, "body", "return one\n", "if one else"),
        (16, "orelse", "return None", "if one else"),
    ],
)
def test_a_change_changes_that_statement_alone(
    place: Path, line: int, kind: str, there: str, gone: str
) -> None:
    [change] = [
        each for each in changes_in(place) if (each.line, f"{each.kind}{each.number or ''}") == (line, kind)
    ]
    text = changed(SOURCE, change)
    assert there in text and gone not in text
    assert abs(len(text.splitlines()) - len(SOURCE.splitlines())) <= 2


def test_a_change_says_where_it_is(place: Path) -> None:
    assert str(next(iter(changes_in(place)))) == "client.py:3 delete [self.count = one] in work"


def test_cheap_runs_come_first_until_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "ENOUGH_S", 3.0)
    cost_s = {"dear": 50.0, "cheap": 0.1, "fair": 4.0, "dearest": 90.0}
    assert chosen(list(cost_s), cost_s, Random(1)) == ["cheap", "fair"]


def test_a_statement_of_several_lines_may_be_known_by_its_second(tmp_path: Path) -> None:
    known = Covered({"client.py": {"4": ["base:one"]}}, {})
    change = Change(tmp_path / "client.py", 3, 0, "delete", 0, "", "")
    assert known.runs_of(change) == ["base:one"]
    assert known.runs_of(change._replace(line=9)) == []


def test_bases_and_scenarios_are_runs() -> None:
    names = runs_of("pzq")
    assert "base:waited" in names and "PZQ-1.01/pzq" in names
    assert len(set(names)) == len(names)


#: In a process of its own, because here the correct client is loaded.
NOTICED = """
from tests.conformance.planted.changes import changes_in
from tests.conformance.planted.statements import folder_of, noticed

path = folder_of("pzq") / "producer.py"
lines = path.read_text().splitlines()
for text, kind, base in (
    ("if self.stored(answer.status):", "true", "refused"),
    ("if self.stored(answer.status):", "false", "waited"),
    ("waiting.exception()  # what", "delete", "waited"),
):
    line = next(at for at, each in enumerate(lines, 1) if each.strip().startswith(text))
    [change] = [each for each in changes_in(path) if (each.line, each.kind) == (line, kind)]
    print(noticed("pzq", change, [f"base:{base}"]).partition(" ")[0] or "nothing")
"""


def test_a_change_is_noticed_if_it_shows() -> None:
    done = subprocess.run(
        [sys.executable, "-c", NOTICED], cwd=TOP, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["base:refused:", "base:waited:", "nothing"]


def test_each_kind_has_its_turn(place: Path) -> None:
    changes = list(changes_in(place))
    order = drawn(changes, Random(3))
    assert sorted(order) == sorted(changes)
    kinds = list(dict.fromkeys(each.kind for each in order))
    assert [each.kind for each in order[: len(kinds)]] == kinds
    assert order == drawn(changes, Random(3)) != drawn(changes, Random(4))


@pytest.mark.parametrize(
    ("more", "lines"),
    [(("--kinds", "minus", "murmur3.py:9"), 0), (("--kinds", "minus"), 2), (("--kinds", "minus,edge"), 3)],
)
def test_a_line_of_json_for_each_change_which_is_not_tried_again(
    more: tuple[str, ...], lines: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "covered", lambda protocol: Covered({}, {}))
    out = tmp_path / "out.jsonl"
    for count in (min(lines, 2), lines, lines):
        monkeypatch.setattr(sys, "argv", ["", "pzq", "--count", str(count), "--out", str(out), *more])
        statements.main()
        rows = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
        assert len(rows) == count
    assert {row["word"] for row in rows} <= {"UNCOVERED"}
    assert {row["kind"] for row in rows} == (set(more[1].split(",")) if rows else set())


def test_a_kind_that_does_not_exist_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["", "pzq", "--kinds", "edge,sideways"])
    with pytest.raises(SystemExit):
        statements.main()
    assert "no such kind: sideways" in capsys.readouterr().err
