"""What a Redis server knows of a client."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from fakebrokers.core.session import Session
from fakebrokers.core.subscriptions import Subscription
from fakebrokers.redis import resp
from fakebrokers.redis.codec import RedisCodec

if TYPE_CHECKING:
    from fakebrokers.redis.store import Client

#: Commands whose first argument is part of their name.
_FAMILIES = ("client", "command", "config", "pubsub")


class RedisClient(Session):
    """A client.

    Attributes:
        number: Among all clients, from 1; 0 as long as it has none.
        name: That it has given itself.
        database: The one that its commands are about.
        channels, patterns, shards: What it listens to, by name.
        stored: Its view of what is stored; made with the first command that needs it.
        opened_at: Monotonic seconds.
    """

    def __init__(self, codec: RedisCodec) -> None:
        self.codec = codec
        self.state = "connected"
        self.number = 0
        self.name: bytes = b""
        self.database = 0
        self.channels: dict[str, Subscription] = {}
        self.patterns: dict[str, Subscription] = {}
        self.shards: dict[str, Subscription] = {}
        self.stored: Client | None = None
        self.opened_at = 0.0
        self._last: Any = None

    @property
    def listening(self) -> int:
        """Channels and patterns that the client listens to."""
        return len(self.channels) + len(self.patterns) + len(self.shards)

    @property
    def last_command(self) -> str:
        """What the client said last, as CLIENT LIST has it."""
        last = self._last
        if last is None:
            return "NULL"
        verb = str(last.verb).lower()
        if verb in _FAMILIES and last.arguments:
            return f"{verb}|{resp.text(last.arguments[0]).lower()}"
        return verb

    def end(self) -> None:
        """Hang up."""
        self.state = "ended"
        self.link.hang_up()

    @abstractmethod
    def try_again(self) -> bool:
        """Whether what the client waits for is there now; then it has its answer."""
