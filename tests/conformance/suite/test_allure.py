"""Allure's result files: true times, known failures as its own adaptor shows them, harmless texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("allure_commons", reason="missing: allure-python-commons (extra suite)")

from conformance.results import RowResult, Verdict
from conformance.suite.allure import write_allure
from tests.conformance.suite.hostile import CHARACTERS, results, row, with_everywhere


def written(folder: Path, *rows: RowResult) -> list[dict[str, Any]]:
    write_allure(results(*rows), folder)
    found = [json.loads(path.read_text("utf-8")) for path in folder.glob("*-result.json")]
    return sorted(found, key=lambda each: each["start"])


def test_times_are_those_of_the_run(tmp_path: Path) -> None:
    early, late = written(tmp_path, row(began_at=1_700_000_100.0), row(id="RMQS-3.04"))[::-1]
    assert (late["start"], late["stop"]) == (1_700_000_000_500, 1_700_000_001_750)
    assert early["start"] == 1_700_000_100_000


def test_what_was_not_run_stands_at_the_start_of_the_run(tmp_path: Path) -> None:
    (skipped,) = written(tmp_path, row(Verdict.UNSUPPORTED, began_at=0.0, seconds=0.0))
    assert skipped["start"] == skipped["stop"] == 1_735_689_600_000


def test_statuses(tmp_path: Path) -> None:
    wanted = {
        Verdict.PASS: "passed",
        Verdict.NON_STRICT: "passed",
        Verdict.FAIL: "failed",
        Verdict.UNSUPPORTED: "skipped",
        Verdict.PROFILE: "skipped",
        Verdict.INCONCLUSIVE: "skipped",
        Verdict.HARNESS_ERROR: "broken",
    }
    rows = [row(verdict, id=f"RMQS-3.{n}", began_at=float(n + 1)) for n, verdict in enumerate(wanted)]
    assert [each["status"] for each in written(tmp_path, *rows)] == list(wanted.values())


def test_a_known_failure_is_not_red(tmp_path: Path) -> None:
    (known,) = written(tmp_path, row(tags=("expected", "flaky"), reason="hangs [known: issue 12]"))
    assert known["status"] == "skipped"  # as allure-pytest shows an xfail
    assert known["statusDetails"]["known"] is True
    assert known["statusDetails"]["flaky"] is True
    assert known["statusDetails"]["message"] == "known: hangs [known: issue 12]"


def test_texts_are_harmless(tmp_path: Path) -> None:
    (test,) = written(tmp_path, row())
    (attachment,) = tmp_path.glob("*-attachment.txt")
    texts = [json.dumps(test, ensure_ascii=False), attachment.read_text("utf-8")]
    assert all(c.isprintable() or c == "\n" for text in texts for c in text)
    assert test["statusDetails"]["trace"].startswith("Adapter: broke its protocol")


def test_any_character_in_any_name_can_be_written(tmp_path: Path) -> None:
    for number, character in enumerate(CHARACTERS):
        folder = tmp_path / str(number)
        write_allure(with_everywhere(f"a{character}b"), folder)
        found = [path.read_text("utf-8") for path in folder.iterdir()]
        assert len([text for text in found if text.startswith("{")]) == 3
        assert all(c.isprintable() or c == "\n" for text in found for c in text)
