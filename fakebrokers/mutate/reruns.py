"""Tests again, each set of them in a child process, with one behaviour.

A copy of the process is made before its first test, when nothing has happened yet (`os.fork`). It makes a
copy of itself for each set of tests: nothing has to be imported or collected again, and nothing that a test
leaves behind reaches another set. The processes that a test has started are ended with its own.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from typing import NoReturn

import msgspec
import pytest
from _pytest._io import TerminalWriter
from _pytest.runner import runtestprotocol

from fakebrokers.mutate.lives import Lives, find_behaviour
from fakebrokers.protocol import find_protocol
from fakebrokers.pytest_settings import SETTINGS

#: What tests with behaviours of a broker must not reach: reports, and a person at a terminal.
UNWANTED = ("allure_listener", "pdbinvoke")
#: Seconds after which a child that does not end its tests by itself is killed, above their own limit.
GRACE_S = 30.0


class Order(msgspec.Struct, frozen=True):
    """What a child has to do.

    Attributes:
        tests: Numbers of the session's tests, in this order, with the seconds that each may take.
        uses: The protocols of their fakes, which are then imported once for all children.
        protocol: Whose fakes misbehave; "" if none does.
        behaviour: How.
        cpu_s: After so many seconds of CPU no further test begins; None: all do.
        stops: Whether a test that has noticed is the last one.
    """

    tests: list[tuple[int, float]]
    uses: list[str] = []
    protocol: str = ""
    behaviour: str = ""
    cpu_s: float | None = None
    stops: bool = True


class Ran(msgspec.Struct, frozen=True):
    """What became of a test.

    Attributes:
        test: Its number.
        outcome: ``passed``, ``failed``, or ``timeout``: when its time was over, it still waited.
        lines: Where the behaviour took place; None if it did not.
        why: What failed, in a line.
        cpu_s: Seconds of CPU of the child up to now.
    """

    test: int
    outcome: str
    lines: list[str] | None = None
    why: str = ""
    cpu_s: float = 0.0


class _Begun(msgspec.Struct, frozen=True, tag="begun"):
    """A child has begun, with this process id."""

    pid: int


class _Ended(msgspec.Struct, frozen=True, tag="ended"):
    """The child has ended, with this exit status; that of a signal is negative."""

    status: int


class _Tested(msgspec.Struct, frozen=True, tag="tested"):
    ran: Ran


class _Broken(msgspec.Struct, frozen=True, tag="broken"):
    """An error of this module, or of a plugin of pytest."""

    traceback: str


_News = _Begun | _Ended | _Tested | _Broken


class Reruns:
    """A copy of this process from before its first test.

    Args:
        session: Its tests were collected, and none has run.
    """

    def __init__(self, session: pytest.Session) -> None:
        _make_base_of_temporary_folders(session.config)
        self._child = 0
        self._line, theirs = Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self._pid = _fork()
        if self._pid == 0:
            self._line.close()
            _serve(session, theirs)
        theirs.close()

    def close(self) -> None:
        """End it, and what it has under way."""
        _kill_group(self._child)
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        self._line.close()

    def run(self, order: Order) -> list[Ran]:
        """What becomes of the tests; those at the end that are missing were not run."""
        self._line.send_bytes(msgspec.json.encode(order))
        longest = max(limit for _, limit in order.tests) + GRACE_S
        ran: list[Ran] = []
        while True:
            if not self._line.poll(longest):  # not even its own watch could end it
                _kill_group(self._child)
            match msgspec.json.decode(self._line.recv_bytes(), type=_News):
                case _Begun(pid):
                    self._child = pid
                case _Tested(row):
                    ran.append(row)
                case _Broken(text):
                    raise RuntimeError(f"tests cannot run again:\n{text}")
                case _Ended(status):
                    self._child = 0
                    return [*ran, *_of_the_end(order, len(ran), status)]


def _of_the_end(order: Order, done: int, status: int) -> Iterator[Ran]:
    """What became of the test that was under way when a child ended in an unusual way."""
    if status and done < len(order.tests):
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        yield Ran(order.tests[done][0], "failed", [], f"the process of the test ended: {how}")


def _kill_group(leader: int) -> None:
    """End a child with all that it has started; 0: there is none."""
    if leader:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)


def _fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads that others have started: the copy does not need them
        return os.fork()


def _make_base_of_temporary_folders(config: pytest.Config) -> None:
    """So that all copies use the same one, which this process gives back."""
    factory = getattr(config, "_tmp_path_factory", None)
    if factory is not None:
        factory.getbasetemp()


# in the copy


def _serve(session: pytest.Session, line: Connection) -> NoReturn:
    """Let children run tests until nobody asks for more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process says when to end
    try:
        _keep_quiet(session.config)
        while True:
            order = msgspec.json.decode(line.recv_bytes(), type=Order)
            for name in order.uses:
                find_protocol(name).load()
            lives = Lives(order.protocol, find_behaviour(order.protocol, order.behaviour))
            child = _fork()
            if child == 0:
                _run_as_child(_Child(session, line, order, lives))
            _, status = os.waitpid(child, 0)
            _kill_group(child)
            line.send_bytes(msgspec.json.encode(_Ended(os.waitstatus_to_exitcode(status))))
    except BaseException:
        _tell_of_error(line)
    finally:
        os._exit(1)


def _run_as_child(child: _Child) -> NoReturn:
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        child.run()
        os._exit(0)
    except BaseException:
        _tell_of_error(child.line)
    finally:
        os._exit(1)


def _tell_of_error(line: Connection) -> None:
    with suppress(OSError):  # the first process has ended
        line.send_bytes(msgspec.json.encode(_Broken(traceback.format_exc())))


def _keep_quiet(config: pytest.Config) -> None:
    """Write nothing where the first process writes, and share no file of captured output with it."""
    plugins = config.pluginmanager
    capture = plugins.get_plugin("capturemanager")
    if capture is not None:
        capture.stop_global_capturing()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    reporter = plugins.get_plugin("terminalreporter")
    if reporter is not None:
        reporter._tw = TerminalWriter(open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - as long as it lives
    if capture is not None:
        capture.start_global_capturing()
    for name in UNWANTED:
        plugins.unregister(name=name) if plugins.has_plugin(name) else None
    config.option.tbstyle = "line"
    config.stash[SETTINGS] = config.stash[SETTINGS]._replace(journal_lines=0)


class _Child:
    """Runs tests, each with fixtures of its own, and says what becomes of them."""

    def __init__(self, session: pytest.Session, line: Connection, order: Order, lives: Lives) -> None:
        self.line = line
        self._session = session
        self._order = order
        self._lives = lives
        self._reports: list[pytest.TestReport] = []
        self._telling = threading.Lock()

    def run(self) -> None:
        self.line.send_bytes(msgspec.json.encode(_Begun(os.getpid())))
        self._session.config.pluginmanager.register(self)
        with self._lives.watching():
            for number, limit_s in self._order.tests:
                ran = self._run_one(number, limit_s)
                noticed = ran.outcome != "passed" and ran.lines is not None
                spent = self._order.cpu_s is not None and ran.cpu_s > self._order.cpu_s
                if spent or (noticed and self._order.stops):
                    return

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool:
        """Run a test without telling those who report; hooks around this one go on."""
        self._reports = runtestprotocol(item, log=False, nextitem=None)
        return True

    def _run_one(self, number: int, limit_s: float) -> Ran:
        item = self._session.items[number]
        forget_examples(item)
        self._lives.begin()
        watch = threading.Timer(limit_s, self._too_long, [number])
        watch.daemon = True
        watch.start()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        watch.cancel()
        failed = next((report for report in self._reports if report.failed), None)
        why = "" if failed is None else problem_of(failed)
        return self._tell(number, "passed" if failed is None else "failed", why)

    def _too_long(self, number: int) -> None:
        """On a thread of its own: end this process, whatever the test waits for."""
        self._tell(number, "timeout", "it still waited")
        os._exit(0)

    def _tell(self, number: int, outcome: str, why: str) -> Ran:
        with self._telling:
            ran = Ran(number, outcome, self._lives.took_place(), why, time.process_time())
            self.line.send_bytes(msgspec.json.encode(_Tested(ran)))
            return ran


def problem_of(report: pytest.TestReport) -> str:
    """What has failed, in a line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(report.longrepr if crash is None else crash.message).strip()
    return text.splitlines()[0] if text else f"{report.when} failed"


def forget_examples(item: pytest.Item) -> None:
    """Let a test of Hypothesis keep nothing of what fails."""
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        from fakebrokers.pytest_hypothesis import search_only

        search_only(item)
