"""BlazingMQ, as one object."""

from __future__ import annotations

from fakebrokers.blazingmq.frames import FRAMES
from fakebrokers.core.wire import Wire
from fakebrokers.protocol import Protocol

WIRE = Wire(
    "events",
    FRAMES,
    port=30114,
    relay="fakebrokers.blazingmq.relay:BlazingRelay",
    dialect="fakebrokers.blazingmq.dialect.dialect:EVENTS",
)

PROTOCOL = Protocol(
    name="blazingmq",
    about="BlazingMQ's client protocol",
    server="fakebrokers.blazingmq.server:BlazingMQ",
    control="fakebrokers.blazingmq.operations:CONTROL",
    behaviours="fakebrokers.blazingmq.behaviours:BEHAVIOURS",
    model="fakebrokers.blazingmq.shown:QueueModel",
    wires=(WIRE,),
    effects="fakebrokers.blazingmq.faults:EFFECTS",
)
