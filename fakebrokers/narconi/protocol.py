"""Narconi, as one object."""

from __future__ import annotations

from fakebrokers.core.wire import Wire
from fakebrokers.narconi.frames import FRAMES
from fakebrokers.protocol import Protocol

#: One connection begins with HTTP requests and may become a WebSocket.
WIRE = Wire("http", FRAMES, port=8080, relay="fakebrokers.narconi.relay:NarconiRelay")

PROTOCOL = Protocol(
    name="narconi",
    about="Narconi queues over HTTP and WebSocket",
    server="fakebrokers.narconi.server:Narconi",
    control="fakebrokers.narconi.operations:CONTROL",
    behaviours="fakebrokers.narconi.behaviours:BEHAVIOURS",
    model="fakebrokers.narconi.shown:QueueModel",
    wires=(WIRE,),
    answers_in_order=True,
    effects="fakebrokers.narconi.faults:EFFECTS",
)
