"""The client of a search: in this process on virtual time, or in a process of its own, in real time.

A stock client in Python that needs nothing real is run in both: what it does on virtual time is a suspicion,
which counts once a process has done it too.

What a process receives is what is written into its socket; when it reads that, and when it wrote what comes
from it, is known within `SLACK_S`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import msgspec

from conformance.clients.adapter.base import AdapterFailed
from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.adapter.process import ProcessAdapter
from conformance.clients.adapters import registry
from conformance.clients.adapters.stock import NotHere, adapter_class
from conformance.clients.mutants.registry import find_mutant
from conformance.clients.reference.registry import command as reference_command
from conformance.run.case import Case
from conformance.run.inprocess import client_of, place_in_trace
from conformance.run.pace import SLACK_S
from conformance.run.simulated import is_stock
from conformance.run.trace import Trace, TraceRow, What
from conformance.suite.lag import LagMeter
from fakebrokers.errors import UsageError

REFERENCE = "reference"  #: the name of the reference client of whatever protocol

Command = Sequence[str]
Environment = dict[str, str] | None
C = TypeVar("C", bound=Case)


class _ClientLine(msgspec.Struct):
    """What of a line of an adapter the trace needs; `t` is the client's clock, in milliseconds."""

    n: int
    t: float
    id: int | None = None
    event: str | None = None


class TracedProcess(ProcessAdapter):
    """Notes in the trace when a line of the client comes.

    Attributes:
        said: Rows of its lines, and when it wrote them: seconds of its own clock.
    """

    def __init__(self, command: Command, protocol: str, env: Environment, trace: Trace) -> None:
        super().__init__(command, protocol, env=env)
        self._trace = trace
        self.said: list[tuple[TraceRow, float]] = []

    def _receive(self, raw: Any) -> None:
        try:
            line = msgspec.json.decode(raw, type=_ClientLine) if isinstance(raw, bytes) else None
        except msgspec.DecodeError:
            line = None
        if line is not None:
            what: What = "answer" if line.event is None else "event"
            at = self._trace.note(what, line.id if line.event is None else line.n)
            self.said.append((self._trace.rows[at.row], line.t / 1000))
        super()._receive(raw)


class SearchClient:
    """A client to be searched for defects.

    Args:
        name: As ``--client`` takes it; "" for an adapter of the user's.
        mutant: A defect of the reference client.
        command: Of the adapter of the user's.
        in_memory: The reference client runs in this process; False: it is a process like all others.
        stock_in_memory: So does a stock client that can.
        measured: The bundled client of that name, as it is started where it is measured.

    Attributes:
        made: The class that is run in this process, or None.
        why_process: Why a client that could run in this process does not; "" if it does, or never could.

    Raises:
        UsageError: There is no such client, or it has no mutants.
    """

    def __init__(
        self,
        protocol: str,
        name: str,
        mutant: str = "",
        command: Command | None = None,
        *,
        in_memory: bool = True,
        stock_in_memory: bool = False,
        measured: registry.Client | None = None,
    ) -> None:
        self.protocol = protocol
        self.name = name
        self.mutant = mutant
        self.made: type[AdapterBase] | None = None
        self.why_process = ""
        self._command: Command = command or ()
        self._env: Environment = None
        if name in (REFERENCE, f"{REFERENCE}-{protocol}"):
            if in_memory:
                self.made = made_of(protocol, name, mutant)
            else:
                chosen = find_mutant(protocol, mutant).command if mutant else reference_command(protocol)
                self._command = chosen
        elif mutant:
            raise UsageError(f"only `--client {REFERENCE}` has mutants")
        elif command is None:
            found = measured or registry.find(name)
            self._command, self._env = found.command, found.env
            if stock_in_memory and found.runnable:
                self._find_here()

    def _find_here(self) -> None:
        try:
            self.made = made_of(self.protocol, self.name)
        except NotHere as error:
            self.why_process = str(error)

    @property
    def is_process(self) -> bool:
        """Whether time is real."""
        return self.made is None

    @property
    def is_confirmed(self) -> bool:
        """Whether what is found in this process counts only if a process of its own shows it too."""
        return self.made is not None and is_stock(self.made)

    @property
    def tries(self) -> int:
        """Runs of one plan, at most, for a verdict."""
        return 1

    def traced(self, trace: Trace) -> TracedProcess:
        """Its adapter as a process, not started."""
        return TracedProcess(self._command, self.protocol, self._env, trace)


def made_of(protocol: str, name: str, mutant: str = "") -> type[AdapterBase] | None:
    """The adapter class of a client that runs in this process, or None.

    Raises:
        NotHere: See `adapter_class`.
    """
    if name in (REFERENCE, f"{REFERENCE}-{protocol}"):
        return client_of(protocol, mutant)
    return adapter_class(name)


async def run_live(
    adapter: TracedProcess,
    work: Awaitable[C],
    broken: Callable[[], C],
    longest_s: float,
    *,
    hears: bool = False,
) -> C:
    """What a run in real time has shown.

    Args:
        work: Plays it.
        broken: Makes the case of a run that has come to nothing.
        hears: Errors that nobody has seen are read from what asyncio writes of them to stderr.
    """
    async with LagMeter(adapter) as meter:
        try:
            case = await asyncio.wait_for(work, longest_s)
            by_its_clock(case, adapter.said)
        except (AdapterFailed, TimeoutError) as error:
            case = broken()
            case.harness = f"the adapter: {error!r}"
    if hears:
        case.complaints = unseen_errors(adapter.stderr())
    case.slack_s = SLACK_S
    case.lag_s = meter.worst_s
    case.is_starved = meter.is_starved
    return case


def by_its_clock(case: Case, said: Sequence[tuple[TraceRow, float]]) -> None:
    """Put what the client said where it was written, not where it was read.

    A line is read up to some milliseconds late, and what the client wrote to the broker after it may have
    been read before. No line is read before it is written, so the quickest one shows how far the clocks are
    apart.
    """
    own = {id(row): at_s for row, at_s in said}
    apart_s = min((row.t - at_s for row, at_s in said), default=0.0)
    for number, row in enumerate(case.rows):
        if id(row) in own:
            case.rows[number] = row._replace(t=own[id(row)] + apart_s)
    order = sorted(range(len(case.rows)), key=lambda number: case.rows[number].t)
    places = {former: number for number, former in enumerate(order)}
    case.rows = [case.rows[number] for number in order]
    for done in case.ops:
        done.begun = done.begun._replace(row=places[done.begun.row])
    place_in_trace(case, case.ops)


#: How lines begin that asyncio writes of errors nobody has seen.
_UNSEEN = (
    *("Task exception was never", "Future exception was never", "Exception in callback", "Fatal error"),
    *("Task was destroyed but", "Unhandled exception"),
)


def unseen_errors(stderr: str) -> str:
    """The first line of each report of asyncio about an error that nobody has seen."""
    return "\n".join(line for line in stderr.splitlines() if line.startswith(_UNSEEN))
