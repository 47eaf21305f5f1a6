"""What all connections of the MQTT server share, with fake nodes beside the clients."""

from __future__ import annotations

from typing import Any

from fakebrokers.moleculer.bus import Bus, BusOptions, Listening, nobody
from fakebrokers.mqtt.broker import MqttBroker
from fakebrokers.mqtt.client import Client
from fakebrokers.mqtt.profile import Profile

#: A node that speaks MQTT 5 is told so in words that it knows.
PROFILE = Profile(name="real", code_for_mqtt_5=0x84)


class MqttBus(Bus, MqttBroker):
    """Topics and clients."""

    def __init__(self, options: BusOptions) -> None:
        users = {options.user: options.password} if options.needs_login else {}
        MqttBroker.__init__(self, PROFILE, users)
        Bus.__init__(self, options)

    def publish(self, topic: str, payload: bytes, now: float, node: str = "") -> int:
        self.now = now
        return self.route(Listening(nobody, node), topic, payload, 0)

    def hears(self, origin: Any, listener: Any) -> bool:
        return not (self.partitions and self.parted(origin.node, _node_of(listener)))


def _node_of(listener: Any) -> str:
    if isinstance(listener, Client):
        listener = listener.session
    return "" if listener is None else str(listener.node)
