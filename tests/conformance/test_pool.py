"""Work in several processes: in order, and nothing of it is left behind."""

from __future__ import annotations

import itertools
import os
import time
from multiprocessing import active_children

import pytest

from conformance.pool import in_order


def squared(number: int) -> int:
    time.sleep(0.05 * (number % 2))  # every other one is late
    return number * number


def broken(number: int) -> int:
    raise ValueError(f"expected no {number}")


def process_of(_: int) -> int:
    return os.getpid()


def test_what_is_found_comes_in_the_order_of_what_was_given() -> None:
    assert list(in_order(squared, range(20), 3)) == [number * number for number in range(20)]


def test_it_is_done_elsewhere() -> None:
    assert os.getpid() not in set(in_order(process_of, range(4), 2))


def test_what_waits_is_done_when_it_is_over() -> None:
    given: list[int] = []
    endless = (given.append(number) or number for number in itertools.count())  # type: ignore[func-returns-value]
    found = list(in_order(squared, endless, 2, lambda: len(given) > 5))
    assert found == [number * number for number in range(5)]


def test_whoever_wants_no_more_leaves_no_process_behind() -> None:
    found = in_order(squared, itertools.count(), 2)
    assert next(found) == 0
    found.close()  # type: ignore[attr-defined]
    assert not active_children()


def test_an_error_comes_out_and_ends_it() -> None:
    with pytest.raises(ValueError, match="expected no 0"):
        list(in_order(broken, range(100), 2))
    assert not active_children()
