"""NATS, as one object."""

from __future__ import annotations

from fakebrokers.core.wire import Wire
from fakebrokers.nats.frames import FRAMES
from fakebrokers.protocol import Protocol

WIRE = Wire(
    "nats",
    FRAMES,
    port=4222,
    relay="fakebrokers.nats.relay:NatsRelay",
    dialect="fakebrokers.nats.dialect:NATS",
)

PROTOCOL = Protocol(
    name="nats",
    about="NATS, without JetStream",
    server="fakebrokers.nats.server:NATS",
    control="fakebrokers.nats.operations:CONTROL",
    behaviours="fakebrokers.nats.behaviours:BEHAVIOURS",
    model="fakebrokers.nats.shown:SubjectModel",
    wires=(WIRE,),
    answers_in_order=True,  # PONG
    confirms=False,
    effects="fakebrokers.nats.faults:EFFECTS",
)
