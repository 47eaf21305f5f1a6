"""``--coverage`` on the command line: what is refused, and what is said at the end."""

from __future__ import annotations

import io
import json
import sys
from importlib import import_module
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from rich.console import Console

pytest.importorskip("coverage", reason="missing: coverage (pip install 'fakebrokers[coverage]')")

from conformance.cli.measured import deliver, meter_for
from conformance.cli.suite import contract_json
from conformance.cli.sweep import sweep_command
from conformance.clients.adapters.registry import find
from conformance.coverage.languages import meter_of
from conformance.coverage.meter import row
from conformance.results import Results
from fakebrokers.errors import UsageError

LIBRARY = """
def used():
    return 1


def never():
    return 2
"""


def test_several_runs_at_once_are_refused() -> None:
    words = ["--client", "rstream", "--coverage", "-n", "2"]
    result = CliRunner().invoke(sweep_command, words)
    assert isinstance(result.exception, UsageError)
    assert "one run at a time" in str(result.exception)


def test_an_adapter_of_the_users_is_refused() -> None:
    with pytest.raises(UsageError, match="is for bundled clients"):
        meter_for(None, None)


def test_the_end_has_a_line_for_people_and_a_part_for_scripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "measured_by_command.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(tmp_path)
    client = msgspec.structs.replace(find("rstream"), protocol_modules=["measured_by_command"])
    meter = meter_of(client, tmp_path / "report" / "coverage")
    with meter.doing(row("TOY-1.01")):
        import_module("measured_by_command").used()
    out = io.StringIO()
    covered = deliver(meter, Console(file=out, width=200))
    sys.modules.pop("measured_by_command")
    assert "3 of 4 lines; 1 function never entered" in out.getvalue()
    page = tmp_path / "report" / "coverage" / "coverage.html"
    assert page.is_file()
    results = Results("toy", "1", "0", 0, "", 0.0, ())
    document = json.loads(contract_json(results, covered))
    assert document["coverage"] == {
        "unit": "branches",
        "lines": 4,
        "executed_lines": 3,
        "branches": 0,
        "executed": 0,
        "idle": [],
        "page": str(page),
    }
    assert "coverage" not in json.loads(contract_json(results))
