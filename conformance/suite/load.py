"""Finds the scenarios, and picks those that a run is for."""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from conformance.suite import outside, outside_catalogue
from conformance.suite.catalogue import all_known, families, known, sections, stated_in
from conformance.suite.requirement import Requirement
from conformance.suite.scenario import Scenario, declared, forget, registered
from fakebrokers.commands import own_package
from fakebrokers.errors import UsageError, instead_of

SMOKE = Path(__file__).with_name("smoke.json")
SETS = ("smoke", "gate", "full", "soak")


def all_scenarios() -> tuple[Scenario, ...]:
    """Every scenario there is, in the order of the catalogue."""
    return _all_scenarios(outside.folders())


def add_folder(path: str | Path) -> outside.Folder:
    """Add the scenarios of a folder from outside; see `outside`.

    Raises:
        UsageError: With file and line, for whatever is wrong in it. Then nothing is added.
    """
    folder = outside.use(path)
    try:
        all_scenarios()
    except UsageError:
        remove_folder(folder)
        raise
    return folder


def remove_folder(folder: outside.Folder) -> None:
    """Take a folder and its scenarios out again."""
    outside.forget(folder)
    forget(folder.holds)


@cache
def _all_scenarios(folders: tuple[outside.Folder, ...]) -> tuple[Scenario, ...]:
    families()  # a catalogue that is wrong is reported before the scripts that rest on it
    for module in pkgutil.walk_packages(own_package("scenarios").__path__, "scenarios."):
        import_module(module.name)
    for folder in folders:
        outside.load_scripts(folder)
        own = {
            scenario_id: script for script, scenario_id, _ in declared() if folder.holds(script.__module__)
        }
        stated = stated_in(folder.holds)
        outside_catalogue.check_ids(folder, own, stated)
        outside_catalogue.check_scripts(folder, own, stated)
    return tuple(registered())


def select(
    items: Iterable[Scenario],
    *,
    protocol: str | None = None,
    variant: str | None = None,
    level: str | None = None,
    which: str = "full",
    ids: Sequence[str] = (),
) -> list[Scenario]:
    """The scenarios of a run, in the order of the catalogue.

    Args:
        which: ``smoke`` (the 15 of each protocol that find most, see `smoke`), ``gate`` (all MUST), ``full``
            (all but the long ones) or ``soak`` (only the long ones). Ids given by name are taken whatever the
            set.
        ids: Ids or sections (``RMQS-3``) or families (``NET``).

    Raises:
        UsageError: an id that does not exist; the message names close ones.
    """
    pool = [
        s
        for s in items
        if protocol in (None, s.protocol) and variant in (None, s.variant) and level in (None, s.level)
    ]
    if ids:
        return _named(pool, ids)
    if which == "soak":
        return [s for s in pool if s.soak]
    pool = [s for s in pool if not s.soak]
    if which == "gate":
        return [s for s in pool if s.level == "MUST"]
    if which == "smoke":
        rows = written()["rows"]
        return [s for s in pool if joined(s.id, s.variant) in rows.get(joined(s.protocol, variant), ())]
    return pool


@cache
def written() -> dict[str, Any]:
    """What `conformance.suite.smoke` has written."""
    found: dict[str, Any] = json.loads(SMOKE.read_text(encoding="utf-8"))
    return found


def joined(*parts: str | None) -> str:
    """How that file calls its rows and their groups: an id or a protocol, and the variant if there is one."""
    return "/".join(part for part in parts if part)


def _named(pool: list[Scenario], ids: Sequence[str]) -> list[Scenario]:
    words = {word for s in pool for word in (s.id, s.requirement.section, s.requirement.family)}
    wanted = [word.upper() for word in ids]
    for word in wanted:
        if word not in words:
            raise UsageError(f"there is no scenario {word!r} here{instead_of(word, sorted(words))}")
    return [s for s in pool if any(_fits(s, word) for word in wanted)]


def _fits(item: Scenario, word: str) -> bool:
    return word in (item.id, item.requirement.section, item.requirement.family)


def requirements() -> Mapping[str, Requirement]:
    """All requirements by id: family by family, in the order of their numbers. Loads all scripts."""
    all_scenarios()
    return {each.id: each for each in all_known()}


def of_family(name: str) -> list[Requirement]:
    """The requirements of one family."""
    return [each for each in requirements().values() if each.family == name]


def requirement(scenario_id: str) -> Requirement:
    """The requirement with that id. `UsageError` if there is none."""
    try:
        return known(scenario_id) or requirements()[scenario_id]
    except KeyError:
        words = [*families(), *sections(), *requirements()]
        raise UsageError(f"there is no scenario {scenario_id!r}{instead_of(scenario_id, words)}") from None
