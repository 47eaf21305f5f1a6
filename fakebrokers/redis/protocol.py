"""Redis, as one object."""

from __future__ import annotations

from fakebrokers.core.wire import Wire
from fakebrokers.protocol import Protocol
from fakebrokers.redis.frames import FRAMES

WIRE = Wire(
    "redis",
    FRAMES,
    port=6379,
    relay="fakebrokers.redis.relay:RedisRelay",
    dialect="fakebrokers.redis.dialect:REDIS",
)

PROTOCOL = Protocol(
    name="redis",
    about="Redis: channels, strings, lists",
    server="fakebrokers.redis.server:Redis",
    control="fakebrokers.redis.operations:CONTROL",
    behaviours="fakebrokers.redis.behaviours:BEHAVIOURS",
    model="fakebrokers.redis.shown:ChannelModel",
    wires=(WIRE,),
    effects="fakebrokers.redis.faults:EFFECTS",
    answers_in_order=True,
    confirms=False,  # the answer to PUBLISH promises nothing of who was not there
)
