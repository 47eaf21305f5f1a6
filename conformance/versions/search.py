"""Which of many versions changed an outcome, with few of them judged: pure, the judging is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec


class VersionOutcome(msgspec.Struct, frozen=True):
    """What a version shows.

    Attributes:
        word: What is compared; a defect that shows now and then is one.
        steady: Whether all runs were alike.
        detail: What happened, a sentence; empty where nothing did.
        runs: How many there were.
        by: Of a failure that was the same in all of them, what tells it from others; else empty.
    """

    word: str
    steady: bool = True
    detail: str = ""
    runs: int = 1
    by: str = ""


class Skipped(msgspec.Struct, frozen=True):
    """A version that says nothing: it cannot be had, or not be driven.

    Attributes:
        passing: Another try may say something: the machine was too busy for a verdict.
    """

    reason: str
    passing: bool = False


class Bisection(msgspec.Struct):
    """What a search has found so far.

    Attributes:
        judged: Outcomes in the order in which they came; at most ceil(log2 n) + 2 of n versions.
        skipped: Why the others that were tried say nothing.
        before: The last version that was judged as the oldest one is; None where the ends agree, or one of
            them could not be judged.
        changed_in: The first one that was judged otherwise.
        possible: Versions between the two, all skipped, that may have changed it as well.
    """

    judged: dict[str, VersionOutcome] = {}
    skipped: dict[str, str] = {}
    before: str | None = None
    changed_in: str | None = None
    possible: tuple[str, ...] = ()


def search(
    versions: Sequence[str],
    judge: Callable[[str], VersionOutcome | Skipped],
    refused: Callable[[str], str],
    found: Bisection | None = None,
) -> Bisection:
    """Find the first version whose outcome is another than the oldest one's, if the newest one's is.

    Where both fail, but not the same way, it is the first one that does not fail as the oldest one does.
    Where the outcome changes more than once, one of the changes is found. Many versions at an end that
    cannot be driven cost few tries.

    Args:
        versions: In order, each once.
        judge: Asked again about an end that is steady where the other is not: it knows how often to look.
        refused: Why a version cannot be driven at all, empty if it can: quicker than to judge it.
        found: Is filled, for who wants to see it on the way.
    """
    found = Bisection() if found is None else found
    ask = _Asker(versions, judge, refused, found)
    low = ask.end(range(len(versions)))
    high = ask.end(range(len(versions) - 1, -1, -1)) if low is not None else None
    if low is None or high is None or low == high:
        return found
    for end, other in ((low, high), (high, low)):
        if found.judged[versions[end]].steady and not found.judged[versions[other]].steady:
            ask.judged(end)
    is_old = _same_as(found.judged[versions[low]], found.judged[versions[high]])
    if is_old(found.judged[versions[high]]):
        return found
    while low is not None and high is not None:
        low, high = ask.narrowed(low, high, is_old)
        sure = ask.boundary(is_old)  # once more: a busy machine may have hidden the difference
        if sure == (low, high):
            found.before, found.changed_in = versions[low], versions[high]
            found.possible = tuple(versions[low + 1 : high])
            break
        low, high = sure
    return found


def _same_as(oldest: VersionOutcome, newest: VersionOutcome) -> Callable[[VersionOutcome], bool]:
    if oldest.word == newest.word and oldest.by and newest.by and oldest.by != newest.by:
        return lambda outcome: (outcome.word, outcome.by) == (oldest.word, oldest.by)
    return lambda outcome: outcome.word == oldest.word


class _Asker:
    """Asks about versions by their place, and notes the answers."""

    def __init__(
        self,
        versions: Sequence[str],
        judge: Callable[[str], VersionOutcome | Skipped],
        refused: Callable[[str], str],
        found: Bisection,
    ) -> None:
        self._versions = versions
        self._judge = judge
        self._refused = refused
        self._found = found
        self._usable: dict[int, bool] = {}
        self._again: set[int] = set()  #: places that another try may say something of
        self._now = (0, 0)  #: between which places the change is looked for

    def judged(self, at: int) -> VersionOutcome | None:
        """The outcome; None if it has to be skipped."""
        version = self._versions[at]
        outcome = self._judge(version)
        tried = version in self._found.skipped
        self._found.skipped.pop(version, None)
        self._found.judged.pop(version, None)
        if isinstance(outcome, Skipped):
            self._found.skipped[version] = outcome.reason
            if outcome.passing and not tried:
                self._again.add(at)
            return None
        self._found.judged[version] = outcome
        return outcome

    def narrowed(self, low: int, high: int, is_old: Callable[[VersionOutcome], bool]) -> tuple[int, int]:
        """Two places with none between them that can be judged."""
        skipped = self._found.skipped
        while inner := [at for at in range(low + 1, high) if self._versions[at] not in skipped]:
            middle = inner[len(inner) // 2]
            outcome = self.judged(middle)
            if outcome is not None and is_old(outcome):
                low = middle
            elif outcome is not None:
                high = middle
        self._now = low, high
        return low, high

    def boundary(self, is_old: Callable[[VersionOutcome], bool]) -> tuple[int | None, int | None]:
        """The two places after both were judged once more, and what was skipped between them for a passing
        reason; None where no change is left."""
        first, last = self._now
        again = sorted(at for at in self._again if first < at < last)
        self._again.difference_update(again)
        for at in (first, *again, last):
            self.judged(at)
        places = {self._versions[at]: at for at in range(len(self._versions))}
        judged = sorted((places[version], outcome) for version, outcome in self._found.judged.items())
        high = next((at for at, outcome in judged if not is_old(outcome)), None)
        lower = [at for at, outcome in judged if is_old(outcome) and (high is None or at < high)]
        return (max(lower, default=None), high)

    def end(self, places: Sequence[int]) -> int | None:
        """The first of these places that can be judged, or None.

        Versions that cannot be driven lie together at the ends: of many, few are tried.
        """
        first = self._first_usable(places)
        for at in places[first:] if first is not None else ():
            known = self._versions[at] in self._found.judged
            if known or (self._can(at) and self.judged(at) is not None):
                return at
        return None

    def _first_usable(self, places: Sequence[int]) -> int | None:
        refused, at, step, last = -1, 0, 1, len(places) - 1
        while not self._can(places[at]):
            if at == last:
                return next((at for at in range(last) if self._can(places[at])), None)
            refused, at = at, min(at + step, last)
            step *= 2
        while at - refused > 1:
            middle = (at + refused) // 2
            if self._can(places[middle]):
                at = middle
            else:
                refused = middle
        return at

    def _can(self, at: int) -> bool:
        if at not in self._usable:
            reason = self._refused(self._versions[at])
            self._usable[at] = not reason
            if reason:
                self._found.skipped[self._versions[at]] = reason
        return self._usable[at]
