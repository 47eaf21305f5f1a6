"""A fixed list of plans, run on many clients side by side: the sweep and the chaos of a pipeline.

What fits into a time differs from one run to the next, and with it what is found. So a pipeline runs the
same plans every time. What they violate and is not known is run again, and counts where most runs of the plan
violate it. A list is about one version of the client, as its known defects are.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from conformance.clients.adapters.registry import Client
from conformance.coverage.meter import CoverageMeter
from conformance.coverage.meter import spec as label_of
from conformance.known.defects import GeneratedRun, KnownDefects, KnownFindings, Part
from conformance.known.files import load
from conformance.results import Found
from conformance.rules import HARNESS, Finding
from conformance.run.case import Case
from conformance.run.simulated import NeedsProcess

LANES = 28  #: runs side by side, of all clients; they wait most of the time
FEW = 4  #: and of those that are run again because the machine kept them waiting
LONGEST_S = 240.0  #: no further run is begun after that
TRIES = 3  #: runs of one plan, for a verdict
KNOWN = ".toml"

S = TypeVar("S", bound=GeneratedRun)
C = TypeVar("C", bound=Case)


class ViolationRow(msgspec.Struct, kw_only=True):
    """A violated rule.

    Attributes:
        cause: By the expectations; "" if it is news.
        count: In how many runs of how many; see `runs`.
        page: Path of its page, from the folder of the report; "" for what is known.
    """

    invariant: str
    detail: str
    spec: str
    cause: str = ""
    count: int = 1
    runs: int = 1
    page: str = ""

    @property
    def is_new(self) -> bool:
        """Whether it counts: nobody knows it, and most runs show it."""
        return not self.cause and 2 * self.count > TRIES


class Swept(msgspec.Struct, kw_only=True):
    """What became of one client's list.

    Attributes:
        left_out: Specs for which no time was left.
        unclear: Runs that have come to no verdict.
        here: Specs that were run on virtual time, and have shown nothing that is news.
    """

    client: str
    version: str
    protocol: str
    specs: int
    left_out: int = 0
    unclear: int = 0
    here: int = 0
    rows: list[ViolationRow] = []

    @property
    def new(self) -> list[ViolationRow]:
        """What counts."""
        return [row for row in self.rows if row.is_new]

    @property
    def once(self) -> list[ViolationRow]:
        """What was seen, and not again."""
        return [row for row in self.rows if not row.cause and not row.is_new]

    @property
    def causes(self) -> list[tuple[str, int]]:
        """Root causes that are known, with how many specs have shown them."""
        return Counter(row.cause for row in self.rows if row.cause).most_common()

    def reported(self, stage: str) -> list[Found]:
        """The rows for ``results.json``."""
        return [
            Found(
                stage=stage,
                name=row.invariant,
                detail=row.detail,
                spec=row.spec,
                cause=row.cause,
                count=row.count,
                runs=row.runs,
                new=row.is_new,
                page=row.page,
            )
            for row in self.rows
        ]

    @property
    def is_broken(self) -> bool:
        """Whether the harness has failed."""
        return any(row.invariant == HARNESS for row in self.new)


def known_of(client: Client, folder: Path, part: Part) -> KnownDefects:
    """What is known of a bundled client. Raises `UsageError` where it is about another version."""
    path = folder / f"{client.name}{KNOWN}"
    if not path.exists():
        return KnownDefects()
    known = load(path, part, protocol=client.protocols[0])
    known.check_names(path, [client.name], client.version or "")
    return known


class Fixed(ABC, Generic[S, C]):
    """One client with its list and its expectations.

    Args:
        specs: The list: specs of the sweep, or schedules of chaos.
        out: Of the report; pages are written into a folder of it.

    Attributes:
        open: Of the list, what needs a process.
    """

    def __init__(
        self, client: Client, protocol: str, specs: Sequence[S], expected: KnownFindings, out: Path
    ) -> None:
        self.name = client.name
        self.specs = specs
        self.expected = expected
        version = client.version or ""
        self.found = Swept(client=client.name, version=version, protocol=protocol, specs=len(specs))
        self.open: Sequence[S] = specs
        self._out = out

    @abstractmethod
    async def judged(self, spec: S) -> tuple[C, list[Finding]]:
        """Run and judge; no findings where there is no verdict."""

    @abstractmethod
    def found_here(self, spec: S) -> list[Finding] | None:
        """What a run on virtual time has shown; None where a process has to say it. Blocks.

        Raises:
            NeedsProcess: It cannot be run so.
        """

    @abstractmethod
    def page(self, case: C, finding: Finding, news: list[Finding], folder: Path) -> Path:
        """Write the page of a finding into a folder of the report."""

    def run_here(self, meter: CoverageMeter | None = None) -> None:
        """Run the specs on virtual time, if the client can. What shows no news there is done. Blocks.

        Args:
            meter: Measures what of the client is executed.
        """
        self.open = [spec for spec in self.open if not self._stands(spec, meter)]
        self.found.here = len(self.specs) - len(self.open)

    def _stands(self, spec: S, meter: CoverageMeter | None) -> bool:
        label = label_of(spec.base, spec.acts)
        try:
            with nullcontext() if meter is None else meter.doing(label):
                findings = self.found_here(spec)
        except NeedsProcess:
            return False
        if findings is None or self.expected.news(findings, spec):
            return False
        self._keep_known(findings, spec)
        return True

    async def run(self, spec: S, *, final: bool = True) -> bool:
        """Run a spec; again if it violates what nobody knows.

        Args:
            final: It is not run again: where the machine kept the client waiting, there is no verdict.

        Returns:
            Whether that is all; False: it is to be run again where fewer others run.
        """
        first, findings = await self.judged(spec)
        news = self.expected.news(findings, spec)
        if news and first.is_starved and not final:
            return False
        self._keep_known(findings, spec)
        seen = Counter(finding.name for finding in news)
        runs, is_starved = 1, bool(news) and first.is_starved
        while news and not is_starved and runs < TRIES and 2 * max(seen.values()) <= TRIES:
            case, findings = await self.judged(spec)
            again = self.expected.news(findings, spec)
            is_starved = bool(again) and case.is_starved
            seen.update(finding.name for finding in again)
            runs += 1
        if is_starved:
            self.found.unclear += 1
            return True
        for finding in news:
            row = ViolationRow(
                invariant=finding.name,
                detail=finding.detail,
                spec=str(spec),
                count=seen[finding.name],
                runs=runs,
                page=str(self.page(first, finding, news, self._out).relative_to(self._out)),
            )
            self.found.rows.append(row)
        return True

    def _keep_known(self, findings: Sequence[Finding], spec: S) -> None:
        for finding in findings:
            cause = self.expected.cause_of(finding, spec)
            if cause:
                row = ViolationRow(invariant=finding.name, detail=finding.detail, spec=str(spec), cause=cause)
                self.found.rows.append(row)


async def run_lists(clients: Sequence[Fixed[S, C]], lanes: int = LANES, longest_s: float = LONGEST_S) -> None:
    """Run the lists of all clients, a spec of each in turn; then, few at once, what was kept waiting."""
    end_s = time.monotonic() + longest_s
    waiting = _in_turn(clients)
    again: list[tuple[Fixed[S, C], S]] = []

    async def worker() -> None:
        for client, spec in waiting:
            if time.monotonic() > end_s:
                client.found.left_out += 1
            elif not await client.run(spec, final=False):
                again.append((client, spec))

    async def last() -> None:
        while again:
            client, spec = again.pop()
            await client.run(spec)

    await asyncio.gather(*(worker() for _ in range(lanes)))
    await asyncio.gather(*(last() for _ in range(FEW)))


def _in_turn(clients: Sequence[Fixed[S, C]]) -> Iterator[tuple[Fixed[S, C], S]]:
    for number in range(max((len(client.open) for client in clients), default=0)):
        for client in clients:
            if number < len(client.open):
                yield client, client.open[number]
