"""Puts the pages together."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from conformance import printing
from conformance.report.charts import milliseconds, quantile_name
from conformance.report.comparison import compared
from conformance.report.faults import by_fault
from conformance.report.gravity import severity_of
from conformance.report.links import PageLinks
from conformance.report.model import ANOMALIES, LOOKS, Page, ProtocolSection, ScenarioRow, build
from conformance.report.packs import packs
from conformance.results import Results, Verdict

if TYPE_CHECKING:
    from conformance.search.fixed import Swept
    from conformance.upgrade import Upgrade

NO_STAGES: Mapping[str, Sequence[Swept]] = {}

_CODE = re.compile(r"`([^`]+)`")


def write_report(
    out: Path,
    runs: Sequence[Results],
    *,
    analysis: Mapping[str, Any] | None = None,
    mutants: Mapping[str, Any] | None = None,
    staged: Mapping[str, Sequence[Swept]] = NO_STAGES,
    note: str = "",
    upgrades: Sequence[Upgrade] = (),
) -> Path:
    """Write ``index.html`` into `out`; returns its path.

    Args:
        runs: Results of any number of clients and protocols.
        analysis: The content of ``analysis.json``.
        mutants: What ``fakebrokers mutants --json`` printed, for the coverage of requirements; without it
            the report says what the project's tests prove.
        staged: What sweep and chaos have found of each client, by stage; their pages are in `out`.
        note: A plain word at the top, such as what could not run here.
        upgrades: What differs between versions of a client.

    Raises:
        OSError: The folder cannot be written.
    """
    out.mkdir(parents=True, exist_ok=True)
    path = out / "index.html"
    draft = path.with_suffix(".html.tmp")
    text = render(build(runs, analysis, mutants), note, out, staged, upgrades)
    draft.write_text(text, encoding="utf-8")
    os.replace(draft, path)
    return path


def words(text: str) -> Markup:
    """Prose with `code` in it; everything else is escaped."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))


def render(
    page: Page,
    note: str = "",
    out: Path | None = None,
    staged: Mapping[str, Sequence[Swept]] = NO_STAGES,
    upgrades: Sequence[Upgrade] = (),
) -> str:
    """The whole file. Everything that came from a client is escaped.

    Args:
        out: The folder that it is for; files that are there are linked, other reproducers are part of the
            page.
    """

    loader = PackageLoader("conformance.report")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["words"] = words
    environment.filters["plain"] = printing.plain

    def inside(section: ProtocolSection, row: ScenarioRow) -> str:
        return environment.get_template("page.html.j2").render(page=page, section=section, row=row)

    environment.globals.update(
        anomaly_meanings=ANOMALIES,
        looks={verdict.value: LOOKS[verdict] for verdict in Verdict},
        milliseconds=milliseconds,
        packs=lambda: packs(page, inside),
        quantile_name=quantile_name,
        severity=severity_of,
        links=PageLinks(out),
    )

    def inline(*names: str) -> Markup:
        return Markup("\n").join(Markup(loader.get_source(environment, name)[0]) for name in names)  # our own

    anchors = {row.scenario.key: row.anchor for row in page.rows}
    titles = {row.scenario.key: row.scenario.title for row in page.rows}
    stages = {name: found for name, found in staged.items() if found}
    text = environment.get_template("index.html.j2").render(
        page=page,
        note=note,
        stages=stages,
        upgrades=upgrades,
        comparison=compared(page.analysis, anchors),
        faults=by_fault(page.analysis, anchors, titles),
        style=inline("style.css", "tables.css"),
        script=inline("script.js", "tables.js"),
    )
    return printing.page(text)
