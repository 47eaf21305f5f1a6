"""Both directions of a connection that a proxy passes on to a Redis server."""

from __future__ import annotations

from fakebrokers.core.frames import Frame
from fakebrokers.core.relay import Relay
from fakebrokers.redis.codec import RedisCodec
from fakebrokers.redis.frames import Hello


class RedisRelay(Relay):
    """Answers that a fault has changed are RESP3 if the client has asked for that."""

    codec = RedisCodec

    def __init__(self) -> None:
        self._answers = self.codec("client")
        super().__init__(self.codec("server"), self._answers)

    def heard(self, frame: Frame) -> None:
        if isinstance(frame, Hello) and frame.version:
            self._answers.resp3 = frame.version == "3"
