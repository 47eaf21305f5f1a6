"""Where the files are that belong to a report: reproducers, the journal, JUnit, results, tables."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from conformance.report.model import Cell, Page, ReportedClient
from conformance.report.runs import FOLDER, page_name
from conformance.results import reproducer_name


class PageLinks:
    """Addresses relative to the page; "" for what is not there.

    Args:
        out: The folder of the report; None if it is not known.
    """

    def __init__(self, out: Path | None) -> None:
        self._out = out

    def reproducer(self, cell: Cell) -> str:
        """The one-file reproducer of a result."""
        name = reproducer_name(cell.result)
        return self._first(f"reproducers/{name}", f"{cell.folder}/reproducers/{name}")

    def run(self, cell: Cell) -> str:
        """The page of everything that happened in the run of a result."""
        return self._first(f"{FOLDER}/{page_name(cell.result.run)}") if cell.result.run else ""

    def junit(self, cell: Cell) -> str:
        """The JUnit file that has a result."""
        return self._first("junit.xml", f"{cell.folder}/junit.xml")

    def journal(self, cell: Cell) -> str:
        """The folder of the journal that has the run of a result."""
        return self._first("journal/") if cell.result.run else ""

    def shared(self) -> list[str]:
        """The files of the whole report: results and JUnit of a single client, findings, journal, tables."""
        places = ("results.json", "junit.xml", "findings/", "journal/", "analysis/", "coverage/coverage.html")
        return [link for place in places if (link := self._first(place))]

    def of_client(self, page: Page, client: ReportedClient) -> list[str]:
        """Results and JUnit of one of several clients."""
        cells = (cell for row in page.rows for cell in row.cells)
        folders = dict.fromkeys(
            cell.folder for cell in cells if cell is not None and cell.client == client.name
        )
        places = (
            f"{folder}/{name}"
            for folder in folders
            for name in ("results.json", "junit.xml", "coverage/coverage.html")
        )
        return [link for place in places if (link := self._first(place))]

    def _first(self, *places: str) -> str:
        return next((quote(place) for place in places if self._has(place)), "")

    def _has(self, place: str) -> bool:
        """Whether it is in the folder; a client's name is part of some."""
        if self._out is None or ".." in place.split("/") or place.startswith("/"):
            return False
        try:
            return (self._out / place).exists()
        except OSError:  # no file can be called that
            return False
