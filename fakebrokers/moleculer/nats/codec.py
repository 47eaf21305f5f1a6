"""NATS on the wire, with packets in its messages."""

from __future__ import annotations

from fakebrokers.core.frames import Frame
from fakebrokers.moleculer.bus import Wrap
from fakebrokers.moleculer.nats.frames import KINDS
from fakebrokers.nats import codec as nats
from fakebrokers.nats import frames as f
from fakebrokers.nats.codec import MAX_PAYLOAD, Side

__all__ = ["NatsCodec", "Side"]


class NatsCodec(nats.NatsCodec):
    """See `fakebrokers.nats.codec.NatsCodec`.

    Attributes:
        wrap: Puts a bare packet into a message.
    """

    wrap: Wrap | None = None

    def __init__(
        self, side: Side = "server", max_payload: int = MAX_PAYLOAD, *, kinds: f.Kinds = KINDS
    ) -> None:
        super().__init__(side, max_payload, kinds=kinds)

    def encode_other(self, frame: Frame) -> bytes:
        """A packet without a message gets one."""
        wrapped = self.wrap(frame) if self.wrap is not None else None
        return super().encode_other(frame) if wrapped is None else self.encode(wrapped)
