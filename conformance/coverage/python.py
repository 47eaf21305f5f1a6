"""Branches of a library in Python, with the package ``coverage``: in this process and in others."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from conformance.clients.adapter.process import MEASURED
from conformance.clients.adapters.registry import Client
from conformance.coverage.document import (
    ClientCoverage,
    Executed,
    FileCoverage,
    FunctionCoverage,
    document_of,
    shown_path,
)
from conformance.coverage.meter import BESIDE, PROCESS, CoverageMeter
from fakebrokers.errors import UsageError
from fakebrokers.extras import installing

DATA = ".coverage"
SETTINGS = "coveragerc"
#: Nothing to say: a module that no run imports is shown as not executed, and processes may be killed.
SILENT = ("no-data-collected", "module-not-imported", "module-not-measured", "couldnt-parse", "no-ctracer")

_PROCESS_SETTINGS = """
[run]
branch = true
parallel = true
sigterm = true
data_file = {data}
context = {label}
source_pkgs = {modules}
disable_warnings = {silent}
"""


class PythonMeter(CoverageMeter):
    """Measures a client in Python, by branches. Its processes write down what they execute when they end.

    Raises:
        UsageError: The package ``coverage`` is missing.
    """

    def __init__(self, client: Client, folder: Path) -> None:
        self._coverage = _coverage()
        place = str((folder / SETTINGS).resolve())
        self.client = msgspec.structs.replace(client, more_env={**client.more_env, MEASURED: place})
        self.folder = folder
        self._seen: set[tuple[str, int, int]] = set()
        self._added: dict[str, int] = {}
        self._ran: dict[str, int] = {}
        self._cov = self._coverage.Coverage(
            data_file=None, branch=True, source_pkgs=client.protocol_modules, config_file=False
        )
        self._cov.set_option("run:disable_warnings", list(SILENT))
        self._data = self._cov.get_data()
        with self.doing(BESIDE):
            for name in client.protocol_modules:
                import_module(name)
        self._ran.clear()
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.glob(f"{DATA}*"):
            path.unlink()
        self._write_settings()

    def _write_settings(self) -> None:
        text = _PROCESS_SETTINGS.format(
            data=(self.folder / DATA).resolve(),
            label=f"{PROCESS}:",
            modules=",".join(self.client.protocol_modules),
            silent=",".join(SILENT),
        )
        (self.folder / SETTINGS).write_text(text)

    @contextmanager
    def doing(self, label: str) -> Iterator[None]:
        self._cov.start()
        self._cov.switch_context(label)
        try:
            yield
        finally:
            self._cov.switch_context(BESIDE)  # which takes down what there is
            self._cov.stop()
            self._ran[label] = self._ran.get(label, 0) + 1

    def news(self, label: str) -> None:
        found = self._arcs(label)
        new = len(found - self._seen)
        self._seen |= found
        self._added[label] = self._added.get(label, 0) + new

    def _arcs(self, label: str) -> set[tuple[str, int, int]]:
        self._data.set_query_context(label)
        files = self._data.measured_files()
        return {(name, *arc) for name in files for arc in self._data.arcs(name) or ()}

    def document(self) -> ClientCoverage:
        for path in sorted(self.folder.glob(f"{DATA}.*")):
            other = self._coverage.CoverageData(basename=str(path))
            other.read()
            self._data.update(other)
            path.unlink()
        labels = sorted(label for label in self._data.measured_contexts() if label != BESIDE)
        executed = [
            Executed(label, self._arcs(label), self._ran.get(label, 1), self._added.get(label))
            for label in labels
        ]
        self._data.set_query_contexts(None)
        report = self._report()["files"]
        branches = {
            (os.path.realpath(path), *arc)
            for path, found in report.items()
            for arc in map(tuple, found["executed_branches"])
        }
        files = [_file(path, found) for path, found in sorted(report.items())]
        compiled = _compiled(self.client.protocol_modules)
        return document_of(self.client, files, executed, branches, compiled=compiled)

    def _report(self) -> dict[str, Any]:
        place = self.folder / "report.json"
        try:
            self._cov.json_report(outfile=str(place))
            found: dict[str, Any] = json.loads(place.read_bytes())
            return found
        except self._coverage.exceptions.NoDataError:
            return {"files": {}}
        finally:
            place.unlink(missing_ok=True)


def _coverage() -> Any:
    try:
        import coverage
    except ModuleNotFoundError:
        raise UsageError(
            f"--coverage takes the package coverage: {installing('coverage', here=True)}"
        ) from None
    return coverage


def _compiled(modules: Sequence[str]) -> list[str]:
    """The library's modules among these that are machine code, which nobody can trace."""
    found = set()
    for name in modules:
        for place in getattr(sys.modules[name], "__path__", ()):
            top = Path(place)
            for path in top.rglob("*.so"):
                inner = path.relative_to(top).with_name(path.name.partition(".")[0])
                found.add(".".join((name, *inner.parts)))
    return sorted(found)


def _file(path: str, found: Mapping[str, Any]) -> FileCoverage:
    """A file, as ``coverage json`` writes it."""
    functions = []
    for name, each in found["functions"].items():
        missing = tuple((first, second) for first, second in each["missing_branches"])
        executed, lines = len(each["executed_branches"]), tuple(each["missing_lines"])
        if each["summary"]["num_statements"]:
            functions.append(
                FunctionCoverage(
                    name,
                    each["start_line"],
                    executed + len(missing),
                    executed,
                    missing,
                    lines,
                    bool(each["executed_lines"]),
                )
            )
    counts = found["summary"]
    return FileCoverage(
        shown_path(path),
        counts["num_statements"],
        counts["covered_lines"],
        counts["num_branches"],
        counts["covered_branches"],
        tuple(sorted(functions, key=lambda each: each.line)),
    )
