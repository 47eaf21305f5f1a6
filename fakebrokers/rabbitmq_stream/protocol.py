"""RabbitMQ's stream protocol, as one object."""

from __future__ import annotations

from fakebrokers.core.wire import Wire
from fakebrokers.protocol import Protocol
from fakebrokers.rabbitmq_stream.frames import FRAMES

WIRE = Wire(
    "stream",
    FRAMES,
    port=5552,
    relay="fakebrokers.rabbitmq_stream.relay:StreamRelay",
    dialect="fakebrokers.rabbitmq_stream.dialect.dialect:STREAM",
)

PROTOCOL = Protocol(
    name="rabbitmq-stream",
    about="RabbitMQ's stream protocol",
    server="fakebrokers.rabbitmq_stream.server:RabbitMQStream",
    control="fakebrokers.rabbitmq_stream.operations:CONTROL",
    behaviours="fakebrokers.rabbitmq_stream.behaviours:BEHAVIOURS",
    model="fakebrokers.rabbitmq_stream.shown:StreamModel",
    wires=(WIRE,),
    effects="fakebrokers.rabbitmq_stream.faults:EFFECTS",
    ordered=True,
)
