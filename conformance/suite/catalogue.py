"""The requirements: ids, levels, what is done to the client and what it must do then; ids never change.

A script states its requirement (`scenario`). What several share (families, sections, the sentences that they
rest on) is in ``scenarios/catalogue/*.toml``, one file per family. A folder from outside (`outside`) has
catalogues of its own, which may have requirements, too.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files

import msgspec

from conformance.suite import outside, outside_catalogue
from conformance.suite.requirement import Covered, Family, Requirement, Section


def families() -> Mapping[str, Family]:
    """All families by name."""
    return _families(outside.folders())


@cache
def _families(folders: tuple[outside.Folder, ...]) -> Mapping[str, Family]:
    """Those that come along, and those of the folders."""
    found = {}
    for file in sorted(files("scenarios").joinpath("catalogue").iterdir(), key=lambda f: f.name):
        if file.name.endswith(".toml"):
            family = msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), Family)
            found[family.family] = family
    for folder in folders:
        found |= {family.family: family for family in outside_catalogue.read(folder, found)}
    return found


#: Those that are stated at their scripts, each with the module of the script.
_stated: dict[str, tuple[Requirement, str]] = {}


def state(item: Requirement, module: str) -> None:
    """Add the requirement that a script of a module states."""
    _stated[item.id] = (item, module)


def stated_in(is_of: Callable[[str], bool]) -> list[str]:
    """The ids that scripts of such modules state."""
    return [key for key, (_, module) in _stated.items() if is_of(module)]


def forget(is_gone: Callable[[str], bool]) -> None:
    """Take those out that scripts of such modules have stated."""
    for scenario_id in stated_in(is_gone):
        del _stated[scenario_id]


def known(scenario_id: str) -> Requirement | None:
    """The requirement with that id, if a catalogue has it or a script that has been loaded states it."""
    if scenario_id in _stated:
        return _stated[scenario_id][0]
    family = families().get(scenario_id.partition("-")[0])
    return next((each for each in family.scenarios if each.id == scenario_id), None) if family else None


def numbers(scenario_id: str) -> tuple[int, ...]:
    """(3, 9) of ``RMQS-3.09``, which ids are sorted by."""
    return tuple(int(number) for number in re.findall(r"\d+", scenario_id.partition("-")[2]))


def sections() -> Mapping[str, Section]:
    """All chapters by id, such as ``RMQS-3``."""
    return {each.id: each for family in families().values() for each in family.sections}


def fault_of(item: Requirement, protocol: str) -> str:
    """What the broker or the network does, with what is special to one of several protocols."""
    covered = families()[item.family].protocols.get(protocol, Covered())
    remark = covered.remarks.get(item.id)
    return f"{item.fault}. {protocol}: {remark}" if remark else item.fault


def sources(item: Requirement) -> tuple[str, ...]:
    """The source sentences of a requirement: ``R7: Publish has no answer ...``."""
    others = {code: text for family in families().values() for code, text in family.basis.items()}
    basis = {**others, **families()[item.family].basis}
    return tuple(f"{code}: {basis[code]}" for code in item.basis if code in basis)


def all_known() -> list[Requirement]:
    """Those of all catalogues and of the scripts that have been loaded, in the order of their ids."""
    found = [each for family in families().values() for each in family.scenarios]
    found += [item for item, _ in _stated.values()]
    order = [*families()]
    return sorted(found, key=lambda each: (order.index(each.family), numbers(each.id)))
