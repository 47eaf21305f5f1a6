"""The fake that a burst of messages goes to."""

from __future__ import annotations

from conformance.adapter.stage import NAME, Stage
from fakebrokers import Narconi


def stage() -> Stage:
    """See `conformance.adapter.stage`."""
    broker = Narconi()

    def prepare() -> str:
        broker.ensure("test", NAME)
        return NAME

    return Stage(broker, prepare, lambda: [message.payload for message in broker.messages("test", NAME)])
