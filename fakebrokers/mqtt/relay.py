"""Both directions of a connection that a proxy passes on to an MQTT server."""

from __future__ import annotations

from fakebrokers.core.relay import Relay
from fakebrokers.mqtt.codec import MqttCodec


class MqttRelay(Relay):
    """MQTT's packets read the same on both sides."""

    codec = MqttCodec

    def __init__(self) -> None:
        super().__init__(self.codec(), self.codec())
