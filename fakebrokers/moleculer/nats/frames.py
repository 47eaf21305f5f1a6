"""The frames of NATS that mean something else here; some have its name in front, for packets are called so.

What carries packets has the role `DATA`, so that roles in fault plans mean packets.
"""

from __future__ import annotations

import sys

from fakebrokers.core.frames import FrameSpec, KeyType, Role, frame_table, frames_in
from fakebrokers.moleculer.packets import Packets
from fakebrokers.nats import frames as nats
from fakebrokers.nats.frames import Connect, Err, Sub, Unsub

_CARRIES = FrameSpec(
    Role.DATA, key="subject", keys=KeyType.TEXT, bulk=("payload",), inside=Packets("subject")
)

__all__ = ["FRAMES", "KINDS", "Connect", "Err", "Hmsg", "Hpub", "Msg", "NatsPing", "NatsPong", "Ok", "Pub"]
__all__ += ["ServerInfo", "Sub", "Unsub"]


class ServerInfo(nats.Info, frozen=True):
    """INFO: what the server is, the first thing that it says."""


class Pub(nats.Pub, frozen=True):
    """PUB: a message of a client."""

    spec = _CARRIES


class Hpub(nats.Hpub, frozen=True):
    """HPUB: the same with headers, which begin with ``NATS/1.0``."""

    spec = _CARRIES


class Msg(nats.Msg, frozen=True):
    """MSG: a message to a client."""

    spec = _CARRIES


class Hmsg(nats.Hmsg, frozen=True):
    """HMSG: the same with headers; without a body also what the server says about a request."""

    spec = _CARRIES


class NatsPing(nats.Ping, frozen=True):
    """PING, of either side."""


class NatsPong(nats.Pong, frozen=True):
    """PONG, of either side."""


class Ok(nats.Ok, frozen=True):
    """+OK: the answer to everything where the client asked for it."""

    spec = FrameSpec(Role.DATA)


KINDS = nats.Kinds(ServerInfo, Pub, Hpub, Msg, Hmsg, NatsPing, NatsPong, Ok)
FRAMES = frame_table([Connect, Sub, Unsub, Err, *frames_in(sys.modules[__name__])])
