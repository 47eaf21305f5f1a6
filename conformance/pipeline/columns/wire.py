"""Publishes and confirms on the wire: `phantom-confirm`, and what the fake took to confirm.

Twin of `conformance.rules.anomalies.wire.phantom_confirm`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conformance.pipeline.columns.arrays import (
    Codes,
    dense,
    group,
    last,
    least,
    names_of,
    numbers,
    ranges,
    unsigned,
)
from conformance.pipeline.columns.fileset import FileSet
from conformance.pipeline.columns.findings import Findings
from conformance.rules.anomalies.anomaly import ARRIVED, LEFT
from fakebrokers.core.frames import Role

if TYPE_CHECKING:
    from conformance.pipeline.columns.arrays import Ints, Unsigned

#: Numbers as `str` writes them, and the largest of those with so many digits that fits 64 bits.
_PLAIN, _LARGEST = r"^(0|[1-9][0-9]{0,19})$", str((1 << 64) - 1)


class _Traffic:
    """Publishes that arrived and confirms that left; a place is a peer (or connection) and a scope."""

    def __init__(self, files: FileSet) -> None:
        rows = files.read(
            "frames",
            "run",
            "connection",
            "peer",
            "tap",
            "role",
            "scope",
            "key_first",
            "items",
            "keys",
            "t_ns",
        )
        tap, role = Codes(rows["tap"]), Codes(rows["role"])
        publishes = role.are(Role.PUBLISH) & tap.are(*ARRIVED)
        confirms = role.are(Role.CONFIRM) & tap.are(*LEFT)
        kept = publishes | confirms
        rows = rows.filter(pa.array(kept))
        self.is_publish = publishes[kept]
        self.run, self.scope = Codes(rows["run"]), Codes(rows["scope"], empty=True)
        self.items, self.t_ns = numbers(rows["items"]), numbers(rows["t_ns"])
        self.key_first, self.has_numbers = unsigned(rows["key_first"])
        self.keys = rows["keys"].combine_chunks() if len(rows) else pa.array([], pa.list_(pa.string()))
        if isinstance(self.keys, pa.ChunkedArray):
            self.keys = self.keys.chunk(0)
        peer, connection = Codes(rows["peer"], empty=True), Codes(rows["connection"], empty=True)
        names, (peers, connections) = names_of([peer, connection])
        nobody = names.index("") if "" in names else -1
        self.peer = np.where(peers == nobody, connections, peers)


class _Acks:
    """The publishes that the client counts as confirmed."""

    def __init__(self, files: FileSet) -> None:
        ops = files.read("ops", "run", "seq", "f", "outcome", "wire_key")
        self.rows = np.flatnonzero(Codes(ops["f"]).are("publish") & Codes(ops["outcome"]).are("ok"))
        ops = ops.select(["run", "seq", "wire_key"]).take(pa.array(self.rows))
        self.run, self.seq, self.key = Codes(ops["run"]), numbers(ops["seq"]), ops["wire_key"]


def judge(files: FileSet, findings: Findings) -> None:
    """Key by key, and by how many."""
    traffic, acks = _Traffic(files), _Acks(files)
    runs, (frame_run, ack_run) = names_of([traffic.run, acks.run])
    frames, key, ack_key = _keys(traffic, acks)
    place, _ = group(frame_run, traffic.peer, traffic.scope.codes)
    published = traffic.is_publish[frames]
    codes, many = group(place[frames], key)
    run_of = np.zeros(many, np.int64)
    run_of[codes] = frame_run[frames]
    at = traffic.t_ns[frames]
    findings.time(
        "wire-confirm",
        runs,
        run_of,
        least(many, codes[published], at[published]),
        least(many, codes[~published], at[~published]),
    )
    key_of = np.zeros(many, np.int64)
    key_of[codes] = key
    true = np.minimum(
        np.bincount(codes[published], minlength=many), np.bincount(codes[~published], minlength=many)
    )
    arrived = np.bincount(codes[published], minlength=many)
    phantoms = _by_key(files, findings, acks, (run_of, key_of, arrived, true), (ack_run, ack_key), len(runs))
    _by_number(findings, traffic, acks, (runs, frame_run, ack_run, place), phantoms)


def _by_key(
    files: FileSet,
    findings: Findings,
    acks: _Acks,
    seen: tuple[Ints, Ints, Ints, Ints],
    acked: tuple[Ints, Ints],
    runs: int,
) -> Ints:
    """Findings about single keys; returns how many acknowledgements of each run they are about."""
    run, key, arrived, true = seen
    named = np.flatnonzero(acked[1] >= 0)
    codes, many = group(np.concatenate([run, acked[0][named]]), np.concatenate([key, acked[1][named]]))
    wire, client = codes[: len(run)], codes[len(run) :]
    arrivals, confirms = np.zeros(many, np.int64), np.zeros(many, np.int64)
    np.add.at(arrivals, wire, arrived)
    np.add.at(confirms, wire, true)
    counted = np.bincount(client, minlength=many)
    short = np.minimum(counted, arrivals) - confirms
    where = last(many, client, named)
    wrong = np.flatnonzero((arrivals > 0) & (counted > 0) & (short > 0))
    phantoms = np.zeros(runs, np.int64)
    if len(wrong):
        np.add.at(phantoms, acked[0][where[wrong]], short[wrong])
        rows = files.rows("ops", acks.rows[where[wrong]], "run", "seq", "process", "key", "wire_key")
        for i, row in zip(wrong, rows, strict=True):
            findings.add(
                "phantom-confirm",
                row["run"],
                key=row["key"] or "",
                value=row["wire_key"],
                process=row["process"],
                seqs=(row["seq"],),
                detail=f"{counted[i]} acknowledged, {confirms[i]} sent",
            )
    return phantoms


def _by_number(
    findings: Findings,
    traffic: _Traffic,
    acks: _Acks,
    codes: tuple[list[str], Ints, Ints, Ints],
    phantoms: Ints,
) -> None:
    """Runs in which more publishes count as confirmed than confirms were sent."""
    runs, frame_run, ack_run, place = codes
    places = int(place.max()) + 1 if len(place) else 0
    arrived, confirmed = np.zeros(places, np.int64), np.zeros(places, np.int64)
    published = traffic.is_publish
    np.add.at(arrived, place[published], traffic.items[published])
    np.add.at(confirmed, place[~published], traffic.items[~published])
    run_of = np.zeros(places, np.int64)
    run_of[place] = frame_run
    many = len(runs)
    received, true = np.zeros(many, np.int64), np.zeros(many, np.int64)
    np.add.at(received, run_of, arrived)
    np.add.at(true, run_of, np.minimum(arrived, confirmed))
    counted = np.bincount(ack_run, minlength=many)
    end = last(many, ack_run, acks.seq)
    for run in np.flatnonzero((received > 0) & (np.minimum(counted, received) - phantoms > true)):
        findings.add(
            "phantom-confirm",
            runs[run],
            seqs=(end[run],),
            detail=f"{counted[run]} acknowledged, {true[run]} sent",
        )


def _keys(traffic: _Traffic, acks: _Acks) -> tuple[Ints, Ints, Ints]:
    """The frame and the code of each key on the wire, and the code of each acknowledgement's key (or -1).

    Keys are compared as text, but most are consecutive numbers of which only the first is there: those
    stay numbers, and so does every text that is a number as `str` writes it.
    """
    counts = np.where(traffic.has_numbers, np.maximum(traffic.items, 0), 0)
    frame, place = ranges(counts)
    values: Unsigned = traffic.key_first[frame] + place.astype(np.uint64)
    frame, values, extra = _beyond(traffic, frame, values)
    lengths = np.asarray(pc.fill_null(pc.list_value_length(traffic.keys), 0)).astype(np.int64)
    text_frame, _ = ranges(lengths)
    flat = pc.list_flatten(traffic.keys)
    on_wire = pa.chunked_array([flat, pa.array([text for _, text in extra], pa.string())])
    number_code, (wire_code, ack_code) = _coded(values, [on_wire, acks.key])
    frames = np.concatenate([frame, text_frame, np.array([row for row, _ in extra], np.int64)])
    return frames, np.concatenate([number_code, wire_code]), ack_code


def _coded(numbers: Unsigned, columns: Sequence[Any]) -> tuple[Ints, list[Ints]]:
    """One numbering for numbers and for columns of text, in which "7" is 7; -1 where there is nothing."""
    plain = [_numbers_among(column) for column in columns]
    code, many = dense(np.concatenate([numbers, *(as_number[is_number] for is_number, as_number in plain)]))
    rest = [
        column.filter(pa.array(~is_number)) for column, (is_number, _) in zip(columns, plain, strict=True)
    ]
    others = Codes(pa.chunked_array([chunk for column in rest for chunk in column.chunks], pa.string()))
    found, at, texts_at = [], len(numbers), 0
    for column, (is_number, _), texts in zip(columns, plain, rest, strict=True):
        codes = np.empty(len(column), np.int64)
        those = int(is_number.sum())
        codes[is_number] = code[at : at + those]
        texts = others.codes[texts_at : texts_at + len(texts)]
        codes[~is_number] = np.where(texts < 0, -1, many + texts)
        at, texts_at = at + those, texts_at + len(texts)
        found.append(codes)
    return code[: len(numbers)], found


def _beyond(traffic: _Traffic, frame: Ints, values: Unsigned) -> tuple[Ints, Unsigned, list[tuple[int, str]]]:
    """Keys beyond 64 bits, which wrapped around: taken out, and written as text."""
    wrapped = values < traffic.key_first[frame]
    if not wrapped.any():
        return frame, values, []
    extra = [
        (int(row), str(int(value) + (1 << 64)))
        for row, value in zip(frame[wrapped], values[wrapped], strict=True)
    ]
    return frame[~wrapped], values[~wrapped], extra


def _numbers_among(texts: Any) -> tuple[Any, Unsigned]:
    """Which of these texts are numbers of 64 bits as `str` writes them, and the numbers."""
    if not len(texts):
        return np.zeros(0, bool), np.zeros(0, np.uint64)
    fits = pc.or_(pc.less(pc.binary_length(texts), len(_LARGEST)), pc.less_equal(texts, _LARGEST))
    like_one = pc.fill_null(pc.and_(pc.match_substring_regex(texts, _PLAIN), fits), False)
    where = np.asarray(like_one).astype(bool)
    as_number = np.zeros(len(texts), np.uint64)
    if where.any():
        as_number[where] = np.asarray(pc.cast(texts.filter(like_one), pa.uint64()))
    return where, as_number
