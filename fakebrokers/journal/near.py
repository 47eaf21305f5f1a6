"""The record that came closest to what somebody looked for and did not find."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fakebrokers.journal.record import Record, Tap

#: Why a frame was seen at one tap alone.
_ONLY = {
    Tap.RECEIVED: "it never reached the broker",
    Tap.HEARD: "the broker got it in place of what was sent",
    Tap.SAID: "the broker meant it, and it never left",
    Tap.SENT: "it left in place of what the broker meant",
}


def closest(records: Iterable[Record], misses: Callable[[Record], list[str] | None]) -> str:
    """The record that misses least, the newest of several, and what it misses: a sentence, "" for none.

    Args:
        misses: What a record misses; None or nothing for one that is no near miss.
    """
    best: tuple[int, Record, list[str]] | None = None
    for record in records:
        missing = misses(record)
        if missing and (best is None or len(missing) <= best[0]):
            best = len(missing), record, missing
    if best is None:
        return ""
    _, record, missing = best
    return f"closest: record {record.seq}, {' '.join(str(record).split()[1:])}: {'; '.join(missing)}"


def is_alike(record: Record, kind: str | None, role: str | None, otherwise: bool = False) -> bool:
    """Whether a record is of the kind or the role that was named; `otherwise` where neither was."""
    named = [record.kind == kind] if kind is not None else []
    named += [record.has_role(role)] if role is not None else []
    return any(named) if named else otherwise


def wrong_names(record: Record, kind: str | None, role: str | None, connection: str | None) -> list[str]:
    """What of these a record is not, a part of a sentence for each; None is not asked for."""
    wrong = []
    if kind is not None and record.kind != kind:
        wrong.append(f"it is a {record.kind}, not a {kind}")
    if role is not None and not record.has_role(role):
        wrong.append(f"its role is {record.role}, not {role}")
    if connection not in (None, record.connection):
        wrong.append(f"it is on {record.connection}, not {connection}")
    return wrong


def elsewhere(record: Record) -> str:
    """That a record was seen somewhere else than was asked for."""
    why = _ONLY.get(record.tap, f"it was seen as {record.tap.label}")
    return f"{why} (fault {record.fault!r})" if record.fault else why
