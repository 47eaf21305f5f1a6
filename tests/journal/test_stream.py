"""Rows in tables are the rows that the reader makes one by one."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("numpy", reason="missing: numpy (pip install 'fakebrokers[suite]')")
pytest.importorskip("pyarrow", reason="missing: pyarrow (pip install pyarrow)")
import pyarrow as pa

from fakebrokers.journal import RunJournal, Tap, stream
from fakebrokers.journal.arrow import arrow_schema, arrow_table
from fakebrokers.journal.reader import read_run
from fakebrokers.journal.rows import TABLES
from fakebrokers.journal.stream import RunStream, numbered

_path = Path(__file__).parents[1] / "conformance" / "rules" / "anomalies" / "histories.py"
_spec = importlib.util.spec_from_file_location("histories_for_streams", _path)
assert _spec is not None and _spec.loader is not None
h: Any = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = h
_spec.loader.exec_module(h)


def streamed(folder: Path, run: str) -> dict[str, pa.Table]:
    rows = RunStream(folder, run)
    parts: dict[str, list[pa.Table]] = {table: [] for table in TABLES}
    for table, part in rows:
        parts[table].append(part)
    parts["runs"].append(arrow_table("runs", [msgspec.structs.astuple(rows.row)]))
    return {
        table: pa.concat_tables([arrow_schema(table).empty_table(), *found]) for table, found in parts.items()
    }


def read(folder: Path, run: str) -> dict[str, pa.Table]:
    log = read_run(folder, run)
    return {
        table: arrow_table(table, [msgspec.structs.astuple(row) for row in rows])
        for table, rows in log.tables.items()
    }


def assert_alike(folder: Path, run: str) -> None:
    found, wanted = streamed(folder, run), read(folder, run)
    for table in TABLES:
        assert found[table].to_pylist() == wanted[table].to_pylist()
        assert found[table].schema == wanted[table].schema


@pytest.mark.parametrize("chunk", [1, 3, 1 << 13])
def test_generated_histories_are_read_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(stream, "CHUNK", chunk)
    for seed in range(150):
        h.generated(seed, f"run-{seed}", tmp_path)
        assert_alike(tmp_path, f"run-{seed}")


@pytest.mark.parametrize("seed", range(20))
def test_two_files_become_one_order(seed: int) -> None:
    """By time, the wire first where both are equal, each file in its own order."""
    dice = random.Random(seed)
    wire = [round(dice.uniform(0, 5), 1) for _ in range(dice.randint(0, 30))]
    ops = [round(dice.uniform(0, 5), 1) for _ in range(dice.randint(0, 30))]
    order: list[tuple[str, int]] = []
    waiting = list(enumerate(ops))
    for i, at in enumerate(wire):
        while waiting and waiting[0][1] < at:
            order.append(("op", waiting.pop(0)[0]))
        order.append(("wire", i))
    order += [("op", k) for k, _ in waiting]

    def chunks(name: str, times: list[float]) -> Any:
        import numpy as np

        latest = -np.inf
        while times:
            size = dice.randint(1, 5)
            at, times = np.maximum.accumulate(np.array([latest, *times[:size]]))[1:], times[size:]
            latest = at[-1]
            yield [name] * len(at), at

    places: dict[str, list[int]] = {"wire": [], "op": []}
    for names, seqs in numbered(chunks("wire", wire), chunks("op", ops)):
        places[names[0]] += seqs.tolist()
    assert places == {
        name: [seq for seq, (each, _) in enumerate(order, start=1) if each == name] for name in places
    }


def test_odd_values_are_read_alike(tmp_path: Path) -> None:
    journal = RunJournal(tmp_path, "r", run="r", frames=True, seed=1 << 70)
    journal.op(1.0, "p", 1 << 65, "publish", "invoke", key="q", value="\ud800", offset=1 << 64)
    journal.op(1.1, "p", None, "deliver", "ok", key=None, value=None, offset=(1 << 64) - 1)
    journal.op(1.2, "p", 1, "deliver", "ok", offset=-1, wire_key="", error="", note="said")
    journal.metric(1.3, "loop_lag_ms", 0.5)
    journal.event(1.4, "p", "e", "why")
    journal._wire.append(
        [
            (6, 0, "Put", {"in": "publish", "out": "deliver"}, "", True),
            (6, 1, "Ack", "confirm", "tuple"),
            (6, 2, "Ids", "confirm", "bytes16", True),
            (0, 1.0, "c1", Tap.IN.value, 0, ["a", "b"], 2, 7, None, "", None),
            (0, 1.0, "c1", Tap.OUT.value, 0, [1, 2, 3], 3, 7, 1 << 64, "f1", 5),
            (0, 1.0, "c1", Tap.SAID.value, 1, [1, "a,b"], 1, 7, 404, "", [1, 2], "{}", "Outer", 1, "reject"),
            (0, 1.1, "c1", Tap.SENT.value, 2, b"0123456789abcdef" * 2, 0, 7, True, "", b"x"),
            (0, 1.1, "c2", Tap.SENT.value, 0, b"\0" * 7 + b"\1" + b"\0" * 7 + b"\2", 0, 7, 2.0, "", None),
            (0, 1.2, "c2", Tap.SENT.value, 0, -1, 1, 7, None, "", None),
            (0, 1.2, "c2", Tap.SENT.value, 0, None, 0, 7, None, "", None),
            (1, 1.3, "c1", "peer", "node-1", ""),
            (0, 1.4, "c1", Tap.SENT.value, 0, (1 << 64) - 1, 1, 7, None, "", None),
            (1, 1.5, "c1", "silence limit", "2000 ms", ""),
            (1, 1.5, "c1", "closed", "", "f2"),
            (0, 1.6, "c1", Tap.SENT.value, 0, (1 << 64) - 1, 2, 7, None, "", None),
        ]
    )
    journal.close(verdict="pass")
    assert_alike(tmp_path, "r")


@pytest.mark.parametrize("cut", [0, 3, 7, 8, 12, 30])
@pytest.mark.parametrize("which", ["wire", "ops"])
def test_files_that_end_torn_are_read_alike(tmp_path: Path, which: str, cut: int) -> None:
    h.generated(7, "r", tmp_path)
    path = tmp_path / f"r.{which}"
    path.write_bytes(path.read_bytes()[:cut])
    assert_alike(tmp_path, "r")
