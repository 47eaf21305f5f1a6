"""The fake that a burst of messages goes to."""

from __future__ import annotations

from conformance.adapter.stage import NAME, Stage
from fakebrokers import BlazingMQ


def stage() -> Stage:
    """See `conformance.adapter.stage`."""
    broker = BlazingMQ()
    uri = f"bmq://bmq.test.mem.priority/{NAME}"
    opened = {"session": NAME, "target": NAME, "uri": uri, "flags": ["write"], "options": {}}

    def stored() -> list[bytes]:
        return [message.data for message in broker.messages(uri)]

    return Stage(broker, lambda: NAME, stored, ("bmq.open_queue", opened))
