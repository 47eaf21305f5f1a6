"""A sequence diagram as SVG: client on the left, fake on the right, time downwards.

The fake has a lifeline for each connection. Colours come from the page's style sheet by class, so the drawing
follows light and dark. Texts are escaped by `markupsafe`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from markupsafe import Markup

from conformance.results import Step

LEFT, RIGHT = 140, 580  #: the lifelines of the client, and of the first connection
LANE = 84  #: from one connection to the next
MARGIN = 210  #: right of the last one, for the names of faults
TOP = 46
NAMES = 20  #: what the names of connections need below the heads
ROW = 34
KIND_MAX, LABEL_MAX = 28, 52
FAULT_MAX = 28
#: Connections with a lifeline of their own; all further ones share the last.
LANES = 8

_OPEN = Markup(
    '<svg class="sequence" viewBox="0 0 {width} {height}" style="min-width:{least}px" role="img" '
    'aria-label="{label}">'
)
_ACTOR = Markup(
    '<g class="actor"><rect x="{x}" y="6" width="{width}" height="28" rx="6"/>'
    '<text x="{middle}" y="25">{name}</text></g>'
)
_LIFE = Markup('<line class="life{idle}" x1="{x}" y1="{begin}" x2="{x}" y2="{end}"/>')
_LANE = Markup('<text class="lane" x="{x}" y="{y}">{name}</text>')
# A row has heights of its own, counted from its line: the same texts again and again pack well.
_ROW = Markup('<g class="step {style}" transform="translate(0,{y})">{title}{time}{what}{fault}</g>')
_TIME = Markup('<text class="time" x="{x}" y="4">{text}</text>')
_ARROW = Markup(
    '<path class="shaft" d="M{x1} 0H{x2}"/><path class="{head}" d="{path}"/>'
    '<text x="{middle}" y="-6"><tspan class="kind">{kind}</tspan>{label}</text>'
)
_TITLE = Markup("<title>{text}</title>")
_LABEL = Markup(' <tspan class="label">{label}</tspan>')
_FAULT = Markup('<text class="fault-name" x="{x}" y="4">&#9889; {name}</text>')
_STATE = Markup(
    '<rect x="{x}" y="-13" width="{width}" height="22" rx="11"/><text x="{middle}" y="2">{text}</text>'
)


class _Lanes(msgspec.Struct, frozen=True):
    """Where the connections are, in the order in which they turn up."""

    names: tuple[str, ...]

    @property
    def last(self) -> int:
        """The lifeline on the right."""
        return RIGHT + LANE * (min(max(len(self.names), 1), LANES) - 1)

    @property
    def top(self) -> int:
        """Where the rows begin."""
        return TOP + (NAMES if len(self.names) > 1 else 0)

    def shares(self, connection: str) -> bool:
        """Whether its lifeline is not its own."""
        if not connection or len(self.names) <= LANES:
            return False
        return self.names.index(connection) >= LANES - 1

    def x(self, connection: str) -> int:
        """Its lifeline; what belongs to no connection is at the first."""
        number = self.names.index(connection) if connection else 0
        return RIGHT + LANE * min(number, LANES - 1)


def sequence(steps: Sequence[Step]) -> Markup:
    """The diagram; empty if there are no steps."""
    if not steps:
        return Markup("")
    lanes = _Lanes(tuple(dict.fromkeys(step.connection for step in steps if step.connection)))
    rows = [lanes.top + ROW * row + ROW // 2 + 6 for row in range(len(steps))]
    width, height = lanes.last + MARGIN, lanes.top + ROW * len(steps) + 12
    label = f"Sequence diagram of {len(steps)} steps"
    parts = [_OPEN.format(width=width, height=height, least=round(0.81 * width), label=label)]
    parts += _lifelines(steps, rows, lanes, height - 6)
    parts += [_row(step, y, lanes) for y, step in zip(rows, steps, strict=True)]
    return Markup("").join([*parts, Markup("</svg>")])


def _lifelines(steps: Sequence[Step], rows: Sequence[int], lanes: _Lanes, end: int) -> list[Markup]:
    """Of the client, and of each connection: a full line from its first step to its last."""
    parts = [_LIFE.format(idle="", x=LEFT, begin=34, end=end)]
    spans: dict[int, tuple[int, int]] = {}
    for y, step in zip(rows, steps, strict=True):
        if step.connection or len(lanes.names) < 2:
            x = lanes.x(step.connection)
            spans[x] = (spans.get(x, (y, y))[0], y)
    several = len(lanes.names) > 1
    begin = lanes.top + 4 if several else 34
    for x, (first, last) in spans.items():
        parts.append(_LIFE.format(idle=" idle" if several else "", x=x, begin=begin, end=end))
        if several:
            parts.append(_LIFE.format(idle="", x=x, begin=first, end=last))
    parts.append(_ACTOR.format(x=LEFT - 48, width=96, middle=LEFT, name="client"))
    middle = (RIGHT + lanes.last) // 2
    parts.append(_ACTOR.format(x=RIGHT - 48, width=96 + lanes.last - RIGHT, middle=middle, name="fake"))
    for name in lanes.names[:LANES] if several else ():
        shown = "others" if lanes.shares(name) else _short(name, 10)
        parts.append(_LANE.format(x=lanes.x(name), y=TOP + 6, name=shown))
    return parts


def _row(step: Step, y: int, lanes: _Lanes) -> Markup:
    name = _short(step.fault, FAULT_MAX)
    return _ROW.format(
        style=_style(step),
        y=y,
        title=_title(step),
        time=_TIME.format(x=LEFT - 14, text=_position(step, lanes.shares(step.connection))),
        what=_arrow(step, lanes) if step.dir else _state(step, lanes),
        fault=_FAULT.format(x=lanes.last + 12, name=name) if name else "",
    )


def _arrow(step: Step, lanes: _Lanes) -> Markup:
    ends = LEFT, lanes.x(step.connection)
    begin, end = ends if step.dir == "in" else ends[::-1]
    forward = 1 if end > begin else -1
    stop = end - forward * (110 if step.lost else 2)
    if step.lost:
        head, path = "cross", f"M{stop - 6} -6l12 12m0 -12l-12 12"
    else:
        head, path = "head", f"M{stop} 0l{-9 * forward} -4.5v9z"
    label = _short(step.label, LABEL_MAX - min(KIND_MAX, len(step.kind)))
    return _ARROW.format(
        x1=begin,
        x2=stop,
        head=head,
        path=path,
        middle=(LEFT + RIGHT) // 2,
        kind=_short(step.kind, KIND_MAX),
        label=_LABEL.format(label=label) if label else "",
    )


def _state(step: Step, lanes: _Lanes) -> Markup:
    """A pill that ends at the connection's lifeline; what is about the whole fake is in the middle."""
    text = _short(" ".join(part for part in (step.kind, step.label) if part), LABEL_MAX)
    width = 24 + 6.6 * len(text)
    is_one_of_several = bool(step.connection) and len(lanes.names) > 1
    right = lanes.x(step.connection) + 11 if is_one_of_several else (LEFT + RIGHT + width) / 2
    middle = right - width / 2
    return _STATE.format(x=f"{right - width:.0f}", width=f"{width:.0f}", middle=f"{middle:.0f}", text=text)


def _style(step: Step) -> str:
    words = (step.dir or "state", "faulty" if step.fault else "", "lost" if step.lost else "")
    return " ".join(filter(None, words))


def _title(step: Step) -> Markup:
    """All there is to say, for steps of which the drawing does not show it: cut texts, and what was lost."""
    kind = step.kind if step.dir else " ".join((step.kind, step.label))
    is_cut = len(kind) > KIND_MAX or len(step.kind) + len(step.label) > LABEL_MAX - 2
    if not (step.lost or is_cut or len(step.fault) > FAULT_MAX):
        return Markup("")
    way = {"in": "client to fake", "out": "fake to client", "": "state"}[step.dir]
    words = [f"{step.t:.4f} s", step.connection, way, step.kind, step.label]
    if step.fault:
        words.append(f"fault: {step.fault}")
    if step.lost:
        words.append("never arrived")
    return _TITLE.format(text=" · ".join(word for word in words if word))


def _position(step: Step, with_connection: bool) -> str:
    position = f"{step.t * 1000:,.1f} ms" if step.t < 10 else f"{step.t:,.2f} s"
    return f"{step.connection} {position}" if with_connection else position


def _short(text: str, limit: int) -> str:
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"
