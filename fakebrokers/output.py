"""The standard streams of the command line: what a client says stays text there, and nothing is lost unsaid.

GitHub Actions and others read commands from whatever a step prints: ``::stop-commands::x`` at the begin of a
line, ``##[add-mask]x`` anywhere in it. Tables fold texts, so that any part of one may begin a line; that is
why whole lines are looked at here, as they are written.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

#: What a runner of CI skips before a command: blanks, and colours.
_BEFORE = re.compile(r"(?:\s|\x1b\[[0-9;]*m)*")
#: Commands of GitHub's older kind, and those of Azure and TeamCity.
_INLINE = re.compile(r"##(?=\w*\[)")


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


def cut(text: str, longest: int) -> str:
    """The text, or so much of it and how long it is."""
    return text if len(text) <= longest else f"{text[:longest]}... ({len(text):,} characters)"


class Inert:
    """Turns text into lines that no runner of CI takes for a command.

    The sign that makes the command is written as ``\\u003a`` or ``\\u0023``, which JSON reads as the same.
    """

    def __init__(self) -> None:
        self._begun = ""  # what the line holds so far, as far as it matters: nothing, a colon, anything else

    def __call__(self, text: str) -> str:
        """The next piece of the output."""
        return "".join(map(self._line, _INLINE.sub(r"#\\u0023", text).splitlines(keepends=True)))

    def _line(self, piece: str) -> str:
        if self._begun in ("", ":"):
            at = 0 if self._begun else _BEFORE.match(piece).end()  # type: ignore[union-attr]
            self._begun += piece[at : at + 2]
            if self._begun.startswith("::"):
                piece = f"{piece[:at]}\\u003a{piece[at + 1 :]}"
        if piece[-1:].isspace() and piece.splitlines()[0] != piece:
            self._begun = ""
        return piece


class Output(io.TextIOWrapper):
    """A standard stream that writes no command of CI but our own, and every sign in any encoding.

    Args:
        quiet: Nobody can be told when it cannot be written.
    """

    def __init__(self, stream: TextIO, *, quiet: bool) -> None:
        line_buffering = bool(getattr(stream, "line_buffering", False))
        super().__init__(stream.buffer, stream.encoding, "backslashreplace", "", line_buffering)
        self._inert = Inert()
        self._quiet = quiet
        self._problem = ""

    def write(self, text: str, /) -> int:
        self._write(self._inert(text))
        return len(text)

    def command(self, line: str) -> None:
        """Write a command of our own."""
        self._write(f"{line}\n")

    def flush(self) -> None:
        with self._remembering():
            super().flush()

    def unwritten(self) -> str:
        """Why something printed so far could not be written; empty if all could."""
        with suppress(OSError):
            self.flush()
        return self._problem

    def let_go(self) -> None:
        """Give the bytes back to the stream that was there before.

        What cannot be written goes nowhere: else the interpreter tries once more at its end, and ends with a
        code of its own.
        """
        try:
            super().flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            super().flush()
        self.detach()

    def _write(self, text: str) -> None:
        with self._remembering():
            super().write(text)

    @contextmanager
    def _remembering(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._problem = f"standard output cannot be written: {error.strerror}"
            if not self._quiet:
                raise


@contextmanager
def inert_output() -> Iterator[Callable[[], str]]:
    """Both standard streams as `Output` while the block lasts.

    Yields a function that says why standard output does not take what was printed; empty if it does.
    """
    before = sys.stdout, sys.stderr
    mine = []
    try:
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if hasattr(stream, "buffer"):
                mine.append(Output(stream, quiet=name == "stderr"))
                setattr(sys, name, mine[-1])
        yield lambda: "".join(stream.unwritten() for stream in mine[:1])
    finally:
        sys.stdout, sys.stderr = before
        for stream in mine:
            stream.let_go()


def command(line: str) -> None:
    """Print a command that CI is to read; what clients say in it is escaped already."""
    if isinstance(sys.stdout, Output):
        sys.stdout.command(line)
    else:
        print(line)
