"""What a page of a run shows of the broker: who listens to what, who waits, how much is stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fakebrokers.viewer.model import BrokerModel, Seen, listeners

if TYPE_CHECKING:
    from fakebrokers.redis.server import Redis


class ChannelModel(BrokerModel):
    """Subscriptions and blocked clients by connection, keys by database, as the fake tells them."""

    def frame(self, seen: Seen) -> None:
        """Frames tell nothing: of a real server the page shows no state."""

    @classmethod
    def held(cls, server: Redis) -> Iterator[tuple[str, str]]:
        broker = server.broker
        for number, keys in broker.store.server.dbs.items() if broker.store is not None else ():
            if keys:
                yield f"database {number}", f"{len(keys)} key{'' if len(keys) == 1 else 's'}"
        for client in broker.waiting:
            yield f"{client.link.name} client", "blocked: waits for a key"
        yield from listeners(broker.subscriptions)
        yield from listeners(broker.shards)
