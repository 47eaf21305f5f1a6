"""Small languages of Redis: a line of words with quotes, and patterns of channels."""

from __future__ import annotations

import re
from functools import lru_cache

from fakebrokers.moleculer.redis.resp import Garbage

_WORD_BEGINS = re.compile(rb"\S")
#: Behind a closing quote the word has to end.
_WORD = re.compile(
    rb"""([^\s"']*) (?: "((?:[^"\\]|\\.)*)" | '((?:[^'\\]|\\'|\\(?!'))*)' )? (?=\s|\Z)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"a": b"\a"}


def split_words(line: bytes) -> list[bytes]:
    """The words of a command in one line.

    Raises:
        Garbage: A quote does not end.
    """
    words, at = [], 0
    while (begins := _WORD_BEGINS.search(line, at)) is not None:
        found = _WORD.match(line, begins.start())
        if found is None:
            raise Garbage("unbalanced quotes in request")
        plain, double, single = found.groups()
        words.append(plain + _unescaped(double or b"") + (single or b"").replace(b"\\'", b"'"))
        at = found.end()
    return words


def _unescaped(word: bytes) -> bytes:
    def one(found: re.Match[bytes]) -> bytes:
        code = found[1]
        return bytes([int(code[1:], 16)]) if len(code) == 3 else _ESCAPED.get(code, code)

    return re.sub(rb"\\(x[0-9a-fA-F]{2}|.)", one, word, flags=re.DOTALL)


@lru_cache(maxsize=512)
def pattern_of(glob: bytes) -> re.Pattern[bytes]:
    """What fits a pattern: ``*`` anything, ``?`` one byte, ``[a-c]`` one of them, backslash escapes."""
    found, at = [], 0
    while at < len(glob):
        letter = glob[at : at + 1]
        at += 1
        if letter == b"*":
            found.append(b".*")
        elif letter == b"?":
            found.append(b".")
        elif letter == b"[":
            at, piece = _one_of(glob, at)
            found.append(piece)
        elif letter == b"\\" and at < len(glob):
            found.append(re.escape(glob[at : at + 1]))
            at += 1
        else:
            found.append(re.escape(letter))
    return re.compile(b"".join(found), re.DOTALL)


def _one_of(glob: bytes, at: int) -> tuple[int, bytes]:
    """The letters up to the closing bracket; where it ends, and a regular expression."""
    negated = glob[at : at + 1] == b"^"
    at += negated
    letters = []
    while at < len(glob) and glob[at : at + 1] != b"]":
        if glob[at : at + 1] == b"\\" and at + 1 < len(glob):
            at += 1
            letters.append(re.escape(glob[at : at + 1]))
        elif glob[at + 1 : at + 2] == b"-" and at + 2 < len(glob):
            first, last = sorted((glob[at : at + 1], glob[at + 2 : at + 3]))
            letters.append(re.escape(first) + b"-" + re.escape(last))
            at += 2
        else:
            letters.append(re.escape(glob[at : at + 1]))
        at += 1
    if not letters:
        return at + 1, b"." if negated else b"(?!)"
    return at + 1, b"[%b%b]" % (b"^" if negated else b"", b"".join(letters))
