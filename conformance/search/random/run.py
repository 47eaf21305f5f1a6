"""One schedule: a client and a fake in this process, on virtual time; or `play` on any loop."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from uuid import uuid4

from conformance.clients.adapter.base import Adapter
from conformance.clients.adapter.kit import AdapterBase
from conformance.run.inprocess import client_of, pace_of, run_in_memory, running, through
from conformance.run.pace import Pace
from conformance.run.simulated import NeedsProcess, fake_for, is_stock
from conformance.run.stuck import Stuck
from conformance.run.trace import Trace
from conformance.search.random.case import ChaosCase
from conformance.search.random.context import ChaosContext
from conformance.search.random.history import (
    KeptJournals,
    close_journal,
    digest_of,
    open_journal,
    write_history,
)
from conformance.search.random.material import ChaosProtocol, material_of
from conformance.search.random.repeatable import repeatable
from conformance.search.random.schedule import Schedule
from conformance.search.random.toxics import TOXIC, Toxics
from conformance.search.random.workloads import find_workload
from fakebrokers.core import memory
from fakebrokers.core.frames import Role, kind_of
from fakebrokers.journal.record import State, Tap
from fakebrokers.proxy import Proxy

PAUSE_S = 6.0  #: what a pause takes at most in real time; the back-off of most clients is shorter
STUCK_S = 60.0  #: of the processor, after which a run is given up
STOCK_STUCK_S = 10.0  #: of a stock client, which gets a process then
UNREACHABLE = (State.REFUSING, State.BLACK_HOLE, State.CRASH)
LONGEST_S = 20_000.0  #: virtual seconds that a run may take


def run(
    made: type[AdapterBase],
    schedule: Schedule,
    *,
    contract: str = "",
    kept: KeptJournals | None = None,
    client: str = "",
) -> ChaosCase:
    """Run a schedule against a client that reaches fakes in memory. Blocks; main thread only.

    Args:
        made: The adapter class, for fakes in memory.
        contract: What has to hold of deliveries; "" for what the faults leave of the protocol's word.
        kept: Where the journal is kept; None: nowhere.
        client: Its name, for the journal.

    Raises:
        NeedsProcess: A stock client cannot be run so.
    """
    if is_stock(made):
        _check_steps(schedule)
    trace = Trace(lambda: 0.0)
    longest_s = PAUSE_S if is_stock(made) else math.inf  # as in the process that is asked after it

    def work(adapter: Adapter) -> Awaitable[ChaosCase]:
        return play(
            adapter, schedule, trace, longest_s=longest_s, contract=contract, kept=kept, client=client
        )

    memory.count_from_the_first()
    try:
        with repeatable(schedule.seed):
            limit_s = STOCK_STUCK_S if is_stock(made) else STUCK_S
            case = run_in_memory(made, schedule.protocol, trace, work, limit_s)
    except Stuck as problem:
        if is_stock(made):
            raise NeedsProcess(str(problem)) from None
        case = ChaosCase(schedule, trace.rows)
        case.error = str(problem)
        return case
    if case.journal is not None:
        close_journal(case.journal, kept, case)
    if case.log is not None:
        case.digest = digest_of(case.log)
    return case


def _check_steps(schedule: Schedule) -> None:
    """Raise `NeedsProcess` where something is done to the client's process."""
    nemeses = material_of(schedule.protocol).nemeses
    for step in schedule.steps:
        if step.kind in nemeses and nemeses[step.kind].needs_process:
            raise NeedsProcess(f"{step.kind} is done to the client's process")


async def play(
    adapter: Adapter,
    schedule: Schedule,
    trace: Trace,
    *,
    in_memory: bool = True,
    longest_s: float = math.inf,
    contract: str = "",
    kept: KeptJournals | None = None,
    client: str = "",
    target: str = "",
    toxiproxy: str = "",
) -> ChaosCase:
    """Run a schedule on the running loop. The journal of the case is open still.

    Args:
        adapter: Not started; it is killed at the end.
        in_memory: Whether the fake is reached through memory.
        longest_s: What a pause takes at most.
        contract, kept, client: As in `run`.
        target: A real server, ``host:port``; "" for a fake.
        toxiproxy: The API of a Toxiproxy in front of the target; "" where there is none.
    """
    material = material_of(schedule.protocol)
    toxics = await asyncio.to_thread(Toxics, toxiproxy, target) if toxiproxy else None
    broker = _server(schedule, material, in_memory, target if toxics is None else toxics.listen)
    journal = open_journal(schedule, kept, client=client)
    broker.journal.sink = journal
    case = ChaosCase(schedule, trace.rows)
    case.is_remote = bool(target)
    disturbs = [step.name for step in schedule.steps]
    try:
        async with running(adapter, broker, trace, case):
            nemeses = dict(material.nemeses if toxics is None else TOXIC)
            suffix = f"-{uuid4().hex[:8]}" if target else ""
            is_short = longest_s < math.inf
            pace = pace_of(adapter, case.traits, trace, disturbs, longest_s) if is_short else Pace()
            context = ChaosContext(broker, adapter, trace, schedule, nemeses, pace, suffix=suffix)
            context.toxics = toxics
            await _through(context, material, case)
    finally:
        if toxics is not None:
            await asyncio.to_thread(toxics.close)
    case.harness = case.harness or context.trouble
    write_history(journal, schedule, adapter, broker, contract)
    case.journal = journal
    return case


def _server(schedule: Schedule, material: ChaosProtocol, in_memory: bool, upstream: str) -> Any:
    """The fake; or a proxy in front of what listens upstream."""
    if upstream:
        return Proxy(upstream, protocol=schedule.protocol)
    options = find_workload(schedule.workload).options(material.actions, schedule.params)
    return fake_for(schedule.protocol, in_memory=in_memory, **options)


async def _through(context: ChaosContext, material: ChaosProtocol, case: ChaosCase) -> None:
    """Both phases; what the workload itself raises is the error of the case."""
    schedule = context.schedule
    workload = find_workload(schedule.workload)(context, material.actions, schedule.params)
    if material.actions.forgets and schedule.params.get("consumers"):
        context.notes.forgets = True
    await through(workload.phases(), LONGEST_S, context, case)
    if any(context.broker.journal.select(kind=kind) for kind in UNREACHABLE):
        context.notes.unreachable = True
    if _was_unheard(context.broker.journal, case):
        context.notes.unheard = True
    case.bands = context.bands
    case.touched = frozenset(context.killed.union(_met(case)))
    case.hits = len(context.bands)
    case.stored = {} if context.is_remote else case.traits.reading.stored(context.broker)


def _was_unheard(journal: Any, case: ChaosCase) -> bool:
    """Whether the broker was kept from hearing what the client has opened on a connection that went on, and
    no answer would have reported."""
    waiting: Counter[tuple[str, str]] = Counter()
    reported = {kind_of(kind) for kind in case.traits.questions.answers}
    for record in journal.select(role=Role.OPEN):
        if record.fault and record.kind not in reported and record.tap is not Tap.IN:
            waiting[record.connection, record.kind] += 1 if record.tap is Tap.RECEIVED else -1
    return any(count > 0 for count in waiting.values())


def _met(case: ChaosCase) -> set[str]:
    """The connections that came while something was disturbed."""
    return {
        row.connection
        for row in case.rows
        if row.what == "accept" and any(band["begin_s"] <= row.t <= band["end_s"] for band in case.bands)
    }


def runner(protocol: str, mutant: str = "") -> Callable[[Schedule], ChaosCase]:
    """Runs schedules against the reference client, or a mutant of it."""
    return partial(run, client_of(protocol, mutant))
