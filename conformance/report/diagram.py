"""A sequence diagram as SVG: client on the left, fake on the right, time downwards.

Colours come from the page's style sheet by class, so the drawing follows light and dark. Texts are escaped
by `markupsafe`.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from conformance.results import Step

WIDTH = 790
LEFT, RIGHT = 140, 580  #: the lifelines
TOP = 46
ROW = 34
LABEL_MAX = 52
FAULT_MAX = 28

_OPEN = Markup(
    '<svg class="sequence" viewBox="0 0 {width} {height}" role="img" aria-label="{label}">'
    '<line class="life" x1="{left}" y1="34" x2="{left}" y2="{end}"/>'
    '<line class="life" x1="{right}" y1="34" x2="{right}" y2="{end}"/>'
    '<g class="actor"><rect x="{lx}" y="6" width="96" height="28" rx="6"/>'
    '<text x="{left}" y="25">client</text></g>'
    '<g class="actor"><rect x="{rx}" y="6" width="96" height="28" rx="6"/>'
    '<text x="{right}" y="25">fake</text></g>'
)
_TIME = Markup('<text class="time" x="{x}" y="{y}">{text}</text>')
_ARROW = Markup(
    '<g class="step {style}"><title>{title}</title>'
    '<line class="shaft" x1="{x1}" y1="{y}" x2="{x2}" y2="{y}"/>'
    '<path class="{head}" d="{path}"/>'
    '<text x="{middle}" y="{above}"><tspan class="kind">{kind}</tspan>{label}</text>{fault}</g>'
)
_LABEL = Markup(' <tspan class="label">{label}</tspan>')
_FAULT = Markup('<text class="fault-name" x="{x}" y="{y}">&#9889; {name}</text>')
_STATE = Markup(
    '<g class="step state {style}"><title>{title}</title>'
    '<rect x="{x}" y="{top}" width="{width}" height="22" rx="11"/>'
    '<text x="{middle}" y="{y}">{text}</text></g>'
)


def sequence(steps: Sequence[Step]) -> Markup:
    """The diagram; empty if there are no steps."""
    if not steps:
        return Markup("")
    several = len({step.connection for step in steps if step.connection}) > 1
    height = TOP + ROW * len(steps) + 12
    parts = [
        _OPEN.format(
            width=WIDTH,
            height=height,
            left=LEFT,
            right=RIGHT,
            end=height - 6,
            lx=LEFT - 48,
            rx=RIGHT - 48,
            label=f"Sequence diagram of {len(steps)} steps",
        )
    ]
    for row, step in enumerate(steps):
        y = TOP + ROW * row + ROW // 2 + 6
        parts.append(_TIME.format(x=LEFT - 14, y=y + 4, text=_moment(step, several)))
        parts.append(_state(step, y) if not step.dir else _arrow(step, y))
    return Markup("").join([*parts, Markup("</svg>")])


def _arrow(step: Step, y: int) -> Markup:
    begin, end = (LEFT, RIGHT) if step.dir == "in" else (RIGHT, LEFT)
    forward = 1 if end > begin else -1
    stop = end - forward * (110 if step.lost else 2)
    if step.lost:
        head, path = "cross", f"M{stop - 6} {y - 6}l12 12m0 -12l-12 12"
    else:
        head, path = "head", f"M{stop} {y}l{-9 * forward} -4.5v9z"
    middle = (begin + stop) // 2 if step.lost else (LEFT + RIGHT) // 2
    label = _short(step.label, LABEL_MAX - min(28, len(step.kind)))
    return _ARROW.format(
        style=_style(step),
        title=_title(step),
        x1=begin,
        x2=stop,
        y=y,
        head=head,
        path=path,
        middle=middle,
        above=y - 6,
        kind=_short(step.kind, 28),
        label=_LABEL.format(label=label) if label else "",
        fault=_FAULT.format(x=RIGHT + 12, y=y + 4, name=_short(step.fault, FAULT_MAX)) if step.fault else "",
    )


def _state(step: Step, y: int) -> Markup:
    text = _short(" ".join(part for part in (step.kind, step.label) if part), LABEL_MAX)
    width = 24 + 6.6 * len(text)
    middle = (LEFT + RIGHT) // 2
    state = _STATE.format(
        style=_style(step),
        title=_title(step),
        x=middle - width / 2,
        top=y - 13,
        width=width,
        middle=middle,
        y=y + 2,
        text=text,
    )
    return state + (
        _FAULT.format(x=RIGHT + 12, y=y + 4, name=_short(step.fault, FAULT_MAX)) if step.fault else ""
    )


def _style(step: Step) -> str:
    words = (step.dir, "faulty" if step.fault else "", "lost" if step.lost else "")
    return " ".join(filter(None, words))


def _title(step: Step) -> str:
    way = {"in": "client to fake", "out": "fake to client", "": "state"}[step.dir]
    words = [f"{step.t:.4f} s", step.connection, way, step.kind, step.label]
    if step.fault:
        words.append(f"fault: {step.fault}")
    if step.lost:
        words.append("never arrived")
    return " · ".join(word for word in words if word)


def _moment(step: Step, several: bool) -> str:
    moment = f"{step.t * 1000:,.1f} ms" if step.t < 10 else f"{step.t:,.2f} s"
    return f"{step.connection} {moment}" if several else moment


def _short(text: str, limit: int) -> str:
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"
