"""What all connections of a Redis server share: channels, who listens to them, and what is stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fakebrokers.core.session import Broker
from fakebrokers.core.subscriptions import Matches, Subscription, Subscriptions
from fakebrokers.redis.client import RedisClient
from fakebrokers.redis.profile import Profile
from fakebrokers.redis.resp import raw
from fakebrokers.redis.words import Glob

if TYPE_CHECKING:
    from fakebrokers.redis.store import Store

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
        """Nothing listens there any more. Safe to call twice."""
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


class RedisBroker(Broker):
    """Channels and the sessions of clients.

    Args:
        user: Who may log in; "" for the one whom all servers have.
        password: What clients have to show; "" lets everybody in.
        store: What is stored; None where nothing is.

    Attributes:
        sessions: The clients, by their numbers.
        connected: Clients so far.
        waiting: Clients that wait for something to be stored, the longest first.
        loading: Whether what is stored is still read, as after a start.
        now: Of the step at hand.
        host, port: Where it listens.
        published, delivered, published_bytes, delivered_bytes: Messages and their payloads so far.
    """

    host, port = "127.0.0.1", 0

    def __init__(
        self, profile: Profile, user: str = "", password: str = "", store: Store | None = None
    ) -> None:
        self.profile = profile
        self.user, self.password = user, password
        self.store = store
        self.subscriptions: Subscriptions = Channels()
        self.shards = Channels()  #: sharded channels have names of their own
        self.connected = 0
        self.sessions: dict[int, RedisClient] = {}
        self.waiting: dict[RedisClient, None] = {}
        self.loading = False
        self.now = 0.0
        self.published = self.delivered = 0
        self.published_bytes = self.delivered_bytes = 0

    @property
    def needs_login(self) -> bool:
        """Whether a client has to say who it is."""
        return bool(self.user or self.password)

    @property
    def channels(self) -> Channels:
        """Who listens to what."""
        assert isinstance(self.subscriptions, Channels)
        return self.subscriptions

    def reset(self) -> None:
        self.loading = False
        if self.store is not None:
            self.store.clear()

    def hears(self, origin: Any, listener: Any) -> bool:
        """Whether what one of them says reaches the other."""
        return True

    def route(self, origin: Any, channel: str, payload: bytes) -> int:
        """Deliver a message to all who listen; returns how many got it.

        Args:
            origin: The session that it came from, or what takes its place.
        """
        plain = self.subscriptions.match(channel).plain
        self.published += 1
        self.published_bytes += len(payload)
        count = 0
        for subscription in plain:
            if self.hears(origin, subscription.owner):
                subscription.owner.deliver(subscription, channel, payload)
                count += 1
        self.delivered += count
        self.delivered_bytes += count * len(payload)
        return count

    def route_sharded(self, channel: str, payload: bytes) -> int:
        """Deliver a message to those who listen to a sharded channel."""
        plain = self.shards.match(channel).plain
        for subscription in plain:
            subscription.owner.deliver(subscription, channel, payload)
        return len(plain)

    def serve_waiting(self) -> None:
        """Something was stored: whoever has waited longest for it gets it."""
        served = True
        while served:
            served = any(session.try_again() for session in list(self.waiting))
