"""What the rules say of messages of a log that did not come as they should."""

from __future__ import annotations

from typing import Any

from conformance.clients.reference.kit import adapter_of
from conformance.clients.reference.rabbitmq_stream.subscription import Message, Report, Subscription
from conformance.clients.reference.registry import definition, without_sockets
from conformance.rules import judge
from conformance.run.inprocess import run
from conformance.run.specs import Spec

PROTOCOL = "rabbitmq-stream"


class Backwards(Subscription):
    """Delivers the messages of a chunk from the last to the first."""

    def messages(self, chunk: Any, report: Report) -> list[Message]:
        return super().messages(chunk, report)[::-1]


class Every(Subscription):
    """Loses the first message of each chunk."""

    def messages(self, chunk: Any, report: Report) -> list[Message]:
        return super().messages(chunk, report)[1:]


def said_of(part: type) -> str:
    """What the rule says of a client with this defect."""
    client = without_sockets(adapter_of(definition(PROTOCOL), (part,), part.__name__))
    found = {each.name: each.detail for each in judge(run(client, Spec(PROTOCOL, "consume")))}
    return found["delivers-what-came"]


def test_a_message_out_of_order_is_told_from_one_that_never_came() -> None:
    assert said_of(Backwards) == "the message at 0 was delivered out of order, after the message at 3"
    assert said_of(Every) == "the message at 0 came, and was not delivered to the application"
