"""Runs as a set of sealed files, judged by columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("numpy", reason="missing: numpy (pip install 'fakebrokers[spark]')")
pytest.importorskip("pyarrow", reason="missing: pyarrow (pip install pyarrow)")

from fakebrokers.journal.reader import RunLog

Judged = Callable[[Sequence[RunLog]], Any]


@pytest.fixture
def files_of(tmp_path: Path) -> Callable[..., Any]:
    """The file set of some runs."""
    import pyarrow.parquet as pq

    from conformance.pipeline.columns import FileSet
    from fakebrokers.journal.arrow import arrow_table

    def made(logs: Sequence[RunLog], part: tuple[int, int] = (0, 1)) -> FileSet:
        rows: dict[str, list[Any]] = {
            "runs": [log.run for log in logs],
            "frames": [row for log in logs for row in log.frames],
            "ops": [row for log in logs for row in log.ops],
            "metrics": [row for log in logs for row in log.metrics],
        }
        paths = {table: str(tmp_path / f"{table}.parquet") for table in rows}
        for table, found in rows.items():
            pq.write_table(arrow_table(table, [msgspec.structs.astuple(row) for row in found]), paths[table])
        return FileSet(paths, part=part)

    return made


@pytest.fixture
def judged(files_of: Callable[..., Any]) -> Judged:
    """All findings about some runs."""
    from conformance.pipeline.columns import GROUPS, Findings

    def judge(logs: Sequence[RunLog]) -> Any:
        files, findings = files_of(logs), Findings()
        files.check()
        for checks in GROUPS.values():
            for check in checks:
                check(files, findings)
        return findings

    return judge
