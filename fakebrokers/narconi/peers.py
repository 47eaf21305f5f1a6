"""The two kinds of WebSocket connection, publisher and consumer (docs/protocols/narconi.md, "WebSocket")."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Protocol

from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.core.session import Link
from fakebrokers.narconi import frames as f
from fakebrokers.narconi.broker import Message, NarconiBroker, Queue
from fakebrokers.narconi.config import Config
from fakebrokers.narconi.encodings import known_encoding
from fakebrokers.narconi.profile import Profile
from fakebrokers.narconi.routes import TOO_LARGE, js_number


class State(StrEnum):
    """Where a connection is in its life."""

    NEW = "new"
    HTTP = "http"  #: requests and answers
    PUBLISHING = "publishing"  #: after a 101, with the sub-protocol ``publish``
    CONSUMING = "consuming"  #: likewise, ``consume``
    CLOSED = "closed"


Handlers = Mapping[type[Frame], Callable[[Any, float], None]]

#: What a publisher is told of a message that cannot be read, by `Malformed.code`.
_UNREADABLE = {
    "too-large": (TOO_LARGE.message, TOO_LARGE.status),
    "not-json": ("Payload must be binary or a JSON object.", 400),
}
#: What a consumer is told of a command that cannot be read.
_UNREADABLE_COMMAND = {
    "too-large": (TOO_LARGE.message, TOO_LARGE.status),
    "unrecognized": ("Unrecognized command.", 400),
}
_NO_COMMAND = ("Payload must be a JSON object.", 400)


class Owner(Protocol):
    """What a peer asks of its session."""

    broker: NarconiBroker
    profile: Profile
    config: Config

    @property
    def link(self) -> Link:
        """The connection."""

    def say(self, frame: Frame) -> None:
        """Send a frame, unless the connection is closing."""

    def close(self, now: float, code: int = 1000) -> None:
        """Close frame, then the end of the connection."""

    def crash(self, now: float) -> None:
        """Do what the real process does where it dies."""


class Publisher:
    """A connection with the sub-protocol ``publish``.

    Args:
        owner: Its session.
        name: The broker's name of the queue.
        confirms: Whether stored messages are confirmed.
    """

    state = State.PUBLISHING

    def __init__(self, owner: Owner, name: str, confirms: bool) -> None:
        self.handlers: Handlers = {f.WsPublish: self._publish, Malformed: self._refuse}
        self._owner = owner
        self._name = name
        self._confirms = confirms

    def _publish(self, frame: f.WsPublish, now: float) -> None:
        broker, expires = self._owner.broker, None
        if self._owner.profile.expiry:
            longest = self._owner.config.max_message_ttl
            ttl = frame.metadata.get("ttl", longest)
            if not isinstance(ttl, int | float) or not 0 <= ttl <= longest:
                return self._reject("TTL value too large", 400, now, frame.number)
            expires = now + ttl
        timestamp = int(broker.wall(now) * 1000)
        message = Message(
            frame.payload, frame.content_type, frame.stored, timestamp, text=frame.text, expires=expires
        )
        broker.publish(self._name, message, now)
        if self._confirms:
            self._owner.say(f.WsConfirm(frame.number))
        return None

    def _refuse(self, frame: Malformed, now: float) -> None:
        if frame.code in _UNREADABLE:
            self._reject(*_UNREADABLE[frame.code], now)
        elif frame.code == "stuck":  # a number or text as metadata: no payload ever completes it
            self.handlers = {}
        elif frame.code == "crash" and self._owner.profile.crashes:
            self._owner.crash(now)
        elif frame.code == "crash":
            self._reject("Content-Type must be a string.", 400, now)

    def _reject(self, error: str, code: int, now: float, number: int = 0) -> None:
        self._owner.say(f.WsReject(error, code, number))
        if self._owner.profile.closes_failed_publisher:
            self._owner.close(now)

    def backend_lost(self, now: float) -> None:
        """The AMQP channel is gone."""
        self._owner.say(f.WsError("AMQP channel was closed.", 500))
        self._owner.close(now)

    def release(self, now: float) -> None:
        """The connection ends; there is nothing to give back."""

    def describe(self) -> dict[str, object]:
        """For inspectors."""
        return {"queue": self._name, "confirms": self._confirms}


class QueueConsumer:
    """A connection with the sub-protocol ``consume``; implements `broker.Consumer`.

    Args:
        owner: Its session.
        queue: What it consumes.
        ack: Whether deliveries wait for an acknowledgement.
        limit: Unacknowledged messages at a time; None if nothing ever arrives. Without `ack` it does
            not matter.
        encoding: Of the payload inside the metadata; None for messages of its own.
    """

    state = State.CONSUMING

    def __init__(
        self, owner: Owner, queue: Queue, *, ack: bool, limit: int | None, encoding: str | None
    ) -> None:
        self.handlers: Handlers = {
            f.WsStop: self._stop,
            f.WsAck: self._acknowledge,
            Malformed: self._refuse,
        }
        self._owner = owner
        self._queue = queue
        self.ack = ack
        self.limit = limit
        self._encoding = encoding
        self._delivered = 0
        self._stopped = False
        self._unacked: dict[str, Message] = {}
        self._released = False

    def start(self, now: float) -> None:
        """Take part in the queue."""
        self._queue.consumers.append(self)
        self.resume(now)

    def resume(self, now: float) -> None:
        """Take what is ready and fits."""
        self._owner.broker.dispatch(self._queue, now)

    # Consumer

    @property
    def has_capacity(self) -> bool:
        """Whether it takes one more message now."""
        if self._stopped or self._released or not self._owner.link.writable:
            return False
        return not self.ack or (self.limit is not None and len(self._unacked) < self.limit)

    def deliver(self, message: Message, now: float) -> None:
        """Send one."""
        self._delivered += 1
        ack_id = None
        if self.ack:
            opaque = self._owner.profile.opaque_ack_ids
            ack_id = str(self._owner.broker.next_ack_id() if opaque else self._delivered)
            self._unacked[ack_id] = message
            self._queue.unacked += 1
        if self._encoding is not None and not known_encoding(self._encoding):
            return self._fail("Unable to send message to client.", 500, now)
        self._owner.say(
            f.WsDeliver(
                message.payload,
                message.content_type,
                message.timestamp,
                message.redelivered,
                ack_id,
                message.headers,
                self._encoding,
                message.text and self._owner.profile.text_payloads,
            )
        )
        return None

    def cancel(self, now: float) -> None:
        """The queue was deleted."""
        self._fail("Unable to send message to client.", 500, now)

    # frames

    def _stop(self, frame: f.WsStop, now: float) -> None:
        self._stopped = True

    def _refuse(self, frame: Malformed, now: float) -> None:
        if frame.code == "crash" and self._owner.profile.crashes:
            self._owner.crash(now)
        else:
            self._fail(*_UNREADABLE_COMMAND.get(frame.code, _NO_COMMAND), now)

    def _acknowledge(self, frame: f.WsAck, now: float) -> None:
        if not self.ack:
            text = "Acks can only be sent on connections without immediate acks."
            return self._fail(text, 400, now)
        up_to = frame.ack_to_id is not None
        ack_id = frame.key
        opaque = self._owner.profile.opaque_ack_ids
        if not opaque:
            number = js_number(ack_id)
            if not number.is_integer():
                return self._fail("Unable to ack a message.", 500, now)
            ack_id = str(int(number))
        if ack_id in self._unacked:
            done = self._up_to(ack_id) if up_to else [ack_id]
        elif up_to and ack_id == "0" and not opaque:
            done = list(self._unacked)
        else:
            return self._fail(self._unknown(ack_id), 500, now)
        for key in done:
            del self._unacked[key]
        self._queue.unacked -= len(done)
        self.resume(now)
        return None

    def _up_to(self, ack_id: str) -> list[str]:
        keys = list(self._unacked)  # in the order of delivery
        return keys[: keys.index(ack_id) + 1]

    def _unknown(self, ack_id: str) -> str:
        if self._owner.profile.opaque_ack_ids:
            return "Unrecognized acknowledgment ID"
        return (
            "AMQP channel unexpectedly closed. Details: Channel closed by server: 406 (PRECONDITION-FAILED)"
            f' with message "PRECONDITION_FAILED - unknown delivery tag {ack_id}"'
        )

    # ends

    def _fail(self, error: str, code: int, now: float) -> None:
        self._owner.say(f.WsError(error, code))
        self._owner.close(now)

    def backend_lost(self, now: float) -> None:
        """The AMQP connection is gone."""
        self._fail("AMQP connection was unexpectedly closed.", 500, now)

    def release(self, now: float) -> None:
        """Give back what is not acknowledged. Safe to call twice."""
        if self._released:
            return
        self._released = True
        if self in self._queue.consumers:
            self._queue.consumers.remove(self)
        self._queue.requeue(list(self._unacked.values()))
        self._unacked.clear()
        self.resume(now)

    def describe(self) -> dict[str, object]:
        """For inspectors."""
        return {
            "queue": self._queue.name,
            "ack": self.ack,
            "limit": self.limit,
            "encoding": self._encoding,
            "stopped": self._stopped,
            "unacked": list(self._unacked),
        }
