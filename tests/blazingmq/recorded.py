"""What a real broker said to the C++ SDK (``vectors/blazingmq-broker.jsonl``) and to plain sockets.

The second file, ``vectors/blazingmq-exchanges.jsonl``, has what a client can provoke at a single node.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

_FOLDER = Path(__file__).with_name("vectors")
_SOUND = ("broker", "exchanges", "answers", "details")
_UNUSUAL = ("unusual",)


class Recorded(NamedTuple):
    """One event, or the end of one direction of a connection (no data).

    Attributes:
        connection: Number of the connection in the session.
        at: Seconds.
        data: The whole event.
    """

    session: str
    connection: int
    at: float
    direction: Literal["C2S", "S2C"]
    data: bytes

    def __str__(self) -> str:
        return f"{self.session}-{self.connection}-{self.at}"


def recorded() -> tuple[Recorded, ...]:
    """All of them but `unusual`; the first line of each file tells how they were recorded."""
    return _read(_SOUND)


def unusual() -> tuple[Recorded, ...]:
    """Control messages that no client writes so, and a broker takes or does not; answers like any."""
    return _read(_UNUSUAL)


@cache
def _read(names: tuple[str, ...]) -> tuple[Recorded, ...]:
    return tuple([_recorded(json.loads(row)) for name in names for row in _lines(name)[1:]])


def _lines(name: str) -> list[str]:
    return (_FOLDER / f"blazingmq-{name}.jsonl").read_text(encoding="utf-8").splitlines()


def session(name: str) -> list[Recorded]:
    """The events of one session, in order."""
    return [each for each in (*recorded(), *unusual()) if each.session == name]


def sessions() -> list[str]:
    """Their names."""
    return list(dict.fromkeys([each.session for each in (*recorded(), *unusual())]))


def _recorded(row: dict[str, object]) -> Recorded:
    note = str(row.get("description", ""))
    return Recorded(
        str(row["session"]),
        int(str(row["conn"])),
        float(str(row["t_ms"])) / 1000,
        note[:3] if note else row["direction"],  # type: ignore[arg-type]
        bytes.fromhex(str(row.get("hex", ""))),
    )
