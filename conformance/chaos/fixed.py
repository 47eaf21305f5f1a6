"""Fixed seeds on many clients side by side: the chaos of a pipeline, built as `sweep.fixed` is.

A client's seeds and what it is known to violate stand in one file, see `expected`. What is violated and no
expectation is about is run again, and counts where most runs of the seed violate it.
"""

from __future__ import annotations

from pathlib import Path

from conformance.adapters.registry import Client
from conformance.chaos.case import ChaosCase
from conformance.chaos.draw import Setting, draw
from conformance.chaos.expected import load_shaken
from conformance.chaos.page import write_page
from conformance.chaos.replay import replay_of
from conformance.chaos.schedule import Schedule
from conformance.chaos.subject import Subject
from conformance.chaos.verdict import Word, verdict_on
from conformance.invariants import Finding
from conformance.sweep.fixed import EXPECTED, Fixed

LANES = 40  #: runs side by side, of all clients; they wait most of the time
LONGEST_S = 30.0  #: no further run is begun behind that


class FixedSeeds(Fixed[Schedule, ChaosCase]):
    """One client with its seeds.

    Args:
        folder: Holds the file with both, by the client's name. Raises `UsageError` if it cannot be used.
        out: Of the report; pages are written into a folder of it.
    """

    def __init__(self, client: Client, protocol: str, folder: Path, out: Path) -> None:
        expected = load_shaken(folder / f"{client.name}{EXPECTED}", protocol)
        setting = Setting(protocol, is_process=True)
        schedules = [draw(setting, seed) for seed in expected.seeds]
        super().__init__(client, protocol, schedules, expected, out)
        self.subject = Subject(protocol, client.name)

    async def judged(self, spec: Schedule) -> tuple[ChaosCase, list[Finding]]:
        case, verdict = await self.subject.judge_live(spec, expected=self.expected)
        if verdict.word is not Word.INCONCLUSIVE:
            return case, verdict.found
        self.found.unclear += 1
        return case, [one for one in verdict.found if self.expected.cause_of(one, spec)]

    def page(self, case: ChaosCase, finding: Finding, news: list[Finding], folder: Path) -> Path:
        verdict = verdict_on(case)
        verdict = verdict.without({one.name for one in verdict.found} - {one.name for one in news})
        path = replay_of(self.name, "", case, verdict).write(folder / "chaos" / self.name)
        return write_page(case, verdict, path)
