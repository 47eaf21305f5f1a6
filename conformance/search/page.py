"""What the pages of failures share: what was found, how to replay it, and the page of all that happened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from pathlib import Path

from conformance import printing
from conformance.rules import INVARIANTS
from conformance.rules.sentences import rules
from fakebrokers import viewer
from fakebrokers.viewer import RunDocument

STYLE = """body{font:14px/1.4 system-ui,sans-serif;margin:2em auto;max-width:75em;padding:0 1em}
code{background:#eee;padding:.1em .3em}"""


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


def head_of(title: str, replay: Path) -> str:
    """How a page begins, as HTML: how the run is had again, and where all that happened is to be seen."""
    title, trace = escape(title), escape(trace_of(replay).name)
    return (
        f"<!doctype html><meta charset=utf-8><title>{title}</title><style>{STYLE}</style><h1>{title}</h1>"
        f"<p><code>fakebrokers replay {escape(replay.name)}</code></p>"
        f'<p><a href="{trace}">Look at the run</a>: everything that happened, in order ({trace})</p>'
    )


def trace_of(replay: Path) -> Path:
    """Where the page of the run is."""
    return replay.with_suffix("").with_suffix(".trace.html")


def write_page(parts: Iterable[str], replay: Path, document: RunDocument) -> Path:
    """Write a page beside its replay file, and the page of the run. Returns the path of the first."""
    path = replay.with_suffix("").with_suffix(".html")
    path.write_text(printing.page("\n".join(parts)), encoding="utf-8")
    viewer.write_page(trace_of(replay), [document])
    return path
