"""Regular expressions that somebody else wrote: searching with them never takes long.

`re` cannot be interrupted, so one pattern such as ``(a+)+$`` would keep all fakes of a process waiting. Here
a search has a time limit, all slow searches together have one too, and a pattern that exceeds it does not
match from then on, which the log says. Real servers do likewise: PCRE has a limit of steps.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from fakebrokers.core.clock import monotonic
from fakebrokers.extras import needs

if TYPE_CHECKING:
    from regex import Pattern as Compiled

_LOG = logging.getLogger("fakebrokers.patterns")

#: CPU seconds that one search may take.
SEARCH_S = 0.01
#: CPU seconds that any search may take, whatever others have taken: more than any sensible one does.
QUICK_S = 0.0001
#: CPU seconds that slow searches may take together, and how many of them come back each second.
PURSE_S = 0.05
#: Characters of a pattern, and its parts once repetitions are written out: compiling takes its time, too.
LONGEST = 2000
MOST_PARTS = 5000

_TOKEN = re.compile(
    r"""
    (?P<comment> \(\?\#[^)]*\) )
    | (?P<open> \( (?P<flags> \?[A-Za-z0-9^-]+ (?=[:)]) )? )
    | (?P<close> \) )
    | (?P<repeat> [*+?] | \{ (?P<times>\d*) (?:,\d*)? \} )
    | \\. | \[\^?\]? (?: \[:\^?\w+:\] | \\. | [^\]\\] )* \] | .
    """,
    re.VERBOSE | re.DOTALL,
)
#: Flags and calls that the patterns of real servers (PCRE) have; not ``x``, whose comments hide parentheses.
_FLAGS = frozenset("?^-imsnJUR0123456789")


class Purse:
    """What slow searches may take together.

    Args:
        clock: Seconds that pass while nobody searches.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._left = PURSE_S
        self._looked = clock()

    @property
    def left(self) -> float:
        """CPU seconds."""
        now = self._clock()
        self._left = min(PURSE_S, self._left + (now - self._looked) * PURSE_S)
        self._looked = now
        return self._left

    def take(self, seconds: float) -> None:
        """A slow search has taken so much."""
        self._left = self.left - seconds


_PURSE = Purse()


class Pattern:
    """A regular expression.

    Args:
        text: As the user wrote it.
        purse: That of all patterns, but in tests.

    Raises:
        ValueError: It is none, or takes too long to compile; the text says what is wrong with it.
    """

    def __init__(self, text: str, purse: Purse = _PURSE) -> None:
        self.text = text
        self._purse = purse
        self._given_up = False
        self._compiled = None if text == ".*" else _compile(text)  # what every user has may find everything

    def found_in(self, name: str) -> bool:
        """Whether it fits somewhere in a name; False if that takes too long to say."""
        if self._compiled is None:
            return True
        if self._given_up:
            return False
        allowed = min(SEARCH_S, max(QUICK_S, self._purse.left))
        begun = time.thread_time()
        try:
            return self._compiled.search(name, timeout=allowed) is not None
        except TimeoutError:
            self._given_up = True
            _LOG.warning(
                "the pattern %.100r takes too long on %.100r: it matches nothing until it is set again",
                self.text,
                name,
            )
            return False
        finally:
            if (spent := time.thread_time() - begun) > QUICK_S:
                self._purse.take(spent)


def problem_of(text: str) -> str | None:
    """What is wrong with a pattern; None: nothing."""
    try:
        _compile(text)
    except ValueError as error:
        return str(error)
    return None


def _compile(text: str) -> Compiled[str]:
    with needs("rabbitmq-stream", "a regular expression"):
        import regex  # takes its time to load, and few need it

    if len(text) > LONGEST:
        raise ValueError(f"expected a regular expression of at most {LONGEST} characters, got {len(text)}")
    wanted = f"expected a regular expression, got {text[:100]!r}"
    if (parts := _parts(text)) > MOST_PARTS:
        raise ValueError(f"{wanted}: its repetitions come to {parts} parts, at most {MOST_PARTS} are allowed")
    try:
        return regex.compile(text)
    except (regex.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{wanted}: {error}") from None


def _parts(text: str) -> int:
    """How much work compiling is: `regex` writes ``(ab){9}`` out, and looks twice into groups that repeat.

    Raises:
        ValueError: Flags that real servers do not have.
    """
    levels, last = [0], 0  # parts of each open group, and of what a repetition would repeat
    for token in _TOKEN.finditer(text):
        if token["open"]:
            if unknown := set(token["flags"] or "") - _FLAGS:
                flags = "".join(sorted(unknown))
                raise ValueError(
                    f"expected a regular expression, got {text[:100]!r}: unknown flags {flags!r}"
                )
            levels.append(1)
            last = 0
        elif token["repeat"]:
            more = last * (max(2 if last > 1 else 1, int((token["times"] or "1")[:9])) - 1)
            levels[-1] += more
            last += more
        elif not token["comment"]:
            last = levels.pop() if token["close"] and len(levels) > 1 else 1
            levels[-1] += last
    return sum(levels)
