"""Deliveries that expire: an application that wants none of those gets none, however late its callback is."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.rules.registry import Violation, invariant
from conformance.rules.settling import EARLY_S, delivered, filters, reports, whole
from conformance.run.case import Case
from conformance.run.showing import shown
from fakebrokers.server import WALL_ON_VIRTUAL_TIME


@invariant("delivers-what-came")
def delivers_nothing_expired(case: Case) -> Iterator[Violation]:
    """With `filter_expired` the application gets no delivery that has expired when its callback begins."""
    clocks_differ = case.slack_s or any(case.done("set_clock")) or not case.is_truthful
    if not case.traits.settlement.redelivers or not filters(case) or clocks_differ:
        return
    for heard, key, _ in delivered(case):
        fits = [one for one in whole(case) if one.key == key and one.at < heard.at and reports(heard, one)]
        good_until = [one.stale_from_s for one in fits]
        if not good_until or None in good_until:
            continue
        late_s = WALL_ON_VIRTUAL_TIME + heard.at.t - max(time for time in good_until if time is not None)
        if late_s > EARLY_S:
            yield f"message {shown(key)} was delivered {late_s:.1f} s after it had expired", heard.at
