"""What the checkers of data look at: each message's fate, and who read what."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from fakebrokers.journal.reader import RunLog
from fakebrokers.journal.rows import OpRow


class Fate(msgspec.Struct):
    """What became of one message in one log.

    Attributes:
        sent, acked, failed, delivered: How often; `acked` and `failed` are definite, all else is unknown.
        sent_seq, acked_seq, failed_seq, delivered_seq: The first of each; None if there was none.
        last_delivered_seq: The last delivery.
        offsets: Where it sits in the log, as deliveries and confirms reported.
        acked_offset: Where the confirm put it.
    """

    key: str
    value: str
    sent: int = 0
    acked: int = 0
    failed: int = 0
    delivered: int = 0
    sent_seq: int | None = None
    acked_seq: int | None = None
    failed_seq: int | None = None
    delivered_seq: int | None = None
    last_delivered_seq: int | None = None
    offsets: set[int] = msgspec.field(default_factory=set)
    acked_offset: int | None = None


class Reader(msgspec.Struct):
    """A client session that read a log.

    Attributes:
        first_seq: When it began to: its subscription, or its first message.
        newest_sent: When the newest of the messages it got was sent.
        offsets: Lowest and highest that it got.
    """

    process: str
    first_seq: int
    newest_sent: int = 0
    lowest: int | None = None
    highest: int | None = None


def fates(ops: Iterable[OpRow]) -> dict[tuple[str, str], Fate]:
    """By log and value, in the order in which they turned up."""
    found: dict[tuple[str, str], Fate] = {}
    for op in ops:
        if op.value is None or op.f not in {"publish", "deliver"}:
            continue
        key = op.key or ""
        fate = found.setdefault((key, op.value), Fate(key, op.value))
        match op.f, op.outcome:
            case "publish", "invoke":
                fate.sent += 1
                fate.sent_seq = fate.sent_seq or op.seq
            case "publish", "ok":
                fate.acked += 1
                fate.acked_seq = fate.acked_seq or op.seq
                if op.offset is not None:
                    fate.offsets.add(op.offset)
                    so_far = fate.acked_offset
                    fate.acked_offset = op.offset if so_far is None else max(op.offset, so_far)
            case "publish", "fail":
                fate.failed += 1
                fate.failed_seq = fate.failed_seq or op.seq
            case "deliver", "ok":
                fate.delivered += 1
                fate.delivered_seq = fate.delivered_seq or op.seq
                fate.last_delivered_seq = op.seq
                if op.offset is not None:
                    fate.offsets.add(op.offset)
    return found


def readers(log: RunLog, found: dict[tuple[str, str], Fate]) -> dict[str, list[Reader]]:
    """By log."""
    by_process: dict[tuple[str, str], Reader] = {}
    for op in log.ops:
        if op.outcome != "ok" or op.f not in {"subscribe", "deliver"}:
            continue
        key = op.key or ""
        reader = by_process.setdefault((key, op.process), Reader(op.process, op.seq))
        if op.f == "deliver" and op.value is not None:
            reader.newest_sent = max(reader.newest_sent, found[key, op.value].sent_seq or 0)
            if op.offset is not None:
                reader.lowest = op.offset if reader.lowest is None else min(reader.lowest, op.offset)
                reader.highest = op.offset if reader.highest is None else max(reader.highest, op.offset)
    by_key: dict[str, list[Reader]] = {}
    for (key, _), reader in by_process.items():
        by_key.setdefault(key, []).append(reader)
    return by_key


def drains(ops: Iterable[OpRow]) -> dict[str, int]:
    """By log: when all of it had been read, the last ``drain`` that ended well."""
    return {op.key or "": op.seq for op in ops if op.f == "drain" and op.outcome == "ok"}
