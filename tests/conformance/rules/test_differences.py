"""Of several answers that an op may have returned, the nearest one is compared with."""

from __future__ import annotations

from functools import partial

from msgspec import UNSET

from conformance.rules.answers import difference, shared
from conformance.run.traits import OneOf, Whole


def test_the_answer_that_shares_most_is_the_one_that_differs() -> None:
    got = {"data": 7, "meta": {"mark": True}}
    answers = [{"data": 45, "meta": Whole({})}, {"data": 7, "meta": Whole({})}]
    nearest = max(answers, key=partial(shared, got))
    assert difference(got, nearest) == ("meta.mark", True, UNSET)


def test_a_member_that_is_missing_is_named() -> None:
    got, said = {"messages": "3"}, {"messages": 3, "plain": 5}
    assert difference({"values": got}, {"values": Whole(said)}) == ("values.plain", UNSET, 5)
    assert difference(got, OneOf((Whole(said), Whole(messages=4, other=1, last=2)))) == ("plain", UNSET, 5)


def test_values_without_members_share_nothing() -> None:
    assert shared(7, 45) == shared(7, {"data": 7}) == 0
