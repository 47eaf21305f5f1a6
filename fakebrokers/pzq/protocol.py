"""PZQ, as one object."""

from __future__ import annotations

from fakebrokers.core.wire import Wire
from fakebrokers.protocol import Protocol
from fakebrokers.pzq.frames import FRAMES

#: libzmq owns the bytes; what is spoken is messages of several parts.
WIRE = Wire("zmq", FRAMES, stream=False, port=11131)

PROTOCOL = Protocol(
    name="pzq",
    about="PZQ store-and-forward queue over ZeroMQ",
    server="fakebrokers.pzq.server:PZQ",
    control="fakebrokers.pzq.operations:CONTROL",
    behaviours="fakebrokers.pzq.behaviours:BEHAVIOURS",
    model="fakebrokers.pzq.shown:QueueModel",
    wires=(WIRE,),
    effects="fakebrokers.pzq.faults:EFFECTS",
)
