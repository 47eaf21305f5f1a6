"""What came of one run of one scenario."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from conformance.results import Verdict
from conformance.rules import HARNESS, Finding
from conformance.suite.deeds import Deed
from conformance.suite.evaluation import ADAPTER
from conformance.suite.scenario import Scenario
from fakebrokers.journal import Record

PASSED = (Verdict.PASS, Verdict.NON_STRICT)


class Judgement(msgspec.Struct):
    """What came of one run of one scenario.

    Attributes:
        criterion: The criterion that decided, in words.
        criterion_id: Its id within the scenario; empty for a pass.
        actual: What happened.
        met: The criteria that were met, in words.
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
        just_lapsed: No criterion was met between that and the end of the script.
        waited_s: How long client and harness have waited for a processor.
        is_starved: Whether that is so long that it may be the reason; see `lag`.
        findings: What the rules for all runs have found, what the client's contract allows among it.
        doubted: Names of the rules whose findings the machine may have made.
        how: On virtual time or in real time, of a client that can be judged on both; see `RowResult`.
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
    met: tuple[str, ...] = ()
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
    just_lapsed: bool = False
    waited_s: float = 0.0
    is_starved: bool = False
    findings: tuple[Finding, ...] = ()
    doubted: frozenset[str] = frozenset()
    how: str = ""

    @property
    def broken(self) -> list[Finding]:
        """The violated rules that the client's contract does not allow."""
        return [each for each in self.findings if not each.allowed and each.name != HARNESS]

    @property
    def is_late(self) -> bool:
        """Whether it rests on something that did not come in time, perhaps because so much else ran here."""
        late = (Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.HARNESS_ERROR)
        return self.rests_on_time and self.verdict in late

    @property
    def rests_on_time(self) -> bool:
        """Whether a faster machine might have led to another verdict."""
        return self.timing or self.lapsed or self._is_silent

    @property
    def is_about_content(self) -> bool:
        """Whether it is a failure of something that came, for which time is to blame at most indirectly."""
        by_time = self.timing or self.just_lapsed or self._is_silent
        return self.verdict is Verdict.FAIL and not by_time

    @property
    def _is_silent(self) -> bool:
        tags = set(self.tags)
        return bool(tags & {"hang", "waited"}) and not tags & {"crashed", ADAPTER}

    @property
    def is_in_doubt(self) -> bool:
        """Whether time may have made this verdict, on a machine that kept the client waiting."""
        return self.is_starved and self.rests_on_time and not {"crashed", ADAPTER}.intersection(self.tags)

    def doubting(self, broken: Iterable[Finding]) -> Judgement:
        """The same where these findings may be the machine's doing."""
        return msgspec.structs.replace(self, doubted=self.doubted | {each.name for each in broken})

    @property
    def lag(self) -> str:
        """How long the machine kept client and harness waiting, in words."""
        return f"client and harness waited {self.waited_s:.2f} s of {self.seconds:.2f} s for a processor"

    def silent_again(self) -> Judgement:
        """The same after it was judged more than once, with what a reader has to know who doubts it."""
        return msgspec.structs.replace(self, reason=f"{self.reason} [again, apart from others; {self.lag}]")

    def undecided(self) -> Judgement:
        """What is left of a verdict that the machine may have made."""
        surprise = "a pass, which was not expected" if self.verdict in PASSED else str(self.verdict)
        reason = f"{surprise}{f': {self.reason}' * bool(self.reason)}; but {self.lag}"
        return msgspec.structs.replace(self, verdict=Verdict.INCONCLUSIVE, reason=reason, timing=True)

    @property
    def kills(self) -> bool:
        """Whether this is a failure of the requirement itself, not of a step that prepares it."""
        return self.verdict is Verdict.FAIL and not {"setup", ADAPTER}.intersection(self.tags)
