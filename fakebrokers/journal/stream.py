"""A run's rows as Arrow tables, a few thousand at a time: what sealing writes, whatever the size of the run.

Twin of `fakebrokers.journal.reader`, which makes an object of each row; a test holds both against each other.
Needs pyarrow and numpy (extra ``suite``).
"""

from __future__ import annotations

import itertools
import mmap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from fakebrokers.core.frames import KeyType
from fakebrokers.journal.arrow import arrow_schema, arrow_table
from fakebrokers.journal.keys import key_text, row_keys
from fakebrokers.journal.lines import (
    EventLine,
    FrameLine,
    KindLine,
    Line,
    MetricLine,
    OpLine,
    RunLine,
    StateLine,
    blocks,
    noted,
)
from fakebrokers.journal.packed import consecutive
from fakebrokers.journal.reader import TAPS, read_trace, run_row, signed, unsigned
from fakebrokers.journal.record import State
from fakebrokers.journal.rows import MARK, TRACE, RunRow

#: Lines of a file that are held at a time, about.
CHUNK = 1 << 13
#: Keys that are numbers of 64 bits; journals of old do not tell.
_NUMBERED = frozenset(("", KeyType.U64.value))


class _Lines:
    """The lines of one file that have a place in the run, and their times, in chunks.

    Args:
        take: Gets the other lines (kinds, attributes), before the lines of their chunk are used.
    """

    def __init__(self, path: Path, take: Callable[[Line], None]) -> None:
        self.torn = False
        self._path, self._take = path, take
        self._latest = -np.inf

    def __iter__(self) -> Iterator[tuple[list[Any], Any]]:
        """Lines and times; none counts as earlier than the one before, because a file keeps its order."""
        if not self._path.exists():
            return
        if self._path.stat().st_size == 0:
            self.torn = True
            return
        with (
            self._path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            chunk: list[Any] = []
            for lines in blocks(content, str(self._path), self._is_torn):
                for line in lines:
                    if type(line) is RunLine or type(line) is KindLine:
                        self._take(line)
                    else:
                        chunk.append(line)
                if len(chunk) >= CHUNK:
                    yield chunk, self._times(chunk)
                    chunk = []
                    if hasattr(content, "madvise"):  # what was read needs no memory any more
                        content.madvise(mmap.MADV_DONTNEED)
            if chunk:
                yield chunk, self._times(chunk)

    def _is_torn(self) -> None:
        self.torn = True

    def _times(self, lines: Sequence[Any]) -> Any:
        times = np.array([line.at for line in lines], float)
        times[0] = max(times[0], self._latest)
        times = np.maximum.accumulate(times)
        self._latest = times[-1]
        return times


def numbered(wire: Iterator[Any], ops: Iterator[Any]) -> Iterator[tuple[list[Any], Any]]:
    """Chunks of either file with the numbers of their lines in the run: merged by time, the wire first where
    both are equal, and without changing the order inside a file.
    """
    from_wire, from_ops = 0, 0  # how many lines of each have their number
    line, op = next(wire, None), next(ops, None)
    before = np.zeros(0, np.int64) if line is None else np.full(len(line[0]), from_ops)
    while line is not None and op is not None:
        # An op comes in front of the first line of the wire that is later.
        place = np.searchsorted(line[1], op[1], "right")
        here = int(np.searchsorted(place, len(line[0])))
        if here:
            places = place[:here]
            yield op[0][:here], from_wire + places + from_ops + np.arange(here) + 1
            before += np.searchsorted(places, np.arange(len(line[0])), "right")
            from_ops += here
        if here == len(op[0]):
            op = next(ops, None)
            continue
        yield line[0], from_wire + np.arange(len(line[0])) + before + 1
        from_wire += len(line[0])
        op = op[0][here:], op[1][here:]
        line = next(wire, None)
        before = np.zeros(0, np.int64) if line is None else np.full(len(line[0]), from_ops)
    while line is not None:
        yield line[0], from_wire + np.arange(len(line[0])) + before + 1
        from_wire += len(line[0])
        line = next(wire, None)
        before = np.zeros(0, np.int64) if line is None else np.full(len(line[0]), from_ops)
    while op is not None:
        yield op[0], from_wire + from_ops + np.arange(len(op[0])) + 1
        from_ops += len(op[0])
        op = next(ops, None)


class RunStream:
    """The rows of a run that lies in a folder, of version 2.

    Iterate over it once: ``(table, rows)``, the rows of each table in order. Then `row` is that of ``runs``.

    Args:
        run: As in the files' names.

    Raises:
        UsageError: While iterating: a file is no journal file.
        OSError: It cannot be read.
    """

    def __init__(self, folder: Path, run: str) -> None:
        self._attributes: dict[str, Any] = {"run": run, "name": run.rpartition(MARK)[0] or run}
        self._kinds: dict[int, KindLine] = {}
        self._peers: dict[str, str] = {}
        self._limits: list[str] = []
        self._wire = _Lines(folder / f"{run}.wire", self._take)
        self._ops = _Lines(folder / f"{run}.ops", self._take)
        self._named = run
        self._folder, self._stem = folder, run

    @property
    def row(self) -> RunRow:
        """What is true of the whole run."""
        return run_row(self._attributes, self._limits, torn=self._wire.torn or self._ops.torn)

    @property
    def renamed(self) -> bool:
        """Whether the run was given another identity after rows that have the first one."""
        return str(self._attributes["run"]) != self._named

    def __iter__(self) -> Iterator[tuple[str, pa.Table]]:
        wire, ops = iter(self._wire), iter(self._ops)
        first = next(ops, None)  # tells who the run is
        self._named = str(self._attributes["run"])
        for lines, seqs in numbered(wire, _again(first, ops)):
            if isinstance(lines[0], FrameLine | StateLine):
                yield "frames", self._frames(lines, seqs)
            else:
                yield from self._others(lines, seqs)
        trace = read_trace(self._folder, self._stem, self._named)
        while chunk := list(itertools.islice(trace, CHUNK)):
            yield TRACE, arrow_table(TRACE, [msgspec.structs.astuple(row) for row in chunk])

    def _take(self, line: Line) -> None:
        if isinstance(line, RunLine):
            self._attributes.update(line.attributes)
        elif isinstance(line, KindLine):
            self._kinds[line.code] = line

    def _others(self, lines: list[Any], seqs: Any) -> Iterator[tuple[str, pa.Table]]:
        """Rows of the tables ``ops`` and ``metrics``."""
        is_metric = np.array([type(line) is MetricLine for line in lines], bool)
        if is_metric.any():
            metrics = [line for line in lines if type(line) is MetricLine]
            yield (
                "metrics",
                _table(
                    "metrics",
                    self._common(metrics, seqs[is_metric])
                    | {
                        "name": [line.name for line in metrics],
                        "value": [line.value for line in metrics],
                    },
                ),
            )
            lines = [line for line in lines if type(line) is not MetricLine]
            seqs = seqs[~is_metric]
        if lines:
            yield "ops", self._op_rows(lines, seqs)

    def _op_rows(self, lines: list[Any], seqs: Any) -> pa.Table:
        lines = [_as_op(line) if type(line) is EventLine else line for line in lines]
        notes = [line.note for line in lines]
        return _table(
            "ops",
            self._common(lines, seqs)
            | {
                "process": [line.process for line in lines],
                "offset": _numbers("offset", [line.offset for line in lines], pa.uint64(), notes),
                "op_id": _numbers("op_id", [line.op_id for line in lines], pa.int64(), notes),
                "f": [line.f for line in lines],
                "outcome": [line.outcome for line in lines],
                "key": [line.key for line in lines],
                "value": [line.value for line in lines],
                "wire_key": [line.wire_key for line in lines],
                "error": [line.error for line in lines],
                "note": notes,
            },
        )

    def _frames(self, lines: list[Any], seqs: Any) -> pa.Table:
        """Rows of the table ``frames``: of frames, with states between them."""
        is_state = np.array([type(line) is StateLine for line in lines], bool)
        if not is_state.any():
            return self._frame_rows(lines, seqs, [self._peers.get(line.connection, "") for line in lines])
        peers = [self._peer_at(line) for line in lines]
        parts = []
        for rows, wanted in ((self._frame_rows, False), (self._state_rows, True)):
            of = np.flatnonzero(is_state == wanted)
            if len(of):
                parts.append(rows([lines[i] for i in of], seqs[of], [peers[i] for i in of]))
        whole = pa.concat_tables(parts)
        return whole.take(pa.array(np.argsort(whole["seq"].to_numpy(), kind="stable")))

    def _peer_at(self, line: FrameLine | StateLine) -> str:
        """Who is at the other end of the line's connection; states tell so, and of limits to silence."""
        if isinstance(line, FrameLine):
            return self._peers.get(line.connection, "")
        if line.what == State.SILENCE_LIMIT:
            self._limits.append(line.note)
        elif line.what == State.PEER:
            self._peers[line.connection] = line.note
        peer = self._peers.get(line.connection, "")
        if line.what == State.CLOSED:
            self._peers.pop(line.connection, None)
        return peer

    def _state_rows(self, lines: list[Any], seqs: Any, peers: list[str]) -> pa.Table:
        return _table(
            "frames",
            self._common(lines, seqs)
            | {
                "connection": [line.connection for line in lines],
                "tap": "state",
                "kind": [line.what for line in lines],
                "note": [line.note for line in lines],
                "fault": [line.fault for line in lines],
                "peer": peers,
                "keys": [()] * len(lines),
                "items": np.zeros(len(lines), np.int64),
                "size": np.zeros(len(lines), np.int64),
                "part": np.zeros(len(lines), np.int64),
            },
        )

    def _frame_rows(self, lines: list[Any], seqs: Any, peers: list[str]) -> pa.Table:
        count = len(lines)
        kinds, kind_codes = _coded(np.array([line.kind for line in lines], np.int64), self._kinds)
        taps = np.array([line.tap for line in lines], np.int64)
        roles = _named(
            kind_codes * len(TAPS) + taps,
            [_role(kind, TAPS[tap][1]) for kind in kinds for tap in range(len(TAPS))],
        )
        if any([line.role for line in lines]):
            usual = roles.to_pylist()
            roles = [line.role or usual[i] for i, line in enumerate(lines)]
        of = [kinds[code] for code in kind_codes.tolist()]
        packed = [
            line.key if type(line.key) is bytes and not line.items and kind.keys in _NUMBERED else None
            for line, kind in zip(lines, of, strict=True)
        ]
        keys = [
            found or row_keys(line.key, line.items, kind.keys, batch=kind.batch)
            for line, kind, found in zip(lines, of, consecutive(packed), strict=True)
        ]
        notes = [""] * count
        return _table(
            "frames",
            self._common(lines, seqs)
            | {
                "connection": [line.connection for line in lines],
                "tap": _named(taps, [label for label, _ in TAPS]),
                "direction": _named(taps, [direction for _, direction in TAPS]),
                "kind": _named(kind_codes, [kind.name for kind in kinds]),
                "role": roles,
                "scope": [
                    ""
                    if line.scope is None
                    else str(line.scope)
                    if type(line.scope) is int
                    else key_text(line.scope)
                    for line in lines
                ],
                "key_first": [first for first, _, _ in keys],
                "items": [items for _, items, _ in keys],
                "keys": [texts for _, _, texts in keys],
                "size": [line.size for line in lines],
                "status": _numbers("status", [line.status for line in lines], pa.int64(), notes),
                "fault": [line.fault for line in lines],
                "note": notes,
                "frame": [line.frame for line in lines],
                "key_type": _named(kind_codes, [kind.keys for kind in kinds]),
                "part": [line.part for line in lines],
                "peer": peers,
                "envelope": [line.envelope or "" for line in lines],
            },
        )

    def _common(self, lines: Sequence[Any], seqs: Any) -> dict[str, Any]:
        at = np.array([line.at for line in lines], float)
        return {"run": self._named, "seq": seqs, "t_ns": np.rint(at * 1e9).astype(np.int64)}


def _again(first: Any, others: Iterator[Any]) -> Iterator[Any]:
    if first is not None:
        yield first
        yield from others


def _as_op(line: EventLine) -> OpLine:
    return OpLine(line.at, line.process, None, line.what, "event", None, None, None, None, None, line.note)


def _role(kind: KindLine, direction: str) -> str:
    return kind.role if isinstance(kind.role, str) else kind.role.get(direction, "")


def _coded(codes: Any, kinds: dict[int, KindLine]) -> tuple[list[KindLine], Any]:
    """The kinds that turn up, and the place of each line's among them."""
    seen, places = np.unique(codes, return_inverse=True)
    return [kinds[code] for code in seen.tolist()], places.astype(np.int64)


def _named(codes: Any, names: list[str]) -> pa.Array:
    """A column of few different texts."""
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(names, pa.string())).cast(
        pa.string()
    )


def _numbers(name: str, values: list[Any], kind: pa.DataType, notes: list[str]) -> pa.Array:
    """A column of numbers of 64 bits; what is none is left out, and said in `notes`."""
    try:
        return pa.array(values, kind)
    except (OverflowError, TypeError, pa.ArrowInvalid):
        pass
    fit = unsigned if kind == pa.uint64() else signed
    pairs = [fit(name, value) for value in values]
    for i, (_, note) in enumerate(pairs):
        if note:
            notes[i] = noted(notes[i], note)
    return pa.array([value for value, _ in pairs], kind)


def _table(table: str, columns: dict[str, Any]) -> pa.Table:
    """Columns as the schema has them; a text stands for a column of it, and one that is missing is empty."""
    schema = arrow_schema(table)
    count = len(columns["seq"])
    arrays = []
    for field in schema:
        column = columns.get(field.name, "" if field.type == pa.string() and field.name != "frame" else None)
        if column is None:
            column = pa.nulls(count, field.type)
        elif isinstance(column, str):
            column = pa.repeat(pa.scalar(column), count)
        elif not isinstance(column, pa.Array):
            column = pa.array(column, field.type)
        arrays.append(column)
    return pa.table(arrays, schema=schema)
