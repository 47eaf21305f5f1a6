"""Both directions of a connection that a proxy passes on to a BlazingMQ broker."""

from __future__ import annotations

from fakebrokers.blazingmq.codec import BlazingCodec
from fakebrokers.blazingmq.codes import Encoding, EventType
from fakebrokers.core.frames import Frame
from fakebrokers.core.relay import Relay


class _LearningCodec(BlazingCodec):
    """Writes control messages in the encoding of the last one that it has read."""

    def decode(self, event: bytes) -> Frame:
        kind, encoding = event[4] & 0x3F, event[6] >> 5
        if kind in (EventType.CONTROL, EventType.AUTHENTICATION) and encoding in list(Encoding):
            self.encoding = Encoding(encoding)
        return super().decode(event)


class BlazingRelay(Relay):
    """Each side says in each control message how it is encoded."""

    def __init__(self) -> None:
        super().__init__(_LearningCodec(), _LearningCodec())
