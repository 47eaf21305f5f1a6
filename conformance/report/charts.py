"""Latency curves and verdict bars as SVG; colours by class, see `diagram`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from markupsafe import Markup

WIDTH, HEIGHT = 640, 260
LEFT, RIGHT, TOP, BOTTOM = 62, 20, 16, 34
COLOURS = 8  #: classes c0 to c7 in the style sheet

_SVG = Markup('<svg class="chart" viewBox="0 0 {w} {h}" role="img" aria-label="{label}">')
_TEXT = Markup('<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{text}</text>')
_LINE = Markup('<line class="grid" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')
_CURVE = Markup('<polyline class="curve c{colour}" points="{points}"/>')
_DOT = Markup(
    '<circle class="dot c{colour}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"><title>{title}</title></circle>'
)


class Curve(msgspec.Struct, frozen=True):
    """Latencies of one client: milliseconds at each quantile."""

    name: str
    messages: int
    quantiles: Mapping[float, float]
    colour: int = 0


class Chart(msgspec.Struct, frozen=True):
    """One measure on one protocol."""

    title: str
    measure: str
    curves: tuple[Curve, ...]
    drawing: Markup


_MEASURES = {
    "publish-confirm": "Publish to confirm, as the client saw it",
    "publish-deliver": "Publish to deliver, as the client saw it",
    "wire-confirm": "Publish to confirm, inside the fake (0: within one turn of its loop)",
}


def latency_charts(analysis: Mapping[str, Any]) -> list[Chart]:
    """A chart per protocol and measure, over all scenarios."""
    quantiles = analysis["quantiles"]
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in analysis["latencies"]:
        if not row["scenario"]:
            groups.setdefault((row["protocol"], row["variant"], row["measure"]), []).append(row)
    charts = []
    for (protocol, variant, measure), rows in sorted(groups.items()):
        rows.sort(key=lambda row: (row["client"], row["client_version"]))
        curves = tuple(
            Curve(
                f"{row['client']} {row['client_version']}".strip(),
                row["messages"],
                dict(zip(quantiles, row["quantiles_ms"], strict=True)),
                i % COLOURS,
            )
            for i, row in enumerate(rows)
        )
        place = "/".join(part for part in (protocol, variant) if part)
        charts.append(Chart(place, _MEASURES.get(measure, measure), curves, _draw(curves, quantiles)))
    return charts


def _draw(curves: Sequence[Curve], quantiles: Sequence[float]) -> Markup:
    shown = [max(value, 0.001) for curve in curves for value in curve.quantiles.values()]
    low, high = math.floor(math.log10(min(shown))), math.ceil(math.log10(max(shown)))
    high = max(high, low + 1)

    def x(i: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * i / (len(quantiles) - 1)

    def y(value: float) -> float:
        share = (math.log10(max(value, 0.001)) - low) / (high - low)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    parts = [_SVG.format(w=WIDTH, h=HEIGHT, label="Latency by quantile, logarithmic")]
    for power in range(low, high + 1):
        at = y(10.0**power)
        parts.append(_LINE.format(x1=LEFT, x2=WIDTH - RIGHT, y1=at, y2=at))
        parts.append(_TEXT.format(kind="axis end", x=LEFT - 8, y=at + 4, text=milliseconds(10.0**power)))
    for i, quantile in enumerate(quantiles):
        parts.append(_TEXT.format(kind="axis middle", x=x(i), y=HEIGHT - 12, text=quantile_name(quantile)))
    for curve in curves:
        points = [(x(i), y(curve.quantiles[q])) for i, q in enumerate(quantiles)]
        drawn = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
        parts.append(_CURVE.format(colour=curve.colour, points=drawn))
        for (px, py), quantile in zip(points, quantiles, strict=True):
            title = f"{curve.name}: {quantile_name(quantile)} {milliseconds(curve.quantiles[quantile])}"
            parts.append(_DOT.format(colour=curve.colour, x=px, y=py, title=title))
    return Markup("").join([*parts, Markup("</svg>")])


def quantile_name(quantile: float) -> str:
    """``p99``, ``min`` and the like."""
    return {0.0: "min", 1.0: "max"}.get(quantile, f"p{quantile * 100:g}")


def milliseconds(value: float) -> str:
    """A duration with a fitting unit and three digits."""
    if value >= 1000:
        return f"{value / 1000:.3g} s"
    return f"{value:.3g} ms" if value >= 1 else f"{value * 1000:.3g} µs"
