"""A pass is earned: a connection, every fault, a criterion."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.reference.registry import reference, without_sockets
from conformance.results import Verdict
from conformance.suite import Client, Expect
from conformance.suite.brokers import fake_for
from conformance.suite.judge import Judgement, judge
from conformance.suite.load import requirement
from conformance.suite.scenario import Scenario
from fakebrokers.core import virtual
from fakebrokers.errors import UsageError
from fakebrokers.faults import drop

PROTOCOL = "rabbitmq-stream"
Script = Callable[[Any, Client, Expect], Awaitable[None]]


def run(script: Script, **more: Any) -> Judgement:
    """The correct client, in memory, by a script of the test's own."""

    async def work() -> Judgement:
        adapter = InProcessAdapter(without_sockets(reference(PROTOCOL)), PROTOCOL)
        await adapter.start()
        item = Scenario(requirement=requirement("RMQS-3.06"), protocol=PROTOCOL, script=script, **more)
        try:
            return await judge(item, adapter, fake_for(memory=True))
        finally:
            await adapter.kill()

    return virtual.run(work())


async def demands_nothing(broker: Any, client: Client, expect: Expect) -> None:
    await client.connected()


async def never_connects(broker: Any, client: Client, expect: Expect) -> None:
    expect.that(True, "all is well", id="all-is-well")


async def one_fault_too_many(broker: Any, client: Client, expect: Expect) -> None:
    broker.faults.add(drop(kind="PeerProperties", direction="in", name="no properties"))
    broker.faults.add(drop(role="confirm", name="no confirm"))
    broker.faults.remove("no confirm")
    await client.connect(timeout=0.5)
    expect.that(True, "all is well", id="all-is-well")


@pytest.mark.parametrize(
    ("script", "criterion", "reason"),
    [
        (demands_nothing, "nothing-demanded", "the script demanded nothing"),
        (never_connects, "no-connection", "no connection ever came from the client"),
        (one_fault_too_many, "fault-never-fired", "the fault 'no confirm' never took place"),
    ],
)
def test_what_was_not_earned_is_inconclusive_and_says_why(
    script: Script, criterion: str, reason: str
) -> None:
    found = run(script)
    assert (found.verdict, found.criterion_id, found.reason) == (Verdict.INCONCLUSIVE, criterion, reason)


@pytest.mark.parametrize(
    ("script", "more"), [(never_connects, {"unconnected": "why"}), (one_fault_too_many, {"unfired": "why"})]
)
def test_a_scenario_may_say_why_it_need_not(script: Script, more: dict[str, str]) -> None:
    assert run(script, **more).verdict is Verdict.PASS


def test_so_may_the_script_for_one_fault() -> None:
    async def script(broker: Any, client: Client, expect: Expect) -> None:
        expect.may_not_fire("no con*", "nothing is published")
        await one_fault_too_many(broker, client, expect)

    assert run(script).verdict is Verdict.PASS


def test_an_excuse_has_a_reason() -> None:
    with pytest.raises(UsageError, match="give a reason"):
        Expect().may_not_fire("no confirm", " ")


def test_a_failure_names_the_faults_that_never_took_place() -> None:
    async def script(broker: Any, client: Client, expect: Expect) -> None:
        await one_fault_too_many(broker, client, expect)
        expect.that(False, "it works", id="it-works")

    found = run(script)
    assert found.verdict is Verdict.FAIL
    assert "never took place: no confirm" in found.reason
