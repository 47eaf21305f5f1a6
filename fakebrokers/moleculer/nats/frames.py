"""The frames of NATS, in its own words; those that would be called like a packet have its name in front.

What carries packets has the role `DATA`, so that roles in fault plans mean packets.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from fakebrokers.core.frames import Frame, FrameSpec, KeyType, Role, frame_table, frames_in
from fakebrokers.moleculer.packets import Packets

_PACKETS = Packets("subject")


class ServerInfo(Frame, frozen=True):
    """INFO: what the server is, the first thing that it says."""

    way = "out"
    spec = FrameSpec(Role.HANDSHAKE)
    options: Mapping[str, Any]


class Connect(Frame, frozen=True):
    """CONNECT: what the client is and wants."""

    way = "in"
    spec = FrameSpec(Role.HANDSHAKE, secret=("credentials",), named=("options",))
    options: Mapping[str, Any]
    credentials: Mapping[str, Any] = {}


class Sub(Frame, frozen=True):
    """SUB: the client listens to a subject, perhaps as one of a queue group."""

    way = "in"
    spec = FrameSpec(Role.OPEN, key="sid", keys=KeyType.TEXT)
    subject: str
    sid: str
    queue: str = ""


class Unsub(Frame, frozen=True):
    """UNSUB: it listens no more, at once or after `limit` messages."""

    way = "in"
    spec = FrameSpec(Role.SHUT, key="sid", keys=KeyType.TEXT)
    sid: str
    limit: int | None = None


class Pub(Frame, frozen=True):
    """PUB: a message of a client."""

    way = "in"
    spec = FrameSpec(Role.DATA, key="subject", keys=KeyType.TEXT, bulk=("payload",), inside=_PACKETS)
    subject: str
    payload: bytes
    reply: str = ""


class Hpub(Frame, frozen=True):
    """HPUB: the same with headers, which begin with ``NATS/1.0``."""

    way = "in"
    spec = FrameSpec(Role.DATA, key="subject", keys=KeyType.TEXT, bulk=("payload",), inside=_PACKETS)
    subject: str
    headers: bytes
    payload: bytes
    reply: str = ""


class Msg(Frame, frozen=True):
    """MSG: a message to a client."""

    way = "out"
    spec = FrameSpec(Role.DATA, key="subject", keys=KeyType.TEXT, bulk=("payload",), inside=_PACKETS)
    subject: str
    sid: str
    payload: bytes
    reply: str = ""


class Hmsg(Frame, frozen=True):
    """HMSG: the same with headers; without a body also what the server says about a request."""

    way = "out"
    spec = FrameSpec(Role.DATA, key="subject", keys=KeyType.TEXT, bulk=("payload",), inside=_PACKETS)
    subject: str
    sid: str
    headers: bytes
    payload: bytes
    reply: str = ""


class NatsPing(Frame, frozen=True):
    """PING, of either side."""

    spec = FrameSpec(Role.HEARTBEAT)


class NatsPong(Frame, frozen=True):
    """PONG, of either side."""

    spec = FrameSpec(Role.HEARTBEAT)


class Ok(Frame, frozen=True):
    """+OK: the answer to everything where the client asked for it."""

    way = "out"
    spec = FrameSpec(Role.DATA)


class Err(Frame, frozen=True):
    """-ERR: what the client did wrong; mostly the last thing that the server says."""

    spec = FrameSpec(Role.REJECT)
    text: str


FRAMES = frame_table(frames_in(sys.modules[__name__]))
