"""What processes leave of what they have executed, each file with the row or spec that it belongs to."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from shutil import rmtree

from conformance.clients.adapters.registry import Client
from conformance.coverage.document import Branch, Executed
from conformance.coverage.meter import BESIDE, PROCESS, SPEC, CoverageMeter


class ProcessMeter(CoverageMeter):
    """Measures a client whose processes write down at their end what they have executed.

    What a process has written after it served one row belongs to that row. Where it served several before it
    wrote anything, all of it is put under "rows or specs in processes". The first that it writes, after
    hello, is its start, and what it writes after the last row is its end: these belong to none.

    Attributes:
        left: The folder in which processes write.
        files: What they have written so far, in order, each with its label.
        runs: How often each label was served.
    """

    def __init__(self, client: Client, folder: Path) -> None:
        self.client = client
        self.folder = folder
        self.left = (folder / "left").resolve()
        self.files: dict[Path, str] = {}
        self.runs: dict[str, int] = {}
        self._open: dict[int, set[str]] = {}  # labels that a process has served since it last wrote
        self._started: set[int] = set()  # processes that have written anything
        if self.left.exists():
            rmtree(self.left)
        self.left.mkdir(parents=True)

    @abstractmethod
    def pid_of(self, path: Path) -> int | None:
        """Which process has written a file; None: it is none that counts."""

    def served(self, label: str, pid: int) -> None:
        self.runs[label] = self.runs.get(label, 0) + 1
        self._open.setdefault(pid, set()).add(label)
        self._collect(pid)

    def _collect(self, only: int | None = None) -> None:
        written: dict[int, list[Path]] = {}
        for path in sorted(self.left.iterdir()):
            pid = self.pid_of(path) if path not in self.files else None
            if pid is not None and only in (None, pid):
                written.setdefault(pid, []).append(path)
        for pid, paths in written.items():
            if pid not in self._started:
                self._started.add(pid)
                self.files[paths.pop(0)] = BESIDE
            if paths:
                labels = self._open.pop(pid, {BESIDE})
                label = labels.pop() if len(labels) == 1 else f"{PROCESS}:"
                self.files.update(dict.fromkeys(paths, label))

    def by_label(self) -> dict[str, list[Path]]:
        """All files, those too of processes that were not known to have ended."""
        self._collect()
        found: dict[str, list[Path]] = {}
        for path, label in self.files.items():
            found.setdefault(label, []).append(path)
        return found

    def counted(self, arcs: Mapping[str, set[Branch]]) -> list[Executed]:
        """What each label has executed, and how much of it nothing had before; by what was done first."""
        found = []
        seen = set(arcs.get(BESIDE, ()))
        for label in (*self.runs, f"{PROCESS}:"):
            if label in arcs:
                added = len(arcs[label] - seen) if label.startswith(f"{SPEC}:") else None
                seen |= arcs[label]
                found.append(Executed(label, arcs[label], self.runs.get(label, 1), added))
        return found

    def forget_files(self) -> None:
        """They have been read; they are large."""
        rmtree(self.left, ignore_errors=True)
