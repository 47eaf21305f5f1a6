"""Both directions of a connection that a proxy passes on to a bus, or to a node."""

from __future__ import annotations

from fakebrokers.core.frames import Frame
from fakebrokers.core.relay import Relay
from fakebrokers.moleculer.mqtt.codec import MqttCodec
from fakebrokers.moleculer.nats.codec import NatsCodec
from fakebrokers.moleculer.redis.codec import RedisCodec
from fakebrokers.moleculer.redis.frames import Hello
from fakebrokers.moleculer.tcp.codec import TcpCodec
from fakebrokers.nats import relay


class NatsRelay(relay.NatsRelay):
    """As without packets."""

    codec = NatsCodec


class RedisRelay(Relay):
    """Answers that a fault has changed are RESP3 if the client has asked for that."""

    def __init__(self) -> None:
        self._answers = RedisCodec("client")
        super().__init__(RedisCodec("server"), self._answers)

    def heard(self, frame: Frame) -> None:
        if isinstance(frame, Hello) and frame.version:
            self._answers.resp3 = frame.version == "3"


class MqttRelay(Relay):
    """MQTT's packets read the same on both sides."""

    def __init__(self) -> None:
        super().__init__(MqttCodec(), MqttCodec())


class TcpRelay(Relay):
    """What a node says to another one that it has connected to; answers come on a connection of their own."""

    def __init__(self) -> None:
        super().__init__(TcpCodec(), TcpCodec())
