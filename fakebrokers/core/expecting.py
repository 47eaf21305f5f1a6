"""What a test expects to have gone over the wire by its end, checked together."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from fakebrokers.core.clock import monotonic
from fakebrokers.core.frames import FrameTable, Role, kind_of
from fakebrokers.core.waiting import Waiter, Wanted
from fakebrokers.errors import UsageError, WaitTimeout
from fakebrokers.journal import Journal, Record, Tap
from fakebrokers.journal.record import State

Unit = Literal["frame", "item"]

#: What has gone over the wire: a frame that a fault delayed is also said, but counts once.
ON_THE_WIRE = Tap.RECEIVED | Tap.SENT | Tap.STATE
#: Records that a message about an expectation shows.
SHOWN = 5


class Expectation:
    """One thing that a test expects; made by `FakeServer.expect`.

    Args:
        wanted: Which records count.
        at_least: How many of them there have to be.
        at_most: How many there may be; None for any number.
        unit: What is counted: frames, or the single messages of a batch.
        place: Where it is in the test: ``file:line``.
    """

    def __init__(self, wanted: Wanted, at_least: int, at_most: int | None, unit: Unit, place: str) -> None:
        self.wanted = wanted
        self.at_least = at_least
        self.at_most = at_most
        self.unit = unit
        self.place = place

    def weight(self, record: Record) -> int:
        """How much a record counts."""
        if not self.wanted.fits(record):
            return 0
        return max(1, len(record.keys)) if self.unit == "item" else 1

    def problem(self, records: Sequence[Record]) -> str:
        """What is wrong with these records, and those that fit, or came closest; "" if nothing is."""
        near = ""
        try:
            fitting = [(record, weight) for record in records if (weight := self.weight(record))]
            if not fitting and self.at_least:
                near = self.wanted.near_miss(records)
        except Exception as error:  # the test's own condition went wrong
            return f"{self.place}: expected {self}; its condition raised {error!r}"
        got = sum(weight for _, weight in fitting)
        if self.at_least <= got and (self.at_most is None or got <= self.at_most):
            return ""
        lines = [f"{self.place}: expected {self}, got {got or 'none'}"]
        lines += [f"    {record}" for record, _ in fitting[-SHOWN:]]
        lines += [f"    {near}"] if near else []
        return "\n".join(lines)

    def __str__(self) -> str:
        what = self.wanted.what
        if self.at_most == 0:
            return f"no {what}"
        if self.at_most is None:
            return f"at least {self.at_least} x {what}"
        if self.at_most == self.at_least:
            return f"{self.at_least} x {what}"
        return f"{self.at_least} to {self.at_most} x {what}"


class Expectations:
    """All that a test expects of one fake.

    Args:
        journal: Where it has to appear.
        frames: Of the protocol, to tell a wrong name of one.
    """

    def __init__(self, journal: Journal, frames: FrameTable) -> None:
        self._journal = journal
        self._frames = frames
        self._items: list[Expectation] = []

    def add(
        self,
        wanted: Wanted,
        count: int | None,
        at_least: int | None,
        at_most: int | None,
        unit: Unit,
    ) -> Expectation:
        """Expect something from now on; see `FakeServer.expect`."""
        if count is not None and (at_least is not None or at_most is not None):
            raise UsageError("expected either count, or at_least and at_most, got both")
        self.check_words(wanted)
        if count is not None:
            at_least = at_most = count
        elif at_least is None:
            at_least = 1 if at_most is None else 0
        if at_least < 0 or (at_most is not None and at_most < at_least):
            raise UsageError(f"expected a count from 0, and at_most from {at_least}, got {at_most}")
        expectation = Expectation(wanted, at_least, at_most, unit, _place())
        self._items.append(expectation)
        return expectation

    def check_words(self, wanted: Wanted) -> None:
        """Raise `UsageError` for a role that there is not, and for a kind that is misspelt."""
        self._check_word("role", wanted.role, list(Role), certain=True)
        self._check_word("kind", wanted.kind, [*map(kind_of, self._frames), *State], certain=False)

    @staticmethod
    def _check_word(what: str, word: str | None, known: list[str], *, certain: bool) -> None:
        """Raise `UsageError` for a word that is none of these.

        Args:
            certain: Whether there are no others; a protocol may note states of its own.
        """
        if word is None or word in known:
            return
        close = get_close_matches(word, known, n=1, cutoff=0.5 if certain else 0.75)
        if certain or close:
            hint = f"; did you mean {str(close[0])!r}?" if close else ""
            raise UsageError(f"expected a {what} of this protocol, got {word!r}{hint}")

    def problems(self) -> list[str]:
        """What does not hold now."""
        if not self._items:
            return []
        records = self._journal.records()
        return [problem for each in self._items if (problem := each.problem(records))]

    def clear(self) -> None:
        """Expect nothing any more."""
        self._items.clear()

    def wait(self, waiter: Waiter, timeout: float) -> None:
        """Wait until all that is missing has come, for `timeout` seconds together."""
        end = monotonic() + timeout
        with suppress(WaitTimeout):
            for wanted in self._missing():
                waiter.wait(wanted, max(0.0, end - monotonic()))

    async def wait_async(self, waiter: Waiter, timeout: float) -> None:
        """`wait`, for coroutines."""
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        with suppress(WaitTimeout):
            for wanted in self._missing():
                await waiter.wait_async(wanted, max(0.0, end - loop.time()))

    def _missing(self) -> list[Wanted]:
        return [_enough(each) for each in self._items if each.at_least]


def _enough(expectation: Expectation) -> Wanted:
    """The record with which an expectation has what it needs."""
    got = 0

    def counts(record: Record) -> bool:
        nonlocal got
        got += expectation.weight(record)
        return got >= expectation.at_least

    return Wanted(counts)


def _place() -> str:
    """Where the test is that calls this package."""
    package = str(Path(__file__).parents[1])
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
