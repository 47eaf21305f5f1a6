"""What all connections of an MQTT server share: clients, topics, who listens to them, retained messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from fakebrokers.core.session import Broker
from fakebrokers.core.subscriptions import Matches, Subscription, Subscriptions
from fakebrokers.mqtt.client import Client
from fakebrokers.mqtt.profile import Profile
from fakebrokers.mqtt.topics import new_subscriptions, that_fit


class Retained(NamedTuple):
    """The last message of a topic that was to be kept."""

    payload: bytes
    qos: int


class MqttBroker(Broker):
    """Topics and clients.

    Args:
        users: Passwords by name; empty lets everybody in.

    Attributes:
        clients: By their ids; those without a connection, too.
        retained: By topic.
        connected: Clients so far, for ids of those that have none.
        now: Of the step at hand.
        published, delivered, published_bytes, delivered_bytes: Messages and their payloads so far.
    """

    def __init__(self, profile: Profile, users: Mapping[str, str] | None = None) -> None:
        self.profile = profile
        self.users = dict(users or {})
        self.subscriptions: Subscriptions = new_subscriptions()
        self.clients: dict[str, Client] = {}
        self.retained: dict[str, Retained] = {}
        self.connected = 0
        self.now = 0.0
        self.published = self.delivered = 0
        self.published_bytes = self.delivered_bytes = 0
        self._again: dict[Client, None] = {}  # to whom to send again what they have not acknowledged

    def step_ended(self, now: float) -> None:
        for client in tuple(self._again):
            client.send_again()
        self._again.clear()  # also what faults at these messages have asked for, or there would be no end

    def redeliver(self, client: Client) -> None:
        """Send a client again what it has not acknowledged, after what is being sent."""
        self._again[client] = None

    def reset(self) -> None:
        for client in list(self.clients.values()):
            self.forget(client)
        self.retained.clear()

    def admits(self, user: str | None, password: bytes | None) -> bool:
        """Whether a client may come in that shows this."""
        if not self.users:
            return True
        known = self.users.get(user or "")
        return known is not None and known.encode() == (password or b"")

    def hears(self, origin: Any, listener: Any) -> bool:
        """Whether what one of them says reaches the other."""
        return True

    # clients

    def client_for(self, id: str, *, clean: bool) -> tuple[Client, bool]:
        """The client of an id that connects now, and whether it was remembered.

        Whoever is connected with that id is not any more.
        """
        known = self.clients.get(id)
        if known is not None:
            if clean:
                self.forget(known)
            if known.session is not None:
                known.session.taken_over(clean=clean)
            if known.lasts and not clean:
                return known, True
        client = self.clients[id] = Client(id, self.profile, lasts=not clean)
        return client, False

    def forget(self, client: Client) -> None:
        """Its subscriptions end, and what waits for it is gone."""
        if self.clients.get(client.id) is client:
            del self.clients[client.id]
        for subscription in client.subscriptions.values():
            self.subscriptions.remove(subscription)
        client.subscriptions.clear()

    # messages

    def route(self, origin: Any, topic: str, payload: bytes, qos: int, *, retain: bool = False) -> int:
        """Deliver a message, one copy to each client; returns how many listen.

        Args:
            origin: The session that it came from, or what takes its place.
            retain: Keep it for those who will listen; an empty one forgets what was kept.
        """
        if retain:
            self._keep(topic, payload, qos)
        self.published += 1
        self.published_bytes += len(payload)
        matches = self.subscriptions.match(topic)
        fitting = (*matches.plain, *self._next_of(matches)) if matches.groups else matches.plain
        chosen = fitting if len(fitting) < 2 else _one_each(fitting)
        count = 0
        for subscription in chosen:
            if self.hears(origin, subscription.owner):
                subscription.owner.deliver(subscription, topic, qos, payload)
                count += 1
        if qos and len(fitting) > len(chosen):
            _use_up_ids(fitting, chosen)
        self.delivered += count
        self.delivered_bytes += count * len(payload)
        return count

    def _keep(self, topic: str, payload: bytes, qos: int) -> None:
        if payload:
            self.retained[topic] = Retained(payload, qos)
        else:
            self.retained.pop(topic, None)

    def _next_of(self, matches: Matches) -> Iterator[Subscription]:
        """Of each group the member whose turn it is; it becomes the last one."""
        for _, (first, *_others) in matches.groups:
            self.subscriptions.remove(first)
            self.subscriptions.add(first)
            yield first

    def kept_for(self, pattern: str) -> list[tuple[str, Retained]]:
        """The retained messages that fit a topic filter."""
        return [(topic, self.retained[topic]) for topic in that_fit(pattern, self.retained)]


def _one_each(fitting: tuple[Subscription, ...]) -> tuple[Subscription, ...]:
    """Of each client's subscriptions that fit the one with the highest QoS (3.3.5)."""
    found: dict[int, Subscription] = {}
    for subscription in fitting:
        first = found.setdefault(id(subscription.owner), subscription)
        if (subscription.key or 0) > (first.key or 0):
            found[id(subscription.owner)] = subscription
    return tuple(found.values())


def _use_up_ids(fitting: tuple[Subscription, ...], chosen: tuple[Subscription, ...]) -> None:
    """For each filter that fits besides Mosquitto takes a packet id, too, which it does not use."""
    for subscription in fitting:
        if subscription.key and subscription not in chosen:
            subscription.owner.next_id()
