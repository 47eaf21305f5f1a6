"""The page of the words that only this project uses: few, in use, and each explained once."""

from __future__ import annotations

import re
from pathlib import Path

TOP = Path(__file__).parent.parent
WORDS = re.findall(
    r"^\| ([a-z][a-z ,]+) \|", (TOP / "docs" / "glossary.md").read_text(encoding="utf-8"), re.M
)[1:]


def test_there_are_few_words_and_each_is_explained_once() -> None:
    assert 20 < len(WORDS) <= 40
    assert len(set(WORDS)) == len(WORDS)


def test_each_word_is_in_use() -> None:
    pages = [path for path in (TOP / "docs").rglob("*.md") if path.name != "glossary.md"]
    sources = [path for room in ("fakebrokers", "conformance") for path in (TOP / room).rglob("*.py")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in [*pages, *sources]).lower()
    unused = [word for entry in WORDS for word in entry.split(", ") if not re.search(rf"\b{word}", text)]
    assert unused == []
