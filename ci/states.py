"""The tables of ``connections.md``, from the states of a connection in `fakebrokers.core.states`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path

from ci.tables import table, with_tables
from fakebrokers.core import states
from fakebrokers.core.states import INPUT, OUTPUT, Event, InputRow, OutputRow

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "connections.md"

_MEMBER = re.compile(r'^    \w+ = "(.+)"(?:  #: (.+))?$', re.MULTILINE)


def page(text: str) -> str:
    """The page with its tables as they should be."""
    tables = {
        "events": [*table(["event", "what happens"], _meanings(Event).items())],
        "output": [*table(["output", "means", "a frame that is said", "held back", "session"], _output())],
        "input": [*table(["input", "means", "frames that came"], _input())],
        "output-moves": [*_moves("output", OUTPUT)],
        "input-moves": [*_moves("input", INPUT)],
    }
    return with_tables(text, "states", tables)


def _output() -> Iterator[list[str]]:
    meanings = _meanings(states.Output)
    for state, row in OUTPUT.items():
        leaves, acts = "leaves" if row.held_leaves else "is lost", "acts" if row.acts else "does nothing"
        yield [state, meanings[state], row.says.value, leaves, acts]


def _input() -> Iterator[list[str]]:
    meanings = _meanings(states.Input)
    for state, row in INPUT.items():
        yield [state, meanings[state], "reach the session" if row.hears else "are dropped"]


def _moves(
    name: str, rows: Mapping[states.Output, OutputRow] | Mapping[states.Input, InputRow]
) -> Iterator[str]:
    """The next state by state and event; ``=`` where it stays, nothing where the event cannot happen."""
    known = {event for row in rows.values() for event in (*row.next, *row.stays)}
    events = [event for event in Event if event in known]
    cells = (
        [state, *("=" if event in row.stays else row.next.get(event, "") for event in events)]
        for state, row in rows.items()
    )
    yield from table([name, *events], cells)


def _meanings(kind: type[StrEnum]) -> dict[str, str]:
    """What the comments say of each member."""
    return {value: meaning or "" for value, meaning in _MEMBER.findall(inspect.getsource(kind))}
