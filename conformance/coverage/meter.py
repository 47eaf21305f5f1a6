"""Measures which branches of a library are executed, while runs go on in this process or in others."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from conformance.clients.adapter.process import MEASURED
from conformance.clients.adapters.registry import Client
from conformance.coverage.document import ClientCoverage, Executed, document_of
from fakebrokers.errors import UsageError
from fakebrokers.extras import installing

DATA = ".coverage"
SETTINGS = "coveragerc"
ROW, SPEC, PROCESS = "row", "spec", "process"  #: what a label begins with
BESIDE = ""  #: the label of what is executed between runs, such as imports
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


class CoverageMeter:
    """Measures one client. Nothing of its library has been imported before.

    Args:
        client: A bundled client in Python that names its ``protocol_modules``.
        folder: For what processes leave.

    Raises:
        UsageError: It cannot be measured, and why.
    """

    def __init__(self, client: Client, folder: Path) -> None:
        self._coverage = _coverage_of(client)
        self.client = client
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

    @property
    def env(self) -> dict[str, str]:
        """What makes processes in Python measure themselves; `ProcessAdapter` lets them write it down."""
        return {MEASURED: str((self.folder / SETTINGS).resolve())}

    @contextmanager
    def doing(self, label: str) -> Iterator[None]:
        """What is executed inside is executed by that.

        Args:
            label: Of a row or a spec; see `row` and `spec`.
        """
        self._cov.start()
        self._cov.switch_context(label)
        try:
            yield
        finally:
            self._cov.switch_context(BESIDE)  # which takes down what there is
            self._cov.stop()
            self._ran[label] = self._ran.get(label, 0) + 1

    def news(self, label: str) -> int:
        """How many steps from one line to another the last run with this label was the first to make."""
        found = self._arcs(label)
        new = len(found - self._seen)
        self._seen |= found
        self._added[label] = self._added.get(label, 0) + new
        return new

    def _arcs(self, label: str) -> set[tuple[str, int, int]]:
        self._data.set_query_context(label)
        files = self._data.measured_files()
        return {(name, *arc) for name in files for arc in self._data.arcs(name) or ()}

    def document(self) -> ClientCoverage:
        """All that was executed, also in processes that have ended."""
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
        return document_of(self.client, self._report(), executed, _compiled(self.client.protocol_modules))

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


def row(name: str) -> str:
    """The label of a scenario."""
    return f"{ROW}:{name}"


def spec(base: str, acts: Sequence[str]) -> str:
    """The label of a spec of the sweep."""
    return f"{SPEC}:{base}:{','.join(acts)}"


def _coverage_of(client: Client) -> Any:
    if client.language != "python":
        raise UsageError(f"{client.name} is no client in Python: its coverage is not measured")
    if not client.protocol_modules:
        raise UsageError(f"{client.name}: its adapter.toml names no protocol_modules")
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
