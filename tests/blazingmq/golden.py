"""The recorded conversations of real SDKs with an experimental broker: ``vectors/blazingmq.jsonl``."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

_FILE = Path(__file__).with_name("vectors") / "blazingmq.jsonl"


class Event(NamedTuple):
    """One recorded event.

    Attributes:
        connection: Number of the connection in the scenario.
        direction: ``C2S`` from the SDK, ``S2C`` from the broker, ``NOTE`` for what else happened.
        data: The whole event.
    """

    scenario: str
    sdk: str
    number: int
    connection: int
    at: float
    direction: Literal["C2S", "S2C", "NOTE"]
    description: str
    data: bytes

    def __str__(self) -> str:
        return f"{self.scenario}-{self.number}"


@cache
def events() -> tuple[Event, ...]:
    """All lines that are events."""
    return tuple([event for event in lines() if event.data])


@cache
def lines() -> tuple[Event, ...]:
    """All lines."""
    with _FILE.open(encoding="utf-8") as rows:
        return tuple([_event(json.loads(row)) for row in rows])


def conversation(scenario: str, connection: int = 1) -> list[Event]:
    """The events of one connection."""
    return [each for each in events() if (each.scenario, each.connection) == (scenario, connection)]


def scenarios() -> list[str]:
    """Their names."""
    return list(dict.fromkeys([event.scenario for event in events()]))


def _event(row: dict[str, object]) -> Event:
    return Event(
        str(row["scenario"]),
        str(row["sdk"]),
        int(str(row["seq"])),
        int(str(row["conn"])),
        float(str(row["t_ms"])) / 1000,
        row["direction"],  # type: ignore[arg-type]
        str(row["description"]),
        bytes.fromhex(str(row.get("hex", ""))),
    )
