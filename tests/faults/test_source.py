"""Faults and plans print as the calls that make them."""

from __future__ import annotations

import builtins
from importlib import import_module
from typing import Any

import msgspec
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from hypothesis.vendor.pretty import pretty

from fakebrokers import faults
from fakebrokers.errors import PlanError
from fakebrokers.faults import Fault, Match, Plan, crash, drop, fault, fin, latency, reply, slice_, truncate
from fakebrokers.faults.effects import Drop, Truncate
from fakebrokers.faults.match import Moment
from fakebrokers.faults.registry import COMMON
from fakebrokers.faults.source import function_name
from fakebrokers.protocol import find_protocol
from fakebrokers.strategies import fault_plans
from tests.faults.builders import build_module

PROTOCOLS = ("rabbitmq-stream", "blazingmq", "pzq", "narconi", "moleculer")


def names(protocol: str = "") -> dict[str, Any]:
    """What a test that pastes a fault has imported."""
    found = {name: getattr(faults, name) for name in faults.__all__}
    if protocol:
        found |= vars(import_module(build_module(find_protocol(protocol))))
    return found


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (drop(role="confirm", nth=1), 'drop(role="confirm", nth=1)'),
        (latency(0.3, direction="out"), 'latency(seconds=0.3, direction="out")'),
        (slice_(3), "slice_(size=3)"),
        (reply(17, role="publish", name='a "b"'), 'reply(code=17, name="a \\"b\\"", role="publish")'),
        (drop(realism="legal", on=None), 'drop(realism="legal")'),
        (drop(where={"key": {"in": [1, b"\0"]}}), 'drop(where={"key": {"in": [1, b"\\x00"]}})'),
        (fin(after_s=1, on="ready"), 'fin(after_s=1.0, on="ready")'),
        (fault(fin(), after_s=1, on="idle"), 'fault(fin(), on="idle", after_s=1.0)'),
        (fault(truncate(), fin(), role="deliver"), 'fault(truncate(), fin(), role="deliver")'),
        (
            Plan(seed=7, faults=(crash(kind="Publish", nth=5, restart_s=1.0),)),
            'Plan(seed=7, faults=(crash(restart_s=1.0, kind="Publish", nth=5),))',
        ),
        (Plan(), "Plan()"),
        (Match(on=Moment.READY), 'Match(on="ready")'),
        (Truncate(share=0.25), "Truncate(share=0.25)"),
    ],
)
def test_text(made: Any, text: str) -> None:
    assert repr(made) == text
    assert eval(text, {**names(), "Truncate": Truncate}) == made


def test_each_effect_has_a_function_of_that_name() -> None:
    for protocol in PROTOCOLS:
        there = names(protocol)
        own = find_protocol(protocol).own_effects
        assert not [kind for kind in (*COMMON, *own) if function_name(kind) not in there]


def test_several_effects_are_given_by_what_makes_them() -> None:
    assert fault(truncate(), fin(), nth=2) == fault(*truncate().effects, *fin().effects, nth=2)


def test_a_part_with_a_match_of_its_own_is_refused() -> None:
    with pytest.raises(PlanError, match=r"fault: expected effects alone.*drop\(nth=2\)"):
        fault(drop(nth=2), fin(), nth=3)


def test_in_lists_too() -> None:
    assert repr([drop(), Drop()]) == "[drop(), Drop()]"


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)
MATCHES = st.builds(
    Match,
    role=st.sampled_from(("confirm", None)),
    where=st.dictionaries(st.text(), PLAIN.filter(lambda each: not isinstance(each, dict)), max_size=2),
    connection=st.none() | st.text(),
    nth=st.none() | st.integers(1),
    after_s=st.none() | st.floats(0, 1e9),
    probability=st.none() | st.floats(0, 1),
)


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a type; few and short ones."""
    if "Any" in str(kind):
        return st.dictionaries(st.text(max_size=3), PLAIN, max_size=2)
    return st.from_type(kind)


def settings(kind: type[Any]) -> st.SearchStrategy[Any]:
    """Effects of a kind, whatever values its settings have."""
    required, optional = {}, {}
    for field in msgspec.structs.fields(kind):
        (required if field.required else optional)[field.name] = values(field.type)
    return st.fixed_dictionaries(required, optional=optional).map(lambda given: kind(**given))


@given(st.data(), st.text(), MATCHES)
def test_repr_is_the_call(data: st.DataObject, name: str, match: Match) -> None:
    protocol = data.draw(st.sampled_from(PROTOCOLS))
    kinds = [*COMMON, *find_protocol(protocol).own_effects]
    acts = data.draw(st.lists(st.sampled_from(kinds).flatmap(settings), min_size=1, max_size=2))
    made = Fault(name=name, match=match, effects=tuple(acts))
    try:
        made.check("")
    except PlanError:
        reject()
    assert eval(repr(made), names(protocol)) == made
    plan = Plan(seed=len(name), faults=(made, drop()))
    assert eval(repr(plan), names(protocol)) == plan


@given(fault_plans("rabbitmq-stream", least=1))
def test_drawn_plans_print_as_calls(plan: Plan) -> None:
    assert pretty(plan) == repr(plan)
    assert eval(repr(plan), names()) == plan


def test_no_function_hides_a_builtin() -> None:
    assert not {function_name(kind) for kind in COMMON} & set(vars(builtins))
