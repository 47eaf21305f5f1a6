"""The frames of Redis (RESP2 and RESP3): commands that matter here by their names, and what comes back.

What carries packets, and the answers to it, has the role `DATA`: roles in fault plans mean packets.
"""

from __future__ import annotations

import sys
from typing import Any

from fakebrokers.core.frames import Frame, FrameSpec, KeyType, Role, frame_table, frames_in
from fakebrokers.moleculer.packets import Packets

_PACKETS = Packets("channel")


class Command(Frame, frozen=True):
    """Any command that is none of the others."""

    spec = FrameSpec(Role.HANDSHAKE, named=("arguments",))
    verb: str
    arguments: tuple[bytes, ...] = ()


class Blank(Frame, frozen=True):
    """A line or an array without words; no command, and there is no answer."""

    spec = FrameSpec(Role.HANDSHAKE)


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
    spec = FrameSpec(Role.DATA, key="channel", keys=KeyType.TEXT, bulk=("payload",), inside=_PACKETS)
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
    spec = FrameSpec(Role.DATA, key="channel", keys=KeyType.TEXT, bulk=("payload",), inside=_PACKETS)
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
    spec = FrameSpec(Role.DATA, key="channel", keys=KeyType.TEXT, bulk=("payload",), inside=_PACKETS)
    channel: str
    payload: bytes


class Message(Frame, frozen=True):
    """A message to a client."""

    way = "out"
    spec = FrameSpec(Role.DATA, key="channel", keys=KeyType.TEXT, bulk=("payload",), inside=_PACKETS)
    channel: str
    payload: bytes


class Pmessage(Frame, frozen=True):
    """A message to a client that listens to a pattern."""

    way = "out"
    spec = FrameSpec(Role.DATA, key="channel", keys=KeyType.TEXT, bulk=("payload",), inside=_PACKETS)
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
    spec = FrameSpec(Role.DATA, named=("value",))
    value: Any


class RedisError(Frame, frozen=True):
    """The answer to a command that failed, which may repeat it."""

    spec = FrameSpec(Role.REJECT, named=("text",))
    text: str


FRAMES = frame_table(frames_in(sys.modules[__name__]))
