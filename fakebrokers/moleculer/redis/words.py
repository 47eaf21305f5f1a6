"""Small languages of Redis: a line of words with quotes, and patterns of channels."""

from __future__ import annotations

import re
from functools import lru_cache

from fakebrokers.moleculer.redis.resp import Garbage

_WORD = re.compile(
    rb"""\s*(?: "((?:[^"\\]|\\.)*)"(?=\s|$) | '((?:[^'\\]|\\.)*)'(?=\s|$) | ([^\s"']\S*) )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"a": b"\a"}


def split_words(line: bytes) -> list[bytes]:
    """The words of a command in one line.

    Raises:
        Garbage: A quote does not end.
    """
    words, at = [], 0
    while line[at:].strip():
        found = _WORD.match(line, at)
        if found is None:
            raise Garbage("unbalanced quotes in request")
        double, single, plain = found.groups()
        words.append(plain if plain is not None else _unescaped(single if double is None else double))
        at = found.end()
    return words


def _unescaped(word: bytes) -> bytes:
    def one(found: re.Match[bytes]) -> bytes:
        code = found[1]
        return bytes([int(code[1:], 16)]) if len(code) == 3 else _ESCAPED.get(code, code)

    return re.sub(rb"\\(x[0-9a-fA-F]{2}|.)", one, word, flags=re.DOTALL)


@lru_cache(maxsize=512)
def pattern_of(glob: str) -> re.Pattern[str]:
    """What fits a pattern: ``*`` anything, ``?`` one character, ``[a-c]`` one of them, backslash escapes."""
    found, at = [], 0
    while at < len(glob):
        letter = glob[at]
        at += 1
        if letter == "*":
            found.append(".*")
        elif letter == "?":
            found.append(".")
        elif letter == "[":
            at, piece = _one_of(glob, at)
            found.append(piece)
        elif letter == "\\" and at < len(glob):
            found.append(re.escape(glob[at]))
            at += 1
        else:
            found.append(re.escape(letter))
    return re.compile("".join(found), re.DOTALL)


def _one_of(glob: str, at: int) -> tuple[int, str]:
    """The letters up to the closing bracket; where it ends, and a regular expression."""
    negated = glob[at : at + 1] == "^"
    at += negated
    letters = []
    while at < len(glob) and glob[at] != "]":
        if glob[at] == "\\" and at + 1 < len(glob):
            at += 1
            letters.append(re.escape(glob[at]))
        elif glob[at + 1 : at + 2] == "-" and at + 2 < len(glob):
            first, last = sorted((glob[at], glob[at + 2]))
            letters.append(f"{re.escape(first)}-{re.escape(last)}")
            at += 2
        else:
            letters.append(re.escape(glob[at]))
        at += 1
    if not letters:
        return at + 1, "." if negated else "(?!)"
    return at + 1, f"[{'^' if negated else ''}{''.join(letters)}]"
