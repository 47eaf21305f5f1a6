"""A file of known defects as a value, and the other way round."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from conformance.known import old
from conformance.known.defects import WHAT, Defect, KnownDefects, KnownFinding, KnownRow, Part, Severity
from conformance.known.merge import defects_of
from conformance.known.names import check
from conformance.known.rows import finding_of, row_of, text_of_finding, text_of_row
from conformance.results import Verdict
from fakebrokers.errors import UsageError
from fakebrokers.files import toml_of, value_of

VERSION = 2
WIDTH = 110  #: of the lines that are written
_LISTS = {"generated": (Part.SWEEP, Part.CHAOS), "sweep": (Part.SWEEP,), "chaos": (Part.CHAOS,)}


class _Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of the suite of which there is more to say."""

    row: str
    protocol: str = ""
    verdict: Verdict = Verdict.FAIL
    reason: str = ""


class _Finding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of generated runs of which there is more to say."""

    row: str
    acts: tuple[str, ...] = ("*",)
    bases: tuple[str, ...] = ("*",)


class _Defect(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str
    cause: str
    severity: Severity = ""
    reproducer: str = ""
    report: str = ""
    rows: tuple[str | _Row, ...] = ()
    sometimes: tuple[str | _Row, ...] = ()
    generated: tuple[str | _Finding, ...] = ()
    sweep: tuple[str | _Finding, ...] = ()
    chaos: tuple[str | _Finding, ...] = ()


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    version: int = VERSION
    client: str = ""
    client_version: str = ""
    protocol: str = ""
    seeds: tuple[str, ...] = ()
    drawing: int = 0
    defect: tuple[_Defect, ...] = ()


def _on_stderr(problem: str) -> None:
    print(f"warning: {problem}", file=sys.stderr)


def load(
    path: Path, part: Part, warn: Callable[[str], object] = _on_stderr, protocol: str = ""
) -> KnownDefects:
    """Read a file for one of its parts, whose names are checked.

    Args:
        warn: Gets criteria that the suite does not declare, whose rows fit no failure, and of files of
            the form before.
        protocol: What chaos speaks: its nemeses are known, too.

    Raises:
        UsageError: With place and problem, if it is none.
    """
    found = read(path, part, warn)
    check(path, found, part, warn, protocol)
    return found


def read(path: Path, part: Part | None = None, warn: Callable[[str], object] = _on_stderr) -> KnownDefects:
    """Read a file, whatever it names.

    Args:
        part: What it is read for; None: whatever it is about.
        warn: Gets a file of the form before.

    Raises:
        UsageError: With place and problem, if it is none.
    """
    data = toml_of(path, WHAT)
    if not old.is_old(data):
        return _read(path, value_of(path, WHAT, data, _File))
    command = f"fakebrokers known {path} --write {path}"
    warn(f"{path}: is of the form before 0.3: `{command}` writes the new one")
    return old.read(path, data, part)


def _read(path: Path, file: _File) -> KnownDefects:
    if file.version != VERSION:
        raise UsageError(f"{path}: expected version {VERSION}, got {file.version}")
    rows: list[KnownRow] = []
    findings: list[KnownFinding] = []
    for number, given in enumerate(file.defect, 1):
        named = given.id or f"defect {number}"
        if not given.id.strip() or not given.cause.strip():
            missing = "a cause" if given.id.strip() else "an id"
            raise UsageError(f"{path}: {named}: expected {missing}, got none")
        if given.id in (each.id for each in file.defect[: number - 1]):
            raise UsageError(f"{path}: {named}: expected each id once, and it comes again")
        defect = Defect(given.id, given.cause, given.severity, given.reproducer, given.report)
        try:
            rows += _rows(given, defect, file.protocol)
            findings += _findings(given, defect)
        except UsageError as error:
            raise UsageError(f"{path}: {named}: {error}") from None
    about = {name: getattr(file, name) for name in ("client", "client_version", "seeds", "drawing")}
    return KnownDefects(rows=tuple(rows), findings=tuple(findings), **about)


def _rows(given: _Defect, defect: Defect, protocol: str) -> Iterator[KnownRow]:
    for sometimes, listed in ((False, given.rows), (True, given.sometimes)):
        for each in listed:
            more = each if isinstance(each, _Row) else _Row(row=each)
            row = row_of(more.row, defect, more.protocol or protocol)
            if not row.protocol:
                raise UsageError("expected a protocol at the top of the file or in the row, got none")
            yield replace(row, verdict=more.verdict, reason=more.reason, sometimes=sometimes)


def _findings(given: _Defect, defect: Defect) -> Iterator[KnownFinding]:
    for name, parts in _LISTS.items():
        for each in getattr(given, name):
            more = each if isinstance(each, _Finding) else _Finding(row=each)
            yield replace(finding_of(more.row, defect), acts=more.acts, bases=more.bases, parts=parts)


# writing


def written(known: KnownDefects) -> str:
    """The text of a file; what `read` makes of it is the same again, by defect."""
    protocols = Counter(row.protocol for row in known.rows).most_common(1)
    protocol = protocols[0][0] if protocols else ""
    who = f"{known.client} {known.client_version}".strip() or "a client"
    head = {
        "version": VERSION,
        "client": known.client,
        "client_version": known.client_version,
        "protocol": protocol,
        "seeds": known.seeds,
        "drawing": known.drawing,
    }
    blocks = [f"# What {who} is known to get wrong, each cause once.\n", _lines(head)]
    for defect in defects_of(known):
        rows = [row for row in known.rows if row.defect == defect]
        found = [row for row in known.findings if row.defect == defect]
        listed: dict[str, object] = {
            "rows": [_reported_row(row, protocol) for row in rows if not row.sometimes],
            "sometimes": [_reported_row(row, protocol) for row in rows if row.sometimes],
        }
        for name, parts in _LISTS.items():
            listed[name] = [_reported_finding(row) for row in found if row.parts == parts]
        blocks.append("[[defect]]\n" + _lines(msgspec.structs.asdict(defect) | listed))
    return "\n".join(blocks)


def _reported_row(row: KnownRow, protocol: str) -> object:
    more = {
        "protocol": row.protocol if row.protocol != protocol else "",
        "verdict": row.verdict.value if row.verdict is not Verdict.FAIL else "",
        "reason": row.reason,
    }
    return _reported(text_of_row(row), more)


def _reported_finding(row: KnownFinding) -> object:
    more = {name: value for name in ("acts", "bases") if (value := getattr(row, name)) != ("*",)}
    return _reported(text_of_finding(row), more)


def _reported(text: str, more: dict[str, Any]) -> object:
    more = {name: value for name, value in more.items() if value}
    return {"row": text} | more if more else text


def _lines(values: dict[str, object]) -> str:
    """Lines of TOML; what is empty is left out."""
    return "".join(f"{_line(name, value)}\n" for name, value in values.items() if value)


def _line(name: str, value: object) -> str:
    line = f"{name} = {_value(value)}"
    if len(line) <= WIDTH or not isinstance(value, list):
        return line
    return "\n".join([f"{name} = [", *(f"  {_value(each)}," for each in value), "]"])


def _value(value: object) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{name} = {_value(each)}' for name, each in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
