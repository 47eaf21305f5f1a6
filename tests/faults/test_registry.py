"""Each protocol has its own effects; a plan is for one of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fakebrokers import PZQ, RabbitMQStream
from fakebrokers.errors import PlanError
from fakebrokers.faults import Effect, fault, load_plan
from fakebrokers.faults.effect import Passage
from fakebrokers.faults.registry import effect_name, effect_types
from fakebrokers.narconi.faults import BreakBackend
from fakebrokers.protocol import protocols
from fakebrokers.pzq.faults import refuse_message
from tests.core.talk import Talk
from tests.eventually import PATIENCE_S

BREAK_BACKEND = {"faults": [{"match": {"on": "accept"}, "effect": {"type": "break-backend", "down_s": 0.1}}]}


def test_a_plan_that_a_fake_printed_is_read_by_a_fresh_process(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    with PZQ() as pzq:
        pzq.faults.add(refuse_message("disk full", nth=1, name="full"))
        plan.write_text(pzq.faults.plan.to_toml())
    code = (
        f"from fakebrokers import PZQ\nwith PZQ(faults={str(plan)!r}) as pzq: print(pzq.faults.names, end='')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    assert done.stdout == "('full',)"


def test_an_effect_of_another_protocol_is_refused_with_whose_it_is() -> None:
    with pytest.raises(PlanError) as caught:
        load_plan(BREAK_BACKEND, "rabbitmq-stream")
    assert caught.value.path == "faults[0].effect.type"
    assert "got 'break-backend'; only narconi can do that" in caught.value.problem
    with pytest.raises(PlanError, match="only narconi can do that: give its name"):
        load_plan(BREAK_BACKEND)
    with pytest.raises(PlanError, match="only narconi can do that"):
        RabbitMQStream(faults=BREAK_BACKEND)
    with RabbitMQStream() as broker:
        with pytest.raises(PlanError, match=r"fault 1\.effect\.type: .*only narconi can do that"):
            broker.faults.add(fault(BreakBackend(down_s=0.1), on="accept"))
        assert broker.faults.names == ()


def test_a_wrong_word_gets_the_closest_of_this_protocol() -> None:
    with pytest.raises(PlanError, match="did you mean 'store-failure'"):
        load_plan({"faults": [{"effect": {"type": "store-failur"}}]}, "pzq")


@pytest.mark.parametrize("protocol", protocols(), ids=lambda each: each.name)
def test_each_protocol_has_effects_of_its_own_with_names_of_their_own(protocol) -> None:  # type: ignore[no-untyped-def]
    own = [effect_name(effect) for effect in protocol.own_effects]
    assert own
    assert len(set(own)) == len(own)
    assert not set(own) & effect_types().keys()
    assert effect_types(protocol.own_effects).keys() == {*own, *effect_types()}


class Louder(Effect, frozen=True, tag="louder"):
    """Somebody's own effect, registered nowhere."""

    def apply(self, passage: Passage) -> None:
        passage.pass_through()
        passage.pass_through()


def test_somebodys_own_effect_needs_no_registry() -> None:
    talk = Talk(fault(Louder(), kind="Stored"))
    assert talk.send(b"put a") == [b"stored a\nstored a\n"]
