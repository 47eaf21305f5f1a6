"""Why a fault that fitted nothing has fitted nothing: the frame that came closest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fakebrokers.faults.levels import of_frame, of_items
from fakebrokers.faults.match import Match, wrong_fields
from fakebrokers.faults.rule import Rule
from fakebrokers.journal.near import closest, is_alike, wrong_names
from fakebrokers.journal.record import Record, Tap


def near_miss(rule: Rule, records: Iterable[Record], started_at: float) -> str:
    """The frame that came closest to a fault, and what did not fit, as a sentence; "" if none was close.

    Args:
        records: Of the journal.
        started_at: When that began, seconds on the clock of the fake.
    """
    if rule.seen or rule.fault.match.on is not None:
        return ""
    return closest(records, lambda record: _misses(rule, record, started_at))


def _misses(rule: Rule, record: Record, started_at: float) -> list[str] | None:
    match = rule.fault.match
    is_frame = record.frame is not None  # where the fault names nothing, it speaks of every frame
    if not record.tap & (Tap.RECEIVED | Tap.SAID) or not is_alike(record, match.kind, match.role, is_frame):
        return None
    missing = wrong_names(record, match.kind, match.role, match.connection)
    if rule.direction not in ("", record.tap.direction):
        missing.append(f"its direction is {record.tap.direction}, not {rule.direction}")
    if match.peer not in (None, record.peer):
        missing.append(f"its peer is {record.peer or 'not known'}, not {match.peer}")
    missing += _wrong(match, record)
    since_s = started_at + record.at - rule.added
    if not missing and since_s < match.from_s:
        missing.append("it passed before the fault was at work")
    elif not missing and match.after_s is not None:
        missing.append(f"it came too early: after_s is {match.after_s:g}")
    return missing


def _wrong(match: Match, record: Record) -> list[str]:
    """The fields that do not fit."""
    frame = record.frame
    if not match.where:
        return []
    if frame is None:
        return ["its fields were not kept"]
    choices: list[Mapping[str, Any]] = [of_frame(frame)]
    if match.unit == "item" and frame.spec.items is not None:
        items = of_items(frame, record.tap.direction, match.role)
        choices = [item for item in items if item is not None] or choices
    return min((wrong_fields(frame, match.where, each) for each in choices), key=len)
