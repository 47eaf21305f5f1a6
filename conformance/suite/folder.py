"""The folder of a report: what is written into it, and when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from conformance import results as result_files
from conformance.results import Results
from conformance.suite.junit import junit


def keep_in(folder: Path) -> Callable[[Results], None]:
    """What `Order.keep` may be: ``results.json`` alone. What an earlier run has left there goes away."""
    for name in ("index.html", "junit.xml"):
        if (folder / name).is_file():
            (folder / name).unlink()

    def keep(results: Results) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        _put(folder / "results.json", result_files.dump(results))

    return keep


def incomplete_note(results: Results) -> str:
    """What the pages say of a run that is not complete; empty for one that is."""
    if results.complete:
        return ""
    done = len(results.results)
    return f"This run was cut short: it holds the {done} scenarios that had ended until then."


def write_folder(results: Results, folder: Path) -> None:
    """Write ``results.json``, ``junit.xml`` and ``allure-results``; each file appears whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    _put(folder / "results.json", result_files.dump(results))
    _put(folder / "junit.xml", junit(results))
    for row in results.results:
        if row.reproducer:
            place = folder / "reproducers" / result_files.reproducer_name(row)
            place.parent.mkdir(exist_ok=True)
            _put(place, row.reproducer.encode())
    try:
        from conformance.suite.allure import write_allure

        write_allure(results, folder / "allure-results")
    except ModuleNotFoundError:
        pass  # the extra is not installed; `fakebrokers doctor` says so


def write_pages(
    results: Results, folder: Path, *, baseline: str | None = None, before: Mapping[str, Any] | None = None
) -> None:
    """Analyse the journal and write ``index.html``, where the extra ``suite`` is installed.

    Args:
        baseline: What the earlier analysis is called that the pages compare with.
        before: What it says.
    """
    from conformance.cli.analyze import analyze_journals
    from conformance.findings import write_findings
    from conformance.report import write_report
    from conformance.report.runs import write_run_pages

    write_findings([results], folder)
    analysis = None
    journal = folder / "journal"
    if journal.is_dir() and any(journal.iterdir()):  # a run may be ended before, and a client skip everything
        analyze_journals((folder,), folder / "analysis", engine="local", baseline=baseline, before=before)
        analysis = msgspec.json.decode((folder / "analysis" / "analysis.json").read_bytes())
    write_run_pages([results], folder)
    write_report(folder, [results], analysis=analysis, note=incomplete_note(results))


def _put(path: Path, data: bytes) -> None:
    part = path.with_name(path.name + ".part")
    part.write_bytes(data)
    part.replace(path)
