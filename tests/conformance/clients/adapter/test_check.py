"""The self-test passes an adapter that keeps the protocol, and names the defect of one that does not."""

from __future__ import annotations

import asyncio
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from conformance.clients.adapter.check import Check, CheckReport, check
from conformance.clients.adapter.hello import HELLO_S
from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.adapter.kit import Failure
from conformance.clients.adapter.order import order, overtaken
from conformance.clients.adapter.process import ProcessAdapter
from conformance.clients.adapter.profile import profiles
from conformance.clients.adapter.roles import Tried, tried
from conformance.clients.reference.registry import reference
from tests.conformance.clients.adapter.early import BeforeItStarts

HERE = Path(__file__).parent
ENV = {"PYTHONPATH": str(HERE.parents[3])}

#: The role of each protocol whose op an adapter has still to be given, and the op.
LEFT = {
    "rabbitmq-stream": ("admin", "rmqs.metadata"),
    "blazingmq": ("consumer", "subscribe"),
    "pzq": ("monitor", "pzq.monitor"),
    "narconi": ("http", "narc.post"),
    "moleculer": ("emitter", "mol.emit"),
    "nats": ("requester", "nats.request"),
    "redis": ("caller", "redis.call"),
    "mqtt": ("consumer", "subscribe"),
}


def report_on(*defect: str) -> CheckReport:
    command = [sys.executable, str(HERE / "toy_adapter.py"), *defect]
    return asyncio.run(check(command, "rabbitmq-stream", env=ENV, hello_s=60))


def test_a_good_adapter_passes() -> None:
    report = report_on()
    assert [check.problem for check in report.checks if not check.ok] == []
    assert report.ok
    assert report.as_json()["ok"] is True
    assert {row["name"] for row in report.as_json()["checks"]} >= {
        "hello",
        "bodies",
        "honesty",
        "end of input",
    }


@pytest.mark.parametrize(
    ("defect", "name", "problem"),
    [
        ("Liar", "honesty", "fakebrokers.no_such_op ok after"),
        ("Boasting", "honesty", "declares capabilities that do not exist: teleport"),
        ("Bounding", "honesty", "declares limits that do not exist: subscribe.colour_max"),
        ("Promising", "honesty", "its contract has words that do not exist: flies"),
        ("Miscounting", "order", "has n 6"),
        ("Twice", "order", "which is not open"),
        ("Garbling", "bodies", "came back as"),
        ("Incomplete", "complete", "not declared: subscribe"),
        ("Stubborn", "end of input", "it had to be killed"),
        ("Strict", "extra members", "what is that?"),
        ("Forgetful", "reset", "reset before"),
    ],
)
def test_each_defect_fails_its_own_check(defect: str, name: str, problem: str) -> None:
    report = report_on(defect)
    failed = {check.name: check.problem for check in report.checks if not check.ok}
    assert list(failed) == [name]
    assert problem in failed[name]


def test_an_adapter_that_drops_concurrent_ops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.clients.adapter.check.DEADLINE_MS", 200.0)
    report = report_on("Serial")
    failed = {check.name: check.problem for check in report.checks if not check.ok}
    assert "10 of 100 failed, the first: state hang" in failed["concurrency"]


def test_messages_that_overtake_each_other() -> None:
    command = [sys.executable, str(HERE / "overtaking_adapter.py")]
    report = asyncio.run(check(command, "rabbitmq-stream", env=ENV, hello_s=60))
    (failed,) = [check for check in report.checks if not check.ok]
    assert failed.name == "line order"
    assert re.fullmatch(r"message \d+ overtook message \d+", failed.problem)
    assert "a thread per line" in failed.fix


def test_the_order_of_an_adapter_that_connects_to_nothing_is_not_judged() -> None:
    async def work() -> list[int]:
        adapter = ProcessAdapter([sys.executable, str(HERE / "toy_adapter.py")], "rabbitmq-stream", env=ENV)
        await adapter.start()
        try:
            return await order(adapter)
        finally:
            await adapter.kill()

    assert asyncio.run(work()) == []


def test_whoever_comes_behind_a_later_one_was_overtaken() -> None:
    assert overtaken([0, 1, 5, 9]) is None
    assert overtaken([]) is None
    assert overtaken([0, 3, 1, 2]) == (3, 1)
    assert overtaken([0, 1, 2, 3, 1]) is None  # it was sent again


def test_without_a_protocol_it_finds_one_that_the_adapter_takes() -> None:
    report = asyncio.run(check([sys.executable, str(HERE / "toy_adapter.py")], env=ENV, hello_s=60))
    assert (report.ok, report.protocol) == (True, "rabbitmq-stream")


def test_a_command_that_does_not_start() -> None:
    report = asyncio.run(check("no-such-program", "pzq"))
    (hello,) = report.checks
    assert hello.problem == "cannot start no-such-program: no such program"
    assert "on the PATH" in hello.fix
    assert (report.ok, report.hello) == (False, None)


def missing_hello(command: str | Sequence[str], **options: Any) -> Check:
    (hello,) = asyncio.run(check(command, **options)).checks
    assert not hello.ok
    return hello


def test_a_hello_that_never_comes_is_named_after_one_attempt(tmp_path: Path) -> None:
    hello = missing_hello(["sh", "-c", f"echo begun >> {tmp_path}/log; sleep 1000"], hello_s=0.6)
    assert hello.problem == "nothing on stdout"
    assert "within 0.6 s" in hello.expected
    assert "flush stdout" in hello.fix
    assert hello.seconds >= 0.6
    assert (tmp_path / "log").read_text() == "begun\n", "not once for each protocol"


def test_who_waits_for_a_hello_knows_within_5_s() -> None:
    assert HELLO_S < 5


def test_a_program_that_only_repeats_what_it_is_told() -> None:
    hello = missing_hello("cat", hello_s=60)
    assert hello.problem.startswith("not a line of the protocol")
    assert "stderr" in hello.fix


def test_a_program_that_ends_before_its_hello() -> None:
    hello = missing_hello("sh -c 'echo no such library >&2; exit 4'", hello_s=60)
    assert hello.problem == "it ended with exit code 4 before it answered\nno such library"
    assert "| sh -c" in hello.fix


def test_a_protocol_that_the_adapter_does_not_speak() -> None:
    command = shlex.join([sys.executable, str(HERE / "toy_adapter.py")])
    hello = missing_hello(command, protocol="pzq", env=ENV, hello_s=60)
    assert "version 1 for rabbitmq-stream only" in hello.problem


def test_a_hello_without_its_facts() -> None:
    answer = '{"n": 1, "t": 0, "id": 1, "ok": true, "result": {"adapter": "x"}}'
    script = f"input(); print({answer!r}, flush=True); input()"
    hello = missing_hello([sys.executable, "-c", script], hello_s=60)
    assert "missing required field" in hello.problem
    assert "library_version" in hello.expected


def test_every_failed_check_says_what_was_expected_and_the_fix() -> None:
    for defect in ("Liar", "Boasting", "Garbling", "Incomplete", "Strict", "Forgetful"):
        failed = [tried for tried in report_on(defect).checks if not tried.ok]
        assert all(tried.expected and tried.fix for tried in failed), (defect, failed)


@pytest.mark.parametrize("protocol", list(profiles()))
def test_a_client_that_works_has_done_an_op_of_each_role(protocol: str) -> None:
    async def work() -> Tried:
        adapter = InProcessAdapter(reference(protocol), protocol)
        await adapter.start()
        try:
            return await tried(adapter)
        finally:
            await adapter.kill()

    assert asyncio.run(work()) == Tried()


def test_what_a_library_takes_before_its_start_is_tried_before_connect() -> None:
    async def work() -> Tried:
        early = type("Early", (BeforeItStarts, reference("moleculer")), {})
        adapter = InProcessAdapter(early, "moleculer")
        await adapter.start()
        try:
            return await tried(adapter)
        finally:
            await adapter.kill()

    assert asyncio.run(work()) == Tried()


@pytest.mark.parametrize("protocol", list(profiles()))
def test_what_is_not_written_yet_is_not_called_tried(protocol: str) -> None:
    class Unwritten(reference(protocol)):  # type: ignore[misc] # one of several classes
        async def _perform(self, request: dict[str, Any]) -> Any:
            if request["op"] == LEFT[protocol][1]:
                raise Failure("unsupported", f"{request['op']} is not written yet")
            return await super()._perform(request)

    async def work() -> Tried:
        adapter = InProcessAdapter(Unwritten, protocol)
        await adapter.start()
        try:
            return await tried(adapter)
        finally:
            await adapter.kill()

    role, op = LEFT[protocol]
    assert asyncio.run(work()) == Tried(left=(f"{role}: {op} is not written yet",))


def test_an_op_that_fails_at_a_correct_broker_fails_the_check() -> None:
    class Failing(reference("rabbitmq-stream")):  # type: ignore[misc] # one of several classes
        async def _perform(self, request: dict[str, Any]) -> Any:
            if request["op"] == "subscribe":
                raise Failure("internal", "KeyError: 'options'")
            return await super()._perform(request)

    async def work() -> Tried:
        adapter = InProcessAdapter(Failing, "rabbitmq-stream")
        await adapter.start()
        try:
            return await tried(adapter)
        finally:
            await adapter.kill()

    assert "consumer, subscribe internal" in asyncio.run(work()).failed
