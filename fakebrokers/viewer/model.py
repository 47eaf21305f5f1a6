"""What a broker knows after each row of a page: its queues, streams and peers, told by the frames so far.

Each protocol derives it in its own package (``Description.model``) from the frames that its broker heard and
said; where only the wire is known, from those that passed there. What never was in a frame, such as messages
that a test has stored by a call, is not in it.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from fakebrokers.description import found
from fakebrokers.protocol import find_protocol, is_available
from fakebrokers.viewer.rows import Fact, Lane, Row, RunDocument

SHOWN, KEY = 8, 34  #: keys of a fact that are named, and characters of each
#: Where the broker is: what reached it, and what it meant to send.
_BROKERS_TAPS = frozenset({"", "heard", "said"})
_ENDS = ("closed", "ended")  #: how the names of states begin with which a connection ends
_SCALAR = re.compile(r'"(\w+)":(-?\d+|"[^"\\]*")[,}]')


class Seen(NamedTuple):
    """A frame.

    Attributes:
        kind: The protocol's name of it.
        direction: ``in``: from the client; ``out``.
        connection: Such as ``c1``.
        fields: As the page shows them; of a frame whose text is cut only numbers and short texts.
        keys: Of its messages, as far as the page links them.
        counts: For how many messages it has which role.
    """

    kind: str
    direction: str
    connection: str
    fields: dict[str, Any]
    keys: Sequence[str]
    counts: dict[str, int]

    @property
    def number(self) -> int:
        """Of its messages."""
        return sum(self.counts.values())


class BrokerModel(ABC):
    """Facts by name, each a short text, and when they changed.

    Attributes:
        facts: All that there ever were, by name; those of a connection begin with its name.
    """

    def __init__(self) -> None:
        self.facts: dict[str, Fact] = {}
        self.at = 0  #: the row
        self._now: dict[str, str] = {}

    @abstractmethod
    def frame(self, seen: Seen) -> None:
        """Change what a frame changes."""

    def left(self, connection: str) -> None:
        """A connection has ended: what is its own is gone."""
        self.forget(f"{connection} ")

    def tell(self, name: str, text: str) -> None:
        """Set a fact; "" takes it away."""
        if self._now.get(name, "") == text:
            return
        if text:
            self._now[name] = text
        else:
            del self._now[name]
        fact = self.facts.setdefault(name, Fact(name))
        if fact.rows and fact.rows[-1] == self.at:  # only the last word of a row counts
            fact.texts[-1] = text
        else:
            fact.rows.append(self.at)
            fact.texts.append(text)

    def forget(self, beginning: str) -> None:
        """Take away the facts whose names begin so."""
        for name in [name for name in self._now if name.startswith(beginning)]:
            self.tell(name, "")


def named(keys: Iterable[Any]) -> str:
    """A few of them by name."""
    listed = [str(key) for key in keys]
    more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return ", ".join(key if len(key) <= KEY else f"{key[:KEY]}…" for key in listed[:SHOWN]) + more


def add_model(document: RunDocument, protocol: str) -> RunDocument:
    """Give a page what the broker knew at each row, where its protocol says how that is derived."""
    place = find_protocol(protocol).model if protocol and is_available(protocol) else ""
    if place:
        model: BrokerModel = found(place)()
        follow(model, document.rows, document.lanes, wire_only=document.is_of_the_wire)
        document.facts = list(model.facts.values())
    return document


def follow(
    model: BrokerModel, rows: Sequence[Row], lanes: Sequence[Lane], *, wire_only: bool = False
) -> None:
    """Lead a model through the rows of a page.

    Args:
        wire_only: Not all of what the broker heard and said is known, so only the wire counts.
    """
    taps = frozenset({""}) if wire_only else _BROKERS_TAPS
    for number, row in enumerate(rows):
        model.at = number
        if row.what in ("in", "out") and row.tap in taps:
            details = dict(row.details)
            keys = [link.partition(":")[2] for link in row.links]
            connection = details.get("connection") or lanes[row.lane].name
            fields = _decoded(details.get("fields", ""))
            with suppress(LookupError, TypeError, ValueError, AttributeError):  # faults make odd frames
                model.frame(Seen(row.name, row.what, connection, fields, keys, dict(row.counts)))
        elif row.what == "state" and row.name.startswith(_ENDS):
            model.left(dict(row.details).get("connection") or lanes[row.lane].name)


def _decoded(text: str) -> dict[str, Any]:
    if not text:
        return {}
    try:
        fields = msgspec.json.decode(text)
    except msgspec.DecodeError:  # the page carries only the beginning of a long text
        return {name: msgspec.json.decode(value) for name, value in _SCALAR.findall(text)}
    return fields if isinstance(fields, dict) else {}
