"""The sweep: specs are drawn and run until the time is over; what fails is kept, once per kind."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import dataclass

from conformance.known.defects import KnownFindings
from conformance.rules import Finding, judge
from conformance.run.case import Case
from conformance.run.simulated import NeedsProcess
from conformance.run.specs import PLAIN, Spec
from conformance.search.garbage import rare_collections

#: Specs, and whether their runs violate anything, as far as one knows.
Suspects = Generator[tuple[Spec, bool], None, None]


def all_of(specs: Iterable[Spec]) -> Suspects:
    """All of them have to be run here."""
    return ((spec, True) for spec in specs)


@dataclass
class FailingSpec:
    """A spec whose run violates invariants, the first one of its kind.

    Attributes:
        case: The run.
        count: How many runs have violated the same invariant by the same act.
    """

    spec: Spec
    findings: list[Finding]
    case: Case
    count: int = 1

    @property
    def names(self) -> list[str]:
        """The invariants."""
        return [finding.name for finding in self.findings]


class Sweep:
    """Runs specs and keeps what fails.

    Args:
        run: Runs one.
        expected: What the client is known to violate.

    Attributes:
        runs: How many so far.
        failures: By invariant and act, in the order in which they were found.
        needs_process: What cannot be run on virtual time, because the client asks for something real.
        plain: What bases violate without any fault, by base: no fault makes that news.
    """

    def __init__(self, run: Callable[[Spec], Case], expected: KnownFindings | None = None) -> None:
        self.run = run
        self.expected = expected
        self.runs = 0
        self.failures: dict[tuple[str, str], FailingSpec] = {}
        self.plain: dict[str, set[str]] = {}
        self.needs_process: list[Spec] = []

    def try_one(self, spec: Spec) -> list[Finding]:
        """Run a spec and keep what it violates."""
        try:
            case = self.run(spec)
        except NeedsProcess:
            self.needs_process.append(spec)
            return self.skip(spec)
        return self.take(case, judge(case))

    def take(self, case: Case, findings: list[Finding]) -> list[Finding]:
        """Count a run, and keep what it has violated. Returns what is new."""
        self.runs += 1
        return self.keep(case, findings)

    def keep(self, case: Case, findings: list[Finding]) -> list[Finding]:
        """Keep what a run has violated, but for what is known already. Returns what is new."""
        spec = case.spec
        act = ",".join(spec.acts)
        if act == PLAIN:
            self.plain[spec.base] = {finding.name for finding in findings}
        else:
            without = self.plain.get(spec.base, ())
            findings = [finding for finding in findings if finding.name not in without]
        if self.expected is not None:
            findings = self.expected.news(findings, spec)
        for finding in findings:
            known = self.failures.get((finding.name, act))
            if known is None:
                self.failures[finding.name, act] = FailingSpec(spec, findings, case)
            else:
                known.count += 1
        return findings

    def skip(self, spec: Spec) -> list[Finding]:
        """A spec whose run, elsewhere, has violated nothing."""
        self.runs += 1
        if spec.acts == [PLAIN]:
            self.plain[spec.base] = set()
        return []

    def go(
        self,
        specs: Iterable[Spec],
        seconds: float,
        *,
        until: Callable[[list[Finding]], bool] = lambda _: False,
        on_run: Callable[[int], None] = lambda _: None,
        suspects: Callable[[Iterable[Spec]], Suspects] = all_of,
    ) -> float:
        """Run specs until the time is over, there are no more, or `until` is satisfied. Returns seconds.

        Args:
            suspects: Which of the specs have to be run here; the others were, elsewhere, and are fine.
        """
        begun = time.monotonic()
        with rare_collections() as collect, closing(suspects(specs)) as chosen:
            for spec, is_suspect in chosen:
                if time.monotonic() - begun >= seconds:
                    break
                findings = self.try_one(spec) if is_suspect else self.skip(spec)
                collect(self.runs)
                on_run(self.runs)
                if findings and until(findings):
                    break
        return time.monotonic() - begun
