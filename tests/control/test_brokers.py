"""Several brokers in one process, without HTTP."""

from __future__ import annotations

import pytest

from fakebrokers import Narconi
from fakebrokers.control.brokers import Brokers
from fakebrokers.control.problems import Refusal


def test_one_that_runs_already_is_adopted() -> None:
    brokers = Brokers()
    with Narconi() as narconi:
        brokers.adopt("mine", narconi)
        assert brokers.find("mine") is narconi
        with pytest.raises(Refusal, match="expected a name that no broker has, got 'mine'"):
            brokers.adopt("mine", narconi)
        brokers.close()
        assert not narconi.runs
    with pytest.raises(Refusal, match=r"expected a broker that runs \(none\), got 'mine'"):
        brokers.find("mine")


def test_errors_inside_are_told_once_even_of_one_that_was_stopped() -> None:
    brokers = Brokers()
    for name in ("a", "b"):
        brokers.add("narconi", name, {})
        brokers.find(name).engine.keep_error(ZeroDivisionError(name), "in a test")
    brokers.remove("a")
    with pytest.raises(ExceptionGroup, match="2 brokers went wrong") as caught:
        brokers.check()
    assert [str(error) for error in caught.value.exceptions] == ["a", "b"]
    brokers.check()
    brokers.close()


def test_what_fails_while_it_starts_leaves_nothing() -> None:
    brokers = Brokers()
    with pytest.raises(Refusal, match="expected a user as NAME:PASSWORD"):
        brokers.add("rabbitmq-stream", "x", {"users": ["bob"]})
    assert list(brokers) == []
