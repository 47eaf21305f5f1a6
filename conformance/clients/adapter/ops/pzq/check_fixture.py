"""The fake that a burst of messages goes to."""

from __future__ import annotations

from conformance.clients.adapter.check_fixture import NAME, CheckFixture, consume, publish
from fakebrokers import PZQ


def check_fixture() -> CheckFixture:
    """See `conformance.clients.adapter.check_fixture`."""
    broker = PZQ()
    return CheckFixture(
        broker,
        lambda: "",
        lambda: [b"".join(message.body) for message in broker.messages()],
        tries={
            "publisher": publish,
            "consumer": consume,
            "monitor": lambda _: (("pzq.monitor", {"session": NAME}),),
        },
    )
