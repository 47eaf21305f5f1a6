"""The fake that a burst of messages goes to."""

from __future__ import annotations

from conformance.clients.adapter.check_fixture import NAME, CheckFixture, Op, consume, publish
from fakebrokers import BlazingMQ


def check_fixture() -> CheckFixture:
    """See `conformance.clients.adapter.check_fixture`."""
    broker = BlazingMQ()
    uri = f"bmq://bmq.test.mem.priority/{NAME}"

    def opened(name: str, flag: str) -> Op:
        where = uri.replace(NAME, name)  # one of its own: no session opens one twice
        return "bmq.open_queue", {
            "session": NAME,
            "target": name,
            "uri": where,
            "flags": [flag],
            "options": {},
        }

    def stored() -> list[bytes]:
        return [message.data for message in broker.messages(uri)]

    return CheckFixture(
        broker,
        lambda: NAME,
        stored,
        opened(NAME, "write"),
        tries={
            "publisher": publish,
            "consumer": lambda name: (opened(f"{name}-read", "read"), *consume(f"{name}-read")),
        },
    )
