"""The frames of Redis (RESP2 and RESP3): commands that matter here by their names, and what comes back.

An answer does not say what it is the answer to; that to PUBLISH is `Published` where it is the fake that
says it. See docs/protocols/redis.md, 2 "What goes over the wire".
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from fakebrokers.core.frames import Frame, FrameSpec, KeyType, Role, frame_table, frames_in


class Command(Frame, frozen=True):
    """Any command that is none of the others."""

    way = "in"
    spec = FrameSpec(Role.REQUEST, named=("arguments",))
    verb: str
    arguments: tuple[bytes, ...] = ()


class Blank(Frame, frozen=True):
    """A line or an array without words; no command, and there is no answer."""

    spec = FrameSpec(Role.REQUEST)


class Auth(Frame, frozen=True):
    """AUTH: a password, or a user and a password."""

    way = "in"
    spec = FrameSpec(Role.HANDSHAKE, secret=("arguments",))
    arguments: tuple[bytes, ...] = ()
    verb: str = "AUTH"


class Hello(Frame, frozen=True):
    """HELLO: which RESP is spoken, and perhaps who the client is."""

    way = "in"
    spec = FrameSpec(Role.HANDSHAKE, secret=("options",))
    version: str = ""
    options: tuple[bytes, ...] = ()
    verb: str = "HELLO"


class Publish(Frame, frozen=True):
    """PUBLISH: a message of a client."""

    way = "in"
    spec = FrameSpec(Role.PUBLISH, key="channel", keys=KeyType.TEXT, bulk=("payload",))
    channel: str
    payload: bytes
    verb: str = "PUBLISH"


class Subscribe(Frame, frozen=True):
    """SUBSCRIBE: the client listens to channels."""

    way = "in"
    spec = FrameSpec(Role.OPEN)
    channels: tuple[str, ...]
    verb: str = "SUBSCRIBE"


class Psubscribe(Frame, frozen=True):
    """PSUBSCRIBE: the client listens to all channels that fit patterns."""

    way = "in"
    spec = FrameSpec(Role.OPEN)
    channels: tuple[str, ...]
    verb: str = "PSUBSCRIBE"


class Unsubscribe(Frame, frozen=True):
    """UNSUBSCRIBE: from these channels, or from all."""

    way = "in"
    spec = FrameSpec(Role.SHUT)
    channels: tuple[str, ...] = ()
    verb: str = "UNSUBSCRIBE"


class Punsubscribe(Frame, frozen=True):
    """PUNSUBSCRIBE: from these patterns, or from all."""

    way = "in"
    spec = FrameSpec(Role.SHUT)
    channels: tuple[str, ...] = ()
    verb: str = "PUNSUBSCRIBE"


class Spublish(Frame, frozen=True):
    """SPUBLISH: a message to a sharded channel."""

    way = "in"
    spec = FrameSpec(Role.PUBLISH, key="channel", keys=KeyType.TEXT, bulk=("payload",))
    channel: str
    payload: bytes
    verb: str = "SPUBLISH"


class Ssubscribe(Frame, frozen=True):
    """SSUBSCRIBE: the client listens to sharded channels."""

    way = "in"
    spec = FrameSpec(Role.OPEN)
    channels: tuple[str, ...]
    verb: str = "SSUBSCRIBE"


class Sunsubscribe(Frame, frozen=True):
    """SUNSUBSCRIBE: from these sharded channels, or from all."""

    way = "in"
    spec = FrameSpec(Role.SHUT)
    channels: tuple[str, ...] = ()
    verb: str = "SUNSUBSCRIBE"


class Smessage(Frame, frozen=True):
    """A message to a client that listens to a sharded channel."""

    way = "out"
    spec = FrameSpec(Role.DELIVER, key="channel", keys=KeyType.TEXT, bulk=("payload",))
    channel: str
    payload: bytes


class Message(Frame, frozen=True):
    """A message to a client."""

    way = "out"
    spec = FrameSpec(Role.DELIVER, key="channel", keys=KeyType.TEXT, bulk=("payload",))
    channel: str
    payload: bytes


class Pmessage(Frame, frozen=True):
    """A message to a client that listens to a pattern."""

    way = "out"
    spec = FrameSpec(Role.DELIVER, key="channel", keys=KeyType.TEXT, bulk=("payload",))
    pattern: str
    channel: str
    payload: bytes


class Subscribed(Frame, frozen=True):
    """How many channels and patterns a client listens to now; `action` is the command."""

    way = "out"
    spec = FrameSpec(Role.OPEN, key="channel", keys=KeyType.TEXT)
    action: str
    channel: str | None
    count: int


class Reply(Frame, frozen=True):
    """The answer to a command: str, bytes, int, None, tuple or dict.

    A str is a simple string, bytes are a bulk string.
    """

    way = "out"
    spec = FrameSpec(Role.RESPONSE, named=("value",))
    value: Any


class Published(Reply, frozen=True):
    """The answer to PUBLISH and SPUBLISH: how many got the message."""

    spec = FrameSpec(Role.CONFIRM)


class RedisError(Frame, frozen=True):
    """The answer to a command that failed, which may repeat it."""

    spec = FrameSpec(Role.REJECT, named=("text",))
    text: str


class Kinds(NamedTuple):
    """The classes that a codec makes and a session says: what carries frames of another protocol in its
    messages has classes of its own for some of them, with other roles."""

    command: type[Command] = Command
    blank: type[Blank] = Blank
    publish: type[Publish] = Publish
    spublish: type[Spublish] = Spublish
    message: type[Message] = Message
    smessage: type[Smessage] = Smessage
    pmessage: type[Pmessage] = Pmessage
    reply: type[Reply] = Reply
    published: type[Reply] = Published


KINDS = Kinds()
FRAMES = frame_table(frames_in(sys.modules[__name__]))
