"""The client that chaos is for: in this process on virtual time, or in processes of its own."""

from __future__ import annotations

import asyncio

from conformance.known.defects import KnownFindings
from conformance.run.trace import Trace
from conformance.search.client import Command, SearchClient, run_live
from conformance.search.random.case import ChaosCase
from conformance.search.random.history import KeptJournals, close_journal
from conformance.search.random.run import PAUSE_S, play, run
from conformance.search.random.schedule import Schedule
from conformance.search.random.verdict import RunVerdict, Word, verdict_on

LONGEST_S = 240.0  #: that a run in real time may take

TRIES = 3  #: of a run that comes to no verdict because the harness stops

IN_PROCESS, PROCESS, PROXY, TOXIPROXY = "in-process", "process", "proxy", "toxiproxy"


class ChaosClient(SearchClient):
    """A client under chaos.

    Args:
        target: A real server, ``host:port``; "" for a fake. The reference client is a process then, too.
        toxiproxy: The API of a Toxiproxy to disturb it with.
    """

    def __init__(
        self,
        protocol: str,
        name: str,
        mutant: str = "",
        command: Command | None = None,
        target: str = "",
        toxiproxy: str = "",
        *,
        stock_in_memory: bool = False,
    ) -> None:
        super().__init__(
            protocol,
            name,
            mutant,
            command,
            in_memory=not target,
            stock_in_memory=stock_in_memory and not target,
        )
        self.target = target
        self.toxiproxy = toxiproxy

    @property
    def engine(self) -> str:
        """How it is run, for reports."""
        if self.target:
            return TOXIPROXY if self.toxiproxy else PROXY
        return IN_PROCESS if self.made is not None else PROCESS

    def run(self, schedule: Schedule, contract: str = "", kept: KeptJournals | None = None) -> ChaosCase:
        """Run one schedule. Blocks.

        Args:
            contract, kept: See `conformance.search.random.run.run`.

        Raises:
            NeedsProcess: A stock client cannot be run in this process.
        """
        if self.made is not None:
            return run(self.made, schedule, contract=contract, kept=kept, client=self.name)
        return asyncio.run(self.run_live(schedule, contract, kept))

    async def judge_live(
        self,
        schedule: Schedule,
        contract: str = "",
        kept: KeptJournals | None = None,
        expected: KnownFindings | None = None,
    ) -> tuple[ChaosCase, RunVerdict]:
        """As `run_live`, judged; again where the harness stood still and nobody can say why it failed.

        Args:
            expected: What needs no other run, because it is known.
        """
        known = expected or KnownFindings()
        for _ in range(TRIES):
            case = await self.run_live(schedule, contract, kept)
            verdict = await asyncio.to_thread(verdict_on, case)  # the other runs go on
            if verdict.word is not Word.INCONCLUSIVE or not known.news(verdict.found, schedule):
                break
        return case, verdict

    async def run_live(
        self, schedule: Schedule, contract: str = "", kept: KeptJournals | None = None
    ) -> ChaosCase:
        """Run one schedule against a process, in real time."""
        trace = Trace(asyncio.get_running_loop().time)
        adapter = self.traced(trace)
        work = play(
            adapter,
            schedule,
            trace,
            in_memory=False,
            longest_s=PAUSE_S,
            contract=contract,
            kept=kept,
            client=self.name,
            target=self.target,
            toxiproxy=self.toxiproxy,
        )

        def broken() -> ChaosCase:
            return ChaosCase(schedule, trace.rows)

        case = await run_live(adapter, work, broken, LONGEST_S, hears=self.is_confirmed)
        if case.journal is not None:
            close_journal(case.journal, kept, case)
        return case
