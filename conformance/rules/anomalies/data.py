"""What became of the messages: judged from the client's operations alone.

Names and conditions are Jepsen's where it has them. What is unknown supports no claim.
"""

from __future__ import annotations

from collections.abc import Iterator

from conformance.rules.anomalies.anomaly import RECONNECTS, REPOSITIONS, Anomaly
from conformance.rules.anomalies.history import Fate, Reader, drains, fates, readers
from fakebrokers.journal.reader import RunLog
from fakebrokers.journal.rows import OpRow


def lost_write(log: RunLog) -> Iterator[Anomaly]:
    """Acknowledged, never delivered, and proven to be gone.

    Proofs: a reader got messages on both sides of its offset; or, where the contract says ``ordered``, a
    reader that was there before it was sent got a message that was sent after it was acknowledged; or,
    where order is not promised, the log was drained.
    """
    found = fates(log.ops)
    by_key = readers(log, found)
    ordered = "ordered" in log.run.contract.split()
    drained = drains(log.ops)
    for fate in found.values():
        if not fate.acked or fate.delivered or fate.acked_seq is None:
            continue
        witnesses = [
            reader.process
            for reader in by_key.get(fate.key, ())
            if _read_around(reader, fate) or (ordered and _read_past(reader, fate))
        ]
        if witnesses or (not ordered and drained.get(fate.key, 0) > fate.acked_seq):
            yield Anomaly(
                name="lost-write",
                run=log.run.run,
                key=fate.key,
                value=fate.value,
                process=min(witnesses, default=""),
                seqs=_seqs(fate.sent_seq, fate.acked_seq),
                detail="read past" if witnesses else "drained",
            )


def _read_around(reader: Reader, fate: Fate) -> bool:
    return (
        fate.acked_offset is not None
        and reader.lowest is not None
        and reader.highest is not None
        and reader.lowest < fate.acked_offset < reader.highest
    )


def _read_past(reader: Reader, fate: Fate) -> bool:
    return reader.first_seq < (fate.sent_seq or 0) and reader.newest_sent > (fate.acked_seq or 0)


def unseen(log: RunLog) -> Iterator[Anomaly]:
    """Acknowledged, and no reader had it when the log was drained."""
    drained = drains(log.ops)
    for fate in fates(log.ops).values():
        if fate.acked_seq is None or fate.delivered:
            continue
        if drained.get(fate.key, 0) > fate.acked_seq:
            yield Anomaly(
                name="unseen",
                run=log.run.run,
                key=fate.key,
                value=fate.value,
                seqs=_seqs(fate.sent_seq, fate.acked_seq),
                detail="drained",
            )


def duplicate(log: RunLog) -> Iterator[Anomaly]:
    """It sits at more than one offset; where there are no offsets: it was delivered more often than sent."""
    for fate in fates(log.ops).values():
        twice = len(fate.offsets) > 1
        if twice or (not fate.offsets and 0 < fate.sent < fate.delivered):
            yield Anomaly(
                name="duplicate",
                run=log.run.run,
                key=fate.key,
                value=fate.value,
                seqs=_seqs(fate.delivered_seq, fate.last_delivered_seq),
                detail=(
                    f"offsets {min(fate.offsets)} and {max(fate.offsets)}"
                    if twice
                    else f"sent {fate.sent}, delivered {fate.delivered}"
                ),
            )


def g1a(log: RunLog) -> Iterator[Anomaly]:
    """Delivered, although every attempt to send it had surely failed."""
    for fate in fates(log.ops).values():
        if fate.delivered and fate.failed and not fate.acked and fate.failed >= fate.sent:
            yield Anomaly(
                name="G1a",
                run=log.run.run,
                key=fate.key,
                value=fate.value,
                seqs=_seqs(fate.failed_seq, fate.delivered_seq),
                detail="failed, yet delivered",
            )


def poll_skip(log: RunLog) -> Iterator[Anomaly]:
    """A reader jumped over messages that are there."""
    for before, after, delta in _steps(log):
        if delta > 1:
            yield _step(log, "poll-skip", before, after, f"{delta - 1} skipped")


def nonmonotonic_poll(log: RunLog) -> Iterator[Anomaly]:
    """A reader got the same message again, or an earlier one, without having subscribed or reconnected."""
    for before, after, delta in _steps(log):
        if delta < 1:
            yield _step(log, "nonmonotonic-poll", before, after, f"{1 - delta} back")


def _steps(log: RunLog) -> Iterator[tuple[OpRow, OpRow, int]]:
    """Successive deliveries of one process and log, and how far apart they are in the observed log."""
    index = _observed(log)
    last: dict[tuple[str, str], OpRow] = {}
    for op in log.ops:
        if op.outcome == "event" and op.f in RECONNECTS:
            last = {place: before for place, before in last.items() if place[0] != op.process}
        elif op.f in REPOSITIONS and op.outcome in {"ok", "info"}:
            last.pop((op.process, op.key or ""), None)
        elif op.f == "deliver" and op.outcome == "ok" and op.offset is not None:
            key = op.key or ""
            before = last.get((op.process, key))
            if before is not None and before.offset is not None:
                yield before, op, index[key][op.offset] - index[key][before.offset]
            last[op.process, key] = op


def _observed(log: RunLog) -> dict[str, dict[int, int]]:
    """By log, the place of each offset among those that anybody has seen."""
    offsets: dict[str, set[int]] = {}
    for op in log.ops:
        if op.offset is not None and op.outcome == "ok" and op.f in {"publish", "deliver"}:
            offsets.setdefault(op.key or "", set()).add(op.offset)
    return {key: {offset: i for i, offset in enumerate(sorted(seen))} for key, seen in offsets.items()}


def _step(log: RunLog, name: str, before: OpRow, after: OpRow, detail: str) -> Anomaly:
    return Anomaly(
        name=name,
        run=log.run.run,
        key=after.key or "",
        value=after.value or "",
        process=after.process,
        seqs=(before.seq, after.seq),
        detail=detail,
    )


def _seqs(*seqs: int | None) -> tuple[int, ...]:
    return tuple([seq for seq in seqs if seq is not None])
