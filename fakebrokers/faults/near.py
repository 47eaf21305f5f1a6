"""Why a fault that fitted nothing has fitted nothing: the frame that came closest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fakebrokers.faults.levels import of_frame, of_items
from fakebrokers.faults.match import Match, wrong_fields
from fakebrokers.faults.rule import Rule
from fakebrokers.journal.near import closest
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
    if not record.tap & (Tap.RECEIVED | Tap.SAID) or not _is_alike(match, record):
        return None
    missing = []
    if match.kind is not None and record.kind != match.kind:
        missing.append(f"it is a {record.kind}, not a {match.kind}")
    if match.role is not None and not record.has_role(match.role):
        missing.append(f"its role is {record.role}, not {match.role}")
    if rule.direction not in ("", record.tap.direction):
        missing.append(f"its direction is {record.tap.direction}, not {rule.direction}")
    if match.connection not in (None, record.connection):
        missing.append(f"it came on {record.connection}, not {match.connection}")
    if match.peer not in (None, record.peer):
        missing.append(f"its peer is {record.peer or 'not known'}, not {match.peer}")
    missing += _wrong(match, record)
    since_s = started_at + record.at - rule.added
    if not missing and since_s < match.from_s:
        missing.append("it passed before the fault was at work")
    elif not missing and match.after_s is not None:
        missing.append(f"it came too early: after_s is {match.after_s:g}")
    return missing


def _is_alike(match: Match, record: Record) -> bool:
    """Whether it is what the fault speaks of; where that names nothing, every frame is."""
    named = [record.kind == match.kind] if match.kind is not None else []
    named += [record.has_role(match.role)] if match.role is not None else []
    return any(named) if named else record.frame is not None


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
