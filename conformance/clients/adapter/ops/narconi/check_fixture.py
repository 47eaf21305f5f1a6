"""The fake that a burst of messages goes to."""

from __future__ import annotations

from conformance.clients.adapter.check_fixture import NAME, CheckFixture, consume, publish
from fakebrokers import Narconi


def check_fixture() -> CheckFixture:
    """See `conformance.clients.adapter.check_fixture`."""
    broker = Narconi()

    def prepare() -> str:
        broker.create_queue("test", NAME)
        return NAME

    return CheckFixture(
        broker,
        prepare,
        lambda: [message.payload for message in broker.messages("test", NAME)],
        tries={
            "publisher": publish,
            "consumer": consume,
            "admin": lambda name: (("narc.ensure_queue", {"session": NAME, "target": name}),),
            "http": lambda name: (("narc.post", {"session": NAME, "target": name, "body": {"text": "one"}}),),
        },
    )
