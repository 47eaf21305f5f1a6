"""Makes sealed journals of any size, for benchmarks: python tests/benchmarks/generate.py DIR RECORDS"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fakebrokers.journal.arrow import arrow_schema

BATCH = 10  #: messages per frame
MESSAGES = 1000  #: per run, unless told; six records for each message but frames carry `BATCH` of them
RUNS_PER_FILE = 300
_CLIENTS = ("alpha", "beta", "gamma")


def generate(folder: Path, records: int, seed: int = 1, *, messages: int = MESSAGES) -> int:
    """Write about `records` records of ops and frames, `messages` of them to a run; returns how many exactly.

    One in a thousand acknowledged messages is never delivered, one in a thousand is delivered twice.
    """
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    per_run = 3 * messages + 3 * messages // BATCH
    runs = max(1, round(records / per_run))
    written = 0
    for first in range(0, runs, RUNS_PER_FILE):
        chunk = range(first, min(runs, first + RUNS_PER_FILE))
        tables = [_run(number, random, messages) for number in chunk]
        for table in ("ops", "frames"):
            whole = pa.concat_tables([part[table] for part in tables])
            written += len(whole)
            pq.write_table(whole, folder / f"{table}-{first}.parquet", compression="zstd")
        pq.write_table(arrow_schema("metrics").empty_table(), folder / f"metrics-{first}.parquet")
        pq.write_table(_runs(chunk), folder / f"runs-{first}.parquet")
    return written


def _runs(numbers: range) -> pa.Table:
    rows = [
        {
            "run": f"run-{number}",
            "client": _CLIENTS[number % len(_CLIENTS)],
            "client_version": "1.0",
            "protocol": "rabbitmq-stream",
            "variant": "",
            "scenario": f"RMQS-3.{number % 40:02}",
            "seed": number,
            "contract": "exactly-once ordered",
            "verdict": "pass",
            "ended": True,
            "torn": False,
        }
        for number in numbers
    ]
    return _table("runs", rows)


def _run(number: int, random: np.random.Generator, n: int) -> dict[str, pa.Table]:
    """Messages are sent one after another; each record is 10 microseconds behind the one before."""
    per_message = 4
    message = np.arange(n)
    values = np.char.add(f"{number:08x}", np.char.mod("%08x", message))
    seq = 10 + per_message * message
    lost = random.random(n) < 0.001
    lost[-1] = False
    twice = (random.random(n) < 0.001) & ~lost
    delivered = np.sort(np.concatenate([message[~lost], message[twice]]))
    sends = {
        "seq": np.concatenate([seq, seq + 1]),
        "f": np.repeat("publish", 2 * n),
        "outcome": np.repeat(["invoke", "ok"], n),
        "op_id": np.concatenate([message, message]),
        "value": np.concatenate([values, values]),
        "offset": np.full(2 * n, -1),
        "wire_key": np.concatenate([message, message]).astype(str),
    }
    polls = {
        "seq": seq[delivered] + 2,
        "f": np.repeat("deliver", len(delivered)),
        "outcome": np.repeat("ok", len(delivered)),
        "op_id": np.full(len(delivered), -1),
        "value": values[delivered],
        "offset": delivered,
        "wire_key": np.repeat("", len(delivered)),
    }
    columns = {name: np.concatenate([sends[name], polls[name]]) for name in sends}
    ops = {
        "process": np.where(columns["f"] == "publish", "p1", "c1"),
        "key": np.repeat("orders", len(columns["seq"])),
        "t_ns": columns["seq"] * 10_000,
        **columns,
    }
    first = message[::BATCH]
    parts = [
        ("in", "Publish", "publish", 0),
        ("out", "PublishConfirm", "confirm", 1),
        ("out", "Deliver", "deliver", 2),
    ]
    frames = {
        "seq": np.concatenate([seq[shift::BATCH] + 3 for *_, shift in parts]),
        "t_ns": np.concatenate([seq[::BATCH] * 10_000 + shift * 4_000 for *_, shift in parts]),
        "connection": np.repeat("c1", 3 * len(first)),
        "tap": np.repeat([part[0] for part in parts], len(first)),
        "direction": np.repeat([part[0] for part in parts], len(first)),
        "kind": np.repeat([part[1] for part in parts], len(first)),
        "role": np.repeat([part[2] for part in parts], len(first)),
        "key_first": np.tile(first, 3),
        "items": np.full(3 * len(first), BATCH),
    }
    return {"ops": _columns("ops", number, ops), "frames": _columns("frames", number, frames)}


def _columns(table: str, number: int, columns: dict[str, Any]) -> pa.Table:
    """A table from some of its columns, in the order of seq; -1 and empty text mean none."""
    schema = arrow_schema(table)
    length = len(columns["seq"])
    order = np.argsort(columns["seq"], kind="stable")
    columns = {name: column[order] for name, column in columns.items()}
    arrays = []
    for field in schema:
        if field.name == "run":
            arrays.append(pa.array([f"run-{number}"] * length, field.type))
        elif field.name in columns:
            array = columns[field.name]
            none = array == ("" if array.dtype.kind == "U" else -1)
            arrays.append(pa.array(array, field.type, mask=none))
        else:
            arrays.append(pa.nulls(length, field.type))
    return pa.table(arrays, schema=schema)


def _table(table: str, rows: list[dict[str, Any]]) -> pa.Table:
    schema = arrow_schema(table)
    return pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema)


if __name__ == "__main__":
    print(generate(Path(sys.argv[1]), int(sys.argv[2])))
