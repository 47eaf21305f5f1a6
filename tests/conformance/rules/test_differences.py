"""Of several answers that an op may have returned, the nearest one is compared with."""

from __future__ import annotations

from functools import partial

from conformance.rules.answers import difference, shared
from conformance.run.traits import Whole


def test_the_answer_that_shares_most_is_the_one_that_differs() -> None:
    got = {"data": 7, "meta": {"mark": True}}
    answers = [{"data": 45, "meta": Whole({})}, {"data": 7, "meta": Whole({})}]
    nearest = max(answers, key=partial(shared, got))
    assert difference(got, nearest)[0] == "meta"


def test_values_without_members_share_nothing() -> None:
    assert shared(7, 45) == shared(7, {"data": 7}) == 0
