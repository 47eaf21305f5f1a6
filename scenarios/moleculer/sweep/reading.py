"""What is spoken on a connection: NATS, which the judge reads itself, or what another transporter speaks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

import msgspec

from conformance.decoders import Decoder
from conformance.decoders.moleculer import is_json, read_packet
from conformance.decoders.nats import NatsDecoder
from conformance.run.acts.inside import opened
from fakebrokers.core.frames import Frame
from fakebrokers.moleculer.mqtt.codec import MqttCodec
from fakebrokers.moleculer.nats.codec import NatsCodec
from fakebrokers.moleculer.nats.frames import KINDS, Msg
from fakebrokers.moleculer.packets import Packet, values_of
from fakebrokers.moleculer.redis.codec import RedisCodec
from scenarios.moleculer.sweep.contents import topic_in

Side = Literal["client", "server"]


def wrapped(frame: Frame) -> Frame | None:
    """A packet as a message to the client."""
    if not isinstance(frame, Packet):
        return None
    return Msg(f"MOL.{frame.COMMAND}.client", "1", msgspec.json.encode(values_of(frame)))


def writer(side: Side) -> NatsCodec:
    """The fake's codec, which also takes packets that are in no message."""
    codec = NatsCodec(side, 0)
    codec.wrap = wrapped
    return codec


def nats_decoder(side: Side) -> NatsDecoder:
    """The judge's decoder of NATS, with the frames of Moleculer's."""
    return NatsDecoder(side, KINDS)


def packet_or(carrier: Frame) -> Frame:
    """The packet in a message, or the frame itself if it holds none that can be read.

    The fake opens what is in another serializer than JSON.
    """
    topic, payload = topic_in(carrier), getattr(carrier, "payload", b"")
    if topic and is_json(payload):
        return read_packet(topic, payload) or carrier
    return opened(carrier)


class Wire:
    """What is spoken on a connection: NATS, unless the client's first byte says otherwise."""

    def __init__(self) -> None:
        self.is_known = False
        self.make: Callable[[Side], Decoder] = nats_decoder

    def see(self, side: Side, data: bytes) -> None:
        """The first bytes for one side."""
        if not self.is_known and data:
            self.is_known = True
            if side == "server":
                self.make = _SPOKEN.get(data[:1], nats_decoder)


class AnyWireDecoder:
    """One direction of a connection of any transporter; two of them share what is spoken.

    Attributes:
        chosen: What reads it, from the first byte on.
    """

    def __init__(self, side: Side, wire: Wire) -> None:
        self._side: Side = side
        self._wire = wire
        self.chosen: Decoder | None = None

    @property
    def partial(self) -> int:
        """Bytes of a frame that has not arrived whole."""
        return 0 if self.chosen is None else self.chosen.partial

    def feed(self, unit: bytes) -> Iterable[tuple[Frame, int]]:
        """Take in bytes; each frame that is whole now, with its size in bytes."""
        if self.chosen is None:
            self._wire.see(self._side, unit)
            self.chosen = self._wire.make(self._side)
        return self.chosen.feed(unit)


#: The other protocols, by the first byte of a client.
_SPOKEN: Mapping[bytes, Callable[[Side], Decoder]] = {
    b"*": lambda side: RedisCodec(side, resp3=True),
    b"\x10": lambda side: MqttCodec(),
}
