"""What a process has written belongs to the row that it has served, if it was only one."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from conformance.clients.adapter.process import ALL_MEASURED, MEASURED, ProcessAdapter
from conformance.clients.adapters.registry import find
from conformance.coverage.document import ClientCoverage
from conformance.coverage.meter import BESIDE, PROCESS, row
from conformance.coverage.processes import ProcessMeter


class ToyMeter(ProcessMeter):
    """Files are named by the process and a number."""

    def pid_of(self, path: Path) -> int | None:
        return int(path.name.partition("-")[0])

    def document(self) -> ClientCoverage:
        raise NotImplementedError

    def write(self, name: str) -> None:
        (self.left / name).touch()

    @property
    def labels(self) -> dict[str, str]:
        return {path.name: label for label, paths in self.by_label().items() for path in paths}


@pytest.fixture
def meter(tmp_path: Path) -> ToyMeter:
    return ToyMeter(find("narconi-node"), tmp_path)


def test_start_rows_and_end_of_a_process(meter: ToyMeter) -> None:
    for name, label in (("1-1", ""), ("1-2", "A-1.01"), ("1-3", "A-1.02"), ("1-4", "")):
        meter.write(name)
        if label:
            meter.served(row(label), 1)
    assert meter.labels == {"1-1": BESIDE, "1-2": row("A-1.01"), "1-3": row("A-1.02"), "1-4": BESIDE}


def test_a_process_that_writes_only_at_its_end_after_several_rows(meter: ToyMeter) -> None:
    meter.write("1-1")
    meter.served(row("A-1.01"), 1)
    meter.served(row("A-1.02"), 1)
    meter.write("1-2")
    meter.write("2-1")
    meter.served(row("A-1.03"), 2)
    meter.write("2-2")
    assert meter.labels == {"1-1": BESIDE, "1-2": f"{PROCESS}:", "2-1": BESIDE, "2-2": row("A-1.03")}


def test_processes_are_told_apart(meter: ToyMeter) -> None:
    for name in ("1-1", "2-1", "1-2", "2-2"):
        meter.write(name)
    meter.served(row("A-1.01"), 1)
    meter.served(row("B-1.01"), 2)
    assert meter.labels == {
        "1-1": BESIDE, "1-2": row("A-1.01"), "2-1": BESIDE, "2-2": row("B-1.01"),
    }  # fmt: skip


def test_what_an_earlier_run_has_left_does_not_count(tmp_path: Path) -> None:
    ToyMeter(find("narconi-node"), tmp_path).write("1-1")
    assert ToyMeter(find("narconi-node"), tmp_path).labels == {}


ADAPTER = """
import json, pathlib, sys
for n, line in enumerate(sys.stdin, 1):
    answer = {"n": n, "t": n, "id": json.loads(line)["id"], "ok": False}
    print(json.dumps(answer | {"error": {"kind": "internal", "definite": True}}), flush=True)
pathlib.Path(sys.argv[1]).write_text("written")
"""


@pytest.mark.parametrize("measured", sorted(ALL_MEASURED - {MEASURED}))
def test_a_process_that_is_ended_can_write(tmp_path: Path, measured: str) -> None:
    path, end = tmp_path / "adapter.py", tmp_path / "end"
    path.write_text(ADAPTER)

    async def ended() -> None:
        adapter = ProcessAdapter([sys.executable, str(path), str(end)], "toy", env={measured: str(tmp_path)})
        await adapter._open()
        adapter._fresh()
        assert (await adapter.call("hello", {})).word != "hang"
        await adapter.kill()

    asyncio.run(ended())
    assert end.read_text() == "written"
