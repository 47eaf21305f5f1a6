"""Known defects as values: causes, and the rows that they show themselves in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from conformance.clients.adapter.messages import Hello
from conformance.results import Verdict
from conformance.rules import INVARIANTS, Finding
from fakebrokers.errors import UsageError

Key = tuple[str, str, str]
Severity = Literal["", "high", "medium", "low"]

WHAT = "a file of known defects"

#: What any scenario may fail for, besides its own criteria.
RULES = frozenset(each.name for each in INVARIANTS.values())
PASSED = (Verdict.PASS, Verdict.NON_STRICT)


class Part(StrEnum):
    """What a row is about."""

    SUITE = "suite"
    SWEEP = "sweep"
    CHAOS = "chaos"


class Defect(msgspec.Struct, frozen=True):
    """A root cause.

    Attributes:
        id: Names it within its file.
        cause: A sentence that a stranger understands.
        severity: ``high``: messages are lost, or reported to be what they are not, or the process ends.
            ``medium``: ops hang, or nothing comes back without the user. ``low``: the rest. "": nobody says.
        reproducer: Path of a one-file reproducer, relative to the file.
        report: Where it was reported, if it was.
    """

    id: str
    cause: str
    severity: Severity = ""
    reproducer: str = ""
    report: str = ""


class KnownRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the suite that shows a defect: a scenario, or a rule for all runs.

    Attributes:
        id: The scenario's; empty for a rule.
        rule: The rule's name; empty for a scenario.
        rows: Ids of the scenarios in whose runs the rule may be violated; none: all.
        criteria: Ids of those that may be the one that fails; none: any.
        reason: What more there is to say of this row.
        sometimes: It does not fail every time; a pass is no surprise.
    """

    defect: Defect
    protocol: str
    id: str = ""
    rule: str = ""
    rows: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    variant: str = ""
    verdict: Verdict = Verdict.FAIL
    reason: str = ""
    sometimes: bool = False

    @property
    def key(self) -> Key:
        """What names the row."""
        return self.id, self.protocol, self.variant

    @property
    def cause(self) -> str:
        """The root cause: rows with the same one are one defect."""
        return self.defect.cause

    @property
    def why(self) -> str:
        """The cause, and what more there is to say."""
        return "; ".join(part for part in (self.cause, self.reason) if part)

    @property
    def is_about_verdict(self) -> bool:
        """Whether it says that a scenario fails: a criterion that is called like a rule may mean the rule,
        as in files before 0.3, and then the scenario passes."""
        return bool(self.id) and (not self.criteria or not RULES.issuperset(self.criteria))

    @property
    def is_steady(self) -> bool:
        """Whether a pass is a surprise."""
        return self.is_about_verdict and not self.sometimes and self.verdict is not Verdict.NON_STRICT

    def fits(self, verdict: Verdict, criterion: str) -> bool:
        """Whether this is the failure that is known."""
        return verdict is self.verdict and (not self.criteria or criterion in self.criteria)

    def covers(self, rule: str, key: Key) -> bool:
        """Whether this says that the rule is violated in the run of this row."""
        if self.id:
            return self.key == key and (not self.criteria or rule in self.criteria)
        is_there = self.protocol == key[1] and self.variant in ("", key[2])
        return self.rule == rule and is_there and (not self.rows or key[0] in self.rows)


class GeneratedRun(Protocol):
    """A generated run, in the words of these files: a spec of the sweep, a schedule of chaos."""

    @property
    def base(self) -> str:
        """What the application does."""

    @property
    def acts(self) -> Sequence[str]:
        """What is done to it."""


class KnownFinding(msgspec.Struct, frozen=True, kw_only=True):
    """What generated runs show of a defect; `rule`, `detail`, `acts` and `bases` are patterns.

    Attributes:
        rule: A rule for all runs; in chaos an anomaly, too.
        detail: What the rule says.
        acts: Of which one has to be in the run: acts of the sweep; nemeses, effects and acts of chaos.
        bases: What the application does: base scripts of the sweep, workloads of chaos.
        parts: Whose runs: of the sweep, of chaos, or of both.
    """

    defect: Defect
    rule: str
    detail: str = "*"
    acts: tuple[str, ...] = ("*",)
    bases: tuple[str, ...] = ("*",)
    parts: tuple[Part, ...] = (Part.SWEEP, Part.CHAOS)

    def fits(self, finding: Finding, run: GeneratedRun) -> bool:
        """Whether a finding is of this root cause."""
        return (
            fnmatchcase(finding.name, self.rule)
            and any(fnmatchcase(run.base, pattern) for pattern in self.bases)
            and any(fnmatchcase(act, pattern) for act in run.acts for pattern in self.acts)
            and fnmatchcase(finding.detail, self.detail)
        )


class KnownFindings(msgspec.Struct, frozen=True):
    """What is known of one kind of generated runs; of rows that fit, the first counts."""

    rows: tuple[KnownFinding, ...] = ()

    def news(self, findings: Iterable[Finding], run: GeneratedRun) -> list[Finding]:
        """The findings that no row is about."""
        return [one for one in findings if not self.cause_of(one, run)]

    def cause_of(self, finding: Finding, run: GeneratedRun) -> str:
        """The root cause of a finding; "" if no row is about it."""
        return next((row.defect.cause for row in self.rows if row.fits(finding, run)), "")


class KnownDefects(msgspec.Struct, frozen=True, kw_only=True):
    """A whole file.

    Attributes:
        client: As the bundled client, the adapter or the library is called; empty: not named.
        client_version: Of the library; may be a pattern such as ``1.1.*``; empty for any.
        rows: Of the suite, in the order of the file.
        findings: Of generated runs, in the order of the file.
        seeds: Of chaos, that a pipeline runs.
        drawing: The version of the drawing that the seeds are meant for; 0: that of today.
    """

    client: str = ""
    client_version: str = ""
    rows: tuple[KnownRow, ...] = ()
    findings: tuple[KnownFinding, ...] = ()
    seeds: tuple[str, ...] = ()
    drawing: int = 0

    @property
    def shown(self) -> tuple[KnownRow | KnownFinding, ...]:
        """All rows, those of the suite first."""
        return *self.rows, *self.findings

    def found_in(self, part: Part) -> KnownFindings:
        """What is known of the runs of the sweep, or of chaos."""
        return KnownFindings(tuple(each for each in self.findings if part in each.parts))

    def foresee(self, key: Key, verdict: Verdict, criterion: str) -> bool | None:
        """Whether the file says so (True), or this is a pass of what always fails (False); else None."""
        entries = [row for row in self.rows if row.key == key]
        if any(row.fits(verdict, criterion) for row in entries):
            return True
        steady = [row for row in entries if row.is_steady]
        return False if steady and verdict in PASSED else None

    def knows(self, rule: str, key: Key) -> KnownRow | None:
        """What the file says of a rule that is violated in the run of a row."""
        return next((row for row in self.rows if row.covers(rule, key)), None)

    def check_client(self, path: Path | None, name: str, hello: Hello) -> None:
        """Raise `UsageError` unless the file is about this client in this version."""
        self.check_names(path, {name, hello.adapter, hello.library}, hello.library_version)

    def check_names(self, path: Path | None, names: Iterable[str], version: str) -> None:
        """Raise `UsageError` unless the file is about a client of one of these names, in this version."""
        known = sorted({*names} - {""})
        if self.client and self.client not in known:
            called = " or ".join(known)
            raise UsageError(f"{path}: is about {self.client!r}, and this client is called {called}")
        if self.client_version and not fnmatchcase(version, self.client_version):
            raise UsageError(
                f"{path}: is about {self.client} {self.client_version}, and this is {version}: "
                "judge it without --expect, and put what has changed and its version into the file"
            )
