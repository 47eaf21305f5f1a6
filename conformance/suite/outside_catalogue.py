"""The catalogue of a folder from outside: read strictly, with file and line of whatever is wrong."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn, get_args

import msgspec

from conformance.suite.outside import CATALOGUE, Folder
from conformance.suite.requirement import Family, Level, Requirement
from fakebrokers.errors import UsageError, instead_of
from fakebrokers.protocol import protocol_names

LEVELS: tuple[str, ...] = get_args(Level)
SEVERITIES = ("critical", "high", "medium", "low")
_AT = re.compile(r" - at `\$\.?(?P<path>.*)`$")
_ROW = re.compile(r"(?P<table>\w+)\[(?P<index>\d+)\](?:\.(?P<key>\w+))?")
_NAMED = re.compile(r"unknown field `(?P<key>\w+)`")


class _CatalogueFile:
    """One file of a catalogue, and where its parts are."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self._lines = text.splitlines()

    def refuse(self, problem: str, table: str = "", index: int = 0, key: str = "") -> NoReturn:
        """Raise `UsageError` for a key at the top, or in a row of a table."""
        raise UsageError(f"{self.path}:{self.line(table, index, key)}: {problem}")

    def line(self, table: str, index: int, key: str) -> int:
        """The line of the key, else that where its row begins, else 1."""
        rows = [n for n, line in enumerate(self._lines) if re.match(rf"\s*\[\[\s*{table}\s*\]\]", line)]
        begin = rows[index] if table and index < len(rows) else 0
        for number in range(begin, len(self._lines)):
            line = self._lines[number]
            if key and re.match(rf"\s*\[*\s*[\"']?{re.escape(key)}[\"']?\s*[\]=]", line):
                return number + 1
            if number > begin and table and re.match(r"\s*\[", line):
                break
        return begin + 1


def read(folder: Folder, known: Mapping[str, Family]) -> list[Family]:
    """The families of a folder.

    Args:
        known: Those that are there already, by name.

    Raises:
        UsageError: With file and line: what was expected there, and what came.
    """
    found: list[Family] = []
    for path in _paths(folder):
        others = {**known, **{family.family: family for family in found}}
        found.append(_family(path, others))
    return found


def check_scripts(
    folder: Folder, scripts: Mapping[str, Callable[..., object]], stated: Sequence[str]
) -> None:
    """See to it that each requirement of a folder has a script, and each script its requirement there.

    Args:
        scripts: Those of the folder, by id.
        stated: The ids of those that state their requirement themselves.
    """
    for path in _paths(folder):
        text = path.read_text(encoding="utf-8")
        family = msgspec.convert(tomllib.loads(text), Family)
        listed = [item.id for item in family.scenarios]
        own = [*listed, *(each for each in stated if each.startswith(f"{family.family}-"))]
        file = _CatalogueFile(path, text)
        if not own:
            file.refuse(
                f"expected at least one [[scenarios]], or a script that states one of {family.family}"
            )
        _check_protocols(file, family, own)
        for index, scenario_id in enumerate(listed):
            if scenario_id not in scripts:
                problem = f'expected a script @scenario("{scenario_id}") in {folder.path}, found none'
                file.refuse(problem, "scenarios", index, "id")


def check_ids(folder: Folder, scripts: Mapping[str, Callable[..., object]], stated: Sequence[str]) -> None:
    """See to it that each script of a folder tries what the folder itself demands. Arguments as above."""
    texts = [path.read_text(encoding="utf-8") for path in _paths(folder)]
    own = [row["id"] for text in texts for row in tomllib.loads(text).get("scenarios", ())] + [*stated]
    for scenario_id, script in scripts.items():
        if scenario_id not in own:
            code = script.__code__
            raise UsageError(
                f"{code.co_filename}:{code.co_firstlineno}: expected a scenario of this folder's catalogue "
                f"({', '.join(own)}), got {scenario_id}{instead_of(scenario_id, own)}"
            )


def _paths(folder: Folder) -> list[Path]:
    return sorted((folder.path / CATALOGUE).glob("*.toml"))


def _family(path: Path, known: Mapping[str, Family]) -> Family:
    try:
        text = path.read_text(encoding="utf-8")
        rows = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: expected a catalogue: {error}") from None
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        raise UsageError(f"{path}:{line[1] if line else 1}: expected TOML: {error}") from None
    file = _CatalogueFile(path, text)
    try:
        family = msgspec.convert(rows, Family)
    except msgspec.ValidationError as error:
        _misfit(file, str(error))
    _check_family(file, family, known)
    for index, item in enumerate(family.scenarios):
        if item.id in [other.id for other in family.scenarios[:index]]:
            file.refuse(f"expected each id once, and {item.id} comes again", "scenarios", index, "id")
        for key, problem in problems(item, family, known):
            file.refuse(problem, "scenarios", index, key)
    return family


def _misfit(file: _CatalogueFile, text: str) -> NoReturn:
    """Raise for what does not have the shape of a catalogue."""
    at = _AT.search(text)
    problem = text[: at.start()] if at else text
    row = _ROW.match(at["path"]) if at else None
    named = _NAMED.search(text)
    key = named["key"] if named else row["key"] if row else at["path"] if at else ""
    if key == "level":
        problem = f"expected the level MUST, SHOULD or MAY: {problem}"
    elif named:
        valid = [field.name for field in msgspec.structs.fields(Requirement if row else Family)]
        problem = f"{problem}{instead_of(named['key'], valid)}"
    file.refuse(problem, row["table"] if row else "", int(row["index"]) if row else 0, key or "")


def _check_family(file: _CatalogueFile, family: Family, known: Mapping[str, Family]) -> None:
    name = family.family
    if not re.fullmatch("[A-Z][A-Z0-9]*", name):
        file.refuse(f"expected a family in capital letters, such as ACME, got {name!r}", key="family")
    if name in known:
        file.refuse(
            f"expected a family of your own, and {name} is there already: {known[name].title}", key="family"
        )
    if family.protocol and family.protocol not in protocol_names():
        problem = f"there is no protocol {family.protocol!r}{instead_of(family.protocol, protocol_names())}"
        file.refuse(problem, key="protocol")
    for index, section in enumerate(family.sections):
        if not re.fullmatch(rf"{name}-\d+", section.id):
            file.refuse(f"expected a section such as {name}-1, got {section.id!r}", "sections", index, "id")
    for other in known.values():
        for code in family.basis.keys() & other.basis.keys():
            problem = f"the sentence {code} is there already, in {other.family}: {other.basis[code]!r}"
            file.refuse(f"expected codes of your own; {problem}", key=code)


def _check_protocols(file: _CatalogueFile, family: Family, ids: Sequence[str]) -> None:
    for protocol, covered in family.protocols.items():
        table = f"protocols.{protocol}"
        if family.protocol:
            file.refuse(f"expected no [{table}]: all of the family is for {family.protocol}", key=table)
        for scenario_id in (*covered.holds, *covered.without, *covered.remarks):
            if scenario_id not in ids:
                file.refuse(
                    f"[{table}]: there is no scenario {scenario_id!r}{instead_of(scenario_id, ids)}",
                    key=table,
                )


def problems(item: Requirement, family: Family, known: Mapping[str, Family]) -> Iterator[tuple[str, str]]:
    """What is wrong with a requirement of a family: the key, and what was expected there.

    Args:
        known: All families by name, whose sentences it may rest on.
    """
    if not re.fullmatch(rf"{family.family}-\d+\.\d+", item.id):
        yield "id", f"expected an id such as {family.family}-1.01, got {item.id!r}"
    sections = [section.id for section in family.sections]
    if item.section not in sections:
        yield "id", f"expected a section of this family ({', '.join(sections)}), got {item.section}"
    if item.level not in LEVELS:
        yield "level", f"expected the level {', '.join(LEVELS)}, got {item.level!r}"
    if item.severity not in SEVERITIES:
        yield "severity", f"expected one of {', '.join(SEVERITIES)}, got {item.severity!r}"
    for code in item.basis:
        if not any(code in each.basis for each in (family, *known.values())):
            yield "basis", f"there is no sentence {code!r}{instead_of(code, family.basis)}"
