"""Small languages of Redis: a line of words with quotes, and patterns of channels."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

from fakebrokers.redis.resp import Garbage

_WORD_BEGINS = re.compile(rb"\S")
#: After a closing quote the word has to end.
_WORD = re.compile(
    rb"""([^\s"']*) (?: "((?:[^"\\]|\\.)*)" | '((?:[^'\\]|\\'|\\(?!'))*)' )? (?=\s|\Z)""",
    re.VERBOSE | re.DOTALL,
)
#: What fits any number of bytes of a name, or one.
_PART = re.compile(rb"\*+|\[\^?(?:\\.|[^\]]-.|[^\]])*+\]?|\\.|.", re.DOTALL)
#: In brackets: a letter, or the first and the last of a range; that may even be a bracket.
_LETTER = re.compile(rb"\\(.)|([^\]])-(.)|([^\]])", re.DOTALL)
#: Bytes of a name times parts of a pattern: what a comparison may take, in steps of some nanoseconds.
MOST_STEPS = 1 << 20
_LOG = logging.getLogger("fakebrokers.redis")
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"a": b"\a"}

_STRINGS = """GET SET SETNX SETEX PSETEX GETSET GETDEL GETEX MGET MSET MSETNX STRLEN APPEND
    GETRANGE INCR INCRBY DECR DECRBY"""
_KEYS = """DEL UNLINK EXISTS TOUCH TYPE RENAME RENAMENX PERSIST EXPIRE PEXPIRE EXPIREAT PEXPIREAT TTL PTTL
    KEYS DBSIZE FLUSHDB FLUSHALL"""
_LISTS = """LPUSH RPUSH LPUSHX RPUSHX LPOP RPOP LLEN LRANGE LINDEX LSET LINSERT LREM LTRIM LPOS LMOVE
    RPOPLPUSH LMPOP BLPOP BRPOP BRPOPLPUSH BLMPOP"""
#: Of them, what makes a transaction.
TRANSACTIONS = "MULTI EXEC DISCARD WATCH UNWATCH"
#: What the store carries out.
STORED = frozenset(f"{_STRINGS} {_KEYS} {_LISTS} {TRANSACTIONS}".split())


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


class Glob:
    """A pattern: ``*`` anything, ``?`` one byte, ``[a-c]`` one of them, backslash escapes.

    It may be as long as a client can say. It is compiled once a name comes that is long enough for it, and
    where pattern and name are so long that matching would keep all others waiting, it does not fit, which the
    log says. (The real server tries, and lets them wait.)
    """

    def __init__(self, glob: bytes) -> None:
        parts = _PART.findall(glob)
        self._glob = glob
        self._parts = len(parts)
        self._shortest = sum(not part.startswith(b"*") for part in parts)
        self._compiled: re.Pattern[bytes] | None = None
        self._is_told = False

    def fits(self, name: bytes) -> bool:
        """Whether it fits a name as a whole."""
        if len(name) < self._shortest:
            return False
        if len(name) * self._parts > MOST_STEPS:
            if not self._is_told:
                problem = "a pattern of %d parts fits no name of %d bytes here: comparing them takes too long"
                _LOG.warning(problem, self._parts, len(name))
            self._is_told = True
            return False
        if self._compiled is None:
            self._compiled = _compiled(_PART.findall(self._glob))
        return self._compiled.fullmatch(name) is not None


def _compiled(parts: Sequence[bytes]) -> re.Pattern[bytes]:
    """The regular expression of a pattern.

    What follows a ``*`` is taken where it comes first, for good: a later place could serve no better, and
    trying them all takes for ever with many of them.
    """
    pieces: list[list[bytes]] = [[]]  # between the stars
    for part in parts:
        if part[:1] == b"*":
            pieces.append([])
        elif part == b"?":
            pieces[-1].append(b".")
        elif part[:1] == b"[":
            pieces[-1].append(_one_of(part))
        else:
            pieces[-1].append(re.escape(part[-1:]))
    first, *between = map(b"".join, pieces)
    last = b".*" + between.pop() if between else b""
    return re.compile(first + b"".join(b"(?>.*?%b)" % piece for piece in between) + last, re.DOTALL)


def _one_of(part: bytes) -> bytes:
    """The regular expression of a part in brackets, the last of which may be missing."""
    negated = part[1:2] == b"^"
    found = dict.fromkeys(_LETTER.findall(part, 1 + negated))  # each once, however often it is there
    if not found:
        return b"." if negated else b"(?!)"
    ranges = [sorted((one or other or first, one or other or last)) for one, first, last, other in found]
    letters = b"".join(re.escape(first) + b"-" + re.escape(last) for first, last in ranges)
    return b"[%b%b]" % (b"^" if negated else b"", letters)
