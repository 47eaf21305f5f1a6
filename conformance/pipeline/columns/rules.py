"""The rules for all runs (`conformance.rules`) on the traces of a file set: yesterday's runs, today's rules.

Rules are no columns: each trace is read again as the case that it was, by today's decoders, and judged as on
its day. Runs without a trace say nothing here, and what the harness has spoilt is held against no client.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path

from conformance.pipeline.columns.fileset import FileSet
from conformance.pipeline.columns.findings import Findings
from conformance.rules.again import judge_again
from conformance.run.material import package_of
from conformance.run.stored import case_of
from fakebrokers.errors import UsageError
from fakebrokers.journal.rows import TRACE, TracedRow
from fakebrokers.protocol import protocol_names

#: Packages whose text decides what the rules find; some wires are read by the codecs of the fakes.
_DECIDING = (
    "conformance.rules",
    "conformance.run",
    "conformance.decoders",
    "conformance.clients.adapter",
    "fakebrokers",
)


def judge_traces(files: FileSet, findings: Findings) -> None:
    """What today's rules find in each run that has a trace: the name of the rule, and its sentence."""
    if TRACE not in files.paths:
        return
    for run, rows in groupby(_rows(files), lambda row: row.run):
        try:
            case, allows = case_of(list(rows))
        except (ValueError, UsageError) as error:  # msgspec's errors are such, too
            findings.unread[run] = str(error)
            continue
        findings.judged += 1
        for found in judge_again(case, allows):
            findings.add(found.name, run, seqs=[row + 1 for row in found.rows], detail=found.detail)


def _rows(files: FileSet) -> Iterator[TracedRow]:
    """All rows, in order: sealing keeps those of a run together."""
    for piece in files.pieces(TRACE):
        columns = [piece[name].to_pylist() for name in TracedRow.__struct_fields__]
        yield from (TracedRow(*values) for values in zip(*columns, strict=True))


@cache
def edition() -> str:
    """A digest of the rules and of what they read traces with: pieces that others judged are judged again."""
    digest = hashlib.sha256()
    for name in (*_DECIDING, *judging()):
        for path in sorted(_sources(name)):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


def judging() -> list[str]:
    """The packages of all protocols that can be judged, such as ``scenarios.pzq``."""
    found = []
    for protocol in protocol_names():
        with suppress(UsageError):
            found.append(package_of(protocol, "traits").rpartition(".")[0])
    return sorted(set(found))


def _sources(package: str) -> Iterator[Path]:
    spec = find_spec(package)
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        yield from Path(place).rglob("*.py")
