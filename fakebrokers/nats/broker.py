"""What all connections of a NATS server share: subjects and who listens to them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from fakebrokers.core.session import Broker
from fakebrokers.core.subscriptions import Matches, Subscription, Subscriptions
from fakebrokers.nats.access import Access
from fakebrokers.nats.client import NatsClient
from fakebrokers.nats.nodes import Node
from fakebrokers.nats.profile import Profile


class Subjects(Subscriptions):
    """Nobody hears what is published on a subject with an empty token."""

    def _look_up(self, topic: str) -> Matches:
        return super()._look_up(topic) if "" not in topic.split(self.separator) else Matches((), ())


class NatsBroker(Broker):
    """Subjects, queue groups and the sessions of clients, which may be at several nodes.

    Args:
        random: Draws what clients are asked to sign.

    Attributes:
        sessions: The clients, by their numbers.
        connected: Clients so far.
        now: Of the step at hand.
        published, delivered, published_bytes, delivered_bytes: Messages and their payloads so far.
    """

    def __init__(self, profile: Profile, access: Access, nodes: Sequence[Node], random: Random) -> None:
        self.profile = profile
        self.logins = access
        self.nodes = nodes
        self.random = random
        self.subscriptions: Subscriptions = Subjects()
        self.sessions: dict[int, NatsClient] = {}
        self.connected = 0
        self.now = 0.0
        self.published = self.delivered = 0
        self.published_bytes = self.delivered_bytes = 0
        self._turns: dict[str, int] = {}

    def reset(self) -> None:
        self._turns.clear()

    def hears(self, origin: Any, listener: Any) -> bool:
        """Whether what one of them says reaches the other."""
        return listener is not origin or origin.echo

    # nodes

    def tell_nodes(self) -> None:
        """Which servers there are has changed: all clients that want to know get an INFO."""
        for session in list(self.sessions.values()):
            session.tell_nodes()

    def stop_node(self, node: Node) -> None:
        """A node is gone, and its clients with it."""
        node.up = False
        for session in [each for each in self.sessions.values() if each.server is node]:
            session.end()
        self.tell_nodes()

    def start_node(self, node: Node) -> None:
        """A node is back."""
        node.up, node.leaving = True, False
        self.tell_nodes()

    # messages

    def route(self, origin: Any, subject: str, reply: str, headers: bytes, payload: bytes) -> int:
        """Deliver a message to all plain listeners and to one of each queue group; how many got it.

        Args:
            origin: The session that it came from, or what takes its place.
        """
        matches = self.subscriptions.match(subject)
        self.published += 1
        self.published_bytes += len(payload)
        count = 0
        for subscription in matches.plain:
            count += self._deliver(subscription, origin, subject, reply, headers, payload)
        if matches.groups:
            count += self._to_groups(matches, origin, subject, reply, headers, payload)
        self.delivered += count
        self.delivered_bytes += count * len(payload)
        return count

    def _to_groups(
        self, matches: Matches, origin: Any, subject: str, reply: str, headers: bytes, payload: bytes
    ) -> int:
        """One member of each group in turn; the real server draws. Groups go by their name alone."""
        count = 0
        for queue, members in matches.groups:
            turn = self._turns.get(queue, 0)
            self._turns[queue] = turn + 1
            for step in range(len(members)):
                member = members[(turn + step) % len(members)]
                if self._deliver(member, origin, subject, reply, headers, payload):
                    count += 1
                    break
        return count

    def _deliver(
        self,
        subscription: Subscription,
        origin: Any,
        subject: str,
        reply: str,
        headers: bytes,
        payload: bytes,
    ) -> int:
        owner = subscription.owner
        if not self.hears(origin, owner):
            return 0
        subscription.delivered += 1
        owner.deliver(subscription, subject, reply, headers, payload)
        if subscription.limit and subscription.delivered >= subscription.limit:
            owner.end_subscription(subscription)
        return 1
