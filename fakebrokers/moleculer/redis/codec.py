"""RESP on the wire, with packets in its messages."""

from __future__ import annotations

from fakebrokers.core.frames import Frame
from fakebrokers.moleculer.bus import Wrap
from fakebrokers.moleculer.redis.frames import KINDS
from fakebrokers.redis import codec as redis
from fakebrokers.redis import frames as f
from fakebrokers.redis.codec import Side

__all__ = ["RedisCodec", "Side"]


class RedisCodec(redis.RedisCodec):
    """See `fakebrokers.redis.codec.RedisCodec`.

    Attributes:
        wrap: Puts a bare packet into a message.
    """

    wrap: Wrap | None = None

    def __init__(self, side: Side = "server", *, resp3: bool = False, kinds: f.Kinds = KINDS) -> None:
        super().__init__(side, resp3=resp3, kinds=kinds)

    def encode_other(self, frame: Frame) -> bytes:
        """A packet without a message gets one."""
        wrapped = self.wrap(frame) if self.wrap is not None else None
        return super().encode_other(frame) if wrapped is None else self.encode(wrapped)
