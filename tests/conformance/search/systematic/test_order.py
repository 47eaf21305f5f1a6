"""The order of drawing: every group soon, and none twice across sweeps."""

from __future__ import annotations

import itertools
from pathlib import Path

from conformance.run.bases import ScriptContext, base
from conformance.run.specs import Injection, Spec
from conformance.search.systematic.order import DrawOrder, Ledger
from conformance.search.systematic.universe import DrawableSpec, plain


async def nothing(context: ScriptContext) -> None:
    """A base that does nothing."""


def items(groups: int = 5, each: int = 20, act: str = "rst") -> list[DrawableSpec]:
    return [
        DrawableSpec(
            (act, f"kind{group}", ""),
            Spec("toy", f"base{number % 3}", (Injection("c1", "out", number, act),)),
        )
        for group in range(groups)
        for number in range(1, each + 1)
    ]


def kinds_of(specs: list[Spec], universe: list[DrawableSpec]) -> list[str]:
    by_id = {id(item.spec): item.group[1] for item in universe}
    return [by_id[id(spec)] for spec in specs]


def test_every_group_comes_once_before_any_comes_twice() -> None:
    universe = items()
    first = list(itertools.islice(DrawOrder(universe), 5))
    assert sorted(kinds_of(first, universe)) == [f"kind{group}" for group in range(5)]


def test_bases_take_turns_in_a_group() -> None:
    drawn = list(itertools.islice(DrawOrder(items(groups=1)), 3))
    assert {spec.base for spec in drawn} == {"base0", "base1", "base2"}


def test_everything_is_drawn_once() -> None:
    universe = items()
    drawn = list(DrawOrder(universe))
    assert len(drawn) == len(universe)
    assert {id(spec) for spec in drawn} == {id(item.spec) for item in universe}


def test_one_seed_is_one_order() -> None:
    universe = items()
    assert list(DrawOrder(universe, 3)) == list(DrawOrder(universe, 3))
    assert list(DrawOrder(universe, 3)) != list(DrawOrder(universe, 4))


def test_what_comes_behind_a_loss_is_drawn_more_often() -> None:
    universe = items(groups=10) + items(groups=2, act="second")
    drawn = list(itertools.islice(DrawOrder(universe), 15))
    by_id = {id(item.spec): item.group[0] for item in universe}
    acts = [by_id[id(spec)] for spec in drawn]
    assert acts.count("second") > 2


def test_a_sweep_goes_on_where_the_last_one_has_stopped(tmp_path: Path) -> None:
    universe = items()
    ledger = Ledger({}, len(universe))
    order = DrawOrder(universe, 1, ledger)
    first = list(itertools.islice(order, 40))[:30]
    for _ in first:
        order.ran()
    assert order.left == len(universe) - 30  # ten were drawn, and never run
    ledger.save(tmp_path / "ledger.json")
    rest = list(DrawOrder(universe, 1, Ledger.load(tmp_path / "ledger.json", len(universe))))
    assert len(first) + len(rest) == len(universe)
    assert not {id(spec) for spec in first} & {id(spec) for spec in rest}


def test_another_universe_begins_anew(tmp_path: Path) -> None:
    Ledger({"a": 3}, 10).save(tmp_path / "ledger.json")
    assert Ledger.load(tmp_path / "ledger.json", 11).drawn == {}
    (tmp_path / "ledger.json").write_text("nonsense")
    assert Ledger.load(tmp_path / "ledger.json", 10).drawn == {}


def test_walks_come_after_the_other_bases_without_faults() -> None:
    universe = [plain("toy", base(name=name)(nothing)._replace(is_drawn=name < "c")) for name in "abcd"]
    for seed in range(5):
        drawn = [spec.base for spec in DrawOrder([*items(), *universe], seed)]
        assert set(drawn[:2]) == {"c", "d"}
        assert set(drawn[2:4]) == {"a", "b"}
