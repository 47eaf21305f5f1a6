"""Scenarios as pytest items, collected and run the suite's own way.

`run_session` calls pytest with fixed options, none of the user's configuration and no third-party
plugins. Collection finds the scenarios below ``scenarios/``; the run loop hands them to the `Runner`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import scenarios
from conformance.results import Verdict
from conformance.suite.judge import Judgement
from conformance.suite.load import all_scenarios
from conformance.suite.runner import Runner
from conformance.suite.scenario import Scenario

ROOT = Path(scenarios.__file__).parent


class ScenarioItem(pytest.Item):
    """One row: a scenario for one protocol and variant."""

    def __init__(self, *, scenario: Scenario, **rest: Any) -> None:
        super().__init__(**rest)
        self.scenario = scenario

    def runtest(self) -> None:
        """Items are run by `SuitePlugin.pytest_runtestloop`, many at a time."""
        raise NotImplementedError

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where it is, for reports."""
        return self.path, self.scenario.script.__code__.co_firstlineno, self.scenario.label


class ScenarioFile(pytest.File):
    """One module below ``scenarios/``."""

    def collect(self) -> Iterable[ScenarioItem]:
        """The scenarios that the module declares."""
        relative = self.path.relative_to(ROOT.parent).with_suffix("")
        module = import_module(".".join(relative.parts))
        for item in all_scenarios():
            if item.script.__module__ == module.__name__:
                yield ScenarioItem.from_parent(self, name=item.label, scenario=item)


class SuitePlugin:
    """Collects, selects and runs."""

    def __init__(
        self, choose: Callable[[list[Scenario]], list[Scenario]], make_runner: Callable[[], Runner]
    ) -> None:
        self._choose = choose
        self._make_runner = make_runner
        self.judgements: list[Judgement] = []
        self.error: BaseException | None = None

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        if file_path.suffix == ".py" and not file_path.name.startswith("_"):
            return ScenarioFile.from_parent(parent, path=file_path)
        return None

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        rows = {item.scenario.key: item for item in items if isinstance(item, ScenarioItem)}
        chosen = self._choose([item.scenario for item in rows.values()])
        items[:] = [rows[scenario.key] for scenario in chosen]

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        picked = [item.scenario for item in session.items if isinstance(item, ScenarioItem)]
        try:
            self.judgements = asyncio.run(self._make_runner().run(picked))
        except BaseException as error:
            self.error = error
            raise
        session.testsfailed = sum(j.verdict is Verdict.FAIL for j in self.judgements)
        return True


def run_session(plugin: SuitePlugin) -> list[Judgement]:
    """Run pytest around `plugin`; returns the judgements in the order of the selection.

    Raises:
        UsageError, AdapterFailed: what selection or client said.
    """
    arguments = [
        str(ROOT),
        f"--rootdir={ROOT}",
        f"--confcutdir={ROOT}",
        f"-c{os.devnull}",
        "--noconftest",
        "--import-mode=importlib",
        "-pno:cacheprovider",
        "-pno:terminal",
        "-pno:python",
        "-pno:doctest",
        "-pno:unittest",
    ]
    kept = {name: os.environ.pop(name, None) for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")}
    autoload = os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    collected: list[BaseException] = []
    try:
        pytest.main(arguments, plugins=[plugin, _Errors(collected)])
    finally:
        os.environ.update({name: value for name, value in kept.items() if value is not None})
        if autoload is None:
            del os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"]
    for error in (plugin.error, *collected):
        if error is not None:
            raise error
    return plugin.judgements


class _Errors:
    """Keeps what pytest would only print."""

    def __init__(self, found: list[BaseException]) -> None:
        self._found = found

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> bool:
        self._found.append(excinfo.value)
        return True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._found.append(RuntimeError(f"scenarios could not be loaded:\n{report.longreprtext}"))

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self._found.append(excinfo.value)
