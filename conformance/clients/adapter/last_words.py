"""What a client that has ended wrote to stderr about that."""

from __future__ import annotations

import re

LINE_MAX = 200  #: characters of a client's last words
ABOUT = 6  #: lines that are shown from its last words on
BEFORE = 2  #: and before them, where runtimes say the place first

#: How runtimes begin the line that says why they end, and how loggers mark it; Rust reports a panic in two.
FATAL = re.compile(
    r"^(?:(?:(?:Uncaught |fatal )?\w*(?:[Ee]rror|Exception|panic|ASSERT\w*|Assertion)\b|.*\bFATAL\b).*"
    r"|thread '.*panicked at .*\n.*|memory allocation of .*)",
    re.MULTILINE,
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def plain(text: str) -> str:
    """Without the colours that loggers write for terminals."""
    return _COLOUR.sub("", text)


def last_words(stderr: str) -> str:
    """Why a client has ended, by its stderr, in one line; "" if that says nothing."""
    found = FATAL.findall(plain(stderr))
    return " ".join(found[-1].split())[:LINE_MAX] if found else ""


def around_last_words(stderr: str) -> list[str]:
    """The lines about them that are not blank; none if there are no last words."""
    text = plain(stderr)
    found = list(FATAL.finditer(text))
    if not found:
        return []
    before = _lines(text[: found[-1].start()])[-BEFORE:]
    return [*before, *_lines(text[found[-1].start() :])][:ABOUT]


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
