"""The page of what each protocol's document says, and which scenarios judge it.

What the documents say is in `ci/site/statements`, a file for each of them; ids of scenarios are those of
the catalogue, which gives their titles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from conformance.suite.load import requirements
from conformance.suite.requirement import Requirement

FOLDER = Path(__file__).parent / "statements"

#: Why a statement has no scenario; there are no other reasons.
REASONS = {
    "amqp": "the transporter AMQP is not among those of the fake",
    "event-stream": "no node of Moleculer sends events in pieces",
    "node-sdk": "this is about the SDK itself, which cannot be had",
}
INTRODUCTION = """\
# Statements of the documents

Each fake started from one document of its system, its
[seed document](../protocols/README.md#the-seed-document). Here is what it asks of clients, part by part in
short words of our own, and the [scenarios](scenarios.md) that judge it. What is about servers alone, such as
how one is installed, is left out, and so is what a document itself calls not implemented. A scenario may
rest on more than a document: `fakebrokers explain ID` says on what.
"""


class Statement(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a document says.

    Attributes:
        says: In short words of our own.
        rows: Ids of scenarios, with blanks between them.
        reason: Why there are none, a key of `REASONS`.
    """

    says: str
    rows: str
    reason: str = ""

    @property
    def ids(self) -> list[str]:
        """The ids of the scenarios."""
        return self.rows.split()


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a document; `name` begins with its number."""

    name: str
    statements: list[Statement]


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one of them says."""

    title: str
    protocol: str
    parts: list[Part]

    def __iter__(self) -> Iterator[Statement]:
        return (each for part in self.parts for each in part.statements)


def documents() -> list[Document]:
    """All of them, in the order of their protocols' names."""
    paths = sorted(FOLDER.glob("*.toml"))
    return [msgspec.toml.decode(path.read_bytes(), type=Document) for path in paths]


def page() -> str:
    """A table for each document."""
    known = requirements()
    return "\n".join([INTRODUCTION, *(line for each in documents() for line in _section(each, known))])


def _section(document: Document, known: Mapping[str, Requirement]) -> Iterator[str]:
    yield from (f"## {document.title}", "", "| part | statement | scenarios |", "| --- | --- | --- |")
    for part in document.parts:
        for number, each in enumerate(part.statements):
            scenarios = "<br>".join(f"{id} {known[id].title}" for id in each.ids)
            name = part.name if number == 0 else ""
            yield f"| {name} | {each.says} | {scenarios or f'none: {REASONS[each.reason]}'} |"
    yield ""
