"""What all connections of the MQTT broker share: topics, who listens to them, retained messages."""

from __future__ import annotations

from typing import Any

from fakebrokers.core.session import Broker
from fakebrokers.core.subscriptions import Subscription, Subscriptions
from fakebrokers.moleculer.bus import Bus, BusOptions


class MqttBus(Bus, Broker):
    """Topics and the sessions of clients."""

    def __init__(self, options: BusOptions) -> None:
        super().__init__(options)
        self.subscriptions = new_subscriptions()
        self.now, self.published, self.delivered, self.published_bytes, self.delivered_bytes = 0.0, 0, 0, 0, 0
        self.sessions: dict[str, Any] = {}
        self.retained: dict[str, tuple[bytes, int]] = {}
        self.connected = 0  #: clients so far, for ids of those that have none

    def reset(self) -> None:
        super().reset()
        self.retained.clear()

    def publish(self, topic: str, payload: bytes, now: float, node: str = "") -> int:
        self.now = now
        return self.route(topic, payload, 0, node)

    def keep(self, topic: str, payload: bytes, qos: int) -> None:
        """Remember a message for those who will listen; an empty one forgets."""
        if payload:
            self.retained[topic] = (payload, qos)
        else:
            self.retained.pop(topic, None)

    def route(self, topic: str, payload: bytes, qos: int, node: str = "") -> int:
        """Deliver a message of a node, one copy to each client; returns how many got it."""
        self.published += 1
        self.published_bytes += len(payload)
        plain = self.subscriptions.match(topic).plain
        for subscription in plain if len(plain) < 2 else _one_each(plain):
            owner = subscription.owner
            if self.partitions and self.parted(node, owner.node):
                continue
            owner.deliver(subscription, topic, qos, payload)
        self.delivered += len(plain)
        self.delivered_bytes += len(plain) * len(payload)
        return len(plain)

    def kept_for(self, pattern: str) -> list[tuple[str, bytes, int]]:
        """The retained messages that fit a topic filter."""
        fits = new_subscriptions()
        fits.add(Subscription(pattern, None))
        return [(topic, *kept) for topic, kept in self.retained.items() if fits.match(topic).plain]


def _one_each(plain: tuple[Subscription, ...]) -> list[Subscription]:
    """Of each client's subscriptions that fit the one with the highest QoS."""
    found: dict[int, Subscription] = {}
    for subscription in plain:
        first = found.setdefault(id(subscription.owner), subscription)
        if (subscription.key or 0) > (first.key or 0):
            found[id(subscription.owner)] = subscription
    return list(found.values())


def new_subscriptions() -> Subscriptions:
    """With MQTT's wildcards."""
    return Subscriptions("/", "+", "#", tail_may_be_empty=True, hidden="$")
