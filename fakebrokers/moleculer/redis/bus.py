"""What all connections of the Redis server share, with fake nodes beside the clients."""

from __future__ import annotations

from typing import Any

from fakebrokers.moleculer.bus import Bus, BusOptions, Listening, nobody
from fakebrokers.redis.broker import RedisBroker
from fakebrokers.redis.profile import V7_0


class RedisBus(Bus, RedisBroker):
    """Channels and the sessions of clients; nothing is stored."""

    def __init__(self, options: BusOptions) -> None:
        RedisBroker.__init__(self, V7_0, options.user, options.password or options.token)
        Bus.__init__(self, options)

    def publish(self, topic: str, payload: bytes, now: float, node: str = "") -> int:
        self.now = now
        return self.route(Listening(nobody, node), topic, payload)

    def hears(self, origin: Any, listener: Any) -> bool:
        return not (self.partitions and self.parted(origin.node, listener.node))
