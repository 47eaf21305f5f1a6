"""Which tests run again with which behaviour, and what follows: without any process."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from fakebrokers.errors import UsageError
from fakebrokers.mutate.reruns import Order, Ran
from fakebrokers.mutate.trial import GOOD, Plain, Row, Trial, Verdict, score_of

LOST, TWICE = ("pzq", "lost-confirm"), ("pzq", "second-confirm")


def plain(number: int, *meets: tuple[str, str], cpu_s: float = 1.0, **more: object) -> Plain:
    return Plain(number, f"test_{number}", meets=frozenset(meets), cpu_s=cpu_s, **more)


class Runs:
    """Pretends to run tests.

    Attributes:
        orders: What was asked for, without the first run of all tests alone.
    """

    def __init__(self, outcome: Callable[[str, int], Ran], cpu_s: float = 1.0) -> None:
        self.orders: list[Order] = []
        self._outcome = outcome
        self._cpu_s = cpu_s

    def __call__(self, order: Order) -> list[Ran]:
        self.orders.append(order)
        rows: list[Ran] = []
        for count, (number, _) in enumerate(order.tests, 1):
            row = self._outcome(order.behaviour, number)
            rows.append(Ran(number, row.outcome, row.lines, row.why, count * self._cpu_s))
            noticed = row.outcome != "passed" and row.lines is not None
            if (noticed and order.stops) or (order.cpu_s is not None and count * self._cpu_s > order.cpu_s):
                break
        return rows


def trial(tests: Sequence[Plain], runs: Runs, only: str = "lost-confirm", **more: float) -> list[Row]:
    made = Trial(tests, runs, **{"wait_s": 10.0, "cpu_s": 1000.0, **more}, only=only.split(","))
    made.leave_out()
    return list(made.rows())


def passed(lines: list[str] | None = None) -> Ran:
    return Ran(0, "passed", lines)


def test_the_first_test_that_fails_has_noticed() -> None:
    runs = Runs(
        lambda name, test: Ran(0, "failed", ["line"], "lost!") if name and test == 1 else passed(["-"])
    )
    (row,) = trial([plain(i, LOST) for i in range(3)], runs)
    assert (row.verdict, row.noticed_by, row.why, row.met_by, row.tried) == (
        "noticed",
        "test_1",
        "lost!",
        3,
        2,
    )
    assert [place.test for place in row.places] == ["test_1"]


def test_what_no_test_notices_has_the_places_where_it_took_place() -> None:
    (row,) = trial([plain(0, LOST), plain(1, LOST)], Runs(lambda name, test: passed([f"line {test}"])))
    assert (row.verdict, row.noticed_by) == ("unnoticed", "")
    assert [(place.test, place.lines) for place in row.places] == [
        ("test_0", ["line 0"]),
        ("test_1", ["line 1"]),
    ]


def test_a_failure_without_the_behaviour_is_none_of_its() -> None:
    runs = Runs(lambda name, test: Ran(0, "failed", None) if name else passed())
    (row,) = trial([plain(0, LOST)], runs)
    assert (row.verdict, row.met_by) == ("not met", 0)


def test_a_test_that_waits_too_long_has_noticed_and_is_shown_apart() -> None:
    runs = Runs(lambda name, test: Ran(0, "timeout", []) if name else passed())
    (row,) = trial([plain(0, LOST)], runs)
    assert row.verdict is Verdict.TIMEOUT
    assert row.verdict in GOOD


def test_only_tests_that_meet_it_run() -> None:
    runs = Runs(lambda name, test: passed([]))
    rows = trial([plain(0, LOST), plain(1, TWICE)], runs, "lost-confirm,lost-ack")
    assert [order.tests for order in runs.orders[1:]] == [[(0, 10.0)]]
    assert [(row.behaviour, row.verdict.value) for row in rows] == [
        ("lost-confirm", "unnoticed"), ("lost-ack", "not met"),
    ]  # fmt: skip


def test_a_behaviour_that_a_test_brings_about_itself_is_known() -> None:
    runs = Runs(lambda name, test: passed([]))
    own = plain(0, TWICE, brings_about=frozenset([LOST]))
    (row,) = trial([own, plain(1, LOST)], runs)
    assert (row.verdict, row.noticed_by, len(runs.orders)) == ("own fault", "test_0", 1)


def test_tests_that_fail_alone_are_left_out_and_those_after_a_hanging_one_are_tried() -> None:
    def alone(order: Order) -> list[Ran]:
        if order.behaviour:
            return [Ran(number, "passed", []) for number, _ in order.tests]
        rows = {0: Ran(0, "failed", None, "no data"), 1: Ran(1, "timeout", None), 2: Ran(2, "passed", None)}
        first = order.tests[0][0]
        return [rows[0], rows[1]] if first == 0 else [rows[first]]

    tests = [plain(i, LOST) for i in range(3)]
    made = Trial(tests, alone, wait_s=10, cpu_s=1000, only=["lost-confirm"])
    made.leave_out()
    (row,) = made.rows()
    assert [test.why_not.partition(":")[0] for test in tests] == ["fails with fixtures of its own"] * 2 + [""]
    assert (row.met_by, row.tried) == (1, 1)


def test_tests_that_have_noticed_much_come_first_then_the_cheap_ones() -> None:
    runs = Runs(lambda name, test: Ran(0, "failed", []) if name and test == 2 else passed([]))
    tests = [plain(0, LOST, TWICE, cpu_s=3), plain(1, LOST, TWICE, cpu_s=1), plain(2, LOST, TWICE, cpu_s=2)]
    trial(tests, runs, "lost-confirm,second-confirm")
    assert [[number for number, _ in order.tests] for order in runs.orders[1:]] == [[1, 2, 0], [2, 1, 0]]


def test_all_reruns_together_stay_within_their_cpu() -> None:
    runs = Runs(lambda name, test: passed([]))
    tests = [plain(i, LOST, TWICE) for i in range(50)]
    rows = trial(tests, runs, "lost-confirm,second-confirm", cpu_s=90.0)
    # 50 are gone for the run without any behaviour, and the two share the rest
    assert [row.tried for row in rows] == [21, 20]
    assert {row.met_by for row in rows} == {50}


def test_a_test_gets_ten_times_its_time_at_least_as_long_as_said() -> None:
    runs = Runs(lambda name, test: passed([]))
    trial([plain(0, LOST, seconds=3.0), plain(1, LOST, seconds=0.1)], runs, wait_s=7.0)
    assert dict(runs.orders[1].tests) == {0: 30.0, 1: 7.0}


def test_a_name_that_there_is_not() -> None:
    with pytest.raises(UsageError, match="there is no behaviour 'lost-confrim'; did you mean 'lost-confirm'"):
        trial([plain(0, LOST)], Runs(lambda name, test: passed([])), "lost-confrim")


def test_score() -> None:
    def row(verdict: Verdict) -> Row:
        return Row("pzq", "lost-confirm", "", "", verdict, 1)

    assert score_of([row(Verdict.NOT_MET)]) is None
    assert score_of([row(each) for each in Verdict]) == 75.0
