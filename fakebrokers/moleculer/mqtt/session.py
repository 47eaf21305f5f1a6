"""One node that is a client of the MQTT server."""

from __future__ import annotations

from fakebrokers.core.frames import Frame
from fakebrokers.moleculer.bus import NodeSession
from fakebrokers.moleculer.mqtt import frames as f
from fakebrokers.moleculer.mqtt.bus import MqttBus
from fakebrokers.moleculer.mqtt.codec import MqttCodec
from fakebrokers.moleculer.packets import Packet
from fakebrokers.moleculer.topics import listener_of
from fakebrokers.mqtt import session as mqtt
from fakebrokers.mqtt.topics import is_topic


class MqttSession(NodeSession, mqtt.MqttSession):
    """The state machine of one connection."""

    broker: MqttBus

    def __init__(self, bus: MqttBus, codec: MqttCodec) -> None:
        super().__init__(bus, codec)
        codec.wrap = self._wrap

    def entered(self, id: str) -> None:
        """It shows later which node it is."""

    def subscribed(self, name: str) -> None:
        node = listener_of(name)
        if node and is_topic(name):
            self.knows(node, name)

    def _wrap(self, frame: Frame) -> Frame | None:
        """A bare packet as a message to this client."""
        if not isinstance(frame, Packet):
            return None
        return f.Publish(self.topic_for(frame), self.payload_of(frame))
