"""Which MQTT server the fake is (docs/protocols/mqtt.md, 1 "The server that was measured")."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from fakebrokers.options import Count, Seconds


class Profile(msgspec.Struct, frozen=True):
    """The behaviour of one version.

    Attributes:
        name: What users ask for.
        max_inflight: Messages with QoS 1 and 2 that a client may have unacknowledged; 0 for no limit.
        max_queued: Messages that wait for a client besides; more are dropped.
        max_size: Bytes of a packet; 0 for what MQTT allows (256 MiB).
        connect_s: How long a client may take for its CONNECT.
        patience: The server gives up a client that is silent for this many of its keep alives (3.1.2.10).
        code_for_mqtt_5: What a client of MQTT 5 is refused with: 1 (3.1.2.2), or 0x84, MQTT 5's word for it.
    """

    name: str
    max_inflight: Count = 20
    max_queued: Count = 1000
    max_size: Annotated[int, Meta(ge=0, lt=1 << 28)] = 0
    connect_s: Seconds = 90.0
    patience: Annotated[float, Meta(ge=1)] = 1.5
    code_for_mqtt_5: Annotated[int, Meta(ge=1, le=0xFF)] = 1


V2_0 = Profile(name="2.0")

PROFILES = {"real": V2_0, "2.0": V2_0}
