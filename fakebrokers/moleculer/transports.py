"""The transporters: for each name the bus, and the session and codec of a connection to it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from fakebrokers.core.session import Codec, Session
from fakebrokers.moleculer.bus import Bus, BusOptions
from fakebrokers.moleculer.mqtt.bus import MqttBus
from fakebrokers.moleculer.mqtt.codec import MqttCodec
from fakebrokers.moleculer.mqtt.session import MqttSession
from fakebrokers.moleculer.nats.bus import NatsBus
from fakebrokers.moleculer.nats.codec import NatsCodec
from fakebrokers.moleculer.nats.session import NatsSession
from fakebrokers.moleculer.redis.bus import RedisBus
from fakebrokers.moleculer.redis.codec import RedisCodec
from fakebrokers.moleculer.redis.session import RedisSession


class Transport(NamedTuple):
    """How one transporter is made; a bus draws the name of its server, if it has one."""

    bus: Callable[[BusOptions, Random], Bus]
    session: Callable[[Any], tuple[Session, Codec]]


def _nats_session(bus: NatsBus) -> tuple[Session, Codec]:
    codec = NatsCodec(max_payload=bus.options.max_payload)
    return NatsSession(bus, codec), codec


def _redis_session(bus: RedisBus) -> tuple[Session, Codec]:
    codec = RedisCodec()
    return RedisSession(bus, codec), codec


def _mqtt_session(bus: MqttBus) -> tuple[Session, Codec]:
    codec = MqttCodec()
    return MqttSession(bus, codec), codec


TRANSPORTS = {
    "nats": Transport(NatsBus, _nats_session),
    "redis": Transport(lambda options, _: RedisBus(options), _redis_session),
    "mqtt": Transport(lambda options, _: MqttBus(options), _mqtt_session),
}
