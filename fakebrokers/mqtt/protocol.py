"""MQTT, as one object."""

from __future__ import annotations

from fakebrokers.core.wire import Wire
from fakebrokers.mqtt.frames import FRAMES
from fakebrokers.protocol import Protocol

WIRE = Wire(
    "mqtt",
    FRAMES,
    port=1883,
    relay="fakebrokers.mqtt.relay:MqttRelay",
    dialect="fakebrokers.mqtt.dialect:MQTT",
    write_after=4,  # Mosquitto writes each packet at once; of 2, 4, 8 and 16 four was the fastest here
)

PROTOCOL = Protocol(
    name="mqtt",
    about="MQTT 3.1.1, with lasting sessions",
    server="fakebrokers.mqtt.server:MQTT",
    control="fakebrokers.mqtt.operations:CONTROL",
    behaviours="fakebrokers.mqtt.behaviours:BEHAVIOURS",
    model="fakebrokers.mqtt.shown:ClientModel",
    wires=(WIRE,),
    effects="fakebrokers.mqtt.faults:EFFECTS",
)
