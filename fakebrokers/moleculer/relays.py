"""Both directions of a connection that a proxy passes on to a bus, or to a node."""

from __future__ import annotations

from fakebrokers.core.relay import Relay
from fakebrokers.moleculer.mqtt.codec import MqttCodec
from fakebrokers.moleculer.nats.codec import NatsCodec
from fakebrokers.moleculer.redis.codec import RedisCodec
from fakebrokers.moleculer.tcp.codec import TcpCodec
from fakebrokers.mqtt import relay as mqtt
from fakebrokers.nats import relay as nats
from fakebrokers.redis import relay as redis


class NatsRelay(nats.NatsRelay):
    """As without packets."""

    codec = NatsCodec


class RedisRelay(redis.RedisRelay):
    """As without packets."""

    codec = RedisCodec


class MqttRelay(mqtt.MqttRelay):
    """As without packets."""

    codec = MqttCodec


class TcpRelay(Relay):
    """What a node says to another one that it has connected to; answers come on a connection of their own."""

    def __init__(self) -> None:
        super().__init__(TcpCodec(), TcpCodec())
