"""Plans from strangers: whatever a file or a dictionary holds, only `PlanError` comes out, and soon."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakebrokers.errors import PlanError
from fakebrokers.faults import load_plan
from fakebrokers.faults.match import Match
from fakebrokers.faults.registry import effect_types

FILES = {
    "lists.toml": "a=" + "[" * 50_000,
    "tables.toml": "[faults" + ".a" * 3_000 + "]\n",
    "number.toml": "seed=" + "9" * 5_000 + "\n",
    "hexadecimal.toml": "seed=0x" + "f" * 5_000 + "\n",
    "mark.toml": "\ufeffseed=1\n",
    "nul.toml": "seed=1\0\n",
    "lists.json": "[" * 100_000,
    "closed.json": "[" * 500 + "]" * 500,
    "fault.json": '{"faults": [{"match": {"where": {"a": ' + "[" * 500 + "]" * 500 + "}}}]}",
    "number.json": '{"seed":' + "9" * 10_000 + "}",
    "infinite.json": '{"seed": 1e999}',
}


@pytest.mark.parametrize("name", FILES)
def test_files(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(FILES[name])
    with pytest.raises(PlanError) as told:
        load_plan(tmp_path / name)
    assert str(told.value).startswith(str(tmp_path / name))
    assert len(str(told.value)) < 2_000


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_bytes(b"seed=1 # \xff\n")
    with pytest.raises(PlanError, match="expected a TOML or JSON file"):
        load_plan(tmp_path / "plan.toml")


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)
HUGE = 10**5_000
DROP = {"type": "drop"}


@pytest.mark.parametrize(
    ("plan", "path"),
    [
        ({"seed": HUGE}, "seed"),
        ({"seed": CIRCLE}, "seed"),
        ({"version": HUGE}, "version"),
        ({"faults": HUGE}, "faults"),
        ({"faults": CIRCLE}, "faults[0]"),
        ({"faults": [HUGE]}, "faults[0]"),
        ({"faults": [{"effect": {"type": HUGE}}]}, "faults[0].effect.type"),
        ({"faults": [{"effect": {"type": "delay", "ms": HUGE}}]}, "faults[0].effect.ms"),
        ({"faults": [{"effect": DROP, "match": {"nth": -HUGE}}]}, "faults[0].match.nth"),
        ({"faults": [{"effect": DROP, "match": {"where": {"a": nested(5_000)}}}]}, "faults[0].match.where.a"),
        (
            {"faults": [{"effect": DROP, "match": {"where": {"a": {"in": HUGE}}}}]},
            "faults[0].match.where.a.in",
        ),
        ({"faults": [{"effect": {"type": "rewrite", "fields": CIRCLE}}]}, "faults[0].effect.fields"),
        ({"faults": [{"effect": DROP, HUGE: 1}]}, "faults[0]"),
        ({HUGE: 1}, ""),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_values_of_any_size(plan: Any, path: str) -> None:
    with pytest.raises(PlanError) as told:
        load_plan(plan)
    assert told.value.path.startswith(path)
    assert len(str(told.value)) < 2_000


#: Plain values with many that are out of place, and the names that plans have.
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(
        ["confirm", "out", "in", "frame", "run", "1h", "{0.__class__}", "%s", "\0", "\ud800", 10**400]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def faults(draw: st.DrawFn) -> dict[str, Any]:
    """A table that looks like a fault."""
    kind = draw(st.sampled_from(sorted(effect_types())))
    names = effect_types()[kind].__struct_fields__
    settings_ = draw(st.dictionaries(st.sampled_from([*names, "other"]), VALUES, max_size=3))
    match = draw(st.dictionaries(st.sampled_from(Match.__struct_fields__), VALUES, max_size=3))
    return {"effect": {"type": kind, **settings_}, "match": match, "name": draw(st.just("x") | VALUES)}


@settings(max_examples=400, deadline=None)
@given(st.lists(faults() | VALUES, max_size=2), st.integers() | VALUES)
def test_plans_that_look_right(rows: list[Any], seed: Any) -> None:
    """What is accepted can be written down and read back; all else is refused with its place."""
    try:
        plan = load_plan({"seed": seed, "faults": rows})
    except PlanError as error:
        assert len(str(error)) < 10_000
        return
    assert load_plan(plan.to_dict()) == plan
