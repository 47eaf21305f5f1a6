"""Results files: what is written is read again, old ones too, and the schema in the tree is theirs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.results import (
    RESULTS_VERSION,
    Results,
    RowResult,
    Step,
    Verdict,
    dump,
    json_schema,
    load,
    summarize,
)
from fakebrokers.errors import UsageError

ROOT = Path(__file__).parents[2]


def test_a_file_comes_back_as_it_was(tmp_path: Path) -> None:
    step = Step(0.5, "out", "Confirm", "#1", "lose it", "c1", lost=True)
    result = RowResult(
        "RMQS-3.09", "rabbitmq-stream", "", "MUST", Verdict.FAIL, diagram=(step,), plan={"seed": 1}
    )
    results = Results("c", "1.0", "0.1", 7, "2026-01-01T00:00:00Z", 1.5, (result,), summarize([result]), 1)
    path = tmp_path / "results.json"
    path.write_bytes(dump(results))
    assert load(path) == results
    document = json.loads(path.read_text())
    contract = {
        "client",
        "client_version",
        "suite_version",
        "seed",
        "started",
        "seconds",
        "results",
        "summary",
    }
    added = {"complete", "exit_code", "version", "reasons", "target", "expected", "found", "rules"}
    assert contract | added == document.keys()
    row = {"id", "protocol", "variant", "level", "verdict", "criterion", "tags", "seconds", "reason"}
    assert row <= document["results"][0].keys()


def test_the_summary_is_in_the_order_of_the_verdicts_without_zeros() -> None:
    verdicts = [Verdict.FAIL, Verdict.PASS, Verdict.UNSUPPORTED, Verdict.PASS]
    results = [RowResult("X", "p", "", "MUST", verdict) for verdict in verdicts]
    assert list(summarize(results).items()) == [("pass", 2), ("fail", 1), ("skipped: unsupported", 1)]


def test_a_file_that_version_1_wrote_can_still_be_read() -> None:
    old = load(Path(__file__).parent / "results-v1.json")
    (result,) = old.results
    assert result.key == ("RMQS-3.09", "rabbitmq-stream", "4.3")
    assert (result.verdict, result.level, result.diagram[0].fault) == (Verdict.FAIL, "MUST", "lose it")
    assert (old.client, old.exit_code, old.version) == ("rstream", 1, 1)
    assert (old.complete, result.criterion, result.cause) == (True, "", "")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "expected a results file"),
        ("[]", "got version None"),
        ('{"version": 2}', "expected results of version 1, got version 2"),
        ('{"client": "c"}', "missing required field"),
    ],
)
def test_what_is_no_results_file_is_refused(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "results.json"
    path.write_text(content)
    with pytest.raises(UsageError, match=problem):
        load(path)
    with pytest.raises(UsageError, match="expected a results file"):
        load(tmp_path / "none.json")


def test_the_version_of_results() -> None:
    assert RESULTS_VERSION == 1


def test_the_schema_accepts_a_written_file_and_refuses_another_version() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="needs jsonschema (extra suite)")
    document = json.loads((Path(__file__).parent / "results-v1.json").read_text())
    jsonschema.validate(document, json_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**document, "version": 2}, json_schema())


def test_a_source_is_split_between_its_codes_only() -> None:
    row = RowResult(
        "A", "p", "", "MUST", Verdict.PASS, source="R1: size, content; key, version; R2: the top bit"
    )
    assert row.sources == ["R1: size, content; key, version", "R2: the top bit"]
