"""What nodes say to each other, whatever carries it (docs/protocols/moleculer.md, 4).

Fields have the names that they have on the wire. A field that is not there is `UNSET`, one that is null is
None: nodes tell them apart. What no field is for stands in `more`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, ClassVar

import msgspec
from msgspec import UNSET

from fakebrokers.core.frames import Frame, FrameSpec, KeyType, Role, frames_in
from fakebrokers.moleculer.serialization import serializer_of
from fakebrokers.moleculer.serializers import Serializer, Unreadable
from fakebrokers.moleculer.topics import topic_of

#: The status of an answer that has no error code.
OK, FAILED = 200, 500


class Packet(Frame, frozen=True, kw_only=True):
    """Base of all packets; `ver` and `sender` stand last on the wire.

    Attributes:
        COMMAND: The word in the topic.
    """

    COMMAND: ClassVar[str]
    more: Mapping[str, Any] = msgspec.field(default_factory=dict)
    ver: Any = UNSET
    sender: Any = UNSET


class Discover(Packet, frozen=True, kw_only=True):
    """Asks for the INFO of all nodes, or of one."""

    COMMAND = "DISCOVER"
    spec = FrameSpec(Role.HANDSHAKE, key="sender", keys=KeyType.TEXT)


class Info(Packet, frozen=True, kw_only=True):
    """What a node is and which services it offers."""

    COMMAND = "INFO"
    spec = FrameSpec(Role.OPEN, key="sender", keys=KeyType.TEXT)
    services: Any = UNSET
    ipList: Any = UNSET
    hostname: Any = UNSET
    client: Any = UNSET
    config: Any = UNSET
    instanceID: Any = UNSET
    metadata: Any = UNSET
    seq: Any = UNSET


class Disconnect(Packet, frozen=True, kw_only=True):
    """A node stops."""

    COMMAND = "DISCONNECT"
    spec = FrameSpec(Role.CLOSE, key="sender", keys=KeyType.TEXT)


class Heartbeat(Packet, frozen=True, kw_only=True):
    """A node lives; `cpu` is its load in percent."""

    COMMAND = "HEARTBEAT"
    spec = FrameSpec(Role.HEARTBEAT, key="sender", keys=KeyType.TEXT)
    cpu: Any = UNSET


class Ping(Packet, frozen=True, kw_only=True):
    """Asks whether a node answers; `time` in milliseconds since 1970."""

    COMMAND = "PING"
    spec = FrameSpec(Role.HEARTBEAT, key="id", keys=KeyType.TEXT)
    time: Any = UNSET
    id: Any = UNSET


class Pong(Packet, frozen=True, kw_only=True):
    """The answer to a PING, with its `time` and when it arrived."""

    COMMAND = "PONG"
    spec = FrameSpec(Role.HEARTBEAT, key="id", keys=KeyType.TEXT)
    time: Any = UNSET
    id: Any = UNSET
    arrived: Any = UNSET


class Request(Packet, frozen=True, kw_only=True):
    """Calls an action; `timeout` in milliseconds, 0 for none. With `stream` it is one chunk of an upload."""

    COMMAND = "REQ"
    spec = FrameSpec(Role.REQUEST, key="id", keys=KeyType.TEXT)
    says = ("action", "params")
    id: Any = UNSET
    action: Any = UNSET
    params: Any = UNSET
    meta: Any = UNSET
    headers: Any = UNSET
    timeout: Any = UNSET
    level: Any = UNSET
    tracing: Any = UNSET
    parentID: Any = UNSET
    requestID: Any = UNSET
    caller: Any = UNSET
    stream: Any = UNSET
    seq: Any = UNSET


class Response(Packet, frozen=True, kw_only=True):
    """The answer to a request, or one chunk of it."""

    COMMAND = "RES"
    spec = FrameSpec(Role.RESPONSE, key="id", keys=KeyType.TEXT, status="status")
    code_names: ClassVar[Mapping[int, str]] = {OK: "success"}
    says = ("data", "error")
    id: Any = UNSET
    meta: Any = UNSET
    headers: Any = UNSET
    success: Any = UNSET
    data: Any = UNSET
    error: Any = UNSET
    stream: Any = UNSET
    seq: Any = UNSET

    @property
    def status(self) -> int:
        """200 for success; else the error's code, 500 if it has none."""
        if self.success is True:
            return OK
        code = self.error.get("code") if isinstance(self.error, Mapping) else None
        return code if isinstance(code, int) and not isinstance(code, bool) else FAILED

    def code_name(self, code: int) -> str:
        """By a number alone an error is not known: the packet names it."""
        name = self.error.get("name") if isinstance(self.error, Mapping) else None
        return str(name) if name and self.success is not True else super().code_name(code)


class Event(Packet, frozen=True, kw_only=True):
    """News of a node to others; to all groups if `groups` is not there."""

    COMMAND = "EVENT"
    spec = FrameSpec({"in": Role.PUBLISH, "out": Role.DELIVER}, key="id", keys=KeyType.TEXT)
    says = ("event", "data")
    id: Any = UNSET
    event: Any = UNSET
    data: Any = UNSET
    groups: Any = UNSET
    broadcast: Any = UNSET
    meta: Any = UNSET
    headers: Any = UNSET
    level: Any = UNSET
    tracing: Any = UNSET
    parentID: Any = UNSET
    requestID: Any = UNSET
    caller: Any = UNSET
    needAck: Any = UNSET


class BrokenPacket(Frame, frozen=True):
    """Bytes in the place of a packet; only faults make it."""

    spec = FrameSpec(Role.MALFORMED)
    command: str
    payload: bytes


PACKETS: tuple[type[Packet], ...] = tuple(
    kind for kind in frames_in(sys.modules[__name__]) if issubclass(kind, Packet)
)
#: By the word in the topic; balanced requests and events are of the same kind.
BY_COMMAND: Mapping[str, type[Packet]] = {
    **{kind.COMMAND: kind for kind in PACKETS},
    "REQB": Request,
    "EVENTB": Event,
}

_OWN = {
    kind: tuple(name for name in kind.__struct_fields__ if name not in ("more", "ver", "sender"))
    for kind in PACKETS
}
_KNOWN = {kind: frozenset((*names, "ver", "sender")) for kind, names in _OWN.items()}


def packet_from(kind: type[Packet], values: Mapping[str, Any]) -> Packet:
    """A packet of that kind with these values."""
    known = _known(kind)
    more = {name: value for name, value in values.items() if name not in known}
    return kind(**{name: value for name, value in values.items() if name in known}, more=more)


def values_of(packet: Packet) -> dict[str, Any]:
    """What goes to the wire, in the order in which real nodes have it."""
    values = {name: getattr(packet, name) for name in _own(type(packet))}
    values = {**values, **packet.more, "ver": packet.ver, "sender": packet.sender}
    return {name: value for name, value in values.items() if value is not UNSET}


def _own(kind: type[Packet]) -> tuple[str, ...]:
    return _OWN.get(kind) or tuple(n for n in kind.__struct_fields__ if n not in ("more", "ver", "sender"))


def _known(kind: type[Packet]) -> frozenset[str]:
    return _KNOWN.get(kind) or frozenset((*_own(kind), "ver", "sender"))


def read_packet(topic: str, payload: bytes, serializer: Serializer | None = None) -> Packet:
    """The packet in a message.

    Args:
        serializer: Of the packet; None: the one that its first bytes show.

    Raises:
        Unreadable: The topic is none of Moleculer's, or the payload is no packet.
    """
    parts = topic_of(topic)
    if parts is None:
        raise Unreadable(f"expected a topic such as MOL.REQ.node-1, got {topic!r}")
    kind = BY_COMMAND[parts.command]
    values = (serializer or serializer_of(payload)).read(parts.command.removesuffix("B"), payload)
    if not isinstance(values, dict):
        # a null has no ver and no sender, like an empty packet: real nodes drop both the same way
        if values is not None:
            raise Unreadable(f"expected an object in a packet, got {values!r:.60}")
        values = {}
    return packet_from(kind, values)


def write_packet(packet: Packet, like: bytes) -> bytes:
    """The payload of a packet, in the serializer of the payload that it takes the place of."""
    return serializer_of(like).write(packet.COMMAND, values_of(packet))


class Packets:
    """How to look into a bus message (`frames.Inside`).

    Args:
        topic: Name of the field that holds the topic.
        payload: Name of the field that holds the packet.
    """

    def __init__(self, topic: str, payload: str = "payload") -> None:
        self._topic = topic
        self._payload = payload

    def kinds(self) -> Iterable[type[Frame]]:
        """All packets that go over a bus."""
        return PACKETS

    def open(self, envelope: Any) -> Frame | None:
        """The packet; None if there is none that can be read."""
        return _opened(getattr(envelope, self._topic), getattr(envelope, self._payload))

    def wrap(self, envelope: Any, inner: Frame) -> Frame:
        """The message with another packet inside."""
        if isinstance(inner, BrokenPacket):
            payload = inner.payload
        else:
            assert isinstance(inner, Packet)
            payload = write_packet(inner, getattr(envelope, self._payload))
        wrapped: Frame = msgspec.structs.replace(envelope, **{self._payload: payload})
        return wrapped


@lru_cache(maxsize=64)
def _opened(topic: str, payload: bytes) -> Packet | None:
    """Several rules, and several receivers, look into the same message."""
    if not topic.startswith("MOL"):
        return None
    try:
        return read_packet(topic, payload)
    except Unreadable:
        return None


def packet_in(frame: Frame) -> Packet | None:
    """The packet in a frame of whatever wire, or that it is itself; None if there is none."""
    inside = type(frame).spec.inside if hasattr(type(frame), "spec") else None
    found = frame if inside is None else inside.open(frame)
    return found if isinstance(found, Packet) else None
