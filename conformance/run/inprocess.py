"""One run: a client in this process, a fake in memory, virtual time, and the trace of what happened."""

from __future__ import annotations

import asyncio
import io
import math
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, redirect_stderr
from functools import cache, partial
from typing import Any, TypeVar

from conformance.clients.adapter.base import Adapter
from conformance.clients.adapter.contract import Contract
from conformance.clients.adapter.host import ClientHost
from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.adapter.last_words import last_words
from conformance.run import simulated
from conformance.run.acts import fault_of
from conformance.run.bases import Base, Enough, RunOp, ScriptContext
from conformance.run.case import Case
from conformance.run.concurrent_actions import EarlyClose
from conformance.run.held import broker_log
from conformance.run.material import material_of
from conformance.run.pace import PAUSE_S, SLACK_S, Pace, RealPace
from conformance.run.reported import ReportedEvent
from conformance.run.simulated import NeedsProcess, fake_for, is_stock
from conformance.run.specs import EVERY, Spec
from conformance.run.stuck import Stuck, run_or_stuck
from conformance.run.trace import Trace
from conformance.run.traits import Traits
from fakebrokers.core import virtual
from fakebrokers.core.onlooking import watch_wire
from fakebrokers.faults.plan import Fault
from fakebrokers.server import FakeServer
from fakebrokers.simulation import SimulationLoop

STUCK_S = 8.0  #: of the processor, after which a run is given up
STOCK_STUCK_S = 3.0  #: of a stock client, which gets a process then
COSTLY_STUCK_S = 30.0
LONGEST_S = 4000.0  #: virtual seconds that a base may take
ENOUGH_S = 40.0  #: real seconds after which a base begins nothing more but its end, which takes as long

C = TypeVar("C", bound=Case)


class TracedClient(InProcessAdapter):
    """Notes in the trace when the client says something, in the step in which it says it."""

    def __init__(
        self, make: type[AdapterBase], protocol: str, trace: Trace, host: ClientHost | None = None
    ) -> None:
        super().__init__(make, protocol, host)
        self._trace = trace

    def _written(self, line: Mapping[str, Any]) -> None:
        if "event" in line:
            self._trace.note("event", line["n"])
        else:
            self._trace.note("answer", line["id"])

    async def _compare_clocks(self) -> None:
        """Client and runner share a clock."""


def run(client: type[AdapterBase], spec: Spec) -> Case:
    """Run a spec against a client that reaches fakes in memory. Blocks; main thread only.

    Args:
        client: The adapter class: of a stock client, or of one that reaches fakes through memory, see
            `conformance.clients.reference.registry.without_sockets`.

    Raises:
        NeedsProcess: A stock client cannot be run so.
    """
    material = material_of(spec.protocol)
    trace = Trace(lambda: 0.0)
    pause_s = PAUSE_S if is_stock(client) else math.inf  # as in the process that is asked after it
    usual_s = STOCK_STUCK_S if is_stock(client) else STUCK_S
    limit_s = COSTLY_STUCK_S if material.bases[spec.base].costly else usual_s
    try:
        return run_in_memory(
            client, spec.protocol, trace, lambda adapter: play(adapter, spec, trace, pause_s=pause_s), limit_s
        )
    except Stuck as problem:
        if is_stock(client):
            raise NeedsProcess(str(problem)) from None
        case = Case(spec, material, trace.rows, [], [])
        case.error = str(problem)
        return case


def run_in_memory(
    client: type[AdapterBase],
    protocol: str,
    trace: Trace,
    work: Callable[[Adapter], Awaitable[C]],
    limit_s: float,
) -> C:
    """A run on virtual time, with what was written to stderr meanwhile. Blocks; main thread only.

    Of a stock client, which may log what it wants, errors that nobody has seen are all that counts.

    Args:
        client: The adapter class: of a client that reaches fakes through memory, or of a stock client.
        work: Plays it.
        limit_s: Seconds of the processor, after which it is given up. Raises `Stuck` then.

    Raises:
        NeedsProcess: The client has asked for something real.
    """
    found: list[C] = []
    complaints, log = io.StringIO(), io.StringIO()
    stock = is_stock(client)
    hosts: list[ClientHost] = []

    async def whole() -> None:
        loop = asyncio.get_running_loop()
        host = ClientHost(loop) if isinstance(loop, SimulationLoop) else None
        hosts.extend([host] if host is not None else [])

        def complain(_: object, context: dict[str, Any]) -> None:
            if host is None or host.has_caused(context):
                _complain(complaints, context["message"], context.get("exception"))

        loop.set_exception_handler(complain)
        trace.clock = loop.time
        found.append(await work(TracedClient(client, protocol, trace, host)))

    with redirect_stderr(log if stock else complaints):
        run_or_stuck(whole(), limit_s, run=simulated.run if stock else virtual.run)
        for host in hosts:
            host.bury()
    case = found[0]
    case.complaints = complaints.getvalue()
    case.client_log += log.getvalue()
    case.slack_s = SLACK_S if stock else 0.0
    return case


def _complain(to: io.StringIO, message: str, error: object) -> None:
    if not to.closed:  # what is left of a run that was cut off may complain for long
        to.write(f"{message}: {error!r}\n")


@asynccontextmanager
async def running(adapter: Adapter, broker: Any, trace: Trace, case: Case) -> AsyncIterator[None]:
    """Client and broker are started, and ended after what is done inside; the case gets what every run has.

    Args:
        adapter: Not started; it is killed at the end.
        broker: A fake, or a proxy in front of a real server; not started.
    """
    watch_wire(broker, trace)
    await adapter.start()
    looked = await adapter.call("stats")
    case.contract = Contract(adapter.hello)
    case.rest = looked.value if looked.ok else {}
    trace.rows.clear()
    with broker_log(broker) as logs:
        broker.start()
        try:
            yield
        finally:
            case.ended_s = asyncio.get_running_loop().time()
            broker.stop()
            case.events = [ReportedEvent(event) for event in adapter.events]
            case.violations = list(adapter.violations)
            case.client_log = adapter.stderr()
            case.client_lines = adapter.stderr_lines()
            case.last_words = "" if adapter.alive else last_words(adapter.stderr())
            case.rows = list(trace.rows)  # what comes of ending both is no part of the run
            await adapter.kill()
    case.log = next(iter(logs), None)
    try:
        broker.check()
    except Exception as error:
        case.harness = f"the fake: {error!r}"
    place_in_trace(case, case.ops)


async def through(work: Awaitable[object], longest_s: float, context: Any, case: Case) -> None:
    """What the client is asked to do; what that raises is the error of the case.

    Args:
        longest_s: Seconds that it may take.
        context: Has the ops that were begun.
    """
    try:
        await asyncio.wait_for(work, longest_s)
        for done in context.ops:
            done.result = await done.call
    except Exception as error:
        case.error = "".join(traceback.format_exception(error)[-3:])
    case.ops, case.notes = context.ops, context.notes


def pace_of(
    adapter: Adapter, traits: Traits, trace: Trace, disturbs: Sequence[str], longest_s: float
) -> Pace:
    """Pauses that end as soon as the client rests.

    Args:
        disturbs: Empty as long as nothing has disturbed the client.
        longest_s: What a pause takes at most.
    """
    counts = not (traits.connecting.unseen_connections or traits.connecting.connects_late)
    return RealPace(trace, disturbs, counts, lambda: adapter.alive, longest_s)


async def play(
    adapter: Adapter, spec: Spec, trace: Trace, *, in_memory: bool = True, pause_s: float = math.inf
) -> Case:
    """Run a spec on the running loop.

    Args:
        adapter: Not started; it is killed at the end.
        in_memory: Whether the fake is reached through memory.
        pause_s: What a pause of the base takes at most; it ends as soon as the client rests then. Without a
            limit pauses are as they are written.
    """
    material = material_of(spec.protocol)
    base = material.bases[spec.base]
    broker = fake_for(spec.protocol, in_memory=in_memory, **base.server)
    touched: list[str] = []
    case = Case(spec, material, trace.rows, [], ())
    async with running(adapter, broker, trace, case):
        is_short = pause_s < math.inf
        pace = pace_of(adapter, material.traits, trace, touched, pause_s) if is_short else Pace()
        context = ScriptContext(broker, adapter, trace, spec.changes, spec.ops, pace, spec.concurrent)
        if is_short:
            context.until_s = asyncio.get_running_loop().time() + ENOUGH_S
        context.lasts = any(injection.connection == EVERY for injection in spec.injections)
        _inject(broker, [fault_of(injection, material.traits) for injection in spec.injections], touched)
        await through(_base(base, context), LONGEST_S, context, case)
        case.lies = context.notes.lies
        case.touched = frozenset(context.killed.union(touched))
        case.hits = len(touched)
        case.stored = material.traits.reading.stored(broker)
    return case


async def _base(base: Base, context: ScriptContext) -> None:
    try:
        await base.script(context)
    except Enough:
        await context.finale()
    except EarlyClose as cut:
        await context.cut(cut.turns)


def place_in_trace(case: Case, ops: Sequence[RunOp]) -> None:
    """Give ops and events their positions."""
    by_id = {done.id: done for done in ops}
    by_line = {heard.event.n: heard for heard in case.events}
    for position, row in case.positions():
        if row.what == "answer" and row.data in by_id:
            by_id[row.data].ended = position
        elif row.what == "event" and row.data in by_line:
            by_line[row.data].at = position
        elif row.what == "mark":
            case.marks[row.data] = position


def _inject(broker: FakeServer, faults: Sequence[Fault], touched: list[str]) -> None:
    """Add the faults of a run; `touched` collects the connections at which they act, each time."""
    names = {broker.faults.add(each) for each in faults}

    def listen(name: str, connection: str) -> None:
        if name in names:
            touched.append(connection)

    broker.engine.injector.listener = listen


def runner(protocol: str, mutant: str = "") -> Callable[[Spec], Case]:
    """Runs specs against the reference client, or a mutant of it."""
    return partial(run, client_of(protocol, mutant))


@cache
def client_of(protocol: str, mutant: str = "") -> type[AdapterBase]:
    """The reference client, or a mutant of it, for fakes in memory."""
    from conformance.clients.mutants.registry import find_mutant
    from conformance.clients.reference.registry import reference, without_sockets

    cls = find_mutant(protocol, mutant).adapter if mutant else reference(protocol)
    return without_sockets(cls)
