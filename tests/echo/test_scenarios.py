"""A protocol joins the scenarios for all protocols through its own folder, too."""

from __future__ import annotations

import pytest

from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.adapter.kit import AdapterBase
from conformance.results import Verdict
from conformance.suite.brokers import fake_for
from conformance.suite.judge import Judgement, judge
from conformance.suite.load import all_scenarios
from conformance.suite.scenario import registered
from fakebrokers.core import virtual
from tests.echo.client import EchoClient, echo_client
from tests.echo.subject import EchoSubject

#: Set in these tests alone: the echo is registered for all of them, and others count the rows there are.
JUDGED_BY = ("NET-1.01", "NET-1.03", "NET-3.03")


@pytest.fixture(autouse=True)
def judged(monkeypatch: pytest.MonkeyPatch) -> None:
    all_scenarios()
    monkeypatch.setattr(EchoSubject, "judged_by", JUDGED_BY)


class Whole(EchoClient):
    """Takes what comes at once for whole lines."""

    def data_received(self, data: bytes) -> None:
        self.codec.buffer = b""
        super().data_received(data if data.endswith(b"\n") else data + b"\n")


def verdict(name: str, client: type[AdapterBase]) -> Judgement:
    [item] = [each for each in registered() if each.key == (name, "echo", "")]

    async def work() -> Judgement:
        adapter = InProcessAdapter(client, "echo")
        await adapter.start()
        try:
            return await judge(item, adapter, fake_for(memory=True))
        finally:
            await adapter.kill()

    return virtual.run(work())


@pytest.mark.parametrize("name", JUDGED_BY)
def test_the_correct_client_passes(name: str) -> None:
    found = verdict(name, echo_client())
    assert found.verdict is Verdict.PASS, found.reason


def test_a_defect_is_found() -> None:
    assert verdict("NET-1.01", echo_client(Whole)).verdict is Verdict.FAIL
