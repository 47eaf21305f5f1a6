"""Where the commands print, and how they print what a client said."""

from __future__ import annotations

from rich.console import Console


def console_for_all(*, stderr: bool = False) -> Console:
    """A console whose lines are not cut for a reader that is no terminal."""
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = 200
    return console


def plain(text: str, *, lines: bool = False) -> str:
    """Text of a client, harmless for terminals, XML and Python source.

    Whatever is not printable (ESC and other control characters, changes of the writing direction, lone
    surrogates, line breaks) is written as an escape sequence of Python, such as ``\\x1b``.

    Args:
        lines: Keep line feeds; a tab becomes a space.
    """
    if lines:
        return "\n".join(plain(line) for line in text.replace("\t", " ").splitlines())
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
