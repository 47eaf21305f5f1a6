"""The frames of Redis that mean something else here.

What carries packets, and the answers to it, has the role `DATA`: roles in fault plans mean packets.
"""

from __future__ import annotations

import sys

from fakebrokers.core.frames import Frame, FrameSpec, KeyType, Role, frame_table, frames_in
from fakebrokers.moleculer.packets import Packets
from fakebrokers.redis import frames as redis
from fakebrokers.redis.frames import (
    Auth,
    Hello,
    Psubscribe,
    Punsubscribe,
    RedisError,
    Ssubscribe,
    Subscribe,
    Subscribed,
    Sunsubscribe,
    Unsubscribe,
)

_CARRIES = FrameSpec(
    Role.DATA, key="channel", keys=KeyType.TEXT, bulk=("payload",), inside=Packets("channel")
)
_SHARED: list[type[Frame]] = [
    Auth,
    Hello,
    Psubscribe,
    Punsubscribe,
    RedisError,
    Ssubscribe,
    Subscribe,
    Subscribed,
]
_SHARED += [Sunsubscribe, Unsubscribe]

__all__ = ["FRAMES", "KINDS", "Auth", "Blank", "Command", "Hello", "Message", "Pmessage", "Psubscribe"]
__all__ += ["Publish", "Punsubscribe", "RedisError", "Reply", "Smessage", "Spublish", "Ssubscribe"]
__all__ += ["Subscribe", "Subscribed", "Sunsubscribe", "Unsubscribe"]


class Command(redis.Command, frozen=True):
    """Any command that is none of the others."""

    spec = FrameSpec(Role.HANDSHAKE, named=("arguments",))


class Blank(redis.Blank, frozen=True):
    """A line or an array without words; no command, and there is no answer."""

    spec = FrameSpec(Role.HANDSHAKE)


class Publish(redis.Publish, frozen=True):
    """PUBLISH: a message of a client."""

    spec = _CARRIES


class Spublish(redis.Spublish, frozen=True):
    """SPUBLISH: a message to a sharded channel."""

    spec = _CARRIES


class Message(redis.Message, frozen=True):
    """A message to a client."""

    spec = _CARRIES


class Smessage(redis.Smessage, frozen=True):
    """A message to a client that listens to a sharded channel."""

    spec = _CARRIES


class Pmessage(redis.Pmessage, frozen=True):
    """A message to a client that listens to a pattern."""

    spec = _CARRIES


class Reply(redis.Reply, frozen=True):
    """The answer to a command: str, bytes, int, None, tuple or dict.

    A str is a simple string, bytes are a bulk string.
    """

    spec = FrameSpec(Role.DATA, named=("value",))


KINDS = redis.Kinds(Command, Blank, Publish, Spublish, Message, Smessage, Pmessage, Reply, Reply)
FRAMES = frame_table([*_SHARED, *frames_in(sys.modules[__name__])])
