"""The messages with QoS 1 and 2 that are under way: which packet comes next, whatever carries it."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.clients.reference.kit import ClientError
from fakebrokers.core.frames import Frame
from fakebrokers.mqtt.frames import Puback, Pubcomp, Publish, Pubrec, Pubrel

MAX_ID = 0xFFFF


class Outgoing:
    """A message of the client's that the server has not acknowledged.

    Attributes:
        is_received: Of QoS 2: the server has said PUBREC.
        size: Bytes of its payload, of which the client has a copy.
    """

    def __init__(self, frame: Publish) -> None:
        self.frame = frame
        self.is_received = False

    @property
    def size(self) -> int:
        return len(self.frame.payload)


class Exchanges:
    """Those of one session.

    Attributes:
        outgoing: By packet id, in the order in which they were sent first.
        received: Messages with QoS 2 from the server that it has not released, by packet id.
        asked: Packet ids of requests that wait for their answer.
        last_id: The packet id that was given last.
    """

    def __init__(self) -> None:
        self.outgoing: dict[int, Outgoing] = {}
        self.received: dict[int, Publish] = {}
        self.asked: set[int] = set()
        self.last_id = 0

    def next_id(self) -> int:
        """A packet id that nothing has which is under way (2.3.1). Raises `ClientError` if all are in use."""
        if len(self.outgoing) + len(self.asked) >= MAX_ID:
            raise ClientError("invalid", "all packet ids are in use")
        while True:
            self.last_id = self.last_id % MAX_ID + 1
            if not self.is_used(self.last_id):
                return self.last_id

    def is_used(self, number: int) -> bool:
        """Whether something that is under way has this packet id."""
        return number in self.outgoing or number in self.asked

    def publish(self, topic: str, payload: bytes, qos: int, *, retain: bool) -> Publish:
        """The packet of a new message."""
        if not qos:
            return Publish(topic, payload, retain=retain)
        frame = Publish(topic, payload, qos, self.next_id(), retain)
        self.outgoing[frame.packet_id] = Outgoing(frame)
        return frame

    def acknowledged(self, frame: Puback | Pubcomp) -> bool:
        """The last step of a message has come; returns whether there is such a message."""
        found = self.outgoing.get(frame.packet_id)
        if found is None or not self.is_last(found, frame):
            return False
        del self.outgoing[frame.packet_id]
        return True

    def is_last(self, message: Outgoing, frame: Puback | Pubcomp) -> bool:
        """Whether this packet ends the exchange of a message."""
        return message.is_received if isinstance(frame, Pubcomp) else message.frame.qos == 1

    def on_pubrec(self, frame: Pubrec) -> Frame | None:
        """The server has a message with QoS 2: it may forget the message, and then its id."""
        found = self.outgoing.get(frame.packet_id)
        if found is not None:
            if found.frame.qos != 2:
                return None
            found.is_received = True
        return Pubrel(frame.packet_id)

    def again(self) -> Iterator[Frame]:
        """What a session that has lasted sends on a new connection, in the old order (4.4)."""
        for number, message in self.outgoing.items():
            yield Pubrel(number) if message.is_received else self.copy(message.frame)

    def copy(self, frame: Publish) -> Publish:
        """A message that is sent again: with DUP, and its packet id (3.3.1.1)."""
        return Publish(frame.topic, frame.payload, frame.qos, frame.packet_id, frame.retain, dup=True)

    def on_publish(self, frame: Publish) -> tuple[Publish | None, Frame | None]:
        """A message from the server: what is to be delivered now, and what is to be answered at once."""
        if frame.qos < 2:
            return frame, None  # PUBACK follows when it has been processed
        self.received.setdefault(frame.packet_id, frame)
        return None, Pubrec(frame.packet_id)

    def on_pubrel(self, frame: Pubrel) -> tuple[Publish | None, Frame]:
        """The server has released a message with QoS 2: it is delivered, once."""
        return self.received.pop(frame.packet_id, None), Pubcomp(frame.packet_id)

    def forget(self) -> None:
        """The server does not remember this session."""
        self.outgoing.clear()
        self.received.clear()
