"""A protocol joins chaos through its own folder, too."""

from __future__ import annotations

from conformance.clients.adapter.kit import AdapterBase
from conformance.search.random.draw import Setting, draw
from conformance.search.random.run import run
from conformance.search.random.verdict import RunVerdict, Word, verdict_on
from fakebrokers.faults import Realism
from tests.echo.client import echo_client
from tests.echo.test_sweep import ByPosition


def verdicts(client: type[AdapterBase], count: int) -> list[RunVerdict]:
    setting = Setting("echo", Realism.ILLEGAL)
    return [verdict_on(run(client, draw(setting, str(seed)))) for seed in range(count)]


def test_the_correct_client_passes() -> None:
    found = verdicts(echo_client(), 20)
    assert [verdict for verdict in found if verdict.word is not Word.PASS] == []


def test_a_defect_is_found() -> None:
    found = verdicts(echo_client(ByPosition), 5)
    assert {name for verdict in found for name in verdict.names} & {"ack-needs-confirm", "answer-counts"}
