"""The pages of the runs that did not pass: all that happened in each, step by step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from conformance.results import Results, RowResult, Verdict
from conformance.rules.again import stored_document
from fakebrokers import viewer
from fakebrokers.errors import FakeBrokerError
from fakebrokers.journal.reader import RunLog
from fakebrokers.journal.stored import stored_runs
from fakebrokers.viewer import RunDocument
from fakebrokers.viewer.document import add_failure

FOLDER = "runs"
MOST_PAGES = 300  #: of a report; each is some ten kilobytes, and the first are those of the failures
MOST_RECORDS = 100_000  #: of a run that gets a page


def write_run_pages(runs: Iterable[Results], report: Path) -> None:
    """Put a page of each row that failed, or in whose run a rule was violated, into ``runs`` of a report.

    Those of an earlier run go away. A journal that cannot be read makes no pages.
    """
    place = report / FOLDER
    for path in place.glob("*.html") if place.is_dir() else ():
        path.unlink()
    rows = dict(list(_worth_a_look(runs))[:MOST_PAGES])
    try:
        for log in stored_runs(report / "journal", rows.keys()):
            if len(log.frames) + len(log.ops) + len(log.trace) <= MOST_RECORDS:
                viewer.write_page(place / page_name(log.run.run), [_document(log, rows[log.run.run])])
    except (FakeBrokerError, OSError):
        return


def page_name(run: str) -> str:
    """What the page of a run is called."""
    return f"{run}.html"


def _worth_a_look(runs: Iterable[Results]) -> Iterator[tuple[str, RowResult]]:
    """The runs to show with their rows, failures first."""
    every = list(runs)
    for results in every:
        yield from ((row.run, row) for row in results.results if row.run and row.verdict is Verdict.FAIL)
    for results in every:
        shown = {id for rule in results.rules for id in rule.rows[:1]}
        good = (row for row in results.results if row.verdict is not Verdict.FAIL)
        yield from ((row.run, row) for row in good if row.run and row.id in shown)


def _document(log: RunLog, row: RowResult) -> RunDocument:
    logs = (
        [("the client's process: errors and standard error", "\n".join(row.adapter))] if row.adapter else []
    )
    document = _judged(log, logs)
    document.title = f"{row.id} {row.title}: {log.run.client} {log.run.client_version}"
    about: Sequence[tuple[str, str]] = [
        ("required", row.requirement),
        ("because", "; ".join(row.sources)),
        ("got", row.actual),
        ("done to the client", row.fault),
        ("again", row.replay),
    ]
    document.about = [*(each for each in about if each[1]), *document.about]
    if row.verdict is Verdict.FAIL:
        add_failure(document, "the scenario failed", row.reason or row.actual)
    return document


def _judged(log: RunLog, logs: Sequence[tuple[str, str]]) -> RunDocument:
    if log.trace:
        try:
            return stored_document(log, logs)
        except (ValueError, FakeBrokerError):  # of a release that kept other things: its frames are there
            pass
    return viewer.of_log(log, logs)
