"""The verdict on a run: all rules on what the client received, all checkers on its history."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

import msgspec

from conformance.rules import Finding, judge
from conformance.rules.again import LAG_S
from conformance.rules.anomalies import Anomaly, check
from conformance.rules.registry import ALIVE, HARNESS
from conformance.search.random.case import ChaosCase
from conformance.search.random.workload import SCRIPT

SILENT = ("connect", "state", "stats", "close")  #: ops that show nothing of a broker


class Word(StrEnum):
    """How a run ended."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    HARNESS_ERROR = "harness error"


class RunVerdict(msgspec.Struct, frozen=True):
    """What is to be said of a run.

    Attributes:
        findings: Violated invariants.
        anomalies: What the contract does not allow.
        reason: Why there is no verdict.
    """

    word: Word
    findings: tuple[Finding, ...] = ()
    anomalies: tuple[Anomaly, ...] = ()
    reason: str = ""

    @property
    def fails(self) -> bool:
        """Whether it is a failure of the client."""
        return self.word is Word.FAIL

    @property
    def found(self) -> list[Finding]:
        """What was found, invariants and anomalies alike, the first of each name."""
        found: dict[str, Finding] = {}
        for finding in self.findings:
            found.setdefault(finding.name, finding)
        for anomaly in self.anomalies:
            text = " ".join(part for part in (anomaly.key, anomaly.value, anomaly.detail) if part)
            found.setdefault(anomaly.name, Finding(anomaly.name, text))
        return list(found.values())

    @property
    def names(self) -> list[str]:
        """What was found, each name once, in a stable order."""
        return [finding.name for finding in self.found]

    @property
    def sentences(self) -> dict[str, str]:
        """By name, what happened: the first of each."""
        return {finding.name: finding.detail for finding in self.found}

    def without(self, names: Collection[str]) -> RunVerdict:
        """What is left of it where these findings are known; a pass if nothing is."""
        findings = tuple(one for one in self.findings if one.name not in names)
        anomalies = tuple(one for one in self.anomalies if one.name not in names)
        left = self.word is not Word.FAIL or findings or anomalies
        return RunVerdict(self.word if left else Word.PASS, findings, anomalies, self.reason)


def verdict_on(case: ChaosCase) -> RunVerdict:
    """Judge a run."""
    findings = _alone(case) if case.is_remote else tuple(judge(case))
    broken = [finding for finding in findings if finding.name == HARNESS]
    if broken:
        return RunVerdict(Word.HARNESS_ERROR, findings, reason=broken[0].detail)
    anomalies = () if any(finding.name == ALIVE for finding in findings) else _anomalies(case)
    if findings or anomalies:
        if case.lag_s > LAG_S or case.is_starved:
            paused = f"the harness was paused for {case.lag_s:.1f} s"
            reason = paused if case.lag_s > LAG_S else "the machine kept client or harness waiting"
            return RunVerdict(Word.INCONCLUSIVE, findings, anomalies, reason)
        return RunVerdict(Word.FAIL, findings, anomalies)
    if any(done.op not in SILENT and done.result and done.result.ok for done in case.ops):
        return RunVerdict(Word.PASS)
    unknown = sorted({done.op for done in case.ops if done.result and done.result.word == "unsupported"})
    reason = f"the client cannot do {', '.join(unknown)}" if unknown else "no op ended well"
    return RunVerdict(Word.INCONCLUSIVE, reason=f"{reason}, so nothing was shown")


def _anomalies(case: ChaosCase) -> tuple[Anomaly, ...]:
    """What the contract does not allow; nothing is said of scripts, whose messages may be equal."""
    if case.log is None or case.schedule.workload == SCRIPT:
        return ()
    return tuple(one for one in check(case.log) if not one.allowed)


def _alone(case: ChaosCase) -> tuple[Finding, ...]:
    """What can be said of a client without knowing what its server did."""
    if case.harness:
        return (Finding(HARNESS, case.harness),)
    return tuple(Finding("lives", case.error.strip().splitlines()[-1]) for _ in range(bool(case.error)))
