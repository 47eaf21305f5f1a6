"""What a run behind a byte proxy leaves to look at."""

from __future__ import annotations

import socket

from conformance.results import Verdict
from conformance.suite.evidence import plan_of, proxy_of, records_of
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
