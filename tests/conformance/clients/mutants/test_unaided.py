"""``fakebrokers mutants --sweep --chaos``: what is tried, and what is said of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest
from click.testing import CliRunner

from conformance.cli.mutants import mutants_command
from conformance.clients.mutants.registry import Mutant
from conformance.search import kills
from conformance.search.kills import Kill, sample
from conformance.search.random.kills import kill as by_chaos


def run(
    monkeypatch: pytest.MonkeyPatch, found: dict[str, set[str]], *words: str
) -> tuple[int, str, list[tuple[str, list[str]]]]:
    """Exit code, output, and which mutants were tried by what; `found` says who finds which."""
    tried: list[tuple[str, list[str]]] = []

    def stand_in(
        chosen: Sequence[Mutant],
        seconds: float,
        processes: int,
        on_kill: Callable[[Kill], None],
        *,
        kill: Callable[..., Kill],
    ) -> list[Kill]:
        means = "chaos" if kill is by_chaos else "sweep"
        tried.append((means, [each.name for each in chosen]))
        return [Kill("pzq", each.name, each.tag, ["r"] * (each.name in found[means])) for each in chosen]

    monkeypatch.setattr(kills, "kills", stand_in)
    done = CliRunner().invoke(
        mutants_command,
        ["--protocol", "pzq", "--json", *words],
        standalone_mode=False,
        catch_exceptions=False,
    )
    return done.return_value, done.stdout, tried


def test_chaos_is_tried_on_what_the_sweep_does_not_find(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [one.name for one in sample("pzq", 3, 7)]
    found = {"sweep": {names[0]}, "chaos": {names[1]}}
    code, out, tried = run(monkeypatch, found, "--sweep", "--chaos", "--sample", "3", "--seed", "7")
    assert tried == [("sweep", names), ("chaos", names[1:])]
    said = json.loads(out)
    assert (code, said["killed"], said["of"]) == (1, 2, 3)
    assert {one["name"] for one in said["mutants"] if not one["by"]} == {names[2]}


def test_all_found_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {one.name for one in sample("pzq", 2)}
    code, _, tried = run(monkeypatch, {"sweep": names}, "--sweep", "--sample", "2")
    assert (code, len(tried)) == (0, 1)


def test_another_seed_takes_others() -> None:
    assert sample("pzq", 20, 1) == sample("pzq", 20, 1) != sample("pzq", 20, 2)
