"""The fake that a burst of messages goes to."""

from __future__ import annotations

from conformance.clients.adapter.stage import NAME, CheckFixture, consume, publish
from fakebrokers import PZQ


def stage() -> CheckFixture:
    """See `conformance.clients.adapter.stage`."""
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
