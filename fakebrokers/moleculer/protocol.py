"""Moleculer, as one object."""

from __future__ import annotations

from fakebrokers.core.wire import Wire
from fakebrokers.moleculer.nats.frames import FRAMES as NATS_FRAMES
from fakebrokers.protocol import Protocol

NATS = Wire("nats", NATS_FRAMES, port=4222)

PROTOCOL = Protocol(
    name="moleculer",
    about="Moleculer nodes and the message bus between them",
    server="fakebrokers.moleculer.server:Moleculer",
    wires=(NATS,),
    variants=("nats",),
)
