"""A page per failure: nemesis bands over operations, latency over time, what was found, how to replay it."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from math import log10
from pathlib import Path
from typing import NamedTuple

from conformance.rules.again import violated
from conformance.run.bases import RunOp
from conformance.run.document import document_of, seen_by_the_broker
from conformance.search import page
from conformance.search.random.case import ChaosCase
from conformance.search.random.verdict import RunVerdict

WIDTH, LEFT, ROW = 1100.0, 110.0, 22.0  #: pixels
SAFETY_SHARE = 0.75  #: of the width, for the safety phase; what comes after it is long and dull
LATENCY_HEIGHT = 140.0
LEAST_S, MOST_S = 0.001, 1000.0  #: of the scale of latencies
COLOURS = {"ok": "#3a8a4d", "fail": "#b03a2e", "info": "#d08a1e", "open": "#777"}
LEGEND = "green: ok, red: failed, definitely, orange: outcome unknown, grey: never ended"


class Scale(NamedTuple):
    """From seconds to pixels: the safety phase is drawn wider than what comes after it."""

    calm_s: float
    end_s: float

    def x(self, t: float) -> float:
        """Where a moment is drawn."""
        wide = (WIDTH - LEFT) * SAFETY_SHARE
        if t <= self.calm_s:
            return LEFT + wide * t / (self.calm_s or 1.0)
        rest = (WIDTH - LEFT) * (1 - SAFETY_SHARE)
        return LEFT + wide + rest * (t - self.calm_s) / max(1e-9, self.end_s - self.calm_s)


def outcome_of(done: RunOp) -> str:
    """``ok``, ``fail`` (surely not), ``info`` (unknown), or ``open``."""
    result = done.result
    if result is None or done.ended is None:
        return "open"
    if result.ok:
        word = result.value.get("outcome") if isinstance(result.value, dict) else None
        return {"nacked": "fail", "unknown": "info"}.get(str(word), "ok")
    return "fail" if result.error is not None and result.error.definite else "info"


def timeline(case: ChaosCase) -> str:
    """The timeline and the latencies as one SVG."""
    calm = case.mark("calm")
    end_s = max([case.ended_s, *(row.t for row in case.rows[-1:])])
    scale = Scale(calm.t if calm is not None else end_s, end_s)
    processes = list(dict.fromkeys(_process(done) for done in case.ops))
    rows_height = ROW * max(1, len(processes))
    height = rows_height + LATENCY_HEIGHT + 60
    parts = [
        f'<svg viewBox="0 0 {WIDTH:g} {height:g}" width="100%" role="img" '
        f'aria-label="operations and latencies over time, with what disturbed them" '
        'font-family="system-ui,sans-serif" font-size="11">'
    ]
    parts += _bands(case, scale, rows_height + LATENCY_HEIGHT + 20)
    for number, process in enumerate(processes):
        parts.append(f'<text x="4" y="{20 + ROW * number + 14:g}">{escape(process)}</text>')
    parts += _operations(case, scale, processes)
    parts += _latencies(case, scale, 20 + rows_height + 10)
    parts += _axis(scale, height - 8)
    parts.append("</svg>")
    return "\n".join(parts)


def _process(done: RunOp) -> str:
    return str(done.args.get("sub") or done.args.get("session") or done.op)


def _bands(case: ChaosCase, scale: Scale, bottom: float) -> Iterator[str]:
    for number, band in enumerate(case.bands):
        begin = scale.x(band["begin_s"])
        width = max(2.0, scale.x(band["end_s"] or scale.calm_s) - begin)
        y = 11 if number % 2 == 0 else bottom + 8
        yield (
            f'<rect x="{begin:.1f}" y="14" width="{width:.1f}" height="{bottom - 14:.1f}" fill="#c0392b" '
            f'opacity="0.13"><title>{escape(band["about"])}</title></rect>'
            f'<text x="{begin:.1f}" y="{y:g}" fill="#922b21">{escape(band["kind"])}</text>'
        )


def _operations(case: ChaosCase, scale: Scale, processes: list[str]) -> Iterator[str]:
    for done in case.ops:
        y = 20 + ROW * processes.index(_process(done)) + 4
        begin = scale.x(done.begun.t)
        end = scale.x(done.ended.t if done.ended is not None else scale.end_s)
        title = f"{done.op} at {done.begun.t:.3f} s: {done.result}"
        yield (
            f'<rect x="{begin:.1f}" y="{y:g}" width="{max(1.5, end - begin):.1f}" height="{ROW - 8:g}" '
            f'fill="{COLOURS[outcome_of(done)]}" opacity="0.75"><title>{escape(title)}</title></rect>'
        )


def _latencies(case: ChaosCase, scale: Scale, top: float) -> Iterator[str]:
    low, high = log10(LEAST_S), log10(MOST_S)

    def y(seconds: float) -> float:
        level = log10(min(MOST_S, max(LEAST_S, seconds)))
        return top + LATENCY_HEIGHT * (1 - (level - low) / (high - low))

    yield f'<text x="4" y="{top + 12:g}">latency</text>'
    for seconds in (0.001, 0.1, 1.0, 10.0, 1000.0):
        yield (
            f'<line x1="{LEFT:g}" x2="{WIDTH:g}" y1="{y(seconds):.1f}" y2="{y(seconds):.1f}" stroke="#ddd"/>'
            f'<text x="{LEFT - 4:g}" y="{y(seconds) + 4:.1f}" text-anchor="end">{seconds:g} s</text>'
        )
    for done in case.ops:
        if done.ended is not None:
            seconds = done.ended.t - done.begun.t
            title = f"<title>{escape(done.op)}: {seconds:.3f} s</title>"
            yield (
                f'<circle cx="{scale.x(done.begun.t):.1f}" cy="{y(seconds):.1f}" r="2.5" '
                f'fill="{COLOURS[outcome_of(done)]}">{title}</circle>'
            )


def _axis(scale: Scale, y: float) -> Iterator[str]:
    for share in range(5):
        t = scale.calm_s * share / 4
        yield f'<text x="{scale.x(t):.1f}" y="{y:g}">{t:.1f} s</text>'
    yield f'<text x="{WIDTH - 2:g}" y="{y:g}" text-anchor="end">{scale.end_s:.0f} s</text>'
    x = scale.x(scale.calm_s)
    yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="14" y2="{y - 12:g}" stroke="#333" stroke-dasharray="4 3"/>'


def parts(case: ChaosCase, verdict: RunVerdict, replay: Path) -> Iterator[str]:
    """The page as HTML; what clients and servers say is escaped."""
    schedule = case.schedule
    title = f"chaos of {schedule.protocol}, seed {schedule.seed}: {', '.join(verdict.names)}"
    yield page.head_of(title, replay)
    yield "<h2>What was found</h2><ul>"
    yield from page.found_list(verdict.sentences, schedule.protocol)
    yield "</ul><h2>What was done</h2><ul>"
    given = ", ".join(f"{name} {value}" for name, value in schedule.params.items())
    yield f"<li>workload <b>{escape(schedule.workload)}</b>: {escape(given)}</li>"
    yield from (f"<li>{escape(str(step))}</li>" for step in schedule.steps)
    yield f"</ul><h2>Operations and latencies</h2><p>{LEGEND}; after the broken line all is healed.</p>"
    yield timeline(case)


def write_page(case: ChaosCase, verdict: RunVerdict, replay: Path) -> Path:
    """Write it beside its replay file. Returns its path."""
    about = {"protocol": case.schedule.protocol, "done": case.schedule.about}
    seen = seen_by_the_broker(case.log)
    document = document_of(case, ", ".join(verdict.names), about, violated(case, verdict.findings), seen)
    return page.write_page(parts(case, verdict, replay), replay, document)
