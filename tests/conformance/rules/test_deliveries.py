"""A message that is delivered where it does not belong is called so, not only missed where it does."""

from __future__ import annotations

import pytest

from conformance.clients.reference.kit import adapter_of
from conformance.clients.reference.narconi.http import Response
from conformance.clients.reference.narconi.socket import Socket
from conformance.clients.reference.rabbitmq_stream.connection import Connection
from conformance.clients.reference.rabbitmq_stream.ops import REFERENCE
from conformance.clients.reference.registry import definition, without_sockets
from conformance.rules import judge
from conformance.run.inprocess import run, runner
from conformance.run.specs import Injection, Spec
from fakebrokers.rabbitmq_stream.frames import Deliver

SPEC = Spec("rabbitmq-stream", "at-two-nodes")


class AnyConnection(Connection):
    """Finds the subscription of a chunk by its id alone, on the oldest connection that has such an id."""

    def delivered(self, frame: Deliver) -> None:
        cores = [link.core for link in self.owner.client.links.all]  # type: ignore[attr-defined]
        number = frame.subscription_id
        found = next((one.subscriptions[number] for one in cores if number in one.subscriptions), None)
        if found is not None:
            found.deliver(frame.chunk)


def test_a_message_of_another_stream() -> None:
    found = judge(run(without_sockets(adapter_of(REFERENCE, [AnyConnection])), SPEC))
    details = {finding.name: finding.detail for finding in found}
    assert details["delivers-what-came"] == 'message "1" came for S2, and was delivered to S of S'
    assert judge(runner(SPEC.protocol)(SPEC)) == []


class TakesAnyAccept(Socket):
    """Looks at the status of the server's answer alone."""

    def check(self, response: Response) -> None:
        if response.status != 101:
            super().check(response)


@pytest.mark.parametrize(
    ("connection", "rule", "detail"),
    [
        ("c1", "delivers-what-came", 'message "1" was delivered from c1'),
        ("c3", "ack-needs-confirm", 'message "a00" was reported as acked, on c3'),
    ],
)
def test_what_came_behind_a_failed_handshake_is_called_so(connection: str, rule: str, detail: str) -> None:
    spec = Spec("narconi", "both", (Injection(connection, "out", 1, "bit", 800),))  # of Sec-WebSocket-Accept
    found = judge(run(without_sockets(adapter_of(definition("narconi"), [TakesAnyAccept])), spec))
    details = {finding.name: finding.detail for finding in found}
    assert details[rule] == f"{detail}, whose handshake the server had not accepted"
    assert judge(runner(spec.protocol)(spec)) == []
