"""The fake that a burst of messages goes to."""

from __future__ import annotations

from collections import defaultdict

from conformance.clients.adapter.check_fixture import NAME, CheckFixture, consume, publish
from fakebrokers import Redis
from fakebrokers.journal import Tap
from fakebrokers.redis.frames import Publish


def check_fixture() -> CheckFixture:
    """See `conformance.clients.adapter.check_fixture`."""
    broker = Redis()

    def stored() -> list[bytes]:
        """Of one connection, that which carried most: those of a pool have no order among each other."""
        came: defaultdict[str, list[bytes]] = defaultdict(list)
        for record in broker.journal.select(kind="Publish", tap=Tap.HEARD):
            if isinstance(record.frame, Publish):
                came[record.connection].append(record.frame.payload)
        return max(came.values(), key=len, default=[])

    return CheckFixture(
        broker,
        lambda: NAME,
        stored,
        tries={
            "publisher": publish,
            "consumer": consume,
            "caller": lambda name: (("redis.call", {"session": NAME, "words": ["GET", name]}),),
        },
    )
