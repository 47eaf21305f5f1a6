"""Plans as data: read, refused with a reason, printed, read back; and their schema."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from fakebrokers.errors import PlanError
from fakebrokers.faults import Fault, Plan, Realism, crash, drop, fault, load_plan, rewrite, rst, silent
from fakebrokers.faults.effect import Effect
from fakebrokers.faults.effects import Inject, Latency, Rst, Slice, Truncate
from fakebrokers.faults.registry import effect_types
from fakebrokers.faults.schema import plan_schema
from fakebrokers.faults.toml import to_toml
from tests.core.talk import Talk

OLD = Path(__file__).with_name("plan-v1.toml")

EXAMPLE = """
seed = 42
[[faults]]
name   = "lose the third confirm"
match  = { direction = "out", role = "confirm", nth = 3 }
effect = { type = "drop" }

[[faults]]
match = { role = "confirm", every = 10 }
effect = [{ type = "truncate", share = 0.5 }, { type = "rst" }]
realism = "environment"
"""


def test_the_example_of_the_design() -> None:
    plan = load_plan(tomllib.loads(EXAMPLE))
    assert plan.seed == 42
    assert plan.faults[0] == drop(name="lose the third confirm", direction="out", role="confirm", nth=3)
    assert plan.faults[1].effects == (Truncate(share=0.5), Rst())
    assert plan.faults[1].effective_realism is Realism.ENVIRONMENT


@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_files(tmp_path: Path, suffix: str) -> None:
    plan = load_plan(tomllib.loads(EXAMPLE))
    path = tmp_path / f"plan{suffix}"
    path.write_text(plan.to_toml() if suffix == ".toml" else json.dumps(plan.to_dict()))
    assert load_plan(path) == plan == load_plan(str(path)) == load_plan(plan)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"none\.toml: cannot be read"):
        load_plan(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("seed = ")
    with pytest.raises(PlanError, match=r"bad\.toml: expected a TOML or JSON file, got"):
        load_plan(tmp_path / "bad.toml")
    (tmp_path / "bad.json").write_text('{"faults": [{}]}')
    with pytest.raises(PlanError, match=r"bad\.json: faults\[0\]\.effect: expected at least one effect"):
        load_plan(tmp_path / "bad.json")


EFFECT = {"type": "drop"}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"match": {"role": "confrim"}, "effect": EFFECT},
            r"match\.role: expected one of handshake, open, shut, publish, confirm.*got 'confrim' "
            r"\(did you mean 'confirm'\?\)",
        ),
        ({"match": {"rolle": "x"}, "effect": EFFECT}, r"match\.rolle: .*did you mean 'role'"),
        ({"match": {"nth": 0}, "effect": EFFECT}, r"match\.nth: expected a count from 1, got 0"),
        ({"match": {"nth": "3"}, "effect": EFFECT}, r"match\.nth: expected a whole number, got '3'"),
        ({"match": {"direction": "up"}, "effect": EFFECT}, r"match\.direction: expected one of in, out; got"),
        ({"match": {"probability": 2}, "effect": EFFECT}, r"match\.probability: expected 0\.\.1, got 2"),
        ({"match": {"where": {"a": {"near": 1}}}, "effect": EFFECT}, r"match\.where\.a: expected one of eq"),
        (
            {"match": {"where": {"a": {"in": 1}}}, "effect": EFFECT},
            r"where\.a\.in: expected a list of values",
        ),
        ({"match": {"byte": -1}, "effect": EFFECT}, r"match\.byte: expected an offset from 0"),
        ({"match": {"on": "idel", "after_s": 1}, "effect": EFFECT}, r"match\.on: .*did you mean 'idle'"),
        ({"match": {}, "effect": {"type": "dorp"}}, r"effect\.type: .*got 'dorp' \(did you mean 'drop'\?\)"),
        ({"match": {}, "effect": {"type": "latency"}}, r"effect\.seconds: expected a number, got nothing"),
        ({"match": {}, "effect": {"type": "delay", "seconds": -1}}, r"effect\.seconds: .*from 0, got -1"),
        ({"match": {}, "effect": {"type": "delay", "seconds": 1, "jiter": 1}}, r"effect\.jiter: .*'jitter'"),
        ({"match": {}, "effect": {"type": "slice"}}, r'effect: expected one of "size", "at"'),
        ({"match": {}, "effect": [EFFECT, {"type": "slice", "size": 0}]}, r"effect\[1\]\.size: expected a"),
        ({"match": {}, "effect": {"type": "latency", "seconds": 1e300}}, r"seconds: expected a number up to"),
        ({"match": {}, "effect": {"type": "duplicate", "times": 2**40}}, r"times: .* 1 to 100000, got 1099"),
        ({"match": {}, "effect": {"type": "inject", "hex": "00", "times": 2**40}}, r"times: .* 1 to 100000"),
        ({"match": {}, "effect": {"type": "reply", "code": 1, "tail_hex": "x"}}, r"tail_hex: .*got 'x'"),
        ({"match": {}, "effect": {"type": "inject"}}, r'effect: expected either "kind" or "hex"'),
        (
            {"match": {}, "effect": {"type": "inject", "hex": "x"}},
            r"effect\.hex: expected hexadecimal digits",
        ),
        (
            {"match": {}, "effect": {"type": "silent", "spare": ["beat"]}},
            r"effect\.spare: expected a list \(one",
        ),
        ({"match": {}, "effect": "drop"}, r"effect: expected a table with a \"type\", one of black-hole,"),
        ({"match": {}, "effect": {}}, r'effect: expected a table with a "type"'),
        ({"match": {}, "effect": []}, r"effect: expected at least one effect, got none"),
        ({"match": {}}, r"effect: expected at least one effect"),
        ({"match": 3, "effect": EFFECT}, r"match: expected a table, got 3"),
        ({"match": {}, "effect": EFFECT, "nmae": "x"}, r"\.nmae: expected .*'name'"),
        ({"match": {}, "effect": EFFECT, "name": 1}, r"name: expected text, got 1"),
        ({"match": {}, "effect": EFFECT, "realism": "real"}, r"realism: expected one of legal, environment"),
        (
            {"match": {"direction": "in"}, "effect": {"type": "slice", "size": 1}},
            r'direction: expected "out"',
        ),
        (3, r"faults\[0\]: expected a table, got 3"),
    ],
)
def test_what_is_refused_and_why(row: Any, message: str) -> None:
    with pytest.raises(PlanError, match=message) as caught:
        load_plan({"faults": [row]})
    assert caught.value.path.startswith("faults[0]")


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"seed": "x"}, "seed: expected a whole number, got 'x'"),
        ({"seed": True}, "seed: expected a whole number"),
        ({"version": 3}, "version: expected 1 or 2, got 3"),
        ({"version": True}, "version: expected 1 or 2, got True"),
        ({"faults": {}}, "faults: expected a list of faults"),
        ({"fault": []}, r"plan\.fault: .*did you mean 'faults'"),
    ],
)
def test_whole_plans_that_are_refused(plan: Mapping[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        load_plan(plan)


def test_one_line_in_python_is_checked_as_well() -> None:
    with pytest.raises(PlanError, match=r"drop\.rol: .*did you mean 'role'"):
        drop(rol="confirm")
    with pytest.raises(PlanError, match=r"match\.role: .*did you mean 'confirm'"):
        drop(role="confirn")
    with pytest.raises(PlanError, match="expected at most 3 settings, got 4"):
        silent(1, 2, 3, 4)
    with pytest.raises(PlanError, match=r"rewrite\.fields: expected a table, got nothing"):
        rewrite(role="confirm")


def test_what_the_fake_does_not_have_is_refused_when_it_is_added() -> None:
    with pytest.raises(
        PlanError, match=r"faults\[0\]\.match\.kind: .*; got 'Stroed' \(did you mean 'Stored'"
    ):
        Talk(drop(kind="Stroed"))
    with pytest.raises(PlanError, match=r"match\.role: expected one of .*got <Role.FLOW"):
        Talk(drop(role="flow"))
    with pytest.raises(PlanError, match=r"faults\[1\]\.name: expected a name of its own, got 'x'"):
        Talk(drop(name="x"), rst(name="x"))


def test_effects_that_there_are() -> None:
    types = effect_types()
    assert {"drop", "rst", "half-open", "shift-clock"} < set(types)
    assert not [name for name in types if name.startswith("_") or not name.islower()]
    assert all(kind.apply is not Effect.apply for kind in types.values())
    assert all(kind.__doc__ for kind in types.values())


def test_realism_is_the_worst_of_the_effects() -> None:
    assert fault(Slice(size=1), Rst()).effective_realism is Realism.ENVIRONMENT
    assert fault(Latency(seconds=1), Inject(hex="00")).effective_realism is Realism.ILLEGAL
    assert drop(realism=Realism.LEGAL).effective_realism is Realism.LEGAL


# printing

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
scalars = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(texts, values, max_size=4), st.lists(st.dictionaries(texts, values, max_size=3)))
def test_toml_is_read_back_as_it_was(plain: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    document = {**plain, "faults": rows}
    assert tomllib.loads(to_toml(document)) == document


def faults() -> st.SearchStrategy[Fault]:
    matches = st.fixed_dictionaries(
        {"role": st.sampled_from(["confirm", "publish"])},
        optional={
            "nth": st.integers(1, 9),
            "probability": st.floats(0, 1),
            "scope": st.sampled_from(["connection", "run"]),
            "where": st.dictionaries(texts, st.integers() | st.fixed_dictionaries({"ge": st.integers(0, 9)})),
        },
    )
    acts = st.sampled_from(
        [(Rst(),), (Truncate(keep=3), Rst(pass_frame=False)), (Inject(kind="K", fields={"a": [1, "b"]}),)]
    )
    return st.builds(lambda match, acts, name: fault(*acts, name=name, **match), matches, acts, texts)


@settings(max_examples=40, deadline=None)
@given(st.builds(Plan, seed=st.integers(-5, 2**40), faults=st.lists(faults(), max_size=3).map(tuple)))
def test_plans_are_read_back_as_they_were(plan: Plan) -> None:
    assert load_plan(tomllib.loads(plan.to_toml())) == plan
    assert load_plan(json.loads(json.dumps(plan.to_dict()))) == plan


def test_only_what_differs_from_the_default_is_printed() -> None:
    text = Plan(seed=1, faults=(crash(role="confirm", nth=2, keep_state=False),)).to_toml()
    assert text == (
        'version = 2\nseed = 1\n\n[[faults]]\nmatch = { role = "confirm", nth = 2 }\n'
        'effect = { type = "crash", keep_state = false }\n'
    )


# schema


def test_schema_agrees_with_the_reader() -> None:
    validator = Draft202012Validator(plan_schema())
    Draft202012Validator.check_schema(plan_schema())
    assert validator.is_valid(tomllib.loads(EXAMPLE))
    assert validator.is_valid({"faults": [{"effect": {"type": "of-one-protocol-only", "x": 1}}]})
    for bad in (
        {"faults": [{"match": {"role": "confrim"}, "effect": EFFECT}]},
        {"faults": [{"effect": {"type": "latency"}}]},
        {"faults": [{"effect": {"type": "drop", "x": 1}}]},
        {"faults": [{"match": {}}]},
        {"version": 3},
    ):
        assert not validator.is_valid(bad)
        with pytest.raises(PlanError):
            load_plan(bad)


def test_a_plan_of_version_1_still_works() -> None:
    """Written with the first release; this file must never be changed."""
    data = tomllib.loads(OLD.read_text())
    assert Draft202012Validator(plan_schema()).is_valid(data)
    plan = load_plan(OLD)
    assert len(plan.faults) == 9
    assert plan.faults[0].match.where == {"key": {"in": ["a", "b"]}}
    assert load_plan(plan.to_dict()) == plan
    assert plan.faults[3].match.scope == "connection"  # what no scope meant then, for an RST
