"""The queues behind Narconi: RabbitMQ as far as Narconi shows it (docs/protocols/narconi.md, "For the fake").

One FIFO per queue. An unacknowledged message keeps its place and goes back there, marked as
redelivered, when its consumer is gone. Consumers take turns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from fakebrokers.core.session import Broker
from fakebrokers.core.timers import Timer

#: Messages of a queue that are handed out before other clients get their turn.
DELIVERIES_PER_TURN = 250


class Message:
    """A stored message.

    Attributes:
        payload: The bytes.
        content_type: As published.
        headers: The stored ``x-`` keys and their values, in order.
        timestamp: Milliseconds since 1970, when it was published.
        text: Whether it was published as text.
        expires: Monotonic seconds, or None for never.
        redelivered: Whether a consumer had it and did not acknowledge it.
        place: Its position in the queue.
    """

    __slots__ = (
        "content_type",
        "expires",
        "headers",
        "payload",
        "place",
        "redelivered",
        "text",
        "timestamp",
    )

    def __init__(
        self,
        payload: bytes,
        content_type: str,
        headers: dict[str, Any],
        timestamp: int,
        *,
        text: bool = False,
        expires: float | None = None,
    ) -> None:
        self.payload = payload
        self.content_type = content_type
        self.headers = headers
        self.timestamp = timestamp
        self.text = text
        self.expires = expires
        self.redelivered = False
        self.place = 0


class Consumer(Protocol):
    """What the broker asks of a consumer."""

    @property
    def has_capacity(self) -> bool:
        """Whether it takes one more message now."""

    def deliver(self, message: Message, now: float) -> None:
        """Take one."""

    def cancel(self, now: float) -> None:
        """The queue was deleted."""


class Attached(Protocol):
    """A connection that needs the AMQP connection behind the server."""

    def backend_lost(self, now: float) -> None:
        """The AMQP connection is gone."""

    def die(self, now: float) -> None:
        """The server process is gone."""


class Queue:
    """A FIFO and its consumers."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ready: deque[Message] = deque()
        self.unacked = 0
        self.consumers: deque[Consumer] = deque()
        self.deleted = False
        self.next_turn: Timer | None = None  #: what is left to be handed out goes on then
        self._places = 0

    @property
    def total(self) -> int:
        """How many messages were ever put into it."""
        return self._places

    def put(self, message: Message) -> None:
        """Append one."""
        self._places += 1
        message.place = self._places
        self.ready.append(message)

    def take(self, now: float) -> Message | None:
        """The oldest one that has not expired."""
        while self.ready:
            message = self.ready.popleft()
            if message.expires is None or message.expires > now:
                return message
        return None

    def requeue(self, messages: list[Message]) -> None:
        """Put unacknowledged messages back to their old places."""
        self.unacked -= len(messages)
        if self.deleted or not messages:
            return
        for message in messages:
            message.redelivered = True
        self.ready = deque(sorted([*messages, *self.ready], key=lambda message: message.place))

    def dispatch(self, now: float, most: int) -> bool:
        """Hand out what is ready, in turns, to those that take more; whether `most` were not all of it."""
        idle = 0
        while self.ready and idle < len(self.consumers):
            if not most:
                return True
            consumer = self.consumers[0]
            self.consumers.rotate(-1)
            if not consumer.has_capacity:
                idle += 1
                continue
            message = self.take(now)
            if message is None:
                break
            idle = 0
            most -= 1
            consumer.deliver(message, now)
        return False


class NarconiBroker(Broker):
    """All queues, and the state of the server process and of its backend.

    Args:
        wall: Seconds since 1970 for a monotonic `now`.

    Attributes:
        queues: By their names in RabbitMQ: ``project_queue``.
        backend_up: Whether RabbitMQ accepts connections.
        crashes: How often the server process died.
        on_crash: Told when it does, before its connections end.
    """

    def __init__(self, wall: Callable[[float], float] = float) -> None:
        self.wall = wall
        self.queues: dict[str, Queue] = {}
        self.backend_up = True
        self.crashes = 0
        self.on_crash: Callable[[], None] | None = None
        self._attached: dict[Attached, None] = {}
        self._ack_ids = 0
        self._ending = False

    # queues

    def ensure(self, name: str) -> None:
        """Make a queue if there is none."""
        if name not in self.queues:
            self.queues[name] = Queue(name)

    def delete(self, name: str, now: float) -> None:
        """Delete a queue and everything in it; its consumers are cancelled. It need not exist."""
        queue = self.queues.pop(name, None)
        if queue is not None:
            queue.deleted = True
            for consumer in tuple(queue.consumers):
                consumer.cancel(now)

    def publish(self, name: str, message: Message, now: float) -> None:
        """Store a message; it is lost in silence where there is no queue."""
        queue = self.queues.get(name)
        if queue is not None:
            queue.put(message)
            if queue.consumers:
                self.dispatch(queue, now)

    def dispatch(self, queue: Queue, now: float) -> None:
        """Hand out what is ready; nothing while the consumers are losing their broker."""
        if not self._ending and queue.dispatch(now, DELIVERIES_PER_TURN):
            if queue.next_turn is None:
                queue.next_turn = self.timers.new(partial(self.dispatch, queue), None)
            queue.next_turn.set(now)

    def next_ack_id(self) -> int:
        """An ack id that no other delivery of this broker has."""
        self._ack_ids += 1
        return self._ack_ids

    # the process and its backend

    def attach(self, connection: Attached) -> None:
        """A WebSocket connection came."""
        self._attached[connection] = None

    def detach(self, connection: Attached) -> None:
        """It is gone."""
        self._attached.pop(connection, None)

    def lose_backend(self, now: float, untold: Attached | None = None) -> None:
        """The AMQP connection breaks; the next request makes a new one if the backend is up.

        Nothing happens to the connection `untold`.
        """
        self._ending = True
        for connection in tuple(self._attached):
            if connection is not untold:
                connection.backend_lost(now)
        self._ending = False

    def crash(self, now: float) -> None:
        """The server process dies; RabbitMQ keeps the messages. `on_crash` closes the port."""
        self.crashes += 1
        if self.on_crash is not None:
            self.on_crash()
        self._ending = True
        for connection in tuple(self._attached):
            connection.die(now)
        self._ending = False

    def reset(self) -> None:
        """Forget all queues."""
        for queue in self.queues.values():
            queue.deleted = True
        self.queues.clear()
        self.backend_up = True
