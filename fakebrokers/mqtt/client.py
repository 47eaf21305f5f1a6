"""What the server keeps of one client, with or without a connection: its session state (4.1)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

import msgspec

from fakebrokers.core.subscriptions import Subscription
from fakebrokers.mqtt.profile import Profile

if TYPE_CHECKING:
    from fakebrokers.mqtt.frames import Publish

MAX_ID = 0xFFFF


class Outgoing(msgspec.Struct):
    """A message with QoS 1 or 2 for a client, until that has acknowledged it.

    Attributes:
        is_sent: It has left, on this connection or on an earlier one.
        is_received: Of QoS 2: the client has said PUBREC.
    """

    topic: str
    payload: bytes
    qos: int
    packet_id: int
    retain: bool
    is_sent: bool = False
    is_received: bool = False


class Connected(Protocol):
    """The connection of a client: an `MqttSession`."""

    def push(
        self, topic: str, payload: bytes, qos: int, number: int, *, retain: bool = False, dup: bool = False
    ) -> None:
        """Send a message to the client."""

    def release(self, number: int) -> None:
        """Send the second step of QoS 2."""

    def taken_over(self, *, clean: bool) -> None:
        """Another connection has come with this client's id."""


class Client:
    """One client, by its id.

    Args:
        lasts: Whether it is remembered when its connection has ended (clean session 0).

    Attributes:
        session: Its connection; None while there is none.
        subscriptions: By the filter.
        messages: What it has not acknowledged, by packet id, in the order in which it came.
        waiting: Of these what has not been sent, the newest ones.
        received: Its own messages with QoS 2 that it has not released, by packet id.
    """

    def __init__(self, id: str, profile: Profile, *, lasts: bool) -> None:
        self.id = id
        self.lasts = lasts
        self.session: Connected | None = None
        self.subscriptions: dict[str, Subscription] = {}
        self.messages: dict[int, Outgoing] = {}
        self.waiting: deque[Outgoing] = deque()
        self.received: dict[int, Publish] = {}
        self._profile = profile
        self._last_id = 0

    def __repr__(self) -> str:
        there = "connected" if self.session is not None else "away"
        return f"Client({self.id!r}, {there}, {len(self.messages)} messages)"

    def deliver(self, subscription: Subscription, topic: str, qos: int, payload: bytes) -> None:
        """A message that fits a filter of this client."""
        granted: int = subscription.key
        self.send(topic, payload, qos if qos < granted else granted)

    def send(self, topic: str, payload: bytes, qos: int, *, retain: bool = False) -> None:
        """A message for this client: now, or when there is room for it, or when it comes back."""
        session = self.session
        if not qos:
            if session is not None:
                session.push(topic, payload, 0, 0, retain=retain)
            return
        number = self.next_id()
        if not number or not self._has_room:  # it acknowledges nothing: Mosquitto drops messages then, too
            return
        message = Outgoing(topic, payload, qos, number, retain)
        self.messages[number] = message
        self.waiting.append(message)
        self.send_waiting()

    @property
    def _has_room(self) -> bool:
        waiting = self.messages if self.session is None else self.waiting
        return len(waiting) < self._profile.max_queued

    def send_waiting(self) -> None:
        """Send what waits, as far as the client may have it unacknowledged."""
        limit = self._profile.max_inflight
        while self.waiting and (session := self.session) is not None:  # a push may end the connection
            if 0 < limit <= len(self.messages) - len(self.waiting):
                return
            message = self.waiting.popleft()
            message.is_sent = True
            session.push(
                message.topic, message.payload, message.qos, message.packet_id, retain=message.retain
            )

    def send_again(self) -> None:
        """Send what has left and is not acknowledged: PUBLISH with DUP, or PUBREL (4.4)."""
        for each in list(self.messages.values()):
            session = self.session
            if session is None:
                return
            if each.is_received:
                session.release(each.packet_id)
            elif each.is_sent:
                session.push(each.topic, each.payload, each.qos, each.packet_id, retain=each.retain, dup=True)

    def sent(self, number: int) -> Outgoing | None:
        """The message of this packet id, if it has left."""
        message = self.messages.get(number)
        return message if message is not None and message.is_sent else None

    def acknowledged(self, message: Outgoing) -> None:
        """The client has got a message for good."""
        del self.messages[message.packet_id]
        self.send_waiting()

    def next_id(self) -> int:
        """A packet id that no message has; 0 if all are in use."""
        if len(self.messages) >= MAX_ID:
            return 0
        while True:
            self._last_id = self._last_id % MAX_ID + 1
            if self._last_id not in self.messages:
                return self._last_id
