"""What all connections of the Redis server share: channels, patterns and who listens to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fakebrokers.core.session import Broker
from fakebrokers.core.subscriptions import Matches, Subscription, Subscriptions
from fakebrokers.moleculer.bus import Bus, BusOptions
from fakebrokers.moleculer.redis.resp import raw
from fakebrokers.moleculer.redis.words import Glob

VERSION = "7.0.15"  #: of the server that the answers were measured with

#: Keys of subscriptions.
CHANNEL, PATTERN, SHARD = "channel", "pattern", "shard"


class Channels(Subscriptions):
    """Who listens to which channel: first those who named it, then those whose patterns fit."""

    def __init__(self) -> None:
        super().__init__()
        self.channels: dict[str, dict[Subscription, None]] = {}
        self.patterns: dict[Subscription, Glob] = {}

    def __len__(self) -> int:
        return len(self.patterns) + sum(map(len, self.channels.values()))

    def __iter__(self) -> Iterator[Subscription]:
        for each in self.channels.values():
            yield from each
        yield from self.patterns

    def add(self, subscription: Subscription) -> None:
        """Somebody listens from now on."""
        if subscription.key == PATTERN:
            self.patterns[subscription] = Glob(raw(subscription.pattern))
        else:
            self.channels.setdefault(subscription.pattern, {})[subscription] = None
        self._known.clear()

    def remove(self, subscription: Subscription) -> None:
        """Nobody listens there any more. Safe to call twice."""
        self.patterns.pop(subscription, None)
        there = self.channels.get(subscription.pattern)
        if there is not None and subscription.key != PATTERN:
            there.pop(subscription, None)
            if not there:
                del self.channels[subscription.pattern]
        self._known.clear()

    def clear(self) -> None:
        """Forget everybody."""
        self.channels.clear()
        self.patterns.clear()
        self._known.clear()

    def _look_up(self, topic: str) -> Matches:
        name = raw(topic)
        fitting = [each for each, glob in self.patterns.items() if glob.fits(name)]
        return Matches((*self.channels.get(topic, ()), *fitting), ())


class RedisBus(Bus, Broker):
    """Channels and the sessions of clients."""

    def __init__(self, options: BusOptions) -> None:
        super().__init__(options)
        self.subscriptions = Channels()
        self.now, self.published, self.delivered, self.published_bytes, self.delivered_bytes = 0.0, 0, 0, 0, 0
        self.shards = Channels()  #: sharded channels have names of their own
        self.connected = 0  #: clients so far
        self.sessions: dict[int, Any] = {}

    def publish_sharded(self, channel: str, payload: bytes) -> int:
        """Deliver a message to those who listen to a sharded channel."""
        plain = self.shards.match(channel).plain
        for subscription in plain:
            subscription.owner.deliver(subscription, channel, payload)
        return len(plain)

    @property
    def channels(self) -> Channels:
        """Who listens to what."""
        assert isinstance(self.subscriptions, Channels)
        return self.subscriptions

    def publish(self, topic: str, payload: bytes, now: float, node: str = "") -> int:
        """Deliver a message of a node; returns how many listeners got it."""
        self.now = now
        matches = self.subscriptions.match(topic)
        self.published += 1
        self.published_bytes += len(payload)
        count = len(matches.plain)
        for subscription in matches.plain:
            if self.partitions and self.parted(node, subscription.owner.node):
                count -= 1
                continue
            owner = subscription.owner
            owner.deliver(subscription, topic, payload)
        self.delivered += count
        self.delivered_bytes += count * len(payload)
        return count
