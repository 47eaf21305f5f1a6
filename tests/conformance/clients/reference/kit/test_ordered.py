"""A set that keeps the order in which its items came."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from conformance.clients.reference.kit.ordered import OrderedSet

ITEMS = st.lists(st.integers(0, 9))


@given(ITEMS, ITEMS, ITEMS)
def test_it_holds_what_a_set_holds_in_the_order_in_which_it_came(
    first: list[int], out: list[int], then: list[int]
) -> None:
    plain, ordered = set(first), OrderedSet(first)
    ordered.difference_update(out)
    plain.difference_update(out)
    for item in then:
        plain.add(item)
        ordered.add(item)
    assert plain == set(ordered)
    assert len(plain) == len(ordered)
    kept = [item for item in dict.fromkeys(first) if item not in out]
    assert list(ordered) == list(dict.fromkeys([*kept, *then]))


def test_it_may_change_while_it_is_gone_through() -> None:
    ordered = OrderedSet("abc")
    for item in ordered:
        ordered.discard(item)
    assert list(ordered) == []
