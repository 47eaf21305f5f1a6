"""The frames of MQTT 3.1.1, in its own words (control packets; OASIS standard, chapter 3).

What carries packets of nodes has the role `DATA`: roles in fault plans mean those.
"""

from __future__ import annotations

import sys

from fakebrokers.core.frames import Frame, FrameSpec, KeyType, Role, frame_table, frames_in
from fakebrokers.moleculer.packets import Packets

_PACKETS = Packets("topic")


class Will(Frame, frozen=True):
    """What the server says for a client that goes without DISCONNECT."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False


class Connect(Frame, frozen=True):
    """CONNECT: who the client is; `keep_alive` in seconds, 0 for none."""

    way = "in"
    spec = FrameSpec(Role.HANDSHAKE, key="client_id", keys=KeyType.TEXT, secret=("user", "password"))
    client_id: str
    keep_alive: int = 60
    clean: bool = True
    will: Will | None = None
    user: str | None = None
    password: bytes | None = None
    protocol: str = "MQTT"
    level: int = 4


class Connack(Frame, frozen=True):
    """CONNACK: 0 the client is in, 1 to 5 it is not, 0x84 it speaks MQTT 5."""

    way = "out"
    spec = FrameSpec(Role.HANDSHAKE, status="code")
    code: int = 0
    session_present: bool = False


class Publish(Frame, frozen=True):
    """PUBLISH: a message of a client, or to one; `packet_id` with QoS 1 and 2 only."""

    spec = FrameSpec(Role.DATA, key="topic", keys=KeyType.TEXT, bulk=("payload",), inside=_PACKETS)
    topic: str
    payload: bytes
    qos: int = 0
    packet_id: int = 0
    retain: bool = False
    dup: bool = False


class Puback(Frame, frozen=True):
    """PUBACK: a message with QoS 1 has come."""

    spec = FrameSpec({"in": Role.ACK, "out": Role.CONFIRM}, key="packet_id")
    packet_id: int


class Pubrec(Frame, frozen=True):
    """PUBREC: a message with QoS 2 has come."""

    spec = FrameSpec(Role.FLOW, key="packet_id")
    packet_id: int


class Pubrel(Frame, frozen=True):
    """PUBREL: its id may be forgotten."""

    spec = FrameSpec(Role.FLOW, key="packet_id")
    packet_id: int


class Pubcomp(Frame, frozen=True):
    """PUBCOMP: it is."""

    spec = FrameSpec(Role.FLOW, key="packet_id")
    packet_id: int


class Subscribe(Frame, frozen=True):
    """SUBSCRIBE: topic filters, each with the highest QoS that is wanted."""

    way = "in"
    spec = FrameSpec(Role.OPEN, key="packet_id")
    packet_id: int
    filters: tuple[tuple[str, int], ...]


class Suback(Frame, frozen=True):
    """SUBACK: the QoS that each filter got, 128 for none."""

    way = "out"
    spec = FrameSpec(Role.OPEN, key="packet_id")
    packet_id: int
    codes: tuple[int, ...]


class Unsubscribe(Frame, frozen=True):
    """UNSUBSCRIBE: from these filters."""

    way = "in"
    spec = FrameSpec(Role.SHUT, key="packet_id")
    packet_id: int
    filters: tuple[str, ...]


class Unsuback(Frame, frozen=True):
    """UNSUBACK: done."""

    way = "out"
    spec = FrameSpec(Role.SHUT, key="packet_id")
    packet_id: int


class Pingreq(Frame, frozen=True):
    """PINGREQ: does the server live?"""

    way = "in"
    spec = FrameSpec(Role.HEARTBEAT)


class Pingresp(Frame, frozen=True):
    """PINGRESP: it does."""

    way = "out"
    spec = FrameSpec(Role.HEARTBEAT)


class MqttDisconnect(Frame, frozen=True):
    """DISCONNECT: the client goes, in good order."""

    spec = FrameSpec(Role.CLOSE)


FRAMES = frame_table(frames_in(sys.modules[__name__]))
