"""The ends of a fake that nobody wrote down: two threads that stop it, a forked process, a lost reference."""

from __future__ import annotations

import itertools
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import itemgetter
from typing import Protocol

from fakebrokers.core.loop import LoopThread


class Living(Protocol):
    """What a fake does when its process is forked."""

    def _forked(self) -> None:
        """This is a child process, which has nothing of the fake but its memory."""


class Turns:
    """Start and stop, one thread at a time."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    @contextmanager
    def one_at_a_time(self, loop: object) -> Iterator[None]:
        """Wait for the other threads.

        The thread of `loop` waits for nobody: whoever has the turn may be waiting for it.
        """
        if isinstance(loop, LoopThread) and loop.inside:
            yield
            return
        with self._lock:
            yield

    def forked(self) -> None:
        """Whoever held the lock did not come along."""
        self._lock = threading.RLock()


#: The fakes of this process that somebody holds, with the number of their last start.
_started: weakref.WeakKeyDictionary[Living, int] = weakref.WeakKeyDictionary()
_numbers = itertools.count(1)
#: Called with each fake that starts, on the thread that starts it, before its address is known.
on_start: list[Callable[[Living], None]] = []


def runs(fake: Living) -> None:
    """Tell this fake when the process is forked, and others that it has started."""
    _started[fake] = next(_numbers)
    for call in on_start:
        call(fake)


def all_started() -> list[Living]:
    """The fakes that were started, stopped since or not, and that somebody still holds; in this order."""
    starts = [(_started.get(fake, 0), fake) for ref in _started.keyrefs() if (fake := ref()) is not None]
    return [fake for _, fake in sorted(starts, key=itemgetter(0))]


def warn_of_drop(fake: object, name: str) -> None:
    """Say that nobody can stop this fake any more, unless everything ends now."""
    if not sys.is_finalizing():
        warnings.warn(
            f"a {name} fake was dropped while it ran: use `with`, or stop() it",
            ResourceWarning,
            stacklevel=1,
            source=fake,
        )


def _tell_of_fork() -> None:
    for fake in all_started():
        fake._forked()
    _started.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_tell_of_fork)
