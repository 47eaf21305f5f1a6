"""What pytest loads with ``--fakebrokers-mutate``."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Generator, Iterable
from pathlib import Path

import msgspec
import pytest

from fakebrokers.errors import UsageError
from fakebrokers.mutate.lives import Lives
from fakebrokers.mutate.reruns import Reruns
from fakebrokers.mutate.trial import BUDGET, Plain, Row, Trial, Verdict, score_of
from fakebrokers.pytest_settings import Mutating

#: Version of what is written as JSON.
VERSION = 1


class Mutate:
    """The plain run, the reruns after it, and the table."""

    def __init__(self, config: pytest.Config, settings: Mutating) -> None:
        _check(config, settings)
        self._config = config
        self._settings = settings
        self._lives = Lives()
        self._tests: dict[str, Plain] = {}
        self._began = (0.0, 0.0)
        self._rows: list[Row] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Copy the process, run the tests as they are, then again."""
        if session.testsfailed or session.config.option.collectonly or not session.items:
            return (yield)
        self._tests = {item.nodeid: Plain(i, item.nodeid) for i, item in enumerate(session.items)}
        reruns = Reruns(session)
        try:
            with self._lives.watching():
                result = yield
            self._try_behaviours(reruns)
        finally:
            reruns.close()
        return result

    def _try_behaviours(self, reruns: Reruns) -> None:
        try:
            trial = Trial(
                list(self._tests.values()),
                reruns.run,
                wait_s=self._settings.wait_s,
                cpu_s=BUDGET * time.process_time(),
                only=self._settings.only,
            )
        except UsageError as error:
            raise pytest.UsageError(f"--fakebrokers-mutate-only: {error}") from None
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        trial.leave_out()
        for row in trial.rows():
            self._rows.append(row)
            if reporter is not None and reporter.isatty:
                reporter.rewrite(f"{row.protocol} {row.behaviour}: {row.verdict}", erase=True)

    # the plain run

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        self._lives.begin()
        self._began = (time.monotonic(), time.process_time())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = self._tests.get(report.nodeid)
        if test is None:  # a plugin's own
            return
        if report.failed:
            test.why_not = "fails as it is"
        elif not report.passed or hasattr(report, "wasxfail"):
            test.why_not = test.why_not or "is skipped, or expected to fail"

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        test = self._tests[nodeid]
        began, cpu = self._began
        test.seconds, test.cpu_s = time.monotonic() - began, time.process_time() - cpu
        test.meets = frozenset(self._lives.meets())
        test.brings_about = frozenset(self._lives.brings_about())

    # what follows

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._settings.json:
            Path(self._settings.json).write_bytes(self.to_json())
        score = score_of(self._rows)
        if score is not None and score < self._settings.least and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("fakebrokers: would your tests notice?")
        for line in self.table():
            terminalreporter.write_line(line)

    def to_json(self) -> bytes:
        """Score, behaviours and the tests that were left out."""
        left_out = [{"test": each.name, "why": each.why_not} for each in self._left_out()]
        score = score_of(self._rows)
        values = {"version": VERSION, "score": score, "behaviours": self._rows, "left_out": left_out}
        return msgspec.json.format(msgspec.json.encode(values), indent=2) + b"\n"

    def _left_out(self) -> list[Plain]:
        return [test for test in self._tests.values() if test.meets and test.why_not]

    def table(self) -> Iterable[str]:
        """The lines of the table."""
        shown = [row for row in self._rows if row.verdict is not Verdict.NOT_MET]
        if shown:
            yield from aligned(
                [("broker", "behaviour", "met by", "verdict", "noticed by")]
                + [
                    (row.protocol, row.behaviour, _tests(row), row.verdict.value, row.noticed_by)
                    for row in sorted(shown, key=lambda row: row.verdict is Verdict.UNNOTICED)
                ]
            )
        for row in shown:
            if row.verdict is Verdict.UNNOTICED:
                yield from ("", f"{row.protocol} {row.behaviour}: {row.about} No test fails.")
                for place in row.places:
                    yield from (f"  {place.test}", *(f"    {line}" for line in place.lines))
        yield ""
        yield from (f"left out: {test.name} {test.why_not}" for test in self._left_out())
        yield self._summary()

    def _summary(self) -> str:
        counts = Counter(row.verdict for row in self._rows)
        listed = ", ".join(f"{counts[each]} {each.value}" for each in Verdict if counts[each])
        score = score_of(self._rows)
        if score is None:
            return "no score: no test has a fake whose clients met one of the behaviours"
        below = f", below {self._settings.least} %" if score < self._settings.least else ""
        return f"score {score:.0f} %{below}: {listed}"


def _tests(row: Row) -> str:
    """By how many tests it was met; and how many of these ran, if none noticed and not all did."""
    some = row.verdict is Verdict.UNNOTICED and row.tried < row.met_by
    return f"{row.met_by}, {row.tried} ran" if some else str(row.met_by)


def aligned(rows: Iterable[tuple[str, ...]]) -> Iterable[str]:
    """Columns, as wide as what is in them."""
    table = list(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _check(config: pytest.Config, settings: Mutating) -> None:
    """Raise `pytest.UsageError` where tests cannot run again in copies of this process, or for nothing."""
    if not Path(settings.json).parent.is_dir():
        raise pytest.UsageError(f"--fakebrokers-mutate-json: there is no folder for {settings.json}")
    if config.getoption("dist", "no") != "no" or hasattr(config, "workerinput"):
        raise pytest.UsageError(
            "--fakebrokers-mutate runs tests again in copies of this process: leave out -n (pytest-xdist)"
        )
    if not hasattr(os, "fork"):
        raise pytest.UsageError(
            "--fakebrokers-mutate runs tests again in copies of this process, which only os.fork can make"
        )
