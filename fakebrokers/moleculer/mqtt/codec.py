"""MQTT on the wire, with packets in its messages."""

from __future__ import annotations

from fakebrokers.core.frames import Frame
from fakebrokers.moleculer.bus import Wrap
from fakebrokers.moleculer.mqtt.frames import KINDS
from fakebrokers.mqtt import codec as mqtt
from fakebrokers.mqtt import frames as f

__all__ = ["MqttCodec"]


class MqttCodec(mqtt.MqttCodec):
    """See `fakebrokers.mqtt.codec.MqttCodec`.

    Attributes:
        wrap: Puts a bare packet into a message.
    """

    wrap: Wrap | None = None

    def __init__(self, max_size: int = 0, *, kinds: f.Kinds = KINDS) -> None:
        super().__init__(max_size, kinds=kinds)

    def encode_other(self, frame: Frame) -> bytes:
        """A packet without a message gets one."""
        wrapped = self.wrap(frame) if self.wrap is not None else None
        return super().encode_other(frame) if wrapped is None else self.encode(wrapped)
