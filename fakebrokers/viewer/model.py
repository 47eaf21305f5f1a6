"""What a broker knows after each row of a page: its queues, streams and peers.

Each protocol says it in its own package (``Description.model``), in two ways. A fake that is traced reports
itself what it holds, whenever that changes (`BrokerModel.held`). Of a real server, of a journal without that
and of what only clients know, it is derived from the frames that the broker heard and said, or where only the
wire is known from those that passed there (`BrokerModel.frame`).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import msgspec

from fakebrokers.core.subscriptions import Subscription
from fakebrokers.description import found
from fakebrokers.journal.keys import key_text
from fakebrokers.protocol import find_protocol, is_available
from fakebrokers.viewer.rows import Fact, Lane, Row, RunDocument

SHOWN, KEY = 8, 34  #: keys of a fact that are named, and characters of each
MOST_HELD = 200  #: facts that a fake reports at a time
HELD = "held"  #: what rows are that say what the fake reported, until `reported` takes them away
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


class FactLog:
    """Facts by name, each a short text, and the rows at which they changed.

    Attributes:
        facts: All that there ever were, by name; those of a connection begin with its name.
        at: The row that is looked at.
    """

    def __init__(self) -> None:
        self.facts: dict[str, Fact] = {}
        self.at = 0
        self._now: dict[str, str] = {}

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


class BrokerModel(FactLog, ABC):
    """What a protocol says of its broker.

    Attributes:
        acks_each: See `RunDocument.acks_each`.
        besides: Words in the names of facts that no fake reports of itself: frames say them in any case.
        t: Seconds, of the row that is looked at.
        scope: Where the keys of that row count, if it is known: see `Row.scope`.
    """

    acks_each: ClassVar[bool] = True
    besides: ClassVar[frozenset[str]] = frozenset()

    def __init__(self) -> None:
        super().__init__()
        self.t = 0.0
        self.scope = ""

    @abstractmethod
    def frame(self, seen: Seen) -> None:
        """Change what a frame changes, and say in `scope` where its keys count."""

    def left(self, connection: str) -> None:
        """A connection has ended: what is its own is gone."""
        self.forget(f"{connection} ")

    @classmethod
    def held(cls, server: Any) -> Iterator[tuple[str, str]]:
        """All facts of a fake at this moment, on its thread, those of connections first: of many, the last
        ones are left out. It is asked at each frame."""
        return iter(())

    @classmethod
    def held_now(cls, server: Any) -> dict[str, str]:
        """`held`, as far as the page takes it."""
        return dict(islice(cls.held(server), MOST_HELD))


def named(keys: Collection[Any], most: int = SHOWN) -> str:
    """A few of them by name."""
    listed = [key_text(key) for key in islice(keys, most)]
    more = f" and {len(keys) - most} more" if len(keys) > most else ""
    return ", ".join(key if len(key) <= KEY else f"{key[:KEY]}…" for key in listed) + more


def listeners(subscriptions: Iterable[Subscription], word: str = "") -> Iterator[tuple[str, str]]:
    """Facts on those who listen at a bus, but for the fake's own.

    Args:
        word: Comes before what a connection knows a subscription by.
    """
    for each in subscriptions:
        group = f", group {each.queue}" if each.queue else ""
        if (link := getattr(each.owner, "link", None)) is not None:
            yield f"{link.name} {each.pattern}{group}", f"subscription, {word}{each.key}"
        elif (client := getattr(each.owner, "id", None)) is not None:  # of MQTT: it may have no connection
            yield f"client {client} subscription {each.pattern}{group}", f"QoS {each.key}"


def held_row(at: float, changes: str) -> Row:
    """What a fake reported, as JSON, among the rows where it has changed; `reported` takes it away."""
    return Row(at, HELD, 0, "", "", changes, "", [], 0, [])


def reported(rows: Sequence[Row]) -> tuple[list[Row], list[Fact]]:
    """The rows without those that say what the fake reported, and what it reported.

    It is the row in front that has changed it; where that is older, nothing in the journal has: then it
    shows from the next row on.
    """
    kept = [row for row in rows if row.what != HELD]
    log, number = FactLog(), 0
    for row in rows:
        if row.what != HELD:
            number += 1
            continue
        is_own = number > 0 and kept[number - 1].t == row.t
        log.at = max(0, min(number - is_own, len(kept) - 1))
        for name, text in _decoded(row.text).items():
            log.tell(name, str(text))
    return kept, list(log.facts.values())


def add_model(document: RunDocument, protocol: str) -> RunDocument:
    """Give a page what the broker knew at each row, where its protocol says how that is derived.

    What the fake has reported is in the document already; then frames say only what no fake reports itself.
    """
    place = find_protocol(protocol).model if protocol and is_available(protocol) else ""
    if not place:
        return document
    model: BrokerModel = found(place)()
    follow(model, document.rows, document.lanes, wire_only=document.is_of_the_wire)
    known = {fact.name for fact in document.facts}
    document.is_reported, document.acks_each = bool(known), model.acks_each
    document.facts += [
        fact
        for name, fact in model.facts.items()
        if not known or (name not in known and not model.besides.isdisjoint(name.split(" ", 2)[:2]))
    ]
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
        model.at, model.t, model.scope = number, row.t, ""
        if row.what in ("in", "out") and row.tap in taps:
            details = dict(row.details)
            keys = [link.partition(":")[2] for link in row.links]
            connection = details.get("connection") or lanes[row.lane].name
            fields = _decoded(details.get("fields", ""))
            with suppress(LookupError, TypeError, ValueError, AttributeError):  # faults make odd frames
                model.frame(Seen(row.name, row.what, connection, fields, keys, dict(row.counts)))
            row.scope = model.scope
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
