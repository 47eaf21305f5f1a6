"""The recordings of real nodes and servers: ``vectors/moleculer.jsonl`` (docs/protocols/moleculer.md, 9)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

_FILE = Path(__file__).with_name("vectors") / "moleculer.jsonl"


class Row(NamedTuple):
    """One recorded thing; `values` has all that the file says of it."""

    number: int
    kind: str
    transporter: str
    values: dict[str, Any]

    @property
    def data(self) -> bytes:
        """The bytes."""
        text, digits = self.values.get("text"), self.values.get("hex")
        return bytes.fromhex(digits) if digits is not None else str(text).encode()

    def __str__(self) -> str:
        return f"{self.number}-{self.transporter}"


@cache
def rows(kind: str, transporter: str | None = None) -> tuple[Row, ...]:
    """The rows of a kind: ``packet wire udp frame probe``."""
    with _FILE.open(encoding="utf-8") as lines:
        found = [json.loads(line) for line in lines]
    return tuple(
        [
            Row(row["n"], row["kind"], row["transporter"], row)
            for row in found
            if row["kind"] == kind and transporter in (None, row["transporter"])
        ]
    )


class Talk(NamedTuple):
    """All that went over one connection; in the order in which it did.

    Attributes:
        steps: Direction (``C>S`` or ``S>C``) and bytes.
    """

    description: str
    connection: int
    steps: tuple[tuple[str, bytes], ...]

    def side(self, direction: str) -> bytes:
        """All bytes of one direction."""
        return b"".join([data for way, data in self.steps if way == direction])

    def __str__(self) -> str:
        return f"{self.description[:30]}-{self.connection}"


@cache
def talks(transporter: str) -> tuple[Talk, ...]:
    """The recorded connections of a transporter."""
    found: dict[tuple[str, int], list[tuple[str, bytes]]] = {}
    for row in rows("wire", transporter):
        key = (row.values["description"], row.values["conn"])
        found.setdefault(key, []).append((row.values["dir"], row.data))
    return tuple([Talk(*key, tuple(steps)) for key, steps in found.items()])
