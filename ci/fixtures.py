"""The tables of ``docs/pytest.md``: which fixtures there are, how long each lives, and what it gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import fakebrokers
from ci.tables import table, with_tables
from fakebrokers.description import ALIAS, descriptions, find_description, fixture_names
from fakebrokers.pytest_fixtures import SCOPES, known_fixtures

PAGE = Path(__file__).parents[1] / "docs" / "pytest.md"
EXAMPLE = "rabbitmq-stream"  #: the protocol whose fixtures the page uses

_GIVES = {
    "": "a fresh fake for each test",
    "_factory": "as many as you call it; keywords as for the class",
    "_class": "one for all tests of a class",
    "_module": "one for all tests of a module",
    "_session": "one for all tests of the run",
}


def page(text: str) -> str:
    """The page with its tables as they should be."""
    tables = {
        "example": table(["fixture", "scope", "type", "gives"], _of_a_protocol()),
        "protocols": table(["protocol", "fixture", "second name", "type"], _protocols()),
    }
    return with_tables(text, "fixtures", tables)


def _of_a_protocol() -> Iterator[list[str]]:
    """Of one protocol, in the order of the page; each other one has the same."""
    about = find_description(EXAMPLE)
    for name, (protocol, scope) in known_fixtures().items():
        if protocol != EXAMPLE or name.startswith(ALIAS):
            continue
        suffix = name.removeprefix(about.fixture)
        kind = f"Callable[..., {about.server_name}]" if suffix == "_factory" else about.server_name
        yield [f"`{name}`", scope if scope in SCOPES else "function", f"`{kind}`", _GIVES[suffix]]


def _protocols() -> Iterator[list[str]]:
    for each in descriptions():
        if each.server_name not in fakebrokers.__all__:
            continue  # somebody has registered it: the page has what the package brings
        first, *second = [f"`{name}`" for name in fixture_names(each.name)]
        yield [each.name, first, *(second or ["-"]), f"`fakebrokers.{each.server_name}`"]
