"""What all connections of the NATS server share: subjects and who listens to them."""

from __future__ import annotations

from typing import Any

from fakebrokers.moleculer.bus import Bus, BusOptions, Listening
from fakebrokers.moleculer.subscriptions import Matches, Subscription, Subscriptions

VERSION = "2.9.10"  #: of the server that the answers were measured with
GO = "go1.19.8"


def _nobody(topic: str, payload: bytes, now: float) -> None:
    """What a sender hears of its own message."""


class Subjects(Subscriptions):
    """Nobody hears what is published on a subject with an empty token."""

    def _look_up(self, topic: str) -> Matches:
        return super()._look_up(topic) if "" not in topic.split(self.separator) else Matches((), ())


class NatsBus(Bus):
    """Subjects, queue groups and the sessions of clients."""

    def __init__(self, options: BusOptions, server_id: str) -> None:
        super().__init__(options, Subjects())
        self.server_id = server_id
        self.connected = 0  #: clients so far
        self.sessions: dict[int, Any] = {}
        self._turns: dict[str, int] = {}

    def reset(self) -> None:
        super().reset()
        self._turns.clear()

    def publish(self, topic: str, payload: bytes, now: float, node: str = "") -> int:
        self.now = now
        return self.route(Listening(_nobody, node), topic, "", b"", payload)

    def route(self, origin: Any, subject: str, reply: str, headers: bytes, payload: bytes) -> int:
        """Deliver a message to all plain listeners and to one of each queue group; how many got it.

        Args:
            origin: The session that it came from, or what stands for a fake node.
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
        if self.partitions and self.parted(origin.node, owner.node):
            return 0
        if owner.__class__ is Listening:
            owner.hear(subject, payload, self.now)
            return 1
        if owner is origin and not origin.echo:
            return 0
        subscription.delivered += 1
        owner.deliver(subscription, subject, reply, headers, payload)
        if subscription.limit and subscription.delivered >= subscription.limit:
            owner.end_subscription(subscription)
        return 1
