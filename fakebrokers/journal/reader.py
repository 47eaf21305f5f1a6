"""From the files of a run to rows."""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from fakebrokers.journal.convert import identity_of_1, upgraded_lines
from fakebrokers.journal.keys import U64_MAX, key_text, row_keys
from fakebrokers.journal.lines import (
    SCHEMA_VERSION,
    EventLine,
    FrameLine,
    KindLine,
    Line,
    MetricLine,
    OpLine,
    RunLine,
    StateLine,
    TraceLine,
    blocks,
    fits,
    noted,
    split,
    unfit,
)
from fakebrokers.journal.record import State, Tap
from fakebrokers.journal.rows import MARK, TRACE, FrameRow, MetricRow, OpRow, RunRow, TracedRow

#: Label and direction of each combination of taps.
TAPS = [(Tap(bits).label, Tap(bits).direction) for bits in range(Tap.STATE + 1)]


class RunLog(msgspec.Struct, frozen=True):
    """One run, in order."""

    run: RunRow
    frames: list[FrameRow]
    ops: list[OpRow]
    metrics: list[MetricRow]
    trace: list[TracedRow] = []

    @property
    def tables(self) -> dict[str, Sequence[msgspec.Struct]]:
        """The rows of each table, that of the run last."""
        return {
            "frames": self.frames,
            "ops": self.ops,
            "metrics": self.metrics,
            TRACE: self.trace,
            "runs": [self.run],
        }


def runs_in(folder: Path) -> list[str]:
    """The runs that lie in the folder as segment files, as these are named."""
    return sorted({path.stem for suffix in ("wire", "ops") for path in folder.glob(f"*.{suffix}")})


def segments_of(folder: Path, run: str) -> list[Path]:
    """The files of a run that are there."""
    return [path for suffix in ("wire", "ops", TRACE) if (path := folder / f"{run}.{suffix}").exists()]


def read_run(folder: Path, run: str) -> RunLog:
    """A run's rows; a torn end is cut off.

    Args:
        run: As in the files' names.

    Raises:
        UsageError: A file is no journal file, or one of a version that cannot be read.
        OSError: It cannot be read.
    """
    wire, version, torn_wire = _lines(folder / f"{run}.wire")
    ops, version_of_ops, torn_ops = _lines(folder / f"{run}.ops")
    log = assemble(run, wire, ops, torn=torn_wire or torn_ops, version=min(version, version_of_ops))
    return msgspec.structs.replace(log, trace=list(read_trace(folder, run, log.run.run)))


def read_trace(folder: Path, stem: str, run: str) -> Iterator[TracedRow]:
    """The rows of a run's trace; none where it was not asked for. A torn end is cut off.

    Args:
        stem: Of the files' names.
        run: The identity of the run.
    """
    path = folder / f"{stem}.{TRACE}"
    if not path.exists() or path.stat().st_size == 0:
        return
    seq = 0
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for lines in blocks(content, str(path), lambda: None):
            for line in lines:
                if isinstance(line, TraceLine):
                    seq += 1
                    yield TracedRow(run, seq, line.at, line.what, line.connection, line.data)


def identity(folder: Path, run: str) -> str:
    """The identity of a run (`RunRow.run`), whatever its files are called."""
    ops, version, _ = _lines(folder / f"{run}.ops")
    return str(_attributes(run, ops, version)["run"])


def _lines(path: Path) -> tuple[list[Line], int, bool]:
    """The lines of a file, the version that wrote it, and whether it ends torn."""
    if not path.exists():
        return [], SCHEMA_VERSION, False
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            return [], SCHEMA_VERSION, True
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            version, lines, torn = split(content, str(path))
            return upgraded_lines(lines, version), version, torn


def assemble(
    stem: str, wire: Sequence[Line], ops: Sequence[Line], *, torn: bool, version: int = SCHEMA_VERSION
) -> RunLog:
    """Merge the lines of a run by time, without changing the order inside a file; number them.

    Args:
        stem: Of the files' names; it names a run that does not say what it is.
    """
    rows = _Rows(_attributes(stem, ops, version))
    for line in _merged(wire, ops):
        rows.take(line)
    return rows.log(torn=torn)


def _attributes(stem: str, ops: Sequence[Line], version: int) -> dict[str, Any]:
    """Of the run; later ones replace earlier ones of the same name."""
    attributes: dict[str, Any] = {"run": stem, "name": stem.rpartition(MARK)[0] or stem}
    for line in ops:
        if isinstance(line, RunLine):
            attributes.update(line.attributes)
    if version == 1:
        attributes["run"] = identity_of_1(attributes)
    return attributes


class _Rows:
    """The rows of a run so far."""

    def __init__(self, attributes: dict[str, Any]) -> None:
        self._attributes = attributes
        self._run = str(attributes["run"])
        self._kinds: dict[int, KindLine] = {}
        self._peers: dict[str, str] = {}
        self._limits: list[str] = []
        self._frames: list[FrameRow] = []
        self._ops: list[OpRow] = []
        self._metrics: list[MetricRow] = []
        self._seq = 0

    def take(self, line: Line) -> None:
        """The next line."""
        if isinstance(line, RunLine):
            return
        if isinstance(line, KindLine):
            self._kinds[line.code] = line
            return
        self._seq = seq = self._seq + 1
        run, t_ns = self._run, round(line.at * 1e9)
        match line:
            case FrameLine():
                peer = self._peers.get(line.connection, "")
                self._frames.append(_frame_row(run, seq, t_ns, line, self._kinds[line.kind], peer))
            case StateLine():
                self._frames.append(self._state_row(seq, t_ns, line))
            case OpLine():
                self._ops.append(_op_row(run, seq, t_ns, line))
            case EventLine(_, process, what, note):
                self._ops.append(OpRow(run, seq, t_ns, process, None, what, "event", note=note))
            case MetricLine(_, name, value):
                self._metrics.append(MetricRow(run, seq, t_ns, name, value))

    def _state_row(self, seq: int, t_ns: int, line: StateLine) -> FrameRow:
        connection, what, note = line.connection, line.what, line.note
        if what == State.SILENCE_LIMIT:
            self._limits.append(note)
        elif what == State.PEER:
            self._peers[connection] = note
        peer = self._peers.get(connection, "")
        if what == State.CLOSED:
            self._peers.pop(connection, None)
        return FrameRow(
            self._run,
            seq,
            t_ns,
            connection,
            "state",
            "",
            what,
            note=note,
            fault=line.fault,
            peer=peer,
        )

    def log(self, *, torn: bool) -> RunLog:
        """All of it."""
        row = run_row(self._attributes, self._limits, torn=torn)
        return RunLog(row, self._frames, self._ops, self._metrics)


def run_row(attributes: Mapping[str, Any], limits: Sequence[str], *, torn: bool) -> RunRow:
    """What is true of a whole run.

    Args:
        attributes: As its lines tell them.
        limits: Notes of the states `State.SILENCE_LIMIT`.
        torn: One of its files ends torn.
    """
    known: dict[str, Any] = {"heartbeat_limit_ms": _longest(limits)}
    notes: list[str] = []
    for field in msgspec.structs.fields(RunRow):
        if field.name in attributes:
            value = attributes[field.name]
            if fits(value, field.type) and (type(value) is not int or signed("", value)[0] == value):
                known[field.name] = tuple(value) if isinstance(value, list) else value
            else:
                notes.append(unfit(field.name, value))
    torn = torn or bool(known.get("torn"))
    known |= {
        "torn": torn,
        "ended": not torn and bool(known.get("ended")),
        "note": noted(known.get("note", ""), *notes),
    }
    return RunRow(**known)


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


def _op_row(run: str, seq: int, t_ns: int, line: OpLine) -> OpRow:
    offset, misfit = unsigned("offset", line.offset)
    op_id, other = signed("op_id", line.op_id)
    return OpRow(
        run,
        seq,
        t_ns,
        line.process,
        op_id,
        line.f,
        line.outcome,
        line.key,
        line.value,
        offset,
        line.wire_key,
        line.error,
        noted(line.note, misfit, other),
    )


def _frame_row(run: str, seq: int, t_ns: int, line: FrameLine, kind: KindLine, peer: str) -> FrameRow:
    tap, direction = TAPS[line.tap]
    role = line.role or (kind.role if isinstance(kind.role, str) else kind.role.get(direction, ""))
    key_first, items, keys = row_keys(line.key, line.items, kind.keys, batch=kind.batch)
    status, note = signed("status", line.status)
    return FrameRow(
        run,
        seq,
        t_ns,
        line.connection,
        tap,
        direction,
        kind.name,
        role,
        "" if line.scope is None else key_text(line.scope),
        key_first,
        items,
        keys,
        line.size,
        status,
        line.fault,
        note,
        line.frame,
        kind.keys,
        line.part,
        peer,
        line.envelope or "",
    )


def signed(name: str, value: Any) -> tuple[int | None, str]:
    """A number of 64 bits, and a note if it is none."""
    try:
        number = None if value is None else int(value)
    except (TypeError, ValueError):
        return None, unfit(name, value)
    fits = number is None or -(1 << 63) <= number < 1 << 63
    return (number, "") if fits else (None, unfit(name, value))


def unsigned(name: str, value: int | None) -> tuple[int | None, str]:
    """The same without a sign."""
    fits = value is None or 0 <= value <= U64_MAX
    return (value, "") if fits else (None, unfit(name, value))
