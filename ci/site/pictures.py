"""Pictures (SVG) of talks between a client and a broker; time runs down."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from ci.site.shown_effects import MESSAGES, PACE_S, WATCHED_S, Arrow, Talk

WIDTH = 440
CLIENT, BROKER = 110, 320  #: where the two lines are
TOP = 34
SCALE = 400.0  #: pixels a second
HEIGHT = int(TOP + WATCHED_S * SCALE) + 14
APART = 11  #: pixels between arrows of the same instant

STYLE = (
    "text{font:11px sans-serif;fill:#333}"
    "line,path{stroke:#888;stroke-width:1.2;fill:none}"
    ".life{stroke:#ccc;stroke-width:2}"
    ".touched{stroke:#c62828;stroke-width:1.8}"
    ".said{fill:#c62828;font-weight:bold}"
    ".quiet{fill:#888}"
    ".write{fill:#1565c0}"
)


def sequence(talk: Talk, title: str) -> str:
    """The picture of a talk, as an SVG document."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}"'
        f' height="{HEIGHT}" role="img" aria-label="{escape(title)}">',
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        _text("client", CLIENT, 16),
        _text("broker", BROKER, 16),
        f'<line class="life" x1="{CLIENT}" y1="24" x2="{CLIENT}" y2="{HEIGHT - 8}"/>',
        f'<line class="life" x1="{BROKER}" y1="24" x2="{BROKER}" y2="{HEIGHT - 8}"/>',
        *_never_heard(talk),
        *_arrows(talk),
        *_states(talk),
        *(f'<circle class="write" cx="{CLIENT}" cy="{_y(at):.1f}" r="2.5"/>' for at, _ in talk.writes),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _y(at: float) -> float:
    return TOP + at * SCALE


def _arrows(talk: Talk) -> Iterator[str]:
    """Arrows of the same instant are below each other, in their order."""
    taken: dict[tuple[bool, float], int] = {}
    for arrow in talk.arrows:
        place = (arrow.out, arrow.came if arrow.came is not None else arrow.left)
        row = taken.get(place, 0)
        taken[place] = row + 1
        yield from _arrow(arrow, row * APART)


def _arrow(arrow: Arrow, below: float) -> Iterator[str]:
    begin, end = (BROKER, CLIENT) if arrow.out else (CLIENT, BROKER)
    shift = APART / 2 if arrow.out else -APART / 2  # a question above its answer
    y1 = _y(arrow.left) + shift
    y2 = _y(arrow.came) + shift + below if arrow.came is not None else y1
    if arrow.came == arrow.left:
        y1 = y2
    lost = arrow.came is None
    kind = "touched" if arrow.touched or arrow.changed or lost else ""
    stop = (begin + end) / 2 if lost else end
    yield f'<line class="{kind}" x1="{begin}" y1="{y1:.1f}" x2="{stop}" y2="{y2:.1f}"/>'
    if lost:
        yield f'<path class="touched" d="M{stop - 5} {y2 - 5:.1f}l10 10m0 -10l-10 10"/>'
    else:
        back = 7 if arrow.out else -7
        yield f'<path class="{kind}" d="M{end + back} {y2 - 3.5:.1f}L{end} {y2:.1f}l{back} 3.5"/>'
    said = "said" if kind else "quiet"
    if arrow.out:
        yield _text(_short(arrow), BROKER + 6, y1 + 3.5, said, "start")
    else:
        yield _text(_short(arrow), CLIENT - 6, y1 + 3.5, said, "end")


def _text(text: str, x: float, y: float, kind: str = "", anchor: str = "middle") -> str:
    return f'<text class="{kind}" x="{x}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _short(arrow: Arrow) -> str:
    """The names of frames without the protocol's own prefix."""
    return arrow.label.replace("PublishConfirm", "Confirm").replace("PublishError", "Error")


def _states(talk: Talk) -> Iterator[str]:
    """What happens to the broker or the connection, on a line of its own."""
    for number, (at, what) in enumerate(talk.states):
        y = _y(at) + 14 + APART * sum(other == at for other, _ in talk.states[:number])
        yield _text(what, (CLIENT + BROKER) / 2, y, "said")


def _never_heard(talk: Talk) -> Iterator[str]:
    """Messages that the client sent and that no broker received: the connection had ended."""
    sent = [number * PACE_S for number in range(MESSAGES)]
    received = sum(not arrow.out for arrow in talk.arrows)
    for at in sent[received:]:
        y = _y(at)
        yield f'<line stroke-dasharray="3 3" x1="{CLIENT}" y1="{y:.1f}" x2="{CLIENT + 60}" y2="{y:.1f}"/>'
        yield _text("not heard", CLIENT - 6, y + 3.5, "quiet", "end")
