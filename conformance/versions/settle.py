"""From runs to the outcome of a version: what fails now and then has to be looked at more often."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import msgspec

from conformance.versions.search import Skipped, VersionOutcome

FAIL, PASS = "fail", "pass"
MOST = 20  #: runs of a version
#: Of a version that is not steady: enough to say roughly how often it fails.
ENOUGH = 6
#: How often a version that has the defect, too, may pass for one that has not.
MISSED = 0.02


class Shown(msgspec.Struct, frozen=True):
    """What a run has shown, or several at once.

    Attributes:
        fails, passes: How many.
        detail: What happened, a sentence.
        by: What tells the failure from others, such as a criterion.
    """

    fails: int = 0
    passes: int = 0
    detail: str = ""
    by: str = ""


class SettledJudge:
    """Judges versions by several runs each.

    Args:
        once: Runs a version.
        times: Runs of a version that is steady.
    """

    def __init__(self, once: Callable[[str], Shown | Skipped], times: int = 2) -> None:
        self._once = once
        self._times = times
        self._rare = False
        self._shown: dict[str, list[Shown]] = {}
        self._looks: Counter[str] = Counter()

    def judge(self, version: str) -> VersionOutcome | Skipped:
        """The outcome: a version fails if a run of it did. A later call adds as many runs."""
        shown = self._shown.setdefault(version, [])
        self._looks[version] += 1
        while True:
            fails, passes = sum(each.fails for each in shown), sum(each.passes for each in shown)
            if self._is_enough(fails, passes, self._looks[version]):
                break
            latest = self._once(version)
            if isinstance(latest, Skipped):
                return latest
            shown.append(latest)
        detail = next((each.detail for each in shown if each.fails), "")
        if fails and passes:
            self._look_for(fails / (fails + passes))
        word, steady = FAIL if fails else PASS, not (fails and passes)
        ways = {each.by for each in shown}
        return VersionOutcome(word, steady, detail, fails + passes, ways.pop() if len(ways) == 1 else "")

    def _is_enough(self, fails: int, passes: int, looks: int) -> bool:
        runs = fails + passes
        if runs >= MOST:
            return True
        if fails and passes:
            return self._rare or runs >= ENOUGH
        return runs >= self._times * looks or bool(fails and self._rare)

    def _look_for(self, rate: float) -> None:
        """From now on each version is run as often as a defect takes that fails at this rate."""
        self._rare = True
        needed = math.ceil(math.log(MISSED) / math.log(1 - rate)) if rate < 1 else 1
        self._times = min(MOST, max(self._times, needed))
