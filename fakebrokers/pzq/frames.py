"""Every multipart message of PZQ.

Sources: docs/protocols/pzq.md, "Producer", "Consumer" and "Monitor"; the seed document, "PZQ
Sockets & Formats".

The routing id that a ROUTER socket puts in front belongs to the socket and stands in no frame. Wherever
a message has a delimiter (the first empty part), None for what follows it means that the delimiter is
missing too: so every shape that a fault may need can be written down as a frame.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import ClassVar

from fakebrokers.core.frames import Frame, FrameSpec, KeyType, Role, frame_table, frames_in

#: A multipart message: its parts in order, without routing id.
Parts = tuple[bytes, ...]


class Produce(Frame, frozen=True, gc=False):
    """Producer to broker, receive socket: ``[id][headers...][][body...]``.

    Attributes:
        id: The producer's own name for the message; any bytes, may be empty.
        headers: Parts before the delimiter, none of them empty.
        body: Parts after the delimiter, empty ones included; None without a delimiter.
    """

    spec = FrameSpec(Role.PUBLISH, key="id", keys=KeyType.BYTES, bulk=("body",))
    id: bytes
    headers: Parts = ()
    body: Parts | None = ()


class ProduceAck(Frame, frozen=True, gc=False):
    """Broker to producer: the message is stored. ``[id][1][headers...][][texts...]``.

    Attributes:
        id: The producer's id, bytewise.
        status: ``1``; None leaves the part out.
        headers: Further protocol parts; the daemon sends none, the seed announces them.
        texts: Descriptive messages after the delimiter; None without a delimiter.
    """

    spec = FrameSpec(Role.CONFIRM, key="id", keys=KeyType.BYTES, status="code")
    code_names: ClassVar[Mapping[int, str]] = {1: "stored"}
    id: bytes
    status: bytes | None = b"1"
    headers: Parts = ()
    texts: Parts | None = ()

    @property
    def code(self) -> int:
        """1: stored."""
        return 1


class ProduceNack(Frame, frozen=True, gc=False):
    """Broker to producer: the message is not stored. ``[id][0][headers...][][reason]``.

    Attributes:
        id: The producer's id, bytewise.
        status: ``0``; None leaves the part out.
        headers: Further protocol parts; the daemon sends none, the seed announces them.
        texts: After the delimiter: the reason, as text; None without a delimiter.
    """

    spec = FrameSpec(Role.REJECT, key="id", keys=KeyType.BYTES, status="code")
    code_names: ClassVar[Mapping[int, str]] = {0: "not stored"}
    id: bytes
    status: bytes | None = b"0"
    headers: Parts = ()
    texts: Parts | None = ()

    @property
    def code(self) -> int:
        """0: not stored."""
        return 0


class Delivery(Frame, frozen=True, gc=False):
    """Broker to consumer, send socket: ``[key][sent][timeout][headers...][][body...]``.

    Attributes:
        key: The store's identity of the message; the consumer acknowledges with it.
        sent: Time of this delivery in microseconds since 1970, ASCII decimal on the wire. Bytes are
            sent as they are; None leaves the part out.
        timeout: Ack timeout in microseconds; as `sent`.
        headers: Further protocol parts; the daemon sends none, the seed announces them.
        body: Parts after the delimiter; None without a delimiter.
    """

    spec = FrameSpec(Role.DELIVER, key="key", keys=KeyType.BYTES, bulk=("body",))
    key: bytes
    sent: int | bytes | None
    timeout: int | bytes | None
    headers: Parts = ()
    body: Parts | None = ()


class ConsumerAck(Frame, frozen=True, gc=False):
    """Consumer to broker, send socket: ``[key][status]``.

    Attributes:
        key: As it was delivered.
        status: Exactly ``1`` is positive; everything else is negative.
        extra: Parts after the status; ignored.
    """

    spec = FrameSpec(Role.ACK, key="key", keys=KeyType.BYTES, status="code")
    code_names: ClassVar[Mapping[int, str]] = {0: "not processed", 1: "processed"}
    key: bytes
    status: bytes
    extra: Parts = ()

    @property
    def code(self) -> int:
        """1: processed; 0: anything else."""
        return int(self.status == b"1")


class MonitorRequest(Frame, frozen=True, gc=False):
    """Client to broker, monitor socket: only the last part counts.

    Attributes:
        command: The last part; ``MONITOR`` is the only one that is answered.
        envelope: The parts before it: the empty one that a REQ socket puts there.
    """

    way = "in"
    spec = FrameSpec(Role.REQUEST)
    command: bytes
    envelope: Parts = ()


class MonitorReply(Frame, frozen=True, gc=False):
    """Broker to client, monitor socket: ``[][text]``.

    Attributes:
        text: Lines ``key: value``.
        extra: Parts after the text; the daemon sends none.
    """

    way = "out"
    spec = FrameSpec(Role.RESPONSE)
    text: bytes
    extra: Parts = ()


FRAMES = frame_table(frames_in(sys.modules[__name__]))
