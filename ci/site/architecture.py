"""The picture of what a byte goes through, as SVG."""

from __future__ import annotations

from itertools import pairwise

WIDTH, HEIGHT = 760, 250
BOX = 96, 38

#: Name and the left edge of each box of the two rows; the broker is behind both.
STATIONS = (("socket", 20), ("codec", 150), ("faults", 280), ("session", 450))
ROWS = ((60, "in", ("received", "heard")), (182, "out", ("sent", "said")))

#: Left and upper edge of the journal, between the rows.
JOURNAL = 240, 127

STYLE = (
    "text{font:13px sans-serif;fill:#333;text-anchor:middle}"
    ".tap{font-size:12px;fill:#1565c0}"
    "rect{fill:#eef2f7;stroke:#90a4ae}"
    ".fault{fill:#fde7e7;stroke:#c62828}"
    ".journal{fill:#e3f2fd;stroke:#1565c0}"
    ".paper{fill:#fff;stroke:none}"
    "path{stroke:#555;stroke-width:1.4;fill:none;marker-end:url(#end)}"
    ".written{stroke:#1565c0;stroke-dasharray:3 3}"
)


def picture() -> str:
    """The picture of what a byte goes through, as SVG."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}"'
        f' height="{HEIGHT}" role="img" aria-label="what a byte goes through">',
        '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
        ' orient="auto"><path d="M0 0L8 4L0 8z" style="fill:#555;stroke:none"/></marker></defs>',
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>',
    ]
    for top, direction, taps in ROWS:
        parts += _row(top, direction, taps)
    parts.append(_box("broker", 620, 60, height=160))
    parts.append(f'<rect class="journal" x="{JOURNAL[0]}" y="{JOURNAL[1]}" width="210" height="26" rx="5"/>')
    parts.append(_text("journal", JOURNAL[0] + 105, JOURNAL[1] + 18, "tap"))
    parts.append(_text("client", 68, 40))
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _row(top: int, direction: str, taps: tuple[str, str]) -> list[str]:
    """Boxes from the socket to the broker, with arrows in the row's direction."""
    parts = [
        _box(
            name, left, top, "fault" if name == "faults" else "", below=direction if name == "faults" else ""
        )
        for name, left in STATIONS
    ]
    edges = [(left + BOX[0], right) for (_, left), (_, right) in pairwise(STATIONS)]
    edges.append((STATIONS[-1][1] + BOX[0], 620))
    middle = top + BOX[1] / 2
    for left, right in edges:
        begin, end = (left, right) if direction == "in" else (right, left)
        parts.append(f'<path d="M{begin} {middle}L{end} {middle}"/>')
    for tap, (left, right) in zip(taps, edges[1:3], strict=True):
        x = (left + right) / 2
        down = direction == "in"
        parts.append(_text(tap, x, top - 8 if down else top + BOX[1] + 18, "tap"))
        tail, head = (middle + 3, JOURNAL[1] - 2) if down else (middle - 3, JOURNAL[1] + 28)
        parts.append(f'<path class="written" d="M{x} {tail}L{x} {head}"/>')
    return parts


def _box(name: str, left: int, top: int, kind: str = "", *, height: int = BOX[1], below: str = "") -> str:
    wide = BOX[0] if name != "broker" else 120
    lines = (
        ["broker", "streams, queues,", "nodes"] if name == "broker" else [name, below] if below else [name]
    )
    x, y = left + wide / 2, top + height / 2 + 5 - 8 * (len(lines) - 1)
    text = "".join(_text(line, x, y + 16 * number) for number, line in enumerate(lines))
    return f'<rect class="{kind}" x="{left}" y="{top}" width="{wide}" height="{height}" rx="5"/>{text}'


def _text(text: str, x: float, y: float, kind: str = "") -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{text}</text>'
