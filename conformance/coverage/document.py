"""What was executed of a client, and what never was, as values for pages and JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from conformance.clients.adapters.registry import Client

_PARTS = re.compile(r"site-packages/|dist-packages/|node_modules/")
BRANCHES, BLOCKS = "branches", "blocks"  #: what is counted, where a language has branches, and where not
SECTION, FAULT, BASE = "section", "fault", "base"

Branch = tuple[str, int, int]


class Executed(NamedTuple):
    """What was executed under one label.

    Attributes:
        arcs: File, and two lines that were executed after each other; of blocks, where each begins and ends.
        added: How many of them nothing had executed before; None where nobody has counted.
    """

    label: str
    arcs: set[Branch]
    runs: int
    added: int | None


class FunctionCoverage(msgspec.Struct, frozen=True):
    """A function; "" is what is in none.

    Attributes:
        line: Its first one.
        missing: Branches that were never taken, as two lines; a negative one is an end of the function. Of
            blocks, the first and the last line.
        missing_lines: Lines that were never executed.
        is_entered: Whether anything of it was executed.
    """

    name: str
    line: int
    branches: int
    executed: int
    missing: tuple[tuple[int, int], ...]
    missing_lines: tuple[int, ...]
    is_entered: bool


class FileCoverage(msgspec.Struct, frozen=True):
    """A file of the library, by its path from where packages are installed."""

    path: str
    lines: int
    executed_lines: int
    branches: int
    executed: int
    functions: tuple[FunctionCoverage, ...]


class GroupCoverage(msgspec.Struct, frozen=True):
    """What a section of rows, a fault, or a base has executed.

    Attributes:
        only: Branches that no other of its kind has executed.
        added: Steps that nothing had executed before it; None where nobody has counted.
    """

    kind: str
    name: str
    runs: int
    branches: int
    only: int
    added: int | None


class ClientCoverage(msgspec.Struct, frozen=True):
    """One client.

    Attributes:
        modules: What ``adapter.toml`` names.
        compiled: Modules of these that cannot be traced.
        unit: What `branches` and `executed` count: ``branches`` or ``blocks``.
        groups_unit: What those of the groups count, where that is something else.
        note: What has to be known of how it was measured.
    """

    client: str
    version: str
    modules: tuple[str, ...]
    lines: int
    executed_lines: int
    branches: int
    executed: int
    files: tuple[FileCoverage, ...]
    groups: tuple[GroupCoverage, ...]
    compiled: tuple[str, ...] = ()
    unit: str = BRANCHES
    groups_unit: str = ""
    note: str = ""

    @property
    def share(self) -> float:
        """Of the branches that were executed; 1 where there are none."""
        return self.executed / self.branches if self.branches else 1.0

    def of(self, kind: str) -> list[GroupCoverage]:
        """The groups of a kind."""
        return [group for group in self.groups if group.kind == kind]

    @property
    def idle(self) -> list[GroupCoverage]:
        """Bases and faults that have added nothing."""
        return [group for group in self.groups if group.added == 0]


def document_of(
    client: Client,
    files: Sequence[FileCoverage],
    executed: Sequence[Executed],
    branches: set[Branch],
    *,
    compiled: Sequence[str] = (),
    unit: str = BRANCHES,
    groups_unit: str = "",
    note: str = "",
) -> ClientCoverage:
    """All about one client.

    Args:
        branches: Those that were executed at all.
    """
    return ClientCoverage(
        client=client.name,
        version=client.version or "",
        modules=tuple(client.protocol_modules),
        lines=sum(each.lines for each in files),
        executed_lines=sum(each.executed_lines for each in files),
        branches=sum(each.branches for each in files),
        executed=sum(each.executed for each in files),
        files=tuple(files),
        groups=tuple(
            group for kind, name_of in _KINDS.items() for group in _groups(kind, name_of, executed, branches)
        ),
        compiled=tuple(compiled),
        unit=unit,
        groups_unit=groups_unit,
        note=note,
    )


def shown_path(path: str) -> str:
    """A file of a library by its path from where packages are installed."""
    return _PARTS.split(path)[-1]


def _section(label: str) -> str:
    kind, _, name = label.partition(":")
    if kind == "process":
        return "rows or specs in processes"
    return name.rpartition(".")[0] if kind == "row" else ""


def _fault(label: str) -> str:
    kind, _, rest = label.partition(":")
    return rest.partition(":")[2] if kind == "spec" else ""


def _base(label: str) -> str:
    kind, _, rest = label.partition(":")
    return rest.partition(":")[0] if kind == "spec" else ""


_KINDS: Mapping[str, Callable[[str], str]] = {SECTION: _section, FAULT: _fault, BASE: _base}


def _groups(
    kind: str, name_of: Callable[[str], str], executed: Sequence[Executed], branches: set[Branch]
) -> list[GroupCoverage]:
    arcs: dict[str, set[Branch]] = {}
    runs: dict[str, int] = {}
    added: dict[str, int | None] = {}
    for each in executed:
        name = name_of(each.label)
        if name:
            arcs.setdefault(name, set()).update(each.arcs & branches)
            runs[name] = runs.get(name, 0) + each.runs
            added[name] = None if each.added is None else (added.get(name) or 0) + each.added
    owners: dict[Branch, int] = {}
    for found in arcs.values():
        for branch in found:
            owners[branch] = owners.get(branch, 0) + 1
    return [
        GroupCoverage(
            kind, name, runs[name], len(found), sum(owners[branch] == 1 for branch in found), added[name]
        )
        for name, found in sorted(arcs.items())
    ]
