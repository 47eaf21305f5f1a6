"""Several clients are judged side by side, within one limit."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from rich.console import Console

from conformance.clients.adapter.base import Adapter, AdapterFailed
from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.reference.registry import reference
from conformance.results import Results
from conformance.suite import Client, Expect
from conformance.suite.conform import SuiteRequest, conform_all
from conformance.suite.judge import Judgement
from conformance.suite.load import requirement
from conformance.suite.pool import AdapterPool
from conformance.suite.runner import FEW, Runner, run_together
from conformance.suite.scenario import Scenario
from fakebrokers.core import virtual
from fakebrokers.errors import FakeBrokerError, UsageError
from fakebrokers.interrupts import Interrupts
from tests.conformance.suite.test_judge import Puppet
from tests.toy import Toy

PROTOCOL = "rabbitmq-stream"


class Stage:
    """Writes down what runs when. The ids of a client's scenarios are those of RMQS-3."""

    def __init__(self) -> None:
        self.inside: list[str] = []
        self.seen: list[tuple[str, ...]] = []
        self.done: list[str] = []
        self.late: set[str] = set()

    def rows(self, client: str, *seconds: float) -> list[Scenario]:
        """A scenario for each of these durations, the longest first."""
        return [
            Scenario(
                requirement=requirement(f"RMQS-3.{n:02}"),
                protocol=PROTOCOL,
                script=self._script(f"{client}{n}", each),
                timeout_s=each + 1,
            )
            for n, each in enumerate(seconds, 1)
        ]

    def _script(self, name: str, seconds: float) -> Any:
        async def script(broker: Any, client: Client, expect: Expect) -> None:
            self.inside.append(name)
            self.seen.append(tuple(self.inside))
            await asyncio.sleep(seconds)
            self.inside.remove(name)
            if name in self.late:
                self.late.remove(name)
                expect.within(2.0, 1.0, "in time", id="in-time")

        return script

    def judge(
        self, *clients: Sequence[Scenario], parallel: int, make: Any = None
    ) -> list[dict[str, Judgement]]:
        """Judge clients with these scenarios; what came of each."""
        found: list[dict[str, Judgement]] = [{} for _ in clients]

        async def work() -> None:
            runners = {}
            for number, rows in enumerate(clients):
                pool = AdapterPool(make or (lambda: InProcessAdapter(Puppet, PROTOCOL)))
                keep = found[number]
                runner = Runner(
                    pool,
                    lambda _: Toy(memory=True),
                    endpoint=lambda _: "m:1",
                    parallel=None,
                    on_end=lambda one, keep=keep: keep.update({one.scenario.id: one}),
                )
                runners[runner] = rows
            names = dict(zip(runners, "abcdef", strict=False))
            await run_together(runners, parallel, lambda runner: self.done.append(names[runner]))

        virtual.run(work())
        return found


def test_the_next_client_fills_the_room_that_the_last_scenario_of_one_leaves() -> None:
    context = Stage()
    context.judge(context.rows("a", 9.0, 1.0, 1.0), context.rows("b", 3.0, 3.0), parallel=2)
    assert context.seen == [("a1",), ("a1", "a2"), ("a1", "a3"), ("a1", "b1"), ("a1", "b2")]
    assert context.done == ["b", "a"]


def test_what_was_late_comes_when_all_clients_are_through_and_what_is_alone_at_the_end() -> None:
    context = Stage()
    context.late = {"a1", "b2"}
    alone = [msgspec.structs.replace(each, alone=True) for each in context.rows("a", 0.0, 0.0, 2.0)[2:]]
    first, second = context.judge(
        [*context.rows("a", 1.0, 1.0), *alone], context.rows("b", 1.0, 1.0, 1.0), parallel=6
    )
    again = [names for names in context.seen if len(names) <= FEW][-3:]
    assert again == [("a1",), ("a1", "b2"), ("a3",)]
    assert {str(one.verdict) for one in (*first.values(), *second.values())} == {"pass"}
    assert (len(first), len(second), context.done) == (3, 3, ["b", "a"])


def test_a_client_that_cannot_be_judged_keeps_nobody_from_being_judged() -> None:
    context, count = Stage(), 0

    def make() -> Adapter:
        nonlocal count
        count += 1
        if count == 1:
            raise AdapterFailed("no such program")
        return InProcessAdapter(Puppet, PROTOCOL)

    first, second = context.judge(context.rows("a", 1.0), context.rows("b", 1.0), parallel=2, make=make)
    assert (first, [*second]) == ({}, ["RMQS-3.01"])


def orders(*ids: str) -> list[SuiteRequest]:
    client = reference(PROTOCOL)
    return [
        SuiteRequest(
            client=name,
            protocol=PROTOCOL,
            ids=ids,
            make_adapter=lambda: InProcessAdapter(client, PROTOCOL),
        )
        for name in ("first", "second")
    ]


def test_each_client_has_its_own_results() -> None:
    found: dict[str, Results] = {}
    conform_all(
        orders("RMQS-3.06", "RMQS-3.08"),
        Console(quiet=True),
        Interrupts(),
        parallel=2,
        on_done=lambda order, results: found.update({order.client: results}),
        on_refused=lambda order, error: pytest.fail(str(error)),
    )
    assert {name: [(row.id, str(row.verdict)) for row in each.results] for name, each in found.items()} == {
        name: [("RMQS-3.06", "pass"), ("RMQS-3.08", "pass")] for name in ("first", "second")
    }
    assert all(each.complete and each.exit_code == 0 for each in found.values())


def test_a_client_that_is_cut_short_has_what_there_is() -> None:
    found: dict[str, Results] = {}
    reported = Interrupts()
    reported.exit_code = 143

    def keep(order: SuiteRequest, results: Results) -> None:
        found[order.client] = results
        if order.client == "first":
            os.kill(os.getpid(), signal.SIGINT)

    first, second = orders("RMQS-3.06")
    second.ids = ("RMQS-1.14",)  # which takes ten seconds
    with pytest.raises(KeyboardInterrupt):
        conform_all(
            [first, second], Console(quiet=True), reported, parallel=4, on_done=keep, on_refused=refuse
        )
    assert found["first"].complete
    assert (found["second"].complete, found["second"].exit_code) == (False, 143)


def refuse(order: SuiteRequest, error: FakeBrokerError) -> None:
    pytest.fail(f"{order.client}: {error}")


def test_an_order_that_cannot_be_carried_out_is_told_of() -> None:
    refused: list[tuple[str, bool]] = []
    first, second = orders("RMQS-3.06")
    first.ids = ("RMQS-99.99",)
    conform_all(
        [first, second],
        Console(quiet=True),
        Interrupts(),
        parallel=1,
        on_done=lambda order, results: refused.append((order.client, False)),
        on_refused=lambda order, error: refused.append((order.client, isinstance(error, UsageError))),
    )
    assert refused == [("first", True), ("second", False)]
