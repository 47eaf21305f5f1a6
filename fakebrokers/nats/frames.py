"""The frames of NATS, in its own words (docs/protocols/nats.md, 2 "What goes over the wire").

NATS has no frame in which a consumer says that it has processed a message, so none has the role ``ack``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from fakebrokers.core.frames import Frame, FrameSpec, KeyType, Role, frame_table, frames_in


class Info(Frame, frozen=True):
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
    spec = FrameSpec(Role.PUBLISH, key="subject", keys=KeyType.TEXT, bulk=("payload",))
    subject: str
    payload: bytes
    reply: str = ""


class Hpub(Frame, frozen=True):
    """HPUB: the same with headers, which begin with ``NATS/1.0``."""

    way = "in"
    spec = FrameSpec(Role.PUBLISH, key="subject", keys=KeyType.TEXT, bulk=("payload",))
    subject: str
    headers: bytes
    payload: bytes
    reply: str = ""


class Msg(Frame, frozen=True):
    """MSG: a message to a client."""

    way = "out"
    spec = FrameSpec(Role.DELIVER, key="subject", keys=KeyType.TEXT, bulk=("payload",))
    subject: str
    sid: str
    payload: bytes
    reply: str = ""


class Hmsg(Frame, frozen=True):
    """HMSG: the same with headers; without a body also what the server says about a request."""

    way = "out"
    spec = FrameSpec(Role.DELIVER, key="subject", keys=KeyType.TEXT, bulk=("payload",))
    subject: str
    sid: str
    headers: bytes
    payload: bytes
    reply: str = ""


class Ping(Frame, frozen=True):
    """PING, of either side."""

    spec = FrameSpec(Role.HEARTBEAT)


class Pong(Frame, frozen=True):
    """PONG, of either side."""

    spec = FrameSpec(Role.HEARTBEAT)


class Ok(Frame, frozen=True):
    """+OK: the answer to everything where the client asked for it."""

    way = "out"
    spec = FrameSpec(Role.CONFIRM)


class Err(Frame, frozen=True):
    """-ERR: what the client did wrong; mostly the last thing that the server says."""

    spec = FrameSpec(Role.REJECT)
    text: str


class Kinds(NamedTuple):
    """The classes that a codec makes and a session says: what carries frames of another protocol in its
    messages has classes of its own for some of them, with other roles."""

    info: type[Info] = Info
    pub: type[Pub] = Pub
    hpub: type[Hpub] = Hpub
    msg: type[Msg] = Msg
    hmsg: type[Hmsg] = Hmsg
    ping: type[Ping] = Ping
    pong: type[Pong] = Pong
    ok: type[Ok] = Ok


KINDS = Kinds()
FRAMES = frame_table(frames_in(sys.modules[__name__]))
