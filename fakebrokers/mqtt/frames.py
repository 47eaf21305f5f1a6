"""The frames of MQTT 3.1.1, in its own words (control packets; OASIS standard, chapter 3).

A message with QoS 2 is confirmed, or acknowledged, where the exchange ends: by PUBCOMP. The steps before that
have the role ``flow``. See docs/protocols/mqtt.md, 2 "What goes over the wire".
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

from fakebrokers.core.frames import Frame, FrameSpec, KeyType, Role, frame_table, frames_in


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
    code_names: ClassVar[Mapping[int, str]] = {
        0: "accepted",
        1: "protocol version not supported",
        2: "client id refused",
        3: "server unavailable",
        4: "bad user name or password",
        5: "not authorized",
        0x84: "protocol version not supported",
    }
    code: int = 0
    session_present: bool = False


class Publish(Frame, frozen=True):
    """PUBLISH: a message of a client, or to one; `packet_id` is 0 with QoS 0."""

    spec = FrameSpec({"in": Role.PUBLISH, "out": Role.DELIVER}, key="packet_id", bulk=("payload",))
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
    """PUBREC: a message with QoS 2 has come; whoever said it may forget all of it but the id."""

    spec = FrameSpec(Role.FLOW, key="packet_id")
    packet_id: int


class Pubrel(Frame, frozen=True):
    """PUBREL: the id may be forgotten, too."""

    spec = FrameSpec(Role.FLOW, key="packet_id")
    packet_id: int


class Pubcomp(Frame, frozen=True):
    """PUBCOMP: it is; the exchange has ended."""

    spec = FrameSpec({"in": Role.ACK, "out": Role.CONFIRM}, key="packet_id")
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


class Disconnect(Frame, frozen=True):
    """DISCONNECT: the client goes, in good order."""

    spec = FrameSpec(Role.CLOSE)


class Kinds(NamedTuple):
    """The classes that a codec makes and a session says: what carries frames of another protocol in its
    messages has classes of its own for some of them, with other roles or names."""

    publish: type[Publish] = Publish
    disconnect: type[Disconnect] = Disconnect


KINDS = Kinds()
FRAMES = frame_table(frames_in(sys.modules[__name__]))
