"""The fake that a burst of messages goes to, and that answers requests."""

from __future__ import annotations

from conformance.clients.adapter.check_fixture import NAME, CheckFixture, Op, consume, publish
from fakebrokers import NATS
from fakebrokers.journal import Tap
from fakebrokers.nats.frames import Pub


def check_fixture() -> CheckFixture:
    """See `conformance.clients.adapter.check_fixture`."""
    broker = NATS(body_limit=1 << 20)

    def prepare() -> str:
        broker.respond("echo", lambda _, payload: payload)
        return NAME

    def stored() -> list[bytes]:
        frames = [record.frame for record in broker.journal.select(kind="Pub", tap=Tap.HEARD)]
        return [one.payload for one in frames if isinstance(one, Pub) and one.subject == NAME]

    def ask(_: str) -> tuple[Op, ...]:
        return (("nats.request", {"session": NAME, "target": "echo", "body": {"text": "one"}}),)

    return CheckFixture(
        broker, prepare, stored, tries={"publisher": publish, "consumer": consume, "requester": ask}
    )
