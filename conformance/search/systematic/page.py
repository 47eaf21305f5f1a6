"""A page per failure: what was done, which rule was violated, and the page of the run."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

from conformance.rules import Finding
from conformance.rules.again import violated
from conformance.run.acts import ACTS
from conformance.run.case import Case
from conformance.run.document import document_of, seen_by_the_broker
from conformance.search import page


def parts(case: Case, findings: list[Finding], replay: Path) -> Iterator[str]:
    """The page as HTML; what clients and servers say is escaped."""
    yield page.head_of(str(case.spec), replay)
    yield "<ul>"
    for injection in case.spec.injections:
        yield f"<li>{escape(str(injection))}: {escape(ACTS[injection.act].about)}</li>"
    yield "</ul><h2>What was violated</h2><ul>"
    yield from page.found_list({one.name: one.text for one in findings}, case.spec.protocol)
    touched = ", ".join(sorted(case.touched)) or "none"
    yield f"</ul><p>Connections that faults or the base itself have touched: {escape(touched)}.</p>"


def write_page(case: Case, findings: list[Finding], replay: Path) -> Path:
    """Write it beside its replay file. Returns its path."""
    about = {"protocol": case.spec.protocol, "done": str(case.spec)}
    seen = seen_by_the_broker(case.log)
    document = document_of(case, findings[0].name, about, violated(case, findings), seen)
    return page.write_page(parts(case, findings, replay), replay, document)
