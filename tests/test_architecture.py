"""The page about the architecture is a map of the whole tree: nothing is left out, and nothing is gone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from fakebrokers.protocol import protocols
from tests.judged import JUDGED

TOP = Path(__file__).parent.parent
PAGE = TOP / "docs" / "explanation" / "architecture.md"
#: How the packages of the protocols are named, by room; tests register others.
PROTOCOLS = {
    "fakebrokers": {
        each.server.split(".")[1] for each in protocols() if each.server.startswith("fakebrokers.")
    },
    "scenarios": {each.folder for each in JUDGED},
}
#: What a checkout has beside what is kept in it.
NOT_KEPT = {"__pycache__", "__init__.py", "py.typed", "README.md"}


def named(room: str) -> Iterator[str]:
    """The names in the first column of the room's table; a `*` stands for any characters."""
    _, _, table = PAGE.read_text().partition(f"| `{room}/` | holds |\n| --- | --- |\n")
    assert table, f"no table of {room}"
    for line in table.partition("\n\n")[0].splitlines():
        for name in re.findall(r"`([^`]+)`", line.split("|")[1]):
            yield from sorted(PROTOCOLS[room]) if name == "<protocol>" else [name]


def kept(room: str) -> set[str]:
    """Folders with something in them, and files, at the top of a room."""
    return {
        each.name
        for each in (TOP / room).iterdir()
        if each.name not in NOT_KEPT
        and not each.name.startswith(".")
        and (each.is_file() or any(inner.name not in NOT_KEPT for inner in each.iterdir()))
    }


@pytest.mark.parametrize("room", ["fakebrokers", "conformance", "scenarios"])
def test_the_map_has_each_folder_and_file_of_a_room(room: str) -> None:
    patterns = set(named(room))
    there = kept(room)
    assert sorted(name for name in there if not any(fnmatch(name, each) for each in patterns)) == []
    assert sorted(each for each in patterns if not any(fnmatch(name, each) for name in there)) == []
