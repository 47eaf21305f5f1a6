"""One node that is a client of the Redis server, by one of its two connections."""

from __future__ import annotations

from fakebrokers.core.frames import Frame
from fakebrokers.moleculer.bus import NodeSession
from fakebrokers.moleculer.packets import Packet, packet_in
from fakebrokers.moleculer.redis import frames as f
from fakebrokers.moleculer.redis.bus import RedisBus
from fakebrokers.moleculer.redis.codec import RedisCodec
from fakebrokers.moleculer.topics import listener_of
from fakebrokers.redis import session as redis
from fakebrokers.redis.frames import Publish


class RedisSession(NodeSession, redis.RedisSession):
    """The state machine of one connection."""

    broker: RedisBus

    def __init__(self, bus: RedisBus, codec: RedisCodec) -> None:
        super().__init__(bus, codec)
        codec.wrap = self._wrap

    def subscribed(self, channel: str) -> None:
        node = listener_of(channel)
        if node:
            self.knows(node, channel)

    def published(self, frame: Publish) -> None:
        """Of a node's two connections one only publishes: it shows by the sender of its first packet."""
        packet = packet_in(frame) if not self.node and frame.channel.startswith("MOL") else None
        if packet is not None and isinstance(packet.sender, str):
            self.node = packet.sender
            self.link.identify(packet.sender)

    def _wrap(self, frame: Frame) -> Frame | None:
        if not isinstance(frame, Packet):
            return None
        return f.Message(self.topic_for(frame), self.payload_of(frame))
