"""A fixed list of specs, run on many clients side by side: the sweep of a pipeline.

What fits into a time differs from one run to the next, and with it what is found. So a pipeline runs the
same specs every time: those of a file, one as JSON per line. What they violate and no expectation is about is
run again, and counts where most runs of the spec violate it. A client's file is written by
``fakebrokers sweep --client NAME --write-specs FILE``; it is about one version of the client, as its
expectations are.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from conformance.adapters.registry import Client
from conformance.invariants import HARNESS, Finding, judge
from conformance.sweep.acts import ACTS
from conformance.sweep.case import Case
from conformance.sweep.children import TRIES, Child
from conformance.sweep.expected import Expected, load_expected
from conformance.sweep.page import write_page
from conformance.sweep.replay import replay_of
from conformance.sweep.room import room_of
from conformance.sweep.specs import Spec, from_json, to_json
from fakebrokers.errors import UsageError

LANES = 20  #: runs side by side, of all clients; they wait most of the time
LONGEST_S = 240.0  #: no further run is begun behind that
SPECS, EXPECTED = ".specs", ".toml"


class Row(msgspec.Struct, kw_only=True):
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
    """

    client: str
    version: str
    protocol: str
    specs: int
    left_out: int = 0
    rows: list[Row] = []

    @property
    def new(self) -> list[Row]:
        """What counts."""
        return [row for row in self.rows if row.is_new]

    @property
    def once(self) -> list[Row]:
        """What was seen, and not again."""
        return [row for row in self.rows if not row.cause and not row.is_new]

    @property
    def causes(self) -> list[tuple[str, int]]:
        """Root causes that are known, with how many specs have shown them."""
        return Counter(row.cause for row in self.rows if row.cause).most_common()

    @property
    def is_broken(self) -> bool:
        """Whether the harness has failed."""
        return any(row.invariant == HARNESS for row in self.new)


def load_specs(path: Path, protocol: str) -> list[Spec]:
    """Read a list. Raises `UsageError` where a spec is none, or cannot be run any more."""
    bases = room_of(protocol).bases
    try:
        found = [from_json(line) for line in path.read_text().splitlines() if line.strip()]
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(f"{path}: {error}") from None
    for spec in found:
        if spec.protocol != protocol or spec.base not in bases:
            raise UsageError(f"{path}: there is no base {spec.base} of {protocol}; write the list anew")
        if any(bend.act not in ACTS for bend in spec.bends):
            raise UsageError(f"{path}: {spec}: there is no such act; write the list anew")
    return found


def save_specs(path: Path, specs: Sequence[Spec]) -> None:
    """Write a list."""
    path.write_text("".join(f"{to_json(spec)}\n" for spec in specs))


class Listed:
    """One client with its list and its expectations.

    Args:
        folder: Holds both, by the client's name. Raises `UsageError` if they are of another version.
        out: Of the report; pages are written into a folder of it.
    """

    def __init__(self, client: Client, protocol: str, folder: Path, out: Path) -> None:
        self.name = client.name
        self.child = Child.of(protocol, client.command, client.env)
        self.specs = load_specs(folder / f"{client.name}{SPECS}", protocol)
        known = folder / f"{client.name}{EXPECTED}"
        self.expected = load_expected(known) if known.exists() else Expected(version=1, client=client.name)
        version = client.version or ""
        if self.expected.client_version not in ("", version):
            raise UsageError(f"{known} is about version {self.expected.client_version}, here is {version}")
        self.found = Swept(client=client.name, version=version, protocol=protocol, specs=len(self.specs))
        self._out = out

    async def run(self, spec: Spec) -> None:
        """Run a spec; again if it violates what nobody knows."""
        case = await self.child.run(spec)
        news = self._sort(case)
        seen = Counter(finding.name for finding in news)
        runs, first = 1, case
        while news and runs < TRIES and 2 * max(seen.values()) <= TRIES:
            case = await self.child.run(spec)
            seen.update(finding.name for finding in self.expected.news(judge(case), spec))
            runs += 1
        for finding in news:
            row = Row(
                invariant=finding.name,
                detail=finding.detail,
                spec=str(spec),
                count=seen[finding.name],
                runs=runs,
                page=self._page(first, finding, news),
            )
            self.found.rows.append(row)

    def _sort(self, case: Case) -> list[Finding]:
        """Keep what is known; returns the rest."""
        news = []
        for finding in judge(case):
            cause = self.expected.cause_of(finding, case.spec)
            if cause:
                row = Row(invariant=finding.name, detail=finding.detail, spec=str(case.spec), cause=cause)
                self.found.rows.append(row)
            else:
                news.append(finding)
        return news

    def _page(self, case: Case, finding: Finding, news: list[Finding]) -> str:
        findings = sorted(news, key=lambda one: one.name != finding.name)
        folder = self._out / "sweep" / self.name
        path = replay_of(self.name, "", case, findings).write(folder)
        return str(write_page(case, findings, path).relative_to(self._out))


async def run_lists(clients: Sequence[Listed], lanes: int = LANES, longest_s: float = LONGEST_S) -> None:
    """Run the lists of all clients, a spec of each in turn."""
    end_s = time.monotonic() + longest_s
    waiting = _in_turn(clients)

    async def worker() -> None:
        for client, spec in waiting:
            if time.monotonic() > end_s:
                client.found.left_out += 1
            else:
                await client.run(spec)

    await asyncio.gather(*(worker() for _ in range(lanes)))


def _in_turn(clients: Sequence[Listed]) -> Iterator[tuple[Listed, Spec]]:
    for number in range(max((len(client.specs) for client in clients), default=0)):
        for client in clients:
            if number < len(client.specs):
                yield client, client.specs[number]
