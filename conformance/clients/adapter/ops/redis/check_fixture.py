"""The fake that a burst of messages goes to."""

from __future__ import annotations

from conformance.clients.adapter.check_fixture import NAME, CheckFixture, consume, publish
from fakebrokers import Redis
from fakebrokers.journal import Tap
from fakebrokers.redis.frames import Publish


def check_fixture() -> CheckFixture:
    """See `conformance.clients.adapter.check_fixture`."""
    broker = Redis()

    def stored() -> list[bytes]:
        frames = [record.frame for record in broker.journal.select(kind="Publish", tap=Tap.HEARD)]
        return [frame.payload for frame in frames if isinstance(frame, Publish)]

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
