"""Moleculer, as one object."""

from __future__ import annotations

from fakebrokers.core.wire import Wire
from fakebrokers.moleculer.mqtt.frames import FRAMES as MQTT_FRAMES
from fakebrokers.moleculer.nats.frames import FRAMES as NATS_FRAMES
from fakebrokers.moleculer.redis.frames import FRAMES as REDIS_FRAMES
from fakebrokers.moleculer.tcp.frames import FRAMES as TCP_FRAMES
from fakebrokers.protocol import Protocol

NATS = Wire(
    "nats",
    NATS_FRAMES,
    port=4222,
    relay="fakebrokers.moleculer.relays:NatsRelay",
    dialect="fakebrokers.nats.dialect:NATS",
)
REDIS = Wire(
    "redis",
    REDIS_FRAMES,
    port=6379,
    relay="fakebrokers.moleculer.relays:RedisRelay",
    dialect="fakebrokers.redis.dialect:CHANNELS",
)
MQTT = Wire(
    "mqtt",
    MQTT_FRAMES,
    port=1883,
    relay="fakebrokers.moleculer.relays:MqttRelay",
    dialect="fakebrokers.mqtt.dialect:CLEAN",
    write_after=4,  # mosquitto writes each packet at once; of 2, 4, 8 and 16 four was the fastest here
)
#: Nodes take any free port unless they are told which.
TCP = Wire("tcp", TCP_FRAMES, relay="fakebrokers.moleculer.relays:TcpRelay")

PROTOCOL = Protocol(
    name="moleculer",
    about="Moleculer nodes and the bus between them",
    server="fakebrokers.moleculer.server:Moleculer",
    control="fakebrokers.moleculer.operations:CONTROL",
    behaviours="fakebrokers.moleculer.behaviours:BEHAVIOURS",
    model="fakebrokers.moleculer.shown:BusModel",
    wires=(NATS, REDIS, MQTT, TCP),
    effects="fakebrokers.moleculer.faults:EFFECTS",
    variants=("nats", "redis", "mqtt", "tcp"),
)
