"""How the commands print what a client said: text that stays text, whatever it is printed into.

`fakebrokers.output` sees that no printed line is a command of CI.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from fakebrokers.output import plain

__all__ = ["SafeConsole", "annotation", "console_for_all", "markdown", "page", "plain"]


class SafeConsole(Console):
    """A console that shows control characters instead of obeying them."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What is shown of it."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else _inline(text), style, control)

    def on_broken_pipe(self) -> None:
        """Its reader has gone: for `fakebrokers.cli.main`; rich would end with 1, which is a verdict."""
        raise  # noqa: PLE0704 - called where the error is handled


def _inline(text: str) -> str:
    """Printable text, and the line feeds of the layout."""
    return text if text.isprintable() else "\n".join(map(plain, text.split("\n")))


def console_for_all(*, stderr: bool = False) -> Console:
    """A console whose lines are not cut for a reader that is no terminal."""
    console = SafeConsole(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = 200
    return console


def markdown(text: str) -> str:
    """Text as code of Markdown, in a table too: no markup, link or name in it means anything.

    A backslash before a sign would do less: GitHub looks for addresses and names in what is left as text.
    """
    shown = plain(text).strip().replace("|", "\\x7c")
    if not shown:
        return ""
    fence = "`" * (max(map(len, re.findall("`+", shown)), default=0) + 1)
    material = " " * (shown[0] == "`" or shown[-1] == "`")
    return f"{fence}{material}{shown}{material}{fence}"


def page(text: str) -> str:
    """A page of HTML whose markup is done: what is not printable in it was said by a client."""
    return plain(text, lines=True) + "\n"


def annotation(kind: str, title: str, text: str) -> str:
    """A command of GitHub Actions that marks what has to be looked at; nothing in the texts ends it."""
    name = _escaped(title).replace(":", "%3A").replace(",", "%2C")
    return f"::{kind} title={name}::{_escaped(text)}"


def _escaped(text: str) -> str:
    return plain(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
