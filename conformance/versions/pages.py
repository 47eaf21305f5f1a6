"""A scoreboard as static pages: one of all clients, one of each, and the programs of the causes."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from conformance import printing
from conformance.findings import folder as findings_folder
from conformance.report.write import words
from conformance.versions.board import LEGEND, ClientBoard
from fakebrokers import __version__


def write_board(out: Path, boards: Sequence[ClientBoard], which: str) -> Path:
    """Write ``index.html``, a page of each client, and programs into ``programs``; returns the first.

    Nothing is loaded from elsewhere; everything that came from a client is escaped.

    Args:
        which: The set of rows that the boards are of.
    """
    loader = ChoiceLoader([PackageLoader("conformance.versions"), PackageLoader("conformance.report")])
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"words": words, "plain": printing.plain}
    sources = (loader.get_source(environment, name)[0] for name in ("style.css", "board.css"))
    common = {
        "style": Markup("\n").join(map(Markup, sources)),  # our own
        "made": datetime.now(UTC).strftime("%Y-%m-%d"),
        "suite": __version__,
        "which": which,
        "legend": LEGEND,
    }
    out.mkdir(parents=True, exist_ok=True)
    pages = {"index.html": environment.get_template("board.html.j2").render(boards=boards, **common)}
    for each in boards:
        pages[each.page] = environment.get_template("client.html.j2").render(board=each, **common)
    for name, text in pages.items():
        draft = out / f"{name}.tmp"
        draft.write_text(printing.page(text), encoding="utf-8")
        draft.replace(out / name)
    _copy_programs(out / "programs", boards)
    return out / "index.html"


def _copy_programs(place: Path, boards: Sequence[ClientBoard]) -> None:
    shutil.rmtree(place, ignore_errors=True)
    found = [cause.finding for board in boards for cause in board.causes if cause.finding is not None]
    for name in sorted({each.program for each in found if each.program}):
        place.mkdir(exist_ok=True)
        shutil.copyfile(findings_folder() / name, place / name)
