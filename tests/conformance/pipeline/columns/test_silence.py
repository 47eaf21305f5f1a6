"""Silences of long runs are judged in a time that grows with the heartbeats, not with their square."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="missing: pyarrow (pip install pyarrow)")

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from conformance.pipeline.columns import FileSet, Findings
from conformance.pipeline.columns.silence import judge
from fakebrokers.journal.arrow import arrow_schema
from fakebrokers.journal.rows import TABLES


def beats(folder: Path, count: int) -> FileSet:
    """A run with a heartbeat every 10 s, where each second is due; the client notes every other silence."""
    folder.mkdir()
    at = np.arange(count) * 10_000_000_000
    columns = {
        "runs": {"run": ["r"], "heartbeat_limit_ms": [1000.0]},
        "frames": {
            "seq": 2 * np.arange(count),
            "t_ns": at,
            "connection": ["c1"] * count,
            "tap": ["out"] * count,
            "direction": ["out"] * count,
            "kind": ["Heartbeat"] * count,
            "role": ["heartbeat"] * count,
        },
        "ops": {
            "seq": 2 * np.arange(count)[::2] + 1,
            "t_ns": at[::2] + 1,
            "f": ["connection_lost"] * len(at[::2]),
            "outcome": ["event"] * len(at[::2]),
        },
        "metrics": {},
        "trace": {},
    }
    paths = {}
    for table in TABLES:
        schema, own = arrow_schema(table), columns[table]
        many = len(next(iter(own.values()), ()))
        arrays = [
            pa.array(own[field.name], field.type)
            if field.name in own
            else pa.array(["r"] * many)
            if field.name == "run"
            else pa.nulls(many, field.type)
            for field in schema
        ]
        paths[table] = str(folder / f"{table}.parquet")
        pq.write_table(pa.table(arrays, schema=schema), paths[table])
    return FileSet(paths)


def test_four_times_the_heartbeats_take_about_four_times_as_long(tmp_path: Path) -> None:
    spent = []
    for count in (25_000, 100_000):
        files, rounds = beats(tmp_path / str(count), count), []
        for _ in range(3):
            findings, begun = Findings(), time.process_time()
            judge(files, findings)
            rounds.append(time.process_time() - begun)
            # The silence behind the last one lasts no time.
            assert len(findings.found) == count // 2 - 1
        spent.append(min(rounds))
    assert spent[1] < 10 * spent[0], spent
