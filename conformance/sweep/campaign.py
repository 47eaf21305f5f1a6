"""A sweep from its ledger to its replay files: run, shrink, run twice again, write down."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from conformance.adapter.kit import AdapterBase
from conformance.adapters import registry
from conformance.invariants import judge
from conformance.sweep.case import Case
from conformance.sweep.children import Child
from conformance.sweep.expected import Expected
from conformance.sweep.order import Ledger, Order
from conformance.sweep.page import write_page
from conformance.sweep.replay import Replay, replay_of
from conformance.sweep.run import client_of, run
from conformance.sweep.shrink import EVALUATIONS_MAX, Shrinking
from conformance.sweep.specs import PLAIN, Spec, to_json
from conformance.sweep.sweep import Sweep
from conformance.sweep.universe import universe

FOLDER = Path(".fakebrokers") / "sweep"
LEDGER = "ledger.json"
REFERENCE = "reference"  #: the name of the reference client of whatever protocol, in this process
SHRUNK_MAX = 20  #: kinds of failures that are shrunk; more of them are one defect seen from many sides
LOOK_SHARE = 0.5  #: of the time of a child process: for its bases without faults
SHRINK_SHARE = 0.5  #: of the time besides: runs of a child process take real time, so few are shrunk
CHILD_EVALUATIONS_MAX = 2

Run = Callable[[Spec], Case]


class Failed(msgspec.Struct):
    """One kind of failure: its smallest spec, written down.

    Attributes:
        steady: Whether two more runs have failed the same way.
        count: How many runs of the sweep have failed so.
    """

    replay: Replay
    path: Path
    steady: bool
    count: int


class Subject:
    """A client to be swept.

    Attributes:
        name: As ``--client`` takes it; "" for an adapter of somebody's own.
        made: The class that is run in this process, or None.
        child: How it is run in a process of its own, or None.
    """

    def __init__(self, protocol: str, name: str, mutant: str = "", command: list[str] | None = None) -> None:
        self.protocol = protocol
        self.name = name
        self.mutant = mutant
        self.made: type[AdapterBase] | None = None
        self.child: Child | None = None
        if name in (REFERENCE, f"{REFERENCE}-{protocol}"):
            self.made = client_of(protocol, mutant)
        elif command is not None:
            self.child = Child.of(protocol, command)
        else:
            found = registry.find(name)
            self.child = Child.of(protocol, found.command, found.env)

    def run(self, spec: Spec) -> Case:
        """Run one spec. Blocks."""
        if self.made is not None:
            return run(self.made, spec)
        assert self.child is not None
        return asyncio.run(self.child.run(spec))

    def violated(self, spec: Spec) -> set[str]:
        """The invariants that a run of a spec violates."""
        return {finding.name for finding in judge(self.run(spec))}


class Campaign:
    """One sweep of one client.

    Args:
        folder: For the ledger and the replay files; by default one of this client below the working
            directory.
        expected: What it is known to violate.
        seed: Of the order in which specs are drawn.
        again: Begin anew instead of where the last sweep has stopped.
    """

    def __init__(
        self,
        subject: Subject,
        folder: Path | None = None,
        *,
        expected: Expected | None = None,
        seed: int = 0,
        again: bool = False,
    ) -> None:
        self.subject = subject
        parts = (subject.name or "adapter", subject.protocol, subject.mutant)
        self.folder = folder or FOLDER / "-".join(part for part in parts if part)
        self.expected = expected or Expected(version=1, client=subject.name)
        self.seed = seed
        self.again = again
        self.runs = 0
        self.seconds = 0.0
        self.failures: list[Failed] = []

    def go(self, seconds: float) -> None:
        """Sweep for so long, then shrink what failed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        begun = time.monotonic()
        sweep = Sweep(self.subject.run, self.expected)
        if self.subject.made is not None:
            self._in_memory(sweep, seconds)
        else:
            asyncio.run(self._side_by_side(sweep, seconds))
        self.runs = sweep.runs
        self._write_down(sweep, time.monotonic() + seconds * SHRINK_SHARE)
        self.seconds = time.monotonic() - begun

    def _in_memory(self, sweep: Sweep, seconds: float) -> None:
        items = universe(self.subject.protocol)
        ledger = self._ledger(len(items))
        sweep.go(Order(items, self.seed, ledger), seconds)
        ledger.save(self.folder / LEDGER)

    async def _side_by_side(self, sweep: Sweep, seconds: float) -> None:
        """First the bases without faults, which tell what there is to disturb; then as many faults as fit."""
        assert self.subject.child is not None
        begun = time.monotonic()
        items = await self.subject.child.universe(seconds * LOOK_SHARE, sweep.take)
        ledger = self._ledger(len(items))
        left = seconds - (time.monotonic() - begun)
        await self.subject.child.run_all(iter(Order(items, self.seed, ledger)), left, sweep.take)
        ledger.save(self.folder / LEDGER)

    def _ledger(self, size: int) -> Ledger:
        return Ledger({}, size) if self.again else Ledger.load(self.folder / LEDGER, size)

    def _write_down(self, sweep: Sweep, until: float) -> None:
        """One file for each invariant and smallest spec; a child process shrinks until a moment only."""
        is_child = self.subject.made is None
        seen: set[str] = set()
        for number, failure in enumerate(sweep.failures.values()):
            name = failure.findings[0].name
            smallest, steady = failure.spec, False
            if number < SHRUNK_MAX and not (is_child and time.monotonic() > until):
                smallest, steady = self._shrunk(name, failure.spec)
            key = f"{name} {to_json(smallest)}"
            if key in seen:
                continue
            seen.add(key)
            case = failure.case if smallest == failure.spec else self.subject.run(smallest)
            findings = judge(case)
            written = replay_of(self.subject.name, self.subject.mutant, case, findings)
            if name in written.invariants:
                path = written.write(self.folder)
                write_page(case, findings, path)
                self.failures.append(Failed(written, path, steady, failure.count))

    def _shrunk(self, name: str, spec: Spec) -> tuple[Spec, bool]:
        """The smallest spec that violates an invariant, and whether it does so twice more."""
        most = EVALUATIONS_MAX if self.subject.made is not None else CHILD_EVALUATIONS_MAX
        smallest = Shrinking(lambda one: name in self.subject.violated(one), most).smallest(spec)
        return smallest, all(name in self.subject.violated(smallest) for _ in range(2))

    def document(self) -> dict[str, Any]:
        """What ``fakebrokers sweep --json`` prints."""
        rows = [
            {
                "base": failure.replay.spec.base,
                "invariants": list(failure.replay.invariants),
                "replay": str(failure.path),
                "faults": sum(1 for act in failure.replay.spec.acts if act != PLAIN),
                "steady": failure.steady,
                "count": failure.count,
            }
            for failure in self.failures
        ]
        return {"runs": self.runs, "failed": rows, "seconds": round(self.seconds, 1)}


def shrunk(found: Replay) -> tuple[Replay | None, int]:
    """The smallest replay that fails as this one does (None: it fails no more), and what it took, in runs."""
    subject = Subject(found.spec.protocol, found.client, found.mutant)
    name = next(iter(found.invariants))
    if name not in subject.violated(found.spec):
        return None, 1
    search = Shrinking(lambda spec: name in subject.violated(spec))
    case = subject.run(search.smallest(found.spec))
    return replay_of(found.client, found.mutant, case, judge(case)), search.runs
