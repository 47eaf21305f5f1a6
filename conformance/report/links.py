"""Where the files stand that belong to a report: reproducers, the journal, JUnit, results, tables."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from conformance.report.model import Cell, Page
from conformance.results import reproducer_name


class Links:
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

    def junit(self, cell: Cell) -> str:
        """The JUnit file in which a result stands."""
        return self._first("junit.xml", f"{cell.folder}/junit.xml")

    def journal(self, cell: Cell) -> str:
        """The folder of the journal that has the run of a result."""
        return self._first("journal/") if cell.result.run else ""

    def of_page(self, page: Page) -> list[str]:
        """All files beside the page: results and JUnit of each client, journal, tables of the analysis."""
        folders = ["", *dict.fromkeys(f"{cell.folder}/" for cell in _cells(page))]
        names = [f"{folder}{name}" for folder in folders for name in ("results.json", "junit.xml")]
        found = [self._first(name) for name in (*names, "journal/", "analysis/")]
        return [link for link in found if link]

    def _first(self, *places: str) -> str:
        if self._out is None:
            return ""
        return next((quote(place) for place in places if (self._out / place).exists()), "")


def _cells(page: Page) -> Iterable[Cell]:
    return (cell for row in page.rows for cell in row.cells if cell is not None)
