"""Which scenario catches which mutant: proof that every scenario can fail.

A kill counts only where the reference client passes the scenario, and where the mutant fails by the
scenario's own criterion, not in a step that prepares it. Most runs need no sockets and no time: client and
fake share a loop on virtual time. Scenarios about processes and TLS run over sockets.
"""

from __future__ import annotations

import asyncio
import ctypes
import io
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import redirect_stderr
from enum import StrEnum
from multiprocessing import active_children, get_context
from typing import Any

import msgspec

from conformance.clients.adapter.base import Adapter, AdapterFailed
from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.adapter.process import ProcessAdapter
from conformance.clients.mutants.kills import known_kills
from conformance.clients.mutants.registry import Mutant, mutants_of
from conformance.clients.reference.registry import command, reference, without_sockets
from conformance.results import Verdict
from conformance.run.stuck import Stuck, run_or_stuck
from conformance.suite import outside
from conformance.suite.brokers import fake_for
from conformance.suite.judge import Judgement, judge, unfit
from conformance.suite.load import all_scenarios
from conformance.suite.scenario import Key, Scenario
from fakebrokers.core import virtual
from fakebrokers.journal import RunJournal

GOOD = (Verdict.PASS, Verdict.NON_STRICT)
PR_SET_PDEATHSIG = 1  #: <sys/prctl.h>
STUCK_S = 30.0  #: of the processor, after which a run is given up: a client in an endless loop


class Mode(StrEnum):
    """How client and fake are joined."""

    MEMORY = "memory"  #: one loop on virtual time
    SOCKETS = "sockets"  #: one process, real sockets, real time
    PROCESS = "process"  #: the client in a process of its own


class MatrixRow(msgspec.Struct):
    """What was found out about one scenario.

    Attributes:
        mode: How it was run.
        reference: The verdict on the reference client, and its reason.
        seconds: What the row has cost, real time.
        killed_by: The mutants that fail it by its own criterion.
        criteria: By mutant, the criterion that was violated, and what happened.
        survived: By mutant that was tried and survived, its verdict and the reason.
    """

    id: str
    protocol: str
    variant: str
    mode: str
    reference: str = ""
    reason: str = ""
    seconds: float = 0.0
    killed_by: list[str] = []
    criteria: dict[str, str] = {}
    survived: dict[str, str] = {}

    @property
    def key(self) -> Key:
        """Of the scenario."""
        return self.id, self.protocol, self.variant

    @property
    def is_proven(self) -> bool:
        """The reference passes, and a mutant does not."""
        return self.reference in GOOD and bool(self.killed_by)


class Matrix(msgspec.Struct):
    """All rows.

    Attributes:
        tried: The mutants that are asked about, as (protocol, name); None: all of the rows' protocols.
        elsewhere: Mutants that scenarios outside these rows, or generated faults, are known to kill.
    """

    rows: list[MatrixRow]
    tried: frozenset[tuple[str, str]] | None = None
    elsewhere: frozenset[tuple[str, str]] = frozenset()

    @property
    def asked(self) -> frozenset[tuple[str, str]]:
        """The mutants that are asked about, as (protocol, name)."""
        if self.tried is not None:
            return self.tried
        spoken = {row.protocol for row in self.rows}
        return frozenset((name, one.name) for name in spoken for one in mutants_of(name))

    @property
    def unkilled_mutants(self) -> list[str]:
        """The mutants that no scenario kills: each of them is a defect that would go unnoticed."""
        killed = {(row.protocol, name) for row in self.rows for name in row.killed_by}
        return sorted(name for _, name in self.asked - killed - self.elsewhere)

    @property
    def mutants(self) -> list[dict[str, str]]:
        """The mutants that are asked about, each with its tag."""
        asked = self.asked
        known = [one for protocol in sorted({name for name, _ in asked}) for one in mutants_of(protocol)]
        return [
            {"name": one.name, "protocol": one.protocol, "tag": one.tag}
            for one in known
            if (one.protocol, one.name) in asked
        ]

    @property
    def is_proven(self) -> bool:
        """Every scenario kills a mutant, and every mutant is killed."""
        return all(row.is_proven for row in self.rows) and not self.unkilled_mutants

    def document(self) -> dict[str, Any]:
        """What ``fakebrokers mutants --json`` prints."""
        shown = ("id", "protocol", "variant", "killed_by")
        return {
            "scenarios": [{name: getattr(row, name) for name in shown} for row in self.rows],
            "unkilled": _once(row.id for row in self.rows if not row.killed_by),
            "unkilled_mutants": self.unkilled_mutants,
            "reference_failures": _once(row.id for row in self.rows if row.reference not in GOOD),
            "mutants": self.mutants,
        }


def _once(ids: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(ids))


# one run


def mode_of(scenario: Scenario) -> Mode:
    """How a scenario has to be run."""
    if scenario.process:
        return Mode.PROCESS
    sockets = scenario.sockets
    if sockets is None:
        asked = scenario.server.get("tls") or scenario.server.get("proxied")
        sockets = bool(asked or "tls" in scenario.needs)
    return Mode.SOCKETS if sockets else Mode.MEMORY


def run(
    scenario: Scenario,
    mutant: Mutant | None = None,
    mode: Mode | None = None,
    *,
    note: RunJournal | None = None,
    invariants: bool = False,
) -> Judgement:
    """Judge the reference client, or a mutant of it, by one scenario. Blocks; main thread only.

    Clients in this process write their complaints to its stderr; they are kept in the judgement.

    Args:
        note: Where the run is written down.
        invariants: Whether the rules for all runs judge too. Not where a scenario has to show what it finds.
    """
    how = mode or mode_of(scenario)
    found: list[Judgement] = []
    complaints = io.StringIO()

    def unhandled(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        complaints.write(f"{context['message']}: {context.get('exception')!r}\n")

    async def work() -> None:  # no result: asyncio formats its task to give SIGINT back, with whole journals
        asyncio.get_running_loop().set_exception_handler(unhandled)
        adapter = _adapter(scenario.protocol, mutant, how)
        found.append(await _judged(scenario, adapter, how, note, invariants=invariants))

    in_memory = how is Mode.MEMORY
    try:
        with redirect_stderr(complaints):
            run_or_stuck(
                work(),
                STUCK_S,
                waits_s=0.0 if in_memory else scenario.timeout_s,
                run=virtual.run if in_memory else asyncio.run,
            )
        found[0].stderr += complaints.getvalue()
        return found[0]
    except (Stuck, AdapterFailed) as error:
        return Judgement(scenario, Verdict.HARNESS_ERROR, reason=str(error))


def _adapter(protocol: str, mutant: Mutant | None, mode: Mode) -> Adapter:
    if mode is Mode.PROCESS:
        inherited = [path for path in sys.path if path]
        env = {"PYTHONPATH": os.pathsep.join(inherited), **outside.environment()}
        return ProcessAdapter(mutant.command if mutant else command(protocol), protocol, env=env)
    client: type[AdapterBase] = mutant.adapter if mutant else reference(protocol)
    if mode is Mode.MEMORY:
        client = without_sockets(client)
    return InProcessAdapter(client, protocol)


async def _judged(
    scenario: Scenario, adapter: Adapter, mode: Mode, note: RunJournal | None, *, invariants: bool
) -> Judgement:
    try:
        hello = await adapter.start()
        refused = unfit(scenario, hello, in_process=mode is not Mode.PROCESS)
        if refused is not None:
            return refused
        make = fake_for(memory=mode is Mode.MEMORY)
        return await judge(scenario, adapter, make, note=note, invariants=invariants)
    finally:
        await adapter.kill()


# one row


def prove(scenario: Scenario, mutants: Sequence[Mutant]) -> MatrixRow:
    """Run the reference client, then each mutant."""
    begun = time.monotonic()
    mode = mode_of(scenario)
    correct = run(scenario, None, mode, invariants=True)
    if correct.verdict not in GOOD and mode is Mode.MEMORY:
        over_sockets = run(
            scenario, None, Mode.SOCKETS, invariants=True
        )  # not everything can be had in memory
        if over_sockets.verdict in GOOD:
            mode, correct = Mode.SOCKETS, over_sockets
    row = MatrixRow(*scenario.key, mode=mode, reference=correct.verdict, reason=correct.reason)
    for one in affordable(scenario, mutants, mode) if correct.verdict in GOOD else ():
        judgement = run(scenario, one, mode)
        if judgement.kills:
            row.killed_by.append(one.name)
            row.criteria[one.name] = judgement.reason
        else:
            setup = "setup: " if "setup" in judgement.tags else ""
            row.survived[one.name] = f"{judgement.verdict}: {setup}{judgement.reason}".rstrip(": ")
    row.seconds = round(time.monotonic() - begun, 3)
    return row


def candidates(scenario: Scenario, *, everything: bool = False) -> list[Mutant]:
    """The mutants that a scenario should be able to catch: they break what it rests on."""
    basis = set(scenario.requirement.basis)
    return [one for one in mutants_of(scenario.protocol) if everything or basis.intersection(one.breaks)]


def affordable(scenario: Scenario, mutants: Sequence[Mutant], mode: Mode) -> Sequence[Mutant]:
    """Those worth their time: a scenario that costs much, or real time, is tried on those that aim at it
    only, if there are any.
    """
    aiming = [one for one in mutants if scenario.id in one.aims]
    is_cheap = mode is Mode.MEMORY and not scenario.alone
    return mutants if is_cheap or not aiming else aiming


# all rows


def matrix(
    scenarios: Sequence[Scenario],
    *,
    everything: bool = False,
    only: Sequence[str] = (),
    processes: int = 2,
    on_row: Callable[[MatrixRow], None] = lambda _: None,
) -> Matrix:
    """Prove many scenarios.

    Args:
        everything: Try every mutant on every scenario.
        only: Names of mutants; all others are left out.
        processes: How many to use; 1 means this one. None of them outlives the call.
        on_row: For progress.
    """
    keys = [scenario.key for scenario in scenarios]
    rows: dict[Key, MatrixRow] = {}
    if processes == 1 or len(keys) < 2:
        for key in keys:
            rows[key] = _prove_key(key, everything, tuple(only))
            on_row(rows[key])
    else:
        context = get_context("spawn")
        with ProcessPoolExecutor(
            processes, mp_context=context, initializer=_serve, initargs=(os.getpid(), outside.folders())
        ) as pool:
            try:
                jobs = {pool.submit(_prove_key, key, everything, tuple(only)): key for key in keys}
                for job in as_completed(jobs):
                    rows[jobs[job]] = job.result()
                    on_row(rows[jobs[job]])
            except BaseException:
                for worker in active_children():
                    worker.kill()
                raise
    chosen = frozenset((key[1], name) for key in keys for name in only) if only else None
    return Matrix([rows[key] for key in keys], chosen, _killed_outside(keys))


def _killed_outside(keys: Sequence[Key]) -> frozenset[tuple[str, str]]:
    """The mutants that scenarios beyond `keys` are known to kill, and those that the sweep proves alone.

    One that a scenario is known to kill has to be killed by one, whatever the sweep shows.
    """
    from conformance.search.systematic.alone import load

    kills, proofs = known_kills(), load()
    by_scenario = {(key[1], name) for key, names in kills.items() for name in names}
    beyond = {(key[1], name) for key, names in kills.items() if key not in keys for name in names}
    return frozenset(beyond | (proofs.mutants - by_scenario))


def _serve(parent: int, folders: Sequence[outside.Folder]) -> None:
    """A worker begins: the parent alone hears Ctrl-C, and no worker lives longer than it."""
    for folder in folders:
        outside.use(folder.path)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before it could be asked for
        os._exit(1)


def _prove_key(key: Key, everything: bool, only: tuple[str, ...]) -> MatrixRow:
    """One row, from what can be sent to another process."""
    [scenario] = [one for one in all_scenarios() if one.key == key]
    chosen = candidates(scenario, everything=everything or bool(only))
    return prove(scenario, [one for one in chosen if not only or one.name in only])
