"""Where the commands print."""

from __future__ import annotations

from rich.console import Console


def console_for_all(*, stderr: bool = False) -> Console:
    """A console whose lines are not cut for a reader that is no terminal."""
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = 200
    return console
