"""Frames with text that UTF-8 cannot hold are written down, too."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from fakebrokers.journal.texts import as_json
from fakebrokers.viewer import write_page
from fakebrokers.viewer.rows import Lane, Row, RunDocument
from tests.pages_of_runs import documents


class Greeting(msgspec.Struct):
    words: list[str]
    body: bytes = b""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": [1, "tea"]}, b'{"a":[1,"tea"]}'),
        ({"a\udc80": ["\ud83d", "ä"]}, '{"a\\\\udc80":["\\\\ud83d","ä"]}'.encode()),
        (Greeting(["\udcff"], b"tea"), b'{"words":["\\\\udcff"],"body":"dGVh"}'),
        (1j, b'"1j"'),
    ],
    ids=["plain", "in names and lists", "in a structure", "another object"],
)
def test_any_text_becomes_json(value: object, text: bytes) -> None:
    assert as_json(value) == text


def test_what_is_nested_too_deeply_is_called_so() -> None:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    assert as_json(value) == b'"nested too deeply to be written"'
    while value:  # let go of it level by level
        value = value.pop()  # type: ignore[assignment]


def test_a_page_holds_any_text(tmp_path: Path) -> None:
    row = Row(0.0, "in", 0, "", "Open", "\udcff", "", [], 0, [])
    write_page(tmp_path / "run.html", [RunDocument("hostile", [], [Lane("c1", "connection")], [row])])
    assert documents(tmp_path / "run.html")[0].rows[0].text == "\\udcff"
