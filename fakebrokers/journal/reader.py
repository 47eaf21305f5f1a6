"""From the two files of a run to rows."""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from fakebrokers.journal.lines import (
    EventLine,
    FrameLine,
    KindLine,
    Line,
    MetricLine,
    OpLine,
    RunLine,
    StateLine,
    split,
)
from fakebrokers.journal.record import SILENCE_LIMIT, Tap
from fakebrokers.journal.rows import FrameRow, MetricRow, OpRow, RunRow

_INT64_MAX = (1 << 63) - 1
_TAPS = [(Tap(bits).label, Tap(bits).direction) for bits in range(Tap.STATE + 1)]


class RunLog(msgspec.Struct, frozen=True):
    """One run, in order."""

    run: RunRow
    frames: list[FrameRow]
    ops: list[OpRow]
    metrics: list[MetricRow]


def runs_in(folder: Path) -> list[str]:
    """Names of the runs that lie in the folder as segment files."""
    return sorted({path.stem for suffix in ("wire", "ops") for path in folder.glob(f"*.{suffix}")})


def segments_of(folder: Path, run: str) -> list[Path]:
    """The files of a run that are there."""
    return [path for suffix in ("wire", "ops") if (path := folder / f"{run}.{suffix}").exists()]


def read_run(folder: Path, run: str) -> RunLog:
    """A run's rows; a torn end is cut off.

    Raises:
        UsageError: A file is no journal file, or one of another version.
        OSError: It cannot be read.
    """
    wire, torn_wire = _lines(folder / f"{run}.wire")
    ops, torn_ops = _lines(folder / f"{run}.ops")
    return assemble(run, wire, ops, torn=torn_wire or torn_ops)


def _lines(path: Path) -> tuple[list[Line], bool]:
    if not path.exists():
        return [], False
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            return [], True
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return split(content, str(path))


def assemble(run: str, wire: Sequence[Line], ops: Sequence[Line], *, torn: bool) -> RunLog:
    """Merge the lines of a run by time, without changing the order inside a file; number them."""
    attributes: dict[str, Any] = {}
    kinds: dict[int, KindLine] = {}
    frames: list[FrameRow] = []
    noted: list[OpRow] = []
    metrics: list[MetricRow] = []
    limits: list[str] = []
    seq = 0
    for line in _merged(wire, ops):
        if isinstance(line, RunLine):
            attributes.update(line.attributes)
            continue
        if isinstance(line, KindLine):
            kinds[line.code] = line
            continue
        seq += 1
        t_ns = round(line.at * 1e9)
        match line:
            case FrameLine():
                frames.append(_frame_row(run, seq, t_ns, line, kinds[line.kind]))
            case StateLine(_, connection, what, note, fault):
                if what == SILENCE_LIMIT:
                    limits.append(note)
                frames.append(FrameRow(run, seq, t_ns, connection, "state", "", what, note=note, fault=fault))
            case OpLine():
                noted.append(
                    OpRow(
                        run,
                        seq,
                        t_ns,
                        line.process,
                        line.op_id,
                        line.f,
                        line.outcome,
                        line.key,
                        line.value,
                        line.offset,
                        line.wire_key,
                        line.error,
                        line.note,
                    )
                )
            case EventLine(_, process, what, note):
                noted.append(OpRow(run, seq, t_ns, process, None, what, "event", note=note))
            case MetricLine(_, name, value):
                metrics.append(MetricRow(run, seq, t_ns, name, value))
    known = {name: attributes[name] for name in RunRow.__struct_fields__ if name in attributes}
    known.setdefault("heartbeat_limit_ms", _longest(limits))
    row = msgspec.convert({**known, "run": run, "torn": torn}, RunRow)
    return RunLog(row, frames, noted, metrics)


def _merged(wire: Sequence[Line], ops: Sequence[Line]) -> Iterator[Line]:
    """By time; the wire first where both are equal."""
    other = iter(ops)
    waiting = next(other, None)
    for line in wire:
        at = getattr(line, "at", 0.0)
        while waiting is not None and getattr(waiting, "at", 0.0) < at:
            yield waiting
            waiting = next(other, None)
        yield line
    if waiting is not None:
        yield waiting
    yield from other


def _longest(limits: Sequence[str]) -> float | None:
    """The longest of all connections' limits (``2000 ms``) in milliseconds; None if one has none."""
    longest = max((float(limit.removesuffix(" ms")) for limit in limits), default=math.inf)
    return None if longest == math.inf else longest


def _frame_row(run: str, seq: int, t_ns: int, line: FrameLine, kind: KindLine) -> FrameRow:
    tap, direction = _TAPS[line.tap]
    key_first, items, keys = _keys(line.key, line.items)
    return FrameRow(
        run,
        seq,
        t_ns,
        line.connection,
        tap,
        direction,
        kind.name,
        kind.role,
        "" if line.scope is None else key_text(line.scope),
        key_first,
        items,
        keys,
        line.size,
        _number(line.status),
        line.fault,
        "",
        line.frame,
    )


def _keys(raw: Any, items: int) -> tuple[int | None, int, tuple[str, ...]]:
    """(first, items, keys): consecutive numbers as first and count, anything else as texts."""
    if isinstance(raw, bytes) and items == 0:
        items = len(raw) // 8
        return _numbers(struct.unpack(f">{items}Q", raw[: items * 8]))
    if isinstance(raw, list):
        if raw and all(type(key) is int for key in raw):
            return _numbers(raw)
        return None, len(raw), tuple([key_text(key) for key in raw])
    if type(raw) is int and 0 <= raw <= _INT64_MAX - items:
        return raw, items, ()
    return None, items, () if raw is None else (key_text(raw),)


def _numbers(numbers: Sequence[int]) -> tuple[int | None, int, tuple[str, ...]]:
    count = len(numbers)
    if count and numbers[0] >= 0 and numbers[-1] <= _INT64_MAX and _consecutive(numbers):
        return numbers[0], count, ()
    return None, count, tuple([str(number) for number in numbers])


def _consecutive(numbers: Sequence[int]) -> bool:
    first, count = numbers[0], len(numbers)
    return numbers[-1] - first == count - 1 and all(b - a == 1 for a, b in pairwise(numbers))


def _number(status: Any) -> int | None:
    try:
        return None if status is None else int(status)
    except (TypeError, ValueError):
        return None


def key_text(key: Any) -> str:
    """A correlation key as text: numbers in decimal, readable bytes as they are, others as 0x and hex."""
    if isinstance(key, bytes):
        try:
            text = key.decode()
        except UnicodeDecodeError:
            text = "\0"
        return text if text.isprintable() else f"0x{key.hex()}"
    return str(key)
