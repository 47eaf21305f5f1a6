"""What the three message buses have in common: who is connected, which node it is, what a packet needs to
reach it. Fake nodes use a bus without a connection of their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from fakebrokers.core.frames import Frame
from fakebrokers.core.session import Link, Session
from fakebrokers.core.subscriptions import Subscription, Subscriptions
from fakebrokers.moleculer.packets import Packet, Request, Response, values_of
from fakebrokers.moleculer.serialization import find_serializer
from fakebrokers.moleculer.serializers import Serializer
from fakebrokers.moleculer.topics import topic_of

#: Gets topic and payload of a message, and the time.
Deliver = Callable[[str, bytes, float], None]
#: Puts a bare packet into a message; None for what is no packet.
Wrap = Callable[[Frame], Frame | None]


class BusOptions(msgspec.Struct, frozen=True):
    """What a bus is told when it is made.

    Attributes:
        serializer: Of the packets that the fake itself writes.
        user: Who may log in; "" lets anybody in.
        password: The user's, or without a user that of the whole server.
        token: What clients show instead of a name (NATS).
        max_payload: Bytes of a message.
        ping_interval_s: Silence after which a client is asked whether it lives (NATS).
        ping_max: Questions without an answer after which it is given up.
        auth_timeout_s: How long a client may take to say who it is.
    """

    serializer: str = "JSON"
    user: str = ""
    password: str = ""
    token: str = ""
    max_payload: int = 1024 * 1024
    ping_interval_s: float = 120.0
    ping_max: int = 2
    auth_timeout_s: float = 2.0

    @property
    def needs_login(self) -> bool:
        """Whether a client has to say who it is."""
        return bool(self.user or self.password or self.token)


class Listening(NamedTuple):
    """A fake node's ear: stands where a session stands for a connection.

    What it hears waits until the step is over, see `Bus.hand_over`.
    """

    hear: Deliver
    node: str = ""
    waiting: deque[tuple[Subscription, Deliver, str, bytes]] | None = None
    echo: bool = True

    def deliver(self, subscription: Subscription, topic: str, *message: Any) -> None:
        """A message, whose payload comes last."""
        if self.waiting is not None:
            self.waiting.append((subscription, self.hear, topic, message[-1]))


def nobody(topic: str, payload: bytes, now: float) -> None:
    """What a sender hears of its own message."""


class Partition(NamedTuple):
    """Nodes that others do not hear; no nodes stand for all others."""

    senders: frozenset[str]
    receivers: frozenset[str]

    def parts(self, sender: str, receiver: str) -> bool:
        """Whether nothing comes through."""
        from_there = sender in self.senders if self.senders else sender not in self.receivers
        to_there = receiver in self.receivers if self.receivers else receiver not in self.senders
        return from_there and to_there and sender != receiver


class Bus(ABC):
    """What a message server has besides where fake nodes are on it: the server's own class comes behind it.

    Attributes:
        subscriptions: Who listens to what.
        links: The connection on which each node listens.
        partitions: Who does not hear whom, at present.
        now: Of the step at hand.
        host, port: Where it listens.
    """

    subscriptions: Subscriptions
    now: float
    host, port = "127.0.0.1", 0

    def __init__(self, options: BusOptions) -> None:
        self.options = options
        self.links: dict[str, Link] = {}
        self.partitions: list[Partition] = []
        self._heard: deque[tuple[Subscription, Deliver, str, bytes]] = deque()

    def bound(self, host: str, port: int) -> None:
        """Where it listens is known."""
        self.host, self.port = host, port

    @property
    def serializer(self) -> Serializer:
        """Of the packets that the fake writes."""
        return find_serializer(self.options.serializer)

    @abstractmethod
    def publish(self, topic: str, payload: bytes, now: float, node: str = "") -> int:
        """A message of the fake's own node; returns how many got it."""

    def parted(self, sender: str, receiver: str) -> bool:
        """Whether nothing comes through from one node to another."""
        return any(partition.parts(sender, receiver) for partition in self.partitions)

    def listen(self, topic: str, hear: Deliver, queue: str = "", node: str = "") -> Subscription:
        """A node of the fake's own listens; `unlisten` ends it."""
        subscription = Subscription(topic, Listening(hear, node, self._heard), None, queue)
        self.subscriptions.add(subscription)
        return subscription

    def unlisten(self, subscription: Subscription) -> None:
        """Listen no more."""
        self.subscriptions.remove(subscription)
        waiting = [each for each in self._heard if each[0] is not subscription]
        self._heard.clear()
        self._heard.extend(waiting)

    def hand_over(self, now: float) -> None:
        """The fake's own nodes get what was published for them.

        That is when all that came in the same read has been handled: a real node is a client of its own, and
        no server hands it anything before it has read what it can.
        """
        while self._heard:
            _, hear, topic, payload = self._heard.popleft()
            hear(topic, payload, now)

    def reset(self) -> None:
        """The clients are gone; the fake's own listeners stay."""
        super().reset()  # type: ignore[misc] # of the server's own class
        self.links.clear()
        self._heard.clear()


class NodeSession(Session):
    """One connection of a node to a bus: the server's own session comes behind it.

    Attributes:
        node: The id of the node at the other end; "" as long as it has not shown.
    """

    broker: Any  # the bus
    node = ""
    _prefix = "MOL"
    _separator = "."

    def knows(self, node: str, topic: str) -> None:
        """The node at the other end shows by a topic that nobody else listens to."""
        parts = topic_of(topic)
        assert parts is not None
        self.node, self._prefix, self._separator = node, parts.prefix, parts.separator
        self.broker.links[node] = self.link
        self.link.identify(node)

    def closed(self, now: float) -> None:
        super().closed(now)
        if self.broker.links.get(self.node) is self.link:
            del self.broker.links[self.node]

    def answers_on(self) -> Link:
        found: Link = self.broker.links.get(self.node, self.link)
        return found

    def refusal(self, frame: Frame, code: int, now: float) -> Frame | None:
        """The error answer of a node to a request, or that of the bus to what is no packet."""
        if isinstance(frame, Request):
            return refusal_of(frame, code)
        return None if isinstance(frame, Packet) else super().refusal(frame, code, now)

    def topic_for(self, packet: Packet) -> str:
        """The topic on which the node at the other end hears a packet."""
        return self._separator.join([self._prefix, packet.COMMAND, *([self.node] if self.node else [])])

    def payload_of(self, packet: Packet) -> bytes:
        """The packet in the serializer of this fake."""
        payload: bytes = self.broker.serializer.write(packet.COMMAND, values_of(packet))
        return payload

    def describe(self) -> dict[str, Any]:
        return {"state": self.state, "node": self.node}


def refusal_of(request: Request, code: int) -> Response:
    """What a node answers whose action failed with this code."""
    return Response(
        id=request.id,
        meta={},
        success=False,
        data=None,
        error={
            "name": "MoleculerError",
            "message": f"refused with code {code}",
            "nodeID": "fake",
            "code": code,
            "retryable": False,
        },
        ver=request.ver,
        sender="fake",
    )
