"""Fault plans for tests of users: each can be carried out, keeps to what was asked for, and shrinks."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from fakebrokers.core import virtual
from fakebrokers.core.frames import Role
from fakebrokers.errors import PlanError, UsageError
from fakebrokers.faults import Fault, Plan, Realism, drop, load_plan
from fakebrokers.faults.effect import Effect
from fakebrokers.faults.effects import Drop
from fakebrokers.protocol import Protocol, protocols
from fakebrokers.rabbitmq_stream.build import delete_stream
from fakebrokers.strategies import DRAWS, fault_plans, faults
from tests.toy import Lines, Toy

SHIPPED = [each for each in protocols() if each.server.startswith("fakebrokers.")]
EACH = pytest.mark.parametrize("protocol", SHIPPED, ids=lambda each: each.name)


def kinds(plan: Plan) -> set[type[Effect]]:
    return {type(effect) for fault in plan.faults for effect in fault.effects}


@EACH
@settings(max_examples=40)
@given(data=st.data())
def test_every_plan_can_be_carried_out_and_written_down(protocol: Protocol, data: st.DataObject) -> None:
    realism = data.draw(st.sampled_from(list(Realism)))
    plan = data.draw(fault_plans(protocol.name, realism=realism, most=4, positions=3))
    assert protocol.load()(faults=plan).faults.plan == plan
    assert load_plan(plan.to_dict(), protocol) == plan
    assert len(plan.faults) <= 4
    for fault in plan.faults:
        assert fault.effective_realism is realism
        assert 1 <= (fault.match.nth or 0) <= 3


@pytest.mark.parametrize("variant", ["redis", "mqtt", "tcp"])
def test_a_variant_has_its_own_roles(variant: str) -> None:
    plan = find(fault_plans("moleculer", variant=variant, least=1), lambda plan: True)
    assert len(plan.faults) == 1


def test_all_effects_can_come() -> None:
    seen: set[type[Effect]] = set()

    @settings(max_examples=300, derandomize=True, database=None)
    @given(faults("rabbitmq-stream", realism=list(Realism)))
    def collect(fault: Fault) -> None:
        seen.update(map(type, fault.effects))

    collect()
    assert seen == {type(draw.plain) for draw in DRAWS}


def test_no_byte_is_touched_where_a_library_owns_the_wire() -> None:
    @settings(max_examples=50)
    @given(fault_plans("pzq", realism=list(Realism)))
    def check(plan: Plan) -> None:
        assert not any(effect.needs_bytes for effect in kinds(plan))

    check()


def test_they_shrink_to_one_early_fault() -> None:
    plan = find(
        fault_plans("rabbitmq-stream", most=5, positions=50),
        lambda plan: any(fault.match.role == Role.PUBLISH for fault in plan.faults),
    )
    assert plan == Plan(
        faults=(drop(name="drop publish in 1", role="publish", direction="in", nth=1, scope="run"),)
    )
    late = find(
        fault_plans("rabbitmq-stream", positions=50),
        lambda plan: any((fault.match.nth or 0) >= 7 for fault in plan.faults),
    )
    assert [(fault.effects, fault.match.nth) for fault in late.faults] == [((Drop(),), 7)]


def test_roles_and_size() -> None:
    @settings(max_examples=50)
    @given(fault_plans("rabbitmq-stream", roles=["confirm", Role.DELIVER], least=2, most=2))
    def check(plan: Plan) -> None:
        assert {fault.match.role for fault in plan.faults} <= {Role.CONFIRM, Role.DELIVER}
        assert len({fault.name for fault in plan.faults}) == 2

    check()


def test_faults_of_ones_own() -> None:
    own = [delete_stream("orders", role="confirm"), drop(role="confirm", every=2, name="half of them")]
    strategy = fault_plans("rabbitmq-stream", others=own)
    plan = find(strategy, lambda plan: any("delete" in fault.name for fault in plan.faults))
    assert [(fault.name, fault.match.nth) for fault in plan.faults] == [("delete-stream 1", 1)]
    plan = find(strategy, lambda plan: any(fault.match.every for fault in plan.faults))
    assert plan.faults == (own[1],)
    with pytest.raises(PlanError, match="only rabbitmq-stream can do that"):
        fault_plans("pzq", others=own)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"realism": "legl"}, "expected a realism, one of legal, environment, illegal; got 'legl'"),
        ({"roles": ["confrim"]}, "expected a role, .*did you mean 'confirm'"),
        ({"roles": ["flow"]}, "pzq has no faults of these roles"),
        ({"positions": 0}, "expected positions from 1"),
        ({"variant": "redis"}, "pzq has no wire 'redis'"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, object], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        fault_plans("pzq", **options)  # type: ignore[arg-type]


@settings(max_examples=60)
@given(fault_plans("rabbitmq-stream", roles=["publish", "confirm"], seconds=0.005))
def test_a_client_that_tries_again_always_gets_there(plan: Plan) -> None:
    """On the toy, which has these roles too: whatever is drawn takes place once and lets go in the end."""

    async def work() -> bool:
        async with Toy(memory=True, faults=plan) as toy:
            for _ in range(30):
                lines = Lines()
                with contextlib.suppress(ConnectionError):
                    link = toy.connect_memory(lines)
                    link.write(b"hello me\nput a\n")
                    await asyncio.sleep(0.003)
                    link.close()
                await asyncio.sleep(0.001)
                if b"stored a" in lines.heard:
                    return True
            return False

    assert virtual.run(work())
