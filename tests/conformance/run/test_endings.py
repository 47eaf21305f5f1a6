"""Bases of two ends at a time: the second begins while the first is under way, and all is over at the end."""

from __future__ import annotations

import pytest

from conformance.rules import judge
from conformance.run.inprocess import runner
from conformance.run.material import material_of
from conformance.run.specs import Spec

PROTOCOLS = ("blazingmq", "moleculer", "mqtt", "narconi", "nats", "pzq", "rabbitmq-stream", "redis")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_close_comes_in_each_end_and_each_end_in_a_close(protocol: str) -> None:
    there = {name for name in material_of(protocol).bases if "-during-" in name}
    ends = {name.partition("-during-")[2] for name in there}
    assert "close" in ends and len(ends) > 1
    assert there == {f"{one}-during-{other}" for one in {*ends, "abort"} for other in ends}


@pytest.mark.parametrize("protocol", ["narconi", "nats"])
def test_the_second_end_begins_while_the_first_waits(protocol: str) -> None:
    case = runner(protocol)(Spec(protocol, "close-during-drain"))
    first, second = next(iter(case.done("unsubscribe"))), next(iter(case.done("close")))
    assert first.ended is not None and first.begun < second.begun < first.ended
    assert case.marks["close"] < second.begun and "closed" in case.marks
    assert judge(case) == []


def test_a_close_that_waits_for_another_end_is_called_so() -> None:
    [found] = judge(runner("narconi", "ends-take-turns")(Spec("narconi", "close-during-drain")))
    under_way = "close gave no answer within 5 s, and unsubscribe of c1, begun 0.3 s before it, was under way"
    assert (found.name, found.detail) == ("op-ends", under_way)
