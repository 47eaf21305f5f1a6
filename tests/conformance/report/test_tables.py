"""What the packed tables carry: what changed since a baseline, and the matrix by fault."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jinja2", reason="missing: jinja2 (pip install jinja2)")

from conformance.gate import Change
from conformance.report import write_report
from conformance.report.comparison import MEANINGS, compared
from conformance.report.faults import by_fault

KEY = ("S-1", "pzq", "")


def unpacked(content: str) -> Any:
    return json.loads(zlib.decompress(b64decode(content)))


def cell(fault: str, **more: Any) -> dict[str, Any]:
    base = {"client": "c", "client_version": "1", "protocol": "pzq", "variant": "", "scenario": "S-1"}
    reported = {"fault": fault, "runs": 2, "broken_off": 0, "verdicts": {"pass": 2}, "affected": {}}
    return {**base, **reported, **more}


def test_a_cell_has_its_runs_its_failures_and_its_anomalies() -> None:
    rows = [
        cell("cut"),
        cell("slow", verdicts={"fail": 1, "inconclusive": 1}, affected={"lost-write": 2}),
        cell("cut", client_version="2", verdicts={"harness error": 2}),
    ]
    found = by_fault({"faults": rows}, {KEY: "s-S-1--pzq"}, {KEY: "A title"})
    assert found is not None and (found.cells, found.faults, found.protocols) == (3, 2, ("pzq",))
    assert unpacked(found.content) == {
        "clients": ["c 1", "c 2"],
        "places": [["pzq", "S-1", "", "s-S-1--pzq", "A title"]],
        "faults": ["cut", "slow"],
        "names": ["lost-write"],
        "rows": [[0, 0, 0, 2, 0, 0, 0], [0, 0, 1, 2, 1, 1, {"0": 2}], [1, 0, 0, 2, 0, 2, 0]],
    }


def test_a_change_has_its_versions_its_verdicts_and_its_page() -> None:
    finding = {"change": "regressed", "id": "S-1", "protocol": "pzq", "variant": "", "criterion": ""}
    finding |= {"before": "pass", "now": "fail", "failed": 1, "runs": 2}
    gone = {**finding, "change": "vanished", "id": "S-2", "now": "", "failed": 0, "runs": 0}
    rows = [
        {"client": "c", "version": "2", "version_before": "1", "finding": finding},
        {"client": "c", "version": "", "version_before": "1", "finding": gone},
    ]
    counts = {"vanished": 1, "regressed": 1}
    document = {"baseline": "b", "rows": rows, "counts": counts, "worse": 2}
    found = compared({"comparison": document}, {KEY: "s-S-1--pzq"})
    assert found is not None and found.sentence == "1 regressed, 1 vanished"
    assert [(each.change, each.is_worse) for each in found.counts] == [
        ("regressed", True),
        ("vanished", True),
    ]
    assert unpacked(found.content) == [
        ["regressed", "c", "1 → 2", "S-1/pzq", "s-S-1--pzq", "", "pass", "fail", 1, 2],
        ["vanished", "c", "1", "S-2/pzq", "", "", "pass", "none", 0, 0],
    ]


def test_every_change_of_an_analysis_is_explained() -> None:
    """An analysis knows neither expectation files nor levels nor revisions: these belong to the gate."""
    of_the_gate = {
        Change.FAILED,
        Change.OTHER_FAILURE,
        Change.SCENARIO_CHANGED,
        Change.UNEXPECTED_PASS,
        Change.TOLERATED,
        Change.KNOWN,
    }
    assert set(MEANINGS) == set(Change) - of_the_gate


@pytest.mark.parametrize("analysis", [None, {}, {"faults": [], "comparison": None}])
def test_without_them_there_is_no_table(analysis: Any) -> None:
    assert by_fault(analysis, {}, {}) is None
    assert compared(analysis, {}) is None


def test_nothing_that_changed_is_said_plainly(tmp_path: Path) -> None:
    document = {"baseline": "last <week>", "rows": [], "counts": {}, "worse": 0}
    analysis = {"rows": 0, "runs": 0, "anomalies": {}, "findings": [], "quantiles": [], "latencies": []}
    analysis |= {"harness": {}, "seconds": 0.0, "comparison": document}
    text = write_report(tmp_path, [], analysis=analysis).read_text()
    assert "last &lt;week&gt;</b>: <a" in text and ">nothing changed</a>" in text
    assert "Nothing changed." in text and 'id="faults"' not in text


def test_ten_thousand_cells_take_little_room(tmp_path: Path) -> None:
    rows = [
        cell(f"c1 cut at {n}", client=f"client-{who}", scenario=f"NET-{n % 50}.02", verdicts={"fail": n % 3})
        for who in range(14)
        for n in range(1000)
    ]
    analysis = {"rows": 0, "runs": 0, "anomalies": {}, "findings": [], "quantiles": [], "latencies": []}
    analysis |= {"harness": {}, "seconds": 0.0, "faults": rows}
    text = write_report(tmp_path, [], analysis=analysis).read_text()
    (content,) = re.findall(r'data-kind="faults" [^>]*data-content="([^"]*)"', text)
    assert len(unpacked(content)["rows"]) == 14_000
    assert len(content) < 150_000
