"""How connections come to be."""

from __future__ import annotations

import msgspec

from fakebrokers.core.frames import Frame


class Connecting(msgspec.Struct, frozen=True, kw_only=True):
    """How connections come to be.

    Attributes:
        unseen_connections: Whether connections come, go and come again below the client: its transport sees
            to them and reports nothing.
        connects_late: Whether a session is open without a connection; ops make those that they need.
        settles_s: How long a connect goes on after the handshake, to hear from others.
        set_up: Frames that belong to the set-up of a connection, besides those of that role.
        announces_end: Whether there is a frame by which a client announces that it closes a connection.
        flushes: Heartbeats by which ops find out that the server has taken in all before them.
        greetings: What a client says on each of its connections, as soon as it is ready.
    """

    unseen_connections: bool = False
    connects_late: bool = False
    settles_s: float = 0.0
    announces_end: bool = True
    set_up: tuple[type[Frame], ...] = ()
    flushes: tuple[type[Frame], ...] = ()
    greetings: tuple[type[Frame], ...] = ()
