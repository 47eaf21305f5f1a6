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


def elsewhere(record: Record) -> str:
    """That a record was seen somewhere else than was asked for."""
    why = _ONLY.get(record.tap, f"it was seen as {record.tap.label}")
    return f"{why} (fault {record.fault!r})" if record.fault else why
