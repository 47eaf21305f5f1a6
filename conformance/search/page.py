"""What the pages of failures share: what was found, everything that happened in order, how to replay it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from pathlib import Path
from typing import NamedTuple

from conformance import printing
from conformance.rules import INVARIANTS, Finding
from conformance.rules.sentences import rules
from conformance.run.case import Case
from conformance.run.trace import Position

LINE_MAX = 160  #: characters of what a row says
STYLE = """body{font:14px/1.4 system-ui,sans-serif;margin:2em auto;max-width:75em;padding:0 1em}
table{border-collapse:collapse;font:12px/1.5 ui-monospace,monospace;width:100%}
td{padding:0 .6em;vertical-align:top;white-space:pre-wrap;overflow-wrap:anywhere}
tr.proof{background:#fde2e2}tr.app{color:#555}td.t{text-align:right;white-space:nowrap}
code{background:#eee;padding:.1em .3em}"""


class PageLine(NamedTuple):
    """One row of the page. `who`: a connection, or ``app``."""

    at: Position
    who: str
    arrow: str
    text: str


def lines_of(case: Case) -> list[PageLine]:
    """What happened, in order: frames as the client had them, ops and events."""
    return sorted([*_frames(case), *_words(case)], key=lambda line: line.at)


def _frames(case: Case) -> Iterator[PageLine]:
    for conn in case.conns.values():
        yield PageLine(conn.accepted, conn.name, "", "connected")
        for seen in conn.frames:
            yield PageLine(seen.at, conn.name, "<-" if seen.direction == "out" else "->", _short(seen.frame))
        if conn.ended is not None:
            yield PageLine(conn.ended, conn.name, "", f"ended by the {conn.ended_by}")


def _words(case: Case) -> Iterator[PageLine]:
    for done in case.ops:
        yield PageLine(done.begun, "app", "", f"{done.op} begins")
        if done.ended is not None:
            yield PageLine(done.ended, "app", "", str(done.result))
    for heard in case.events:
        reported = {
            name: heard[name] for name in ("what", "position", "outcome", "key", "where") if heard[name]
        }
        yield PageLine(heard.at, "app", "", f"event {heard.what} {reported}")
    for word, at in case.marks.items():
        yield PageLine(at, "app", "", f"--- {word} ---")


def _short(frame: object) -> str:
    text = repr(frame)
    return text if len(text) <= LINE_MAX else f"{text[:LINE_MAX]}..."


def reasons_of(name: str, protocol: str) -> str:
    """Why there is a rule, what it rests on and an example, as HTML; "" for what is no rule."""
    if name not in rules():
        return ""
    rule = rules()[name]
    clauses = "".join(f"<li>{escape(each)}</li>" for each in rule.clauses(protocol))
    return (
        f"<details><summary>Why this is a rule</summary><p>{escape(rule.why)}</p><ul>{clauses}</ul>"
        f"<p>Example: {escape(rule.example)}</p></details>"
    )


def found_list(sentences: Mapping[str, str], protocol: str) -> Iterator[str]:
    """What was found, each with its rule and the reasons for that: items of a list as HTML.

    Args:
        sentences: By name, what happened.
    """
    about = {each.name: each.about for each in INVARIANTS.values()}
    for name, text in sentences.items():
        rule, reasons = escape(about.get(name, "")), reasons_of(name, protocol)
        yield f"<li><b>{escape(name)}</b> {rule}<br>{escape(text)}{reasons}</li>"


def table_of(case: Case, findings: Iterable[Finding], most: int | None = None) -> Iterator[str]:
    """What happened, in order: the first `most` rows of a table as HTML, proofs of findings marked."""
    proofs = {row for finding in findings for row in finding.rows}
    lines = lines_of(case)
    for line in lines[:most]:
        kind = "proof" if line.at.row in proofs else "app" if line.who == "app" else ""
        cells = (f"{line.at.t:.3f}", line.who, line.arrow, line.text)
        yield f'<tr class="{kind}">{"".join(f"<td>{escape(cell)}</td>" for cell in cells)}</tr>'
    if most is not None and len(lines) > most:
        yield f"<tr><td colspan=4>and {len(lines) - most} more</td></tr>"


def head_of(title: str, replay: Path) -> str:
    """How a page begins, as HTML."""
    title = escape(title)
    return (
        f"<!doctype html><meta charset=utf-8><title>{title}</title><style>{STYLE}</style><h1>{title}</h1>"
        f"<p><code>fakebrokers replay {escape(replay.name)}</code></p>"
    )


def write_page(parts: Iterable[str], replay: Path) -> Path:
    """Write a page beside its replay file. Returns its path."""
    path = replay.with_suffix("").with_suffix(".html")
    path.write_text(printing.page("\n".join(parts)), encoding="utf-8")
    return path
