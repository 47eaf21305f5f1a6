"""The frames of MQTT that mean something else here; one has its name in front, for a packet is called so.

What carries packets has the role `DATA`: roles in fault plans mean packets.
"""

from __future__ import annotations

import sys

from fakebrokers.core.frames import Frame, FrameSpec, KeyType, Role, frame_table, frames_in
from fakebrokers.moleculer.packets import Packets
from fakebrokers.mqtt import frames as mqtt
from fakebrokers.mqtt.frames import (
    Connack,
    Connect,
    Pingreq,
    Pingresp,
    Puback,
    Pubcomp,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
    Will,
)

_SHARED: list[type[Frame]] = [
    Connect,
    Connack,
    Puback,
    Pubrec,
    Pubrel,
    Pubcomp,
    Subscribe,
    Suback,
    Unsubscribe,
    Unsuback,
]
_SHARED += [Pingreq, Pingresp]

__all__ = ["FRAMES", "KINDS", "Connack", "Connect", "MqttDisconnect", "Pingreq", "Pingresp", "Puback"]
__all__ += ["Pubcomp", "Publish", "Pubrec", "Pubrel", "Suback", "Subscribe", "Unsuback", "Unsubscribe"]
__all__ += ["Will"]


class Publish(mqtt.Publish, frozen=True):
    """PUBLISH: a message of a client, or to one; `packet_id` is 0 with QoS 0."""

    spec = FrameSpec(Role.DATA, key="topic", keys=KeyType.TEXT, bulk=("payload",), inside=Packets("topic"))


class MqttDisconnect(mqtt.Disconnect, frozen=True):
    """DISCONNECT: the client goes, in good order."""


KINDS = mqtt.Kinds(Publish, MqttDisconnect)
FRAMES = frame_table([*_SHARED, *frames_in(sys.modules[__name__])])
