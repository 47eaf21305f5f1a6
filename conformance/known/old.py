"""The forms before 0.3: a file of the suite, of the sweep and of chaos each, a cause beside every row.

They are read as they were, so that files of users go on working; ``fakebrokers known``
makes new ones of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from conformance.known.defects import WHAT, Defect, KnownDefects, KnownFinding, KnownRow, Part, Severity
from conformance.known.names import names_of_sweep
from conformance.results import Verdict
from fakebrokers.errors import UsageError
from fakebrokers.files import toml_of, value_of

_OF_CHAOS = {"sweep", "seeds", "drawing"}


class _Failure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of the suite; `cause` may be missing where there is a `reason`."""

    protocol: str
    id: str = ""
    rule: str = ""
    rows: tuple[str, ...] = ()
    criterion: str | tuple[str, ...] = ()
    cause: str = ""
    reason: str = ""
    variant: str = ""
    verdict: Verdict = Verdict.FAIL
    reproducer: str = ""
    report: str = ""
    sometimes: bool = False


class _Violation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of generated runs."""

    invariant: str
    cause: str
    severity: Severity = "medium"
    acts: tuple[str, ...] = ("*",)
    bases: tuple[str, ...] = ("*",)
    detail: str = "*"


class _Failures(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    version: int = 1
    client: str = ""
    client_version: str = ""
    known: tuple[_Failure, ...] = ()


class _Violations(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    version: int
    client: str
    client_version: str = ""
    sweep: str = ""
    seeds: tuple[str, ...] = ()
    drawing: int = 0
    known: tuple[_Violation, ...] = ()


def is_old(data: Mapping[str, Any]) -> bool:
    """Whether a file is of these forms."""
    return data.get("version") == 1 or "known" in data


def read(path: Path, data: Mapping[str, Any], part: Part | None) -> KnownDefects:
    """A file of one of these forms.

    Args:
        part: What it is read for; None: what it is about, by what is in it.

    Raises:
        UsageError: It is none, or about something else.
    """
    about = _about(data)
    if part is None:
        part = _of_words(data) if about is Part.SWEEP else about or Part.SUITE
    if about not in (None, part, *([Part.SWEEP] if part is Part.CHAOS else [])):
        raise UsageError(f"{path}: expected what the {part} is known to find, got that of the {about}")
    if part is Part.SUITE:
        return _of_suite(path, value_of(path, WHAT, data, _Failures))
    return _of_generated(path, value_of(path, WHAT, data, _Violations), part)


def _about(data: Mapping[str, Any]) -> Part | None:
    """What a file is about; None: it has no rows, and may be about anything.

    One of the sweep may be about chaos, too.
    """
    if _OF_CHAOS & {*data}:
        return Part.CHAOS
    rows = data.get("known")
    if not isinstance(rows, list) or not rows:
        return None
    return Part.SWEEP if all(isinstance(row, dict) and "invariant" in row for row in rows) else Part.SUITE


def _of_words(data: Mapping[str, Any]) -> Part:
    """Whose words a file of generated runs has; those that both have are taken for the sweep's."""
    rules, acts = names_of_sweep()
    for row in data["known"]:
        wanted = [(rules, row["invariant"]), *((acts, act) for act in row.get("acts", ()))]
        if not all(any(fnmatchcase(name, str(word)) for name in names) for names, word in wanted):
            return Part.CHAOS
    return Part.SWEEP


def _check_version(path: Path, version: int) -> None:
    if version != 1:
        raise UsageError(f"{path}: expected version 1, got {version}")


def _of_suite(path: Path, file: _Failures) -> KnownDefects:
    _check_version(path, file.version)
    rows = []
    for each in file.known:
        named = each.id or each.rule
        if bool(each.id) is bool(each.rule):
            both = f"{each.id!r} and {each.rule!r}" if named else "neither"
            raise UsageError(f"{path}: expected either an id or a rule in each row, got {both}")
        if not (each.cause.strip() or each.reason.strip()):
            raise UsageError(f"{path}: {named}: expected a cause, got none")
        if each.rule and each.criterion:
            raise UsageError(f"{path}: {named}: a rule has no criteria, got {each.criterion}")
        rows.append(
            KnownRow(
                defect=Defect("", each.cause or each.reason, "", each.reproducer, each.report),
                protocol=each.protocol,
                id=each.id,
                rule=each.rule,
                rows=each.rows,
                criteria=(each.criterion,) if isinstance(each.criterion, str) else each.criterion,
                variant=each.variant,
                verdict=each.verdict,
                reason=each.reason if each.cause else "",
                sometimes=each.sometimes,
            )
        )
    return KnownDefects(client=file.client, client_version=file.client_version, rows=tuple(rows))


def _of_generated(path: Path, file: _Violations, part: Part) -> KnownDefects:
    _check_version(path, file.version)
    found = [
        KnownFinding(
            defect=Defect("", each.cause, each.severity),
            rule=each.invariant,
            detail=each.detail,
            acts=each.acts,
            bases=each.bases,
            parts=(part,),
        )
        for each in file.known
    ]
    if file.sweep:
        found += _shared(path.parent / file.sweep)
    return KnownDefects(
        client=file.client,
        client_version=file.client_version,
        findings=tuple(found),
        seeds=file.seeds,
        drawing=file.drawing,
    )


def _shared(path: Path) -> list[KnownFinding]:
    """What the client's file of the sweep says of all acts and bases: it held in chaos, too."""
    data = toml_of(path, WHAT)
    if not is_old(data):
        raise UsageError(f"{path}: is of the new form: `fakebrokers known` makes one file of all")
    found = read(path, data, Part.SWEEP).findings
    return [replace(row, parts=(Part.CHAOS,)) for row in found if row.acts == row.bases == ("*",)]
