"""The client that chaos is for: in this process on virtual time, or in processes of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from conformance.clients.adapter.base import AdapterFailed
from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.adapters import registry
from conformance.clients.mutants.registry import find_mutant
from conformance.clients.reference.registry import command as reference_command
from conformance.known.defects import KnownFindings
from conformance.run.inprocess import client_of
from conformance.run.trace import Trace
from conformance.search.random.case import ChaosCase
from conformance.search.random.run import play, run
from conformance.search.random.schedule import Schedule
from conformance.search.random.verdict import RunVerdict, Word, verdict_on
from conformance.search.systematic.campaign import REFERENCE
from conformance.search.systematic.children import SLACK_S, TracedProcess, by_its_clock
from conformance.suite.lag import LagMeter

PAUSE_S = 6.0  #: what a pause takes at most in real time; the back-off of most clients is shorter
LONGEST_S = 240.0  #: that a run in real time may take

TRIES = 3  #: of a run that comes to no verdict because the harness stops

IN_PROCESS, PROCESS, PROXY, TOXIPROXY = "in-process", "process", "proxy", "toxiproxy"


class ChaosClient:
    """A client.

    Args:
        name: As ``--client`` takes it; "" for an adapter of the user's.
        mutant: A defect of the reference client.
        command: Of the adapter of the user's.
        target: A real server, ``host:port``; "" for a fake. The reference client is a process then, too.
        toxiproxy: The API of a Toxiproxy to disturb it with.

    Attributes:
        made: The class that is run in this process, or None.
    """

    def __init__(
        self,
        protocol: str,
        name: str,
        mutant: str = "",
        command: list[str] | None = None,
        target: str = "",
        toxiproxy: str = "",
    ) -> None:
        self.protocol = protocol
        self.name = name
        self.mutant = mutant
        self.target = target
        self.toxiproxy = toxiproxy
        self.made: type[AdapterBase] | None = None
        self._make: Callable[[Trace], TracedProcess] | None = None
        if name in (REFERENCE, f"{REFERENCE}-{protocol}") and target:
            chosen = find_mutant(protocol, mutant).command if mutant else reference_command(protocol)
            self._make = lambda trace: TracedProcess(chosen, protocol, None, trace)
        elif name in (REFERENCE, f"{REFERENCE}-{protocol}"):
            self.made = client_of(protocol, mutant)
        elif command is not None:
            self._make = lambda trace: TracedProcess(command, protocol, None, trace)
        else:
            found = registry.find(name)
            self._make = lambda trace: TracedProcess(found.command, protocol, found.env, trace)

    @property
    def engine(self) -> str:
        """How it is run, for reports."""
        if self.target:
            return TOXIPROXY if self.toxiproxy else PROXY
        return IN_PROCESS if self.made is not None else PROCESS

    @property
    def is_process(self) -> bool:
        """Whether time is real."""
        return self.made is None

    def run(self, schedule: Schedule, contract: str = "", folder: Path | None = None) -> ChaosCase:
        """Run one schedule. Blocks.

        Args:
            contract, folder: See `conformance.search.random.run.run`.
        """
        if self.made is not None:
            return run(self.made, schedule, contract=contract, folder=folder, client=self.name)
        return asyncio.run(self.run_live(schedule, contract, folder))

    async def judge_live(
        self,
        schedule: Schedule,
        contract: str = "",
        folder: Path | None = None,
        expected: KnownFindings | None = None,
    ) -> tuple[ChaosCase, RunVerdict]:
        """As `run_live`, judged; again where the harness stood still and nobody can say why it failed.

        Args:
            expected: What needs no other run, because it is known.
        """
        known = expected or KnownFindings()
        for _ in range(TRIES):
            case = await self.run_live(schedule, contract, folder)
            verdict = await asyncio.to_thread(verdict_on, case)  # the other runs go on
            if verdict.word is not Word.INCONCLUSIVE or not known.news(verdict.found, schedule):
                break
        return case, verdict

    async def run_live(self, schedule: Schedule, contract: str = "", folder: Path | None = None) -> ChaosCase:
        """Run one schedule against a process, in real time."""
        assert self._make is not None
        trace = Trace(asyncio.get_running_loop().time)
        adapter = self._make(trace)
        work = play(
            adapter,
            schedule,
            trace,
            in_memory=False,
            longest_s=PAUSE_S,
            contract=contract,
            folder=folder,
            client=self.name,
            target=self.target,
            toxiproxy=self.toxiproxy,
        )
        async with LagMeter(adapter) as meter:
            try:
                case = await asyncio.wait_for(work, LONGEST_S)
                by_its_clock(case, adapter.said)
            except (AdapterFailed, TimeoutError) as error:
                case = ChaosCase(schedule, trace.rows)
                case.harness = f"the adapter: {error!r}"
        case.slack_s = SLACK_S
        case.lag_s = meter.worst_s
        case.is_starved = meter.is_starved
        case.digest = ""
        return case
