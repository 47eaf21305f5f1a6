"""Files that are made from others are as they should be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ci import fixtures, generate
from fakebrokers.files import by_rows


def test_nothing_is_stale() -> None:
    assert [str(path) for path in generate.stale()] == [], "run: python -m ci.generate"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two files, of which one is not as it should be."""
    (tmp_path / "stale").write_text("old")
    (tmp_path / "right").write_text("right")
    monkeypatch.setattr(generate, "TOP", tmp_path)
    texts = {tmp_path / "stale": "new", tmp_path / "right": "right"}
    monkeypatch.setattr(generate, "made", lambda reports: texts)
    return tmp_path


def test_what_is_stale_is_written_and_named(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert generate.main("--check") == 1
    assert (tree / "stale").read_text() == "old"
    assert generate.main() == 0
    assert (tree / "stale").read_text() == "new"
    assert capsys.readouterr().out == "stale\nstale\n"
    assert generate.main("--check") == 0


def test_an_argument_that_is_neither_is_refused(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert generate.main("--chek") == 64
    assert "expected --check alone, or folders of reports; got --chek" in capsys.readouterr().err


def test_a_row_of_a_table_is_a_line() -> None:
    document = {"version": 1, "rows": [{"a": 1}, {"b": [2]}], "named": {"x": {"y": None}}}
    text = by_rows(document)
    assert json.loads(text) == document
    assert text.splitlines() == [
        '{"version": 1,',
        '"rows": [',
        '{"a": 1},',
        '{"b": [2]}',
        "],",
        '"named": {',
        '"x": {"y": null}',
        "}}",
    ]


def test_the_table_of_fixtures_says_scope_and_type() -> None:
    lines = fixtures.page(
        "before\n<!-- made of the fixtures: example -->\nold\n<!-- end -->\nafter\n"
    ).splitlines()
    assert lines[:2] == ["before", "<!-- made of the fixtures: example -->"]
    assert lines[-2:] == ["<!-- end -->", "after"]
    assert "old" not in lines
    assert (
        "| `rabbitmq_stream_session` | session | `RabbitMQStream` | one for all tests of the run |" in lines
    )
    assert len(lines) == 4 + 2 + 5


def test_a_table_that_nobody_makes_is_refused() -> None:
    with pytest.raises(KeyError, match="other"):
        fixtures.page("<!-- made of the fixtures: other -->\n<!-- end -->\n")
