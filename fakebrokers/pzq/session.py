"""The three sockets' state machines (docs/protocols/pzq.md, "Sockets", "Producer", "Consumer", "Monitor").

A producer and a monitoring client are known by their routing id, so each has a session of its own. The
send socket is a DEALER, which hides its peers and deals messages out by itself: all consumers after it
are one session.

    new -> open -> closed

An open session looks frames up in its handlers. All others, and what cannot be read, the daemon drops without
a word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, ClassVar

from fakebrokers.core.frames import Frame
from fakebrokers.core.session import Session
from fakebrokers.pzq.broker import PzqBroker
from fakebrokers.pzq.frames import (
    ConsumerAck,
    Delivery,
    MonitorReply,
    MonitorRequest,
    Produce,
    ProduceAck,
    ProduceNack,
)
from fakebrokers.pzq.store import Message, StoreError

NO_DELIMITER = "Malformed message, no delimiter found or missing message parts"

#: Texts of the store's own errors, by Kyoto Cabinet's error code.
STORE_ERRORS = {
    1: "not implemented",
    2: "invalid operation",
    3: "no repository",
    4: "no permission",
    5: "broken file",
    6: "record duplication",
    7: "no record",
    8: "logical inconsistency",
    9: "system error",
}

_REPLICA = b"REPLICA:"


class State(StrEnum):
    """Where a session is in its life."""

    NEW = "new"
    OPEN = "open"
    CLOSED = "closed"


class PzqSession(Session):
    """What the three have in common.

    Attributes:
        socket: Which of the broker's sockets it is on.
        handlers: What an open session does with a frame.
    """

    socket: ClassVar[str]

    def __init__(self, broker: PzqBroker) -> None:
        self.broker = broker
        self.state: State = State.NEW
        self.handlers: Mapping[type[Frame], Callable[[Any, float], None]] = {}

    def opened(self, now: float) -> None:
        self.state = State.OPEN

    def handle(self, frame: Frame, now: float) -> None:
        handler = self.handlers.get(type(frame)) if self.state is State.OPEN else None
        if handler is not None:
            handler(frame, now)

    def closed(self, now: float) -> None:
        self.state = State.CLOSED

    def describe(self) -> dict[str, Any]:
        return {"socket": self.socket, "state": self.state.value}


class ReceiveSession(PzqSession):
    """A producer on the receive socket."""

    socket = "receive"

    def __init__(self, broker: PzqBroker) -> None:
        super().__init__(broker)
        self.handlers = {Produce: self._produce}
        self.stored = 0
        self.refused = 0

    def _produce(self, frame: Produce, now: float) -> None:
        try:
            self._store(frame, now)
        except StoreError as error:
            self.refused += 1
            self.link.say(self._refuse(frame, str(error)))
            return
        self.stored += 1
        self.link.say(ProduceAck(frame.id, self.broker.profile.stored))
        self.broker.turn(now)

    def _store(self, frame: Produce, now: float) -> None:
        if frame.body is None:
            raise StoreError(NO_DELIMITER)
        copies: tuple[bytes, ...] = ()
        if frame.headers and self.broker.profile.replicas:
            copies = tuple(header for header in frame.headers if header.startswith(_REPLICA))
        self.broker.put(copies + frame.body, now, id=frame.id, replica=bool(copies))

    def _refuse(self, frame: Produce, reason: str) -> ProduceNack:
        return ProduceNack(frame.id, self.broker.profile.refused, texts=(reason.encode(),))

    def refusal(self, frame: Frame, code: int, now: float) -> Frame | None:
        """A store failure; `code` is one of `STORE_ERRORS`, any other is a miscellaneous error."""
        if not isinstance(frame, Produce):
            return None
        return self._refuse(frame, STORE_ERRORS.get(code, "miscellaneous error"))

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "stored": self.stored, "refused": self.refused}


class SendSession(PzqSession):
    """The consumers on the send socket.

    Args:
        broker: The queue.
        room: Asks the socket whether it takes one more message now; it first hands over what was said.
    """

    socket = "send"

    def __init__(self, broker: PzqBroker, room: Callable[[], bool] = lambda: True) -> None:
        super().__init__(broker)
        self.handlers = {ConsumerAck: self._acknowledge}
        self.delivered = 0
        self._room = room

    def opened(self, now: float) -> None:
        super().opened(now)
        self.broker.attach(self)
        self.broker.turn(now)

    @property
    def ready(self) -> bool:
        """Whether the socket has room for a message."""
        return self.link.writable and self._room()

    def deliver(self, message: Message, sent: int, timeout: int) -> None:
        """Send a message to a consumer; times in microseconds."""
        self.delivered += 1
        self.link.say(Delivery(message.key, sent, timeout, body=message.body))

    def _acknowledge(self, frame: ConsumerAck, now: float) -> None:
        if self.broker.acknowledge(frame.key, frame.status):
            self.broker.turn(now)

    def writable(self, now: float) -> None:
        self.broker.turn(now)

    def closed(self, now: float) -> None:
        was_open = self.state is State.OPEN  # not so where a fault has ended the connection as it came
        super().closed(now)
        if was_open:
            self.broker.detach(self)

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "delivered": self.delivered}


class MonitorSession(PzqSession):
    """A client on the monitor socket."""

    socket = "monitor"

    def __init__(self, broker: PzqBroker) -> None:
        super().__init__(broker)
        self.handlers = {MonitorRequest: self._request}
        self.answered = 0

    def _request(self, frame: MonitorRequest, now: float) -> None:
        if frame.command == b"MONITOR":
            self.answered += 1
            self.link.say(MonitorReply(self._report()))

    def _report(self) -> bytes:
        profile = self.broker.profile
        rows = zip(profile.monitor_keys, self.broker.statistics(), strict=True)
        lines = "\n".join([f"{key}: {value}" for key, value in rows])
        return (lines + profile.monitor_end).encode()

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "answered": self.answered}
