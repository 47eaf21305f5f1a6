"""A sweep from its ledger to its replay files: run, shrink, run twice again, write down."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec

from conformance.adapter.kit import AdapterBase
from conformance.invariants import Finding, judge
from conformance.sweep.order import Ledger, Order
from conformance.sweep.replay import Replay, replay_of
from conformance.sweep.run import client_of, run
from conformance.sweep.shrink import Shrinking
from conformance.sweep.specs import Spec, to_json
from conformance.sweep.sweep import Sweep
from conformance.sweep.universe import universe

FOLDER = Path(".fakebrokers") / "sweep"
LEDGER = "ledger.json"
SHRUNK_MAX = 20  #: kinds of failures that are shrunk; more of them are one defect seen from many sides


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


class Campaign:
    """One sweep of one client.

    Args:
        protocol: What is spoken.
        client: Its name, for replay files.
        mutant: The defect of the reference client; "" for none.
        folder: For the ledger and the replay files; by default one of this client below the working
            directory.
        seed: Of the order in which specs are drawn.
        again: Begin anew instead of where the last sweep has stopped.
    """

    def __init__(
        self,
        protocol: str,
        client: str,
        mutant: str = "",
        folder: Path | None = None,
        *,
        seed: int = 0,
        again: bool = False,
    ) -> None:
        self.protocol = protocol
        self.client = client
        self.mutant = mutant
        self.folder = folder or FOLDER / "-".join(part for part in (client, protocol, mutant) if part)
        self.seed = seed
        self.again = again
        self.runs = 0
        self.seconds = 0.0
        self.failures: list[Failed] = []

    def go(self, seconds: float) -> None:
        """Sweep for so long, then shrink what failed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        made = client_of(self.protocol, self.mutant)
        begun = time.monotonic()
        items = universe(self.protocol)
        ledger = Ledger({}, len(items)) if self.again else Ledger.load(self.folder / LEDGER, len(items))
        sweep = Sweep(made)
        sweep.go(Order(items, self.seed, ledger), seconds)
        ledger.save(self.folder / LEDGER)
        self.runs = sweep.runs
        self._write_down(sweep, made)
        self.seconds = time.monotonic() - begun

    def _write_down(self, sweep: Sweep, made: type[AdapterBase]) -> None:
        """One file for each invariant and smallest spec."""
        seen: set[str] = set()
        for failure in list(sweep.failures.values())[:SHRUNK_MAX]:
            name = failure.findings[0].name
            smallest = Shrinking(lambda spec, name=name: name in _violated(made, spec)).smallest(failure.spec)  # type: ignore[misc]
            key = f"{name} {to_json(smallest)}"
            if key in seen:
                continue
            seen.add(key)
            case = run(made, smallest)
            written = replay_of(self.client, self.mutant, case, judge(case))
            steady = all(name in _violated(made, smallest) for _ in range(2))
            self.failures.append(Failed(written, written.write(self.folder), steady, failure.count))

    def document(self) -> dict[str, Any]:
        """What ``fakebrokers sweep --json`` prints."""
        rows = [
            {
                "base": failure.replay.spec.base,
                "invariants": list(failure.replay.invariants),
                "replay": str(failure.path),
                "faults": len(failure.replay.spec.bends) + len(failure.replay.spec.changes),
                "steady": failure.steady,
                "count": failure.count,
            }
            for failure in self.failures
        ]
        return {"runs": self.runs, "failed": rows, "seconds": round(self.seconds, 1)}


def _violated(made: type[AdapterBase], spec: Spec) -> set[str]:
    return {finding.name for finding in judge(run(made, spec))}


def shrunk(found: Replay) -> tuple[Replay | None, int]:
    """The smallest replay that fails as this one does (None: it fails no more), and what it took, in runs."""
    made = client_of(found.spec.protocol, found.mutant)
    name = next(iter(found.invariants))
    if name not in _violated(made, found.spec):
        return None, 1
    search = Shrinking(lambda spec: name in _violated(made, spec))
    smallest = search.smallest(found.spec)
    case = run(made, smallest)
    findings: list[Finding] = judge(case)
    return replay_of(found.client, found.mutant, case, findings), search.runs
