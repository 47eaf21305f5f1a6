"""What came of one run of one scenario."""

from __future__ import annotations

from typing import Any

import msgspec

from conformance.invariants import HARNESS, Finding
from conformance.results import Verdict
from conformance.suite.deeds import Deed
from conformance.suite.evaluation import ADAPTER
from conformance.suite.scenario import Scenario
from fakebrokers.journal import Record


class Judgement(msgspec.Struct):
    """What came of one run of one scenario.

    Attributes:
        criterion: The criterion that decided, in words.
        criterion_id: Its id within the scenario; empty for a pass.
        actual: What happened.
        records: The wire journal.
        run: Name of the run in the journal folder; empty if none was written.
        plan: The faults at the end of the script, as in a plan file.
        proxy_plan: Those of the byte proxy in front of the fake; empty if there was none.
        deeds: What the script did to the fake.
        adapter: What went wrong in the adapter itself; see `evidence.trouble_of`.
        began_at: Seconds since the epoch.
        lag_s: The longest time for which the runner's loop stood still.
        timing: Only a time limit was missed.
        lapsed: Something that the script waited for did not come in time.
        waited_s: How long client and harness have waited for a processor.
        is_starved: Whether that is so long that it may be the reason; see `lag`.
        findings: What the rules for all runs have found, what the client's contract allows among it.
    """

    scenario: Scenario
    verdict: Verdict
    criterion: str = ""
    criterion_id: str = ""
    actual: str = ""
    reason: str = ""
    tags: tuple[str, ...] = ()
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    tolerated: tuple[str, ...] = ()
    run: str = ""
    records: tuple[Record, ...] = ()
    plan: dict[str, Any] = {}
    proxy_plan: dict[str, Any] = {}
    transcript: tuple[bytes, ...] = ()
    deeds: tuple[Deed, ...] = ()
    adapter: tuple[str, ...] = ()
    began_at: float = 0.0
    stderr: str = ""
    lag_s: float = 0.0
    timing: bool = False
    lapsed: bool = False
    waited_s: float = 0.0
    is_starved: bool = False
    findings: tuple[Finding, ...] = ()

    @property
    def broken(self) -> list[Finding]:
        """The violated rules that the client's contract does not allow."""
        return [each for each in self.findings if not each.allowed and each.name != HARNESS]

    @property
    def is_by_rule(self) -> bool:
        """Whether a rule for all runs decided, and no criterion of the script."""
        return bool(self.broken) and self.criterion_id == self.broken[0].name

    @property
    def is_late(self) -> bool:
        """Whether only a time limit was missed, perhaps because so much else ran on this machine."""
        late = (Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.HARNESS_ERROR)
        return self.timing and self.verdict in late

    @property
    def is_in_doubt(self) -> bool:
        """Whether time may have made this verdict, on a machine that kept the client waiting."""
        rests_on_time = self.timing or self.lapsed or {"hang", "waited"}.intersection(self.tags)
        return self.is_starved and bool(rests_on_time) and not {"crashed", ADAPTER}.intersection(self.tags)

    def undecided(self) -> Judgement:
        """What is left of a verdict that the machine may have made."""
        reason = (
            f"{self.verdict}{f': {self.reason}' * bool(self.reason)}; but client and harness waited "
            f"{self.waited_s:.2f} s of {self.seconds:.2f} s for a processor"
        )
        return msgspec.structs.replace(self, verdict=Verdict.INCONCLUSIVE, reason=reason, timing=True)

    @property
    def kills(self) -> bool:
        """Whether this is a failure of the requirement itself, not of a step that prepares it."""
        return self.verdict is Verdict.FAIL and not {"setup", ADAPTER}.intersection(self.tags)
