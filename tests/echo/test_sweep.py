"""A protocol joins the sweep through its own folder."""

from __future__ import annotations

from conformance.rules import judge
from conformance.run.inprocess import run
from conformance.search.systematic.order import DrawOrder
from conformance.search.systematic.universe import universe
from tests.echo.client import EchoClient, echo_client


class ByPosition(EchoClient):
    """Takes an answer for that to the oldest message."""

    def stored(self, name: str, code: str) -> None:
        super().stored(next(iter(self.waiting), name), code)


def test_the_correct_client_violates_nothing() -> None:
    client = echo_client()
    items = universe("echo", client)
    found = {str(item.spec): judge(run(client, item.spec)) for item in items}
    assert {spec: findings for spec, findings in found.items() if findings} == {}
    assert len({item.group[0] for item in items}) > 15


def test_a_defect_is_found() -> None:
    client = echo_client(ByPosition)
    found: set[str] = set()
    for spec in DrawOrder(universe("echo", echo_client())):
        found |= {finding.name for finding in judge(run(client, spec))}
        if found:
            break
    assert found & {"ack-needs-confirm", "answer-counts"}
