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
from typing import Literal

import msgspec

from conformance.suite import outside
from fakebrokers.errors import UsageError, instead_of

Level = Literal["MUST", "SHOULD", "MAY"]


class Requirement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a scenario demands, in words.

    Attributes:
        id: Such as ``RMQS-3.09``; never changes, never used again.
        basis: Codes of the source sentences it rests on; `Family.basis` has the sentences.
        needs: Capabilities that the adapter must have declared.
        profile: For which profiles of the fake, if not for ``real``.
        fault: What the broker or the network does.
        passes: What the client must do; the tolerated outcomes too.
        seen: Issues of real clients that show the need.
    """

    id: str
    title: str
    level: Level
    severity: str
    basis: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    profile: str = ""
    fault: str = ""
    passes: str = ""
    seen: tuple[str, ...] = ()

    @property
    def section(self) -> str:
        """``RMQS-3`` of ``RMQS-3.09``."""
        return self.id.partition(".")[0]

    @property
    def family(self) -> str:
        """``RMQS`` of ``RMQS-3.09``."""
        return self.id.partition("-")[0]


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A chapter of a family."""

    id: str
    title: str


class Covered(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a family for several protocols says of one of them.

    Attributes:
        holds: The requirements that its clients are judged by.
        without: Id to the reason, for all others.
        remarks: Id to what the fault, or the criterion, is in the words of the protocol.
    """

    holds: tuple[str, ...] = ()
    without: Mapping[str, str] = {}
    remarks: Mapping[str, str] = {}


class Family(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file of the catalogue.

    Attributes:
        protocol: The protocol that all of it is for; empty if it covers several.
        protocols: Those that it covers, if these are several.
        scenarios: Requirements that are not stated at their scripts.
        basis: Code to paraphrased sentence of the protocol document.
        note: What readers of each of its requirements should know, one sentence.
    """

    family: str
    title: str
    protocol: str = ""
    protocols: Mapping[str, Covered] = {}
    basis: Mapping[str, str] = {}
    sections: tuple[Section, ...] = ()
    scenarios: tuple[Requirement, ...] = ()
    note: str = ""


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
        from conformance.suite import outside_catalogue

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


def requirements() -> Mapping[str, Requirement]:
    """All requirements by id: family by family, in the order of their numbers. Loads all scripts."""
    from conformance.suite.load import all_scenarios  # which reads this catalogue

    all_scenarios()
    found = [each for family in families().values() for each in family.scenarios]
    found += [item for item, _ in _stated.values()]
    order = [*families()]
    return {
        each.id: each for each in sorted(found, key=lambda each: (order.index(each.family), numbers(each.id)))
    }


def of_family(name: str) -> list[Requirement]:
    """The requirements of one family."""
    return [each for each in requirements().values() if each.family == name]


def numbers(scenario_id: str) -> tuple[int, ...]:
    """(3, 9) of ``RMQS-3.09``, which ids are sorted by."""
    return tuple(int(number) for number in re.findall(r"\d+", scenario_id.partition("-")[2]))


def sections() -> Mapping[str, Section]:
    """All chapters by id, such as ``RMQS-3``."""
    return {each.id: each for family in families().values() for each in family.sections}


def requirement(scenario_id: str) -> Requirement:
    """The requirement with that id. `UsageError` if there is none."""
    try:
        return known(scenario_id) or requirements()[scenario_id]
    except KeyError:
        words = [*families(), *sections(), *requirements()]
        raise UsageError(f"there is no scenario {scenario_id!r}{instead_of(scenario_id, words)}") from None


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
