"""The folder of a report, also of a run that was ended before anything had come of it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from conformance.results import Results
from conformance.suite.folder import write_folder, write_pages

NOTHING = Results(
    client="x", client_version="1", suite_version="1", seed=0, started="2026-01-01T00:00:00Z", seconds=0.0,
    results=(), summary={}, exit_code=130, complete=False,
)  # fmt: skip


def page(folder: Path, results: Results) -> str:
    write_folder(results, folder)
    write_pages(results, folder)
    return (folder / "index.html").read_text()


def test_a_run_that_is_ended_before_its_first_verdict_has_a_report(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    assert "it holds the 0 scenarios that had ended until then" in page(tmp_path, NOTHING)


def test_a_run_that_is_ended_before_its_first_record_has_a_report(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    for ending in ("wire", "ops"):
        (tmp_path / "journal" / f"01-x.{ending}").write_bytes(b"")
    assert "it holds the 0 scenarios that had ended until then" in page(tmp_path, NOTHING)


def test_a_client_for_which_nothing_was_run_has_a_report(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    assert "cut short" not in page(tmp_path, msgspec.structs.replace(NOTHING, exit_code=2, complete=True))
