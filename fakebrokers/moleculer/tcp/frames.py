"""The frames of Moleculer's TCP transporter: packets with a target, and gossip.

There is no envelope and no server: what goes over a connection are the packets themselves
(docs/protocols/moleculer.md, 6.4).
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from fakebrokers.core.frames import FrameSpec, KeyType, Role, frame_table
from fakebrokers.moleculer.packets import BrokenPacket, Event, Packet, Ping, Pong, Request, Response


class GossipHello(Packet, frozen=True, kw_only=True):
    """The first frame on a connection: where the node that opened it listens."""

    COMMAND = "GOSSIP_HELLO"
    spec = FrameSpec(Role.HANDSHAKE, key="sender", keys=KeyType.TEXT)
    host: Any = UNSET
    port: Any = UNSET


class GossipRequest(Packet, frozen=True, kw_only=True):
    """What a node knows of all: ``online`` by id ``[seq, cpuSeq, cpu]``, ``offline`` by id ``seq``."""

    COMMAND = "GOSSIP_REQ"
    spec = FrameSpec(Role.HEARTBEAT, key="sender", keys=KeyType.TEXT)
    online: Any = UNSET
    offline: Any = UNSET


class GossipResponse(Packet, frozen=True, kw_only=True):
    """What the asking node does not know: ``online`` by id ``[info, cpuSeq, cpu]`` or ``[cpuSeq, cpu]``."""

    COMMAND = "GOSSIP_RES"
    spec = FrameSpec(Role.HEARTBEAT, key="sender", keys=KeyType.TEXT)
    online: Any = UNSET
    offline: Any = UNSET


#: By the number of the type.
TYPES: dict[int, type[Packet]] = {
    1: Event,
    2: Request,
    3: Response,
    4: Ping,
    5: Pong,
    6: GossipRequest,
    7: GossipResponse,
    8: GossipHello,
}
NUMBERS = {kind: number for number, kind in TYPES.items()}

FRAMES = frame_table([*TYPES.values(), BrokenPacket])
