"""The three sockets' state machines (docs/protocols/pzq.md, "Sockets", "Producer", "Consumer", "Monitor").

A producer and a monitoring client are known by their routing id, so each has a session of its own. The
send socket is a DEALER, which hides its peers and deals messages out by itself: all consumers behind it
are one session.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


class ReceiveSession(Session):
    """A producer on the receive socket."""

    def __init__(self, broker: PzqBroker) -> None:
        self.broker = broker
        self.stored = 0
        self.refused = 0

    def opened(self, now: float) -> None:
        self.state = "open"

    def handle(self, frame: Frame, now: float) -> None:
        if not isinstance(frame, Produce):
            return  # a single part: the daemon drops it without a word
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

    def refusal(self, frame: Frame, code: int) -> Frame | None:
        """A store failure; `code` is one of `STORE_ERRORS`, any other is a miscellaneous error."""
        if not isinstance(frame, Produce):
            return None
        return self._refuse(frame, STORE_ERRORS.get(code, "miscellaneous error"))

    def closed(self, now: float) -> None:
        self.state = "closed"

    def describe(self) -> dict[str, Any]:
        return {"socket": "receive", "state": self.state, "stored": self.stored, "refused": self.refused}


class SendSession(Session):
    """The consumers on the send socket.

    Args:
        broker: The queue.
        room: Asks the socket whether it takes one more message now; it first hands over what was said.
    """

    def __init__(self, broker: PzqBroker, room: Callable[[], bool] = lambda: True) -> None:
        self.broker = broker
        self.delivered = 0
        self._room = room

    def opened(self, now: float) -> None:
        self.state = "open"
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

    def handle(self, frame: Frame, now: float) -> None:
        if isinstance(frame, ConsumerAck) and self.broker.settle(frame.key, frame.status):
            self.broker.turn(now)

    def writable(self, now: float) -> None:
        self.broker.turn(now)

    def closed(self, now: float) -> None:
        self.state = "closed"
        self.broker.detach(self)

    def describe(self) -> dict[str, Any]:
        return {"socket": "send", "state": self.state, "delivered": self.delivered}


class MonitorSession(Session):
    """A client on the monitor socket."""

    def __init__(self, broker: PzqBroker) -> None:
        self.broker = broker
        self.answered = 0

    def opened(self, now: float) -> None:
        self.state = "open"

    def handle(self, frame: Frame, now: float) -> None:
        if isinstance(frame, MonitorRequest) and frame.command == b"MONITOR":
            self.answered += 1
            self.link.say(MonitorReply(self._report()))

    def _report(self) -> bytes:
        profile = self.broker.profile
        rows = zip(profile.monitor_keys, self.broker.statistics(), strict=True)
        lines = "\n".join([f"{key}: {value}" for key, value in rows])
        return (lines + profile.monitor_end).encode()

    def closed(self, now: float) -> None:
        self.state = "closed"

    def describe(self) -> dict[str, Any]:
        return {"socket": "monitor", "state": self.state, "answered": self.answered}
