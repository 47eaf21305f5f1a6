"""How fake nodes use a bus: as one more client of it, without a connection."""

from __future__ import annotations

import re

from fakebrokers.core.subscriptions import Subscription
from fakebrokers.moleculer.bus import Bus
from fakebrokers.moleculer.nodes import FakeNode
from fakebrokers.moleculer.packets import Packet, values_of
from fakebrokers.moleculer.serialization import find_serializer
from fakebrokers.moleculer.serializers import Serializer
from fakebrokers.moleculer.speaker import Speaker
from fakebrokers.moleculer.topics import node_topics, prefix_of


class BusCarrier:
    """Carries the packets of fake nodes over the bus of their fake (`nodes.Carrier`).

    Args:
        namespace: Of the nodes.
        serializer: Of their packets; "" for that of the bus.
        separator: Of their topics.
    """

    gossips = False

    def __init__(self, bus: Bus, namespace: str, serializer: str = "", separator: str = ".") -> None:
        self._bus = bus
        self._prefix = prefix_of(namespace)
        self.serializer: Serializer = find_serializer(serializer) if serializer else bus.serializer
        self._separator = separator
        self._own: dict[str, list[Subscription]] = {}
        self._balanced: dict[str, list[Subscription]] = {}

    def join(self, node: FakeNode) -> None:
        """Listen to the twelve topics of a node."""
        topics = node_topics(self._prefix, node.id, self._separator)
        self._own[node.id] = [self._bus.listen(topic, node.hear, "", node.id) for topic in topics]

    def balance(self, node: FakeNode, actions: list[str], events: list[tuple[str, str]]) -> None:
        """Listen to balanced topics; the tail of a pattern becomes the wildcard of NATS."""
        self._drop(self._balanced, node)
        topics = [(self._topic("REQB", action), action) for action in actions]
        topics += [
            (self._topic("EVENTB", f"{group}.{re.sub(r'[*][*].*$', '>', event)}"), group)
            for group, event in events
        ]
        self._balanced[node.id] = [
            self._bus.listen(topic, node.hear, queue, node.id) for topic, queue in topics
        ]

    def leave(self, node: FakeNode) -> None:
        """Listen to nothing any more."""
        self._drop(self._own, node)
        self._drop(self._balanced, node)

    def _drop(self, where: dict[str, list[Subscription]], node: FakeNode) -> None:
        for subscription in where.pop(node.id, []):
            self._bus.unlisten(subscription)

    def _topic(self, *words: str) -> str:
        return self._separator.join([self._prefix, *[word for word in words if word]])

    def send(self, node: Speaker, packet: Packet, target: str, now: float) -> None:
        """Publish a packet to one node, or to all."""
        self.send_raw(node, packet.COMMAND, self._written(packet), target, now)

    def send_balanced(self, node: Speaker, packet: Packet, rest: str, now: float) -> None:
        """Publish a packet to whoever answers there."""
        self._bus.publish(self._topic(f"{packet.COMMAND}B", rest), self._written(packet), now, node.id)

    def send_raw(self, node: Speaker, command: str, payload: bytes, target: str, now: float) -> None:
        """Publish bytes in place of a packet."""
        self._bus.publish(self._topic(command, target), payload, now, node.id)

    def _written(self, packet: Packet) -> bytes:
        return self.serializer.write(packet.COMMAND, values_of(packet))
