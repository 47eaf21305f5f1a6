"""The fake that a burst of messages goes to."""

from __future__ import annotations

from conformance.clients.adapter.check_fixture import NAME, CheckFixture, consume, publish
from fakebrokers import RabbitMQStream


def check_fixture() -> CheckFixture:
    """See `conformance.clients.adapter.check_fixture`."""
    broker = RabbitMQStream()

    def prepare() -> str:
        broker.create_stream(NAME)
        return NAME

    return CheckFixture(
        broker,
        prepare,
        lambda: [message.body for message in broker.messages(NAME)],
        tries={
            "publisher": publish,
            "consumer": consume,
            "admin": lambda name: (("rmqs.metadata", {"session": NAME, "targets": [name]}),),
        },
    )
