"""Several files of one client as one, each cause once, and what a run has shown besides."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Sequence
from fnmatch import fnmatchcase
from itertools import combinations
from typing import TypeVar

from msgspec.structs import replace

from conformance.known.defects import Defect, Key, KnownDefects, KnownFinding, KnownRow, Part, Severity
from conformance.results import Results, RowResult, RuleResult, Verdict
from fakebrokers.errors import UsageError

ID_LENGTH = 48
_ARTICLES = ("a", "an", "the")
_WORST_FIRST: tuple[Severity, ...] = ("high", "medium", "low", "")

H = TypeVar("H", bound=Hashable)


def merged(files: Sequence[KnownDefects]) -> KnownDefects:
    """One file that knows what all of them know; of a cause that several have, there is one defect.

    Raises:
        UsageError: They are not about one client in one version.
    """
    reported = [row.defect for file in files for row in file.shown]
    one = _defects(reported)
    drawings = {file.drawing for file in files if file.seeds}
    if len(drawings) > 1:
        raise UsageError(f"expected seeds of one drawing, got those of {sorted(drawings)}")
    return KnownDefects(
        client=_common("client", [file.client for file in files]),
        client_version=_common("client_version", [file.client_version for file in files]),
        rows=tuple(_once(replace(row, defect=one[row.cause]) for file in files for row in file.rows)),
        findings=_findings(files, one),
        seeds=tuple(_once(seed for file in files for seed in file.seeds)),
        drawing=max(drawings, default=0),
    )


def _once(values: Iterable[H]) -> list[H]:
    return list(dict.fromkeys(values))


def _common(what: str, values: Iterable[str]) -> str:
    """The value, or the pattern that all others match."""
    given = list(dict.fromkeys(value for value in values if value))
    for pattern in given:
        if all(fnmatchcase(value, pattern) for value in given):
            return pattern
    if given:
        raise UsageError(f"expected files with one {what}, got {' and '.join(given)}")
    return ""


def _defects(reported: Iterable[Defect]) -> dict[str, Defect]:
    """One defect for each cause, with an id of its own."""
    found: dict[str, Defect] = {}
    for each in reported:
        before = found.get(each.cause)
        if before is None:
            ids = {other.id for other in found.values()}
            is_free = each.id and each.id not in ids
            found[each.cause] = each if is_free else replace(each, id=id_of(each.cause, ids))
        else:
            found[each.cause] = replace(
                before,
                severity=min(before.severity, each.severity, key=_WORST_FIRST.index),
                reproducer=before.reproducer or each.reproducer,
                report=before.report or each.report,
            )
    return found


def id_of(cause: str, taken: Collection[str] = ()) -> str:
    """An id made of the first words of a cause: those before a bracket, a colon or a comma, if they say
    enough."""
    text = cause.partition(" (")[0]
    for end in ":,":
        begin = text.partition(end)[0]
        text = begin if len(_words(begin)) >= 3 else text
    words = _words(text)
    name = "-".join(words) or "defect"
    name = name if len(name) <= ID_LENGTH else name[: ID_LENGTH + 1].rpartition("-")[0]
    numbered = (f"{name}-{number}" for number in range(2, len(taken) + 3))
    return name if name not in taken else next(each for each in numbered if each not in taken)


def _words(text: str) -> list[str]:
    return [each for each in re.findall("[a-z0-9]+", text.replace("'", "").lower()) if each not in _ARTICLES]


def _findings(files: Sequence[KnownDefects], one: dict[str, Defect]) -> tuple[KnownFinding, ...]:
    """All rows of generated runs, each in the order of its file; what several parts share is one row."""
    ordered: list[KnownFinding] = []
    parts: dict[KnownFinding, set[Part]] = defaultdict(set)
    for file in files:
        before: list[KnownFinding] = []
        for row in file.findings:
            same = replace(row, defect=one[row.defect.cause], parts=())
            if same in parts:
                place = ordered.index(same) if same in ordered else len(ordered)
                ordered[place:place] = before
                before = []
            else:
                before.append(same)
            parts[same].update(row.parts)
        ordered += before
    return tuple(replace(row, parts=tuple(part for part in Part if part in parts[row])) for row in ordered)


# the order of a file


def defects_of(known: KnownDefects) -> list[Defect]:
    """All defects, in an order in which rows say the same as one after the other.

    The first row that fits counts, and a file has the rows of a defect side by side. So a defect comes
    before those of which a row fits the same as a later row; for the rest it is the order of the rows.
    """
    left = list(dict.fromkeys(row.defect for row in known.shown))
    later = {(b.defect, a.defect) for a, b in combinations(known.findings, 2) if _may_meet(a, b)}
    later |= {(b.defect, a.defect) for a, b in combinations(known.rows, 2) if _may_share(a, b)}
    ordered: list[Defect] = []
    while left:
        free = (each for each in left if not any((each, other) in later for other in left if other != each))
        ordered.append(next(free, left[0]))
        left.remove(ordered[-1])
    return ordered


def _may_share(one: KnownRow, other: KnownRow) -> bool:
    """Whether a failure may be known by both; a row of a scenario is about the rules that it names, too."""
    if one.protocol != other.protocol:
        return False
    if one.id and other.id:
        return one.id == other.id
    if one.rule and other.rule:
        everywhere = not one.rows or not other.rows
        return one.rule == other.rule and (everywhere or bool({*one.rows} & {*other.rows}))
    row, rule = (one, other) if one.id else (other, one)
    return (not rule.rows or row.id in rule.rows) and (not row.criteria or rule.rule in row.criteria)


def _may_meet(one: KnownFinding, other: KnownFinding) -> bool:
    """Whether a finding may fit both; a run may have any acts."""
    return (
        bool({*one.parts} & {*other.parts})
        and _meet(one.rule, other.rule)
        and _meet(one.detail, other.detail)
        and any(_meet(a, b) for a in one.bases for b in other.bases)
    )


def _meet(one: str, other: str) -> bool:
    """Whether some text fits both patterns, of which ``*`` and ``?`` are looked at."""
    reach = {(0, 0)}
    seen = set(reach)
    while reach:
        at, place = reach.pop()
        if (at, place) == (len(one), len(other)):
            return True
        here, there = one[at : at + 1], other[place : place + 1]
        steps = [(at + 1, place)] * (here == "*") + [(at, place + 1)] * (there == "*")
        if here and there and (here == there or {here, there} & {"*", "?"}):
            steps.append((at + (here != "*"), place + (there != "*")))
        new = {*steps} - seen
        seen |= new
        reach |= new
    return False


# what a run has shown


def with_results(known: KnownDefects, run: Results) -> KnownDefects:
    """The same with the criteria that have failed in a run, and with what has failed that is not known.

    The cause of what is new is what the run says: it has to be looked into.
    """
    found = {row.key: row for row in run.results}
    rows = [_refreshed(row, found.get(row.key)) if row.id else row for row in known.rows]
    named = {row.key for row in rows}
    taken = {row.defect.id for row in known.shown}
    failed: list[RowResult | RuleResult] = [*run.results, *run.rules]
    for each in failed:
        new = _new_row(each, known, named)
        if new is not None:
            rows.append(replace(new, defect=replace(new.defect, id=id_of(new.cause, taken))))
            taken.add(rows[-1].defect.id)
    client, version = known.client or run.client, known.client_version or run.client_version
    return replace(known, client=client, client_version=version, rows=tuple(rows))


def _refreshed(row: KnownRow, result: RowResult | None) -> KnownRow:
    if result is None or result.verdict is not row.verdict or result.criterion in ("", *row.criteria):
        return row
    return replace(row, criteria=(*(row.criteria if row.sometimes else ()), result.criterion))


def _new_row(found: RowResult | RuleResult, known: KnownDefects, named: Collection[Key]) -> KnownRow | None:
    """What is to be written down of a result; None if it is no failure, or the file has it."""
    if found.verdict is not Verdict.FAIL:
        return None
    said = " ".join(found.reason.partition(" [known: ")[0].split())
    defect = Defect("", f"not looked into: {said}")
    if isinstance(found, RowResult):
        row = KnownRow(defect=defect, protocol=found.protocol, variant=found.variant, id=found.id)
        criteria = (found.criterion,) if found.criterion else ()
        return None if found.key in named else replace(row, criteria=criteria)
    where = found.protocol, found.variant
    rows = tuple(row for row in found.rows if known.knows(found.rule, (row, *where)) is None)
    rule = KnownRow(defect=defect, protocol=found.protocol, variant=found.variant, rule=found.rule)
    return replace(rule, rows=rows) if rows else None
