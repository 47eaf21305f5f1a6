"""Fixed seeds on many clients side by side: the chaos of a pipeline, built as `conformance.search.fixed` is.

A client's seeds are in its file of known defects, see `conformance.known`. What is violated and not known is
run again, and counts where most runs of the seed violate it.
"""

from __future__ import annotations

from pathlib import Path

from conformance.clients.adapters.registry import Client
from conformance.known.defects import Part
from conformance.rules import Finding
from conformance.search.fixed import KNOWN, Fixed, known_of
from conformance.search.random.case import ChaosCase
from conformance.search.random.client import ChaosClient
from conformance.search.random.draw import Setting, draw
from conformance.search.random.page import write_page
from conformance.search.random.replay import replay_of
from conformance.search.random.schedule import DRAWING_VERSION, Schedule
from conformance.search.random.verdict import Word, verdict_on
from fakebrokers.errors import UsageError

LANES = 40  #: runs side by side, of all clients; they wait most of the time
LONGEST_S = 30.0  #: no further run is begun after that


class FixedSeeds(Fixed[Schedule, ChaosCase]):
    """One client with its seeds.

    Args:
        folder: Holds the file, by the client's name. Raises `UsageError` if it cannot be used.
        out: Of the report; pages are written into a folder of it.
    """

    def __init__(self, client: Client, protocol: str, folder: Path, out: Path) -> None:
        known = known_of(client, folder, Part.CHAOS)
        if known.seeds and known.drawing not in (0, DRAWING_VERSION):
            problem = f"seeds of drawing {known.drawing}, here is {DRAWING_VERSION}: choose anew"
            raise UsageError(f"{client.name}{KNOWN}: {problem}")
        setting = Setting(protocol, is_process=True)
        schedules = [draw(setting, seed) for seed in known.seeds]
        super().__init__(client, protocol, schedules, known.found_in(Part.CHAOS), out)
        self.subject = ChaosClient(protocol, client.asked, stock_in_memory=True)

    async def judged(self, spec: Schedule) -> tuple[ChaosCase, list[Finding]]:
        case, verdict = await self.subject.judge_live(spec, expected=self.expected)
        if verdict.word is not Word.INCONCLUSIVE:
            return case, verdict.found
        self.found.unclear += 1
        return case, [one for one in verdict.found if self.expected.cause_of(one, spec)]

    def found_here(self, spec: Schedule) -> list[Finding] | None:
        if not self.subject.is_confirmed:
            return None
        verdict = verdict_on(self.subject.run(spec))
        return None if verdict.word is Word.INCONCLUSIVE else verdict.found

    def page(self, case: ChaosCase, finding: Finding, news: list[Finding], folder: Path) -> Path:
        verdict = verdict_on(case)
        verdict = verdict.without({one.name for one in verdict.found} - {one.name for one in news})
        path = replay_of(self.name, "", case, verdict).write(folder / "chaos" / self.name)
        return write_page(case, verdict, path)
