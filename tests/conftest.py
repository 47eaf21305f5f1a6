"""For all tests: on CI nothing that could have been installed may be skipped; Hypothesis has no deadlines;
programs that tests start can be interrupted.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import settings

from fakebrokers.protocol import protocols
from fakebrokers.server import FakeServer
from tests import marked, real_time
from tests.eventually import PATIENCE_S

# How long one example takes says nothing on a busy machine; pytest-timeout catches what hangs. A push tries
# few examples of each property, and the same ones each time: a failure is that of the change. The night
# tries many new ones (ci/nightly sets the variable).
EXAMPLES = os.environ.get("FAKEBROKERS_EXAMPLES")
settings.register_profile(
    "fakebrokers", deadline=None, max_examples=int(EXAMPLES or 30), derandomize=EXAMPLES is None
)
settings.load_profile("fakebrokers")

# Tests of ours wait longer for a record than users want to: it comes late on a busy machine.
for wait in (FakeServer.wait_for, FakeServer.wait_for_async):
    wait.__kwdefaults__["timeout"] = PATIENCE_S

# Nothing of what is imported and collected is garbage; `pytest_collection_finish` goes on with it.
gc.disable()

real_time.guard()
marked.guard()

# A shell ignores SIGINT in what it starts in the background, and programs inherit that: without this a test
# run in the background would send Ctrl-C to programs that cannot hear it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse names that are others in each process: workers that collect other tests run none.

    Two workers see such a name only where their hash seeds happen to order a set differently.
    """
    for item in items:
        callspec = getattr(item, "callspec", None)
        for value in callspec.params.values() if callspec else ():
            if isinstance(value, set | frozenset) and len(value) > 1 and repr(value) in item.name:
                raise pytest.UsageError(f"{item.nodeid}: named after a set; give it an id of its own")


def pytest_collection_finish() -> None:
    """What was imported and collected stays: no garbage collection has to walk through it again."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """What the tests of a module leave, in caches and reports, stays as well: thousands come after them."""
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


#: Files with the password of the tests; what the workers of xdist have found comes with them.
SHOWN: list[str] = []


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run if a test has left the password of all logins in a file."""
    base = session.config._tmp_path_factory._basetemp  # type: ignore[attr-defined]
    is_worker = hasattr(session.config, "workeroutput")
    if base is not None and (is_worker or not session.config.getoption("numprocesses", None)):
        SHOWN.extend(marked.files_that_show_it(base))
    if is_worker:
        session.config.workeroutput["marked"] = SHOWN
    elif SHOWN:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A worker of xdist has ended."""
    SHOWN.extend(getattr(node, "workeroutput", {}).get("marked", ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which files."""
    for path in SHOWN:
        terminalreporter.write_line(f"ERROR the password of the tests is kept in {path}", red=True)


#: A test that needs something which can be installed skips with a reason that starts like this.
MISSING = "missing:"


def forbid_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip that names something missing into a failure, on CI."""
    if not (report.skipped and isinstance(report.longrepr, tuple)):
        return
    path, line, reason = report.longrepr
    reason = reason.removeprefix("Skipped: ")
    if reason.startswith(MISSING):
        report.outcome = "failed"
        report.longrepr = f"{path}:{line}: skipped although CI is set; {reason}"


if os.environ.get("CI"):

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        forbid_skip(report)
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        report = yield
        forbid_skip(report)
        return report


@pytest.fixture(scope="session")
def all_fakes() -> None:
    """Everything that protocols load by name is loaded."""
    for each in protocols():
        each.load()
        each.own_effects  # noqa: B018 - a property that loads
        each.load_control()
        each.load_behaviours()


@pytest.fixture
def pytester(all_fakes: None, pytester: pytest.Pytester) -> pytest.Pytester:
    """After a run in this process, pytest drops the modules that came with it: the fakes are there before.

    A class whose module is gone has no names any more with which its annotations could be read.
    """
    return pytester
