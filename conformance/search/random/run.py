"""One schedule: a client and a fake in this process, on virtual time; or `play` on any loop."""

from __future__ import annotations

import asyncio
import io
import math
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from conformance.clients.adapter.base import Adapter
from conformance.clients.adapter.contract import Contract
from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.adapter.last_words import last_words
from conformance.run.inprocess import TracedClient, client_of, place_in_trace
from conformance.run.pace import Pace, RealPace
from conformance.run.reported import ReportedEvent
from conformance.run.stuck import Stuck, run_or_stuck
from conformance.run.trace import Trace
from conformance.search.random.case import ChaosCase
from conformance.search.random.context import ChaosContext
from conformance.search.random.history import digest_of, open_journal, write_history
from conformance.search.random.material import ChaosProtocol, material_of
from conformance.search.random.repeatable import repeatable
from conformance.search.random.schedule import Schedule
from conformance.search.random.toxics import TOXIC, Toxics
from conformance.search.random.workload import find_workload
from fakebrokers.core import memory
from fakebrokers.core.frames import Role, kind_of
from fakebrokers.journal.reader import read_run
from fakebrokers.journal.record import State, Tap
from fakebrokers.protocol import find_protocol
from fakebrokers.proxy import Proxy

STUCK_S = 60.0  #: of the processor, after which a run is given up
UNREACHABLE = (State.REFUSING, State.BLACK_HOLE, State.CRASH)
LONGEST_S = 20_000.0  #: virtual seconds that a run may take


def run(
    made: type[AdapterBase],
    schedule: Schedule,
    *,
    contract: str = "",
    folder: Path | None = None,
    client: str = "",
) -> ChaosCase:
    """Run a schedule against a client that reaches fakes in memory. Blocks; main thread only.

    Args:
        made: The adapter class, for fakes in memory.
        contract: What has to hold of deliveries; "" for what the faults leave of the protocol's word.
        folder: Where the journal is kept; None: nowhere.
        client: Its name, for the journal.
    """
    found: list[ChaosCase] = []
    complaints = io.StringIO()
    trace = Trace(lambda: 0.0)

    async def work() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.write(_complaint(context)))
        trace.clock = loop.time
        adapter = TracedClient(made, schedule.protocol, trace)
        found.append(await play(adapter, schedule, trace, contract=contract, folder=folder, client=client))

    memory.count_from_the_first()
    try:
        with redirect_stderr(complaints), repeatable(schedule.seed):
            run_or_stuck(work(), STUCK_S)
    except Stuck as problem:
        case = ChaosCase(schedule, trace.rows)
        case.error = str(problem)
        return case
    case = found[0]
    case.complaints = complaints.getvalue()
    if case.log is not None:
        case.digest = digest_of(case.log)
    return case


def _complaint(context: dict[str, object]) -> str:
    return f"{context['message']}: {context.get('exception')!r}\n"


async def play(
    adapter: Adapter,
    schedule: Schedule,
    trace: Trace,
    *,
    in_memory: bool = True,
    longest_s: float = math.inf,
    contract: str = "",
    folder: Path | None = None,
    client: str = "",
    target: str = "",
    toxiproxy: str = "",
) -> ChaosCase:
    """Run a schedule on the running loop.

    Args:
        adapter: Not started; it is killed at the end.
        in_memory: Whether the fake is reached through memory.
        longest_s: What a pause takes at most.
        contract, folder, client: As in `run`.
        target: A real server, ``host:port``; "" for a fake.
        toxiproxy: The API of a Toxiproxy in front of the target; "" where there is none.
    """
    material = material_of(schedule.protocol)
    toxics = await asyncio.to_thread(Toxics, toxiproxy, target) if toxiproxy else None
    broker = _server(schedule, material, in_memory, target if toxics is None else toxics.listen)
    journal = open_journal(schedule, folder, client=client)
    broker.journal.sink = journal
    broker._watcher = trace
    case = ChaosCase(schedule, trace.rows)
    case.is_remote = bool(target)
    await adapter.start()
    looked = await adapter.call("stats")
    case.contract = Contract(adapter.hello)
    case.rest = looked.value if looked.ok else {}
    trace.rows.clear()
    broker.start()
    try:
        nemeses = dict(material.nemeses if toxics is None else TOXIC)
        suffix = f"-{uuid4().hex[:8]}" if target else ""
        pace = Pace() if in_memory else _real_pace(adapter, case, trace, longest_s)
        context = ChaosContext(broker, adapter, trace, schedule, nemeses, pace, suffix=suffix)
        context.toxics = toxics
        await _through(context, material, case)
    finally:
        case.ended_s = asyncio.get_running_loop().time()
        broker.stop()
        if toxics is not None:
            await asyncio.to_thread(toxics.close)
        case.events = [ReportedEvent(event) for event in adapter.events]
        case.violations = list(adapter.violations)
        case.last_words = "" if adapter.alive else last_words(adapter.stderr())
        rows = len(trace.rows)
        await adapter.kill()
        del trace.rows[rows:]
    case.harness = _trouble_of(broker) or context.trouble
    write_history(journal, schedule, adapter, broker, contract)
    journal.close()
    case.log = journal.log() if folder is None else read_run(folder, journal.run)
    place_in_trace(case, case.ops)
    return case


def _real_pace(adapter: Adapter, case: ChaosCase, trace: Trace, longest_s: float) -> Pace:
    """Pauses that end as soon as the client rests."""
    traits = case.material.traits
    counts = not (traits.connecting.unseen_connections or traits.connecting.connects_late)
    disturbs = [step.name for step in case.schedule.steps]
    return RealPace(trace, disturbs, counts, lambda: adapter.alive, longest_s)


def _trouble_of(broker: Any) -> str:
    try:
        broker.check()
    except Exception as error:
        return f"the fake: {error!r}"
    return ""


def _server(schedule: Schedule, material: ChaosProtocol, in_memory: bool, upstream: str) -> Any:
    """The fake; or a proxy in front of what listens upstream."""
    if upstream:
        return Proxy(upstream, protocol=schedule.protocol)
    options = find_workload(schedule.workload).options(material.actions, schedule.params)
    return find_protocol(schedule.protocol).load()(memory=in_memory, **options)


async def _through(context: ChaosContext, material: ChaosProtocol, case: ChaosCase) -> None:
    """Both phases; what the workload itself raises is the error of the case."""
    schedule = context.schedule
    workload = find_workload(schedule.workload)(context, material.actions, schedule.params)
    if material.actions.forgets and schedule.params.get("consumers"):
        context.notes.forgets = True
    try:
        await asyncio.wait_for(workload.phases(), LONGEST_S)
        for done in context.ops:
            done.result = await done.call
    except Exception as error:
        case.error = "".join(traceback.format_exception(error)[-3:])
    if any(context.broker.journal.select(kind=kind) for kind in UNREACHABLE):
        context.notes.unreachable = True
    if _was_unheard(context.broker.journal, case):
        context.notes.unheard = True
    case.ops, case.notes, case.bands = context.ops, context.notes, context.bands
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
