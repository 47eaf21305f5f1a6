"""The fake that a burst of messages goes to."""

from __future__ import annotations

from conformance.clients.adapter.check_fixture import NAME, CheckFixture, consume, publish
from fakebrokers import MQTT
from fakebrokers.journal import Tap


def check_fixture() -> CheckFixture:
    """See `conformance.clients.adapter.check_fixture`."""
    broker = MQTT(body_limit=1 << 20)

    def stored() -> list[bytes]:
        found = broker.journal.select(kind="Publish", tap=Tap.HEARD)
        return [record.frame.payload for record in found if record.frame.topic == NAME]  # type: ignore[union-attr]

    tries = {"publisher": publish, "consumer": consume}
    return CheckFixture(broker, lambda: NAME, stored, tries=tries)
