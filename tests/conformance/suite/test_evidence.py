"""What a run behind a byte proxy leaves to look at."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import pytest

from conformance.clients.adapter.last_words import around_last_words
from conformance.clients.adapter.transcript import Transcript
from conformance.results import Verdict
from conformance.suite.evidence import brief, end_of, plan_of, proxy_of, records_of
from conformance.suite.judge import Judgement
from conformance.suite.load import all_scenarios
from conformance.suite.present import to_result
from fakebrokers import PZQ
from fakebrokers.faults import slice_
from tests.eventually import PATIENCE_S


def test_the_proxys_records_stand_among_the_fakes() -> None:
    with PZQ(proxied=True) as pzq:
        pzq.restart()  # a record of the fake itself
        with socket.create_connection((pzq.host, pzq.port), PATIENCE_S) as client:
            assert client.recv(1) == b"\xff"
    found = records_of(pzq)
    assert [record.at for record in found] == sorted(record.at for record in found)
    assert {"", "proxy c1"} <= {record.connection for record in found}
    assert {"listening", "ServerBytes"} <= {record.kind for record in found}


def test_a_broker_without_faults_and_journal() -> None:
    real = object()
    assert (plan_of(real), plan_of(proxy_of(real)), records_of(real)) == ({}, {}, [])


def test_the_plan_of_a_result_has_the_proxys_faults() -> None:
    [scenario] = [one for one in all_scenarios() if one.key == ("NET-1.01", "pzq", "")]
    with PZQ(proxied=True) as pzq:
        assert pzq.proxy is not None
        pzq.proxy.faults.add(slice_(1))
    failed = Judgement(scenario, Verdict.FAIL, plan=plan_of(pzq), proxy_plan=plan_of(proxy_of(pzq)))
    shown = to_result(failed, client="pzq-python", seed=0).plan
    assert shown["proxy"]["faults"][0]["effect"]["type"] == "slice"


GO = """\x1b[33mWARN\x1b[0m[0001] no peer
panic: no connection

goroutine 39 [running]:
lib.(*Bus).Publish(0x2264025b01e0)
\t/lib/bus.go:130 +0x5f3
created by lib.Start in goroutine 9
\t/lib/node.go:187 +0x18f
"""
PYTHON = """Traceback (most recent call last):
  File "client.py", line 7, in read
    frame.key
AttributeError: no key
"""


def test_of_a_long_stderr_the_console_has_the_last_lines() -> None:
    trouble = ["ended with exit status 1", *(f"stderr: line {number}" for number in range(20))]
    assert brief(trouble) == [trouble[0], *trouble[-8:]]
    assert brief(trouble[:9]) == trouble[:9]
    assert brief(trouble, 1) == [trouble[0], trouble[-1]]


@pytest.mark.parametrize(
    ("stderr", "shown"),
    [
        (
            GO,
            [
                "WARN[0001] no peer",
                "panic: no connection",
                "goroutine 39 [running]:",
                "lib.(*Bus).Publish(0x2264025b01e0)",
                "/lib/bus.go:130 +0x5f3",
                "created by lib.Start in goroutine 9",
            ],
        ),
        (PYTHON, ['File "client.py", line 7, in read', "frame.key", "AttributeError: no key"]),
        ("all is well\n", []),
    ],
    ids=["the stack is below", "the stack is above", "none"],
)
def test_why_a_client_ended_is_shown_with_its_place(stderr: str, shown: list[str]) -> None:
    assert around_last_words(stderr) == shown


@pytest.mark.parametrize(
    ("asked", "answer", "shown"),
    [
        ({"id": 1, "op": "shutdown"}, {"id": 1, "ok": True}, "1.00 s after shutdown was answered"),
        (
            {"id": 1, "op": "stats", "args": {"session": "s1"}},
            {"id": [1]},
            "2.00 s after stats of s1 was asked",
        ),
    ],
    ids=["an op without arguments", "an answer to nothing"],
)
def test_when_a_client_ended_is_shown_whatever_it_wrote(
    asked: dict[str, Any], answer: dict[str, Any], shown: str
) -> None:
    transcript = Transcript()
    transcript.add(0, "out", asked)
    transcript.add(10**9, "in", answer)
    adapter: Any = SimpleNamespace(
        alive=False, transcript=transcript, ended_ns=2 * 10**9, stderr=lambda mark: ""
    )
    assert end_of(adapter, 0) == f"the client's process ended {shown}"
