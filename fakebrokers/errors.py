"""Every exception that this package raises on purpose.

FakeBrokerError
├── WireError          bytes that do not follow the protocol
│   └── FrameTooLarge  a size prefix above the agreed maximum
├── PlanError          a fault plan that cannot be carried out
├── UsageError         the fake was asked for something it cannot do
│   └── NotSimulated   code in a simulation asked for something that is not simulated
├── Deadlock           everything in a simulation waits, and nothing is going to happen
├── DoesNotRepeat      the same seed gave another run
├── JournalError       the journal could not be written down
├── ResourceError      the system lets the process have no more of something
├── WaitTimeout        what a test waited for did not happen
└── UnmetExpectation   what a test expected did not happen, or a fault did not take place
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable

#: More valid words than these are not all named in an error.
MANY_WORDS = 60


class FakeBrokerError(Exception):
    """Base of all errors of this package."""


class WireError(FakeBrokerError):
    """Bytes that do not follow the protocol.

    Args:
        expected: What the protocol asks for at this place.
        got: What was there.
        at: Byte offset inside the frame, or None where there is no single place.
    """

    def __init__(self, expected: str, got: str, at: int | None = None) -> None:
        self.expected = expected
        self.got = got
        self.at = at
        place = "" if at is None else f" at byte {at}"
        super().__init__(f"expected {expected}{place}, got {got}")


class FrameTooLarge(WireError):
    """A size prefix above the agreed maximum; both sizes in bytes."""

    def __init__(self, size: int, limit: int) -> None:
        self.size = size
        self.limit = limit
        super().__init__(f"a frame of at most {limit} bytes", f"a size prefix of {size}", 0)


class PlanError(FakeBrokerError):
    """A fault plan that cannot be carried out.

    Args:
        path: Where in the plan, such as ``faults[0].effect.type``.
        problem: What was expected there, and what came.
    """

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path}: {problem}")


class UsageError(FakeBrokerError):
    """The fake was asked for something that it cannot do; the text says what to do instead."""


class NotSimulated(UsageError):
    """Code in a simulation asked for something real; the text says where, and what to use instead."""


class Deadlock(FakeBrokerError):
    """Everything in a simulation waits for something that is not going to happen; the text says where."""


class DoesNotRepeat(FakeBrokerError):
    """Two runs from the same seed differ; the text has the first difference."""


class ResourceError(FakeBrokerError):
    """The system lets this process have no more files, sockets or memory; no defect of the fake."""


#: What to do about it, by the system's number.
_SHORTAGES = {
    errno.EMFILE: "this process may open no more files and sockets; 'ulimit -n' allows more",
    errno.ENFILE: "the system can open no more files and sockets",
    errno.ENOBUFS: "the system has no memory left for sockets",
    errno.ENOMEM: "the system has no memory left",
    errno.ENOSPC: "what is to be written does not fit; free some room, or name another folder",
    errno.EDQUOT: "what is to be written does not fit; free some room, or name another folder",
}


def shortage(error: BaseException) -> ResourceError | None:
    """What the system has run out of, if that is what an error says."""
    if not isinstance(error, OSError) or error.errno not in _SHORTAGES:
        return None
    return ResourceError(f"{os.strerror(error.errno)}: {_SHORTAGES[error.errno]}")


class JournalError(FakeBrokerError):
    """The journal could not be written down; the one in memory goes on.

    Args:
        path: The file, or the folder.
        problem: What the system said.
        lost: What is not written down.
    """

    def __init__(self, path: object, problem: str, lost: str) -> None:
        self.path = path
        self.problem = problem
        self.lost = lost
        super().__init__(f"{path}: cannot write the journal: {problem}; {lost}")


class WaitTimeout(FakeBrokerError, TimeoutError):
    """What a test waited for did not happen in time; the text ends with the last journal lines."""


class UnmetExpectation(FakeBrokerError, AssertionError):
    """What a test expected did not happen; the text says what, where that is written, and what happened."""


def instead_of(word: str, valid: Iterable[str]) -> str:
    """The end of a message about a wrong word: what is valid, and what was probably meant.

    Of many valid words it names those that are like it.
    """
    from difflib import get_close_matches

    words = list(valid)
    spelled = {each.lower(): each for each in words}
    wanted = word.lower().replace("_", "-")
    close = get_close_matches(wanted, spelled, n=1, cutoff=0.5)
    hint = f"; did you mean {spelled[close[0]]!r}?" if close else "."
    if len(words) <= MANY_WORDS:
        return f"{hint} Choose from: {', '.join(words)}"
    like = [spelled[each] for each in get_close_matches(wanted, spelled, n=6, cutoff=0.4)]
    return f"{hint} The closest of {len(words)}: {', '.join(like)}" if like else hint
