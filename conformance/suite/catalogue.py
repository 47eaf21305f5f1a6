"""The requirements: ids, levels, what is done to the client and what it must do then.

They stand in ``scenarios/catalogue/*.toml``, one file per family; ids never change. Folders from outside
(`outside`) have catalogues of their own.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from conformance.suite import outside
from fakebrokers.errors import UsageError
from fakebrokers.protocol import instead_of

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


def requirements() -> Mapping[str, Requirement]:
    """All requirements by id."""
    return _requirements(outside.folders())


@cache
def _requirements(folders: tuple[outside.Folder, ...]) -> Mapping[str, Requirement]:
    return {each.id: each for family in _families(folders).values() for each in family.scenarios}


def sections() -> Mapping[str, Section]:
    """All chapters by id, such as ``RMQS-3``."""
    return {each.id: each for family in families().values() for each in family.sections}


def requirement(scenario_id: str) -> Requirement:
    """The requirement with that id. `UsageError` if there is none."""
    try:
        return requirements()[scenario_id]
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
