"""What a user of the reference client may set."""

from __future__ import annotations

import msgspec


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All times in seconds, all sizes in bytes.

    Attributes:
        user, password, vhost, mechanism: For the login.
        frame_max: What the client would like; 0: no limit of its own.
        heartbeat_s: What the client would like; 0: none.
        handshake_max: Largest frame that is let in before the connection is open.
        inbound_max: Largest frame that is let in afterwards: chunks may be larger than the frame maximum,
            which binds the client only (docs/protocols/rabbitmq-stream.md, 8).
        request_timeout_s: For requests whose caller gives no time.
        unconfirmed_max, unconfirmed_bytes: A publisher waits when so much of it has no confirm.
        waiting_max: Calls that may wait for room in that window; further ones fail at once.
        parked_bytes: Bodies that may wait for a connection.
        auto_reconnect: Whether lost connections are made anew.
        first_delay_s, longest_delay_s: Between attempts; doubled each time, and drawn from 0.5 to 1.5 times.
    """

    user: str = "guest"
    password: str = "guest"
    vhost: str = "/"
    mechanism: str = "PLAIN"
    frame_max: int = 1 << 20
    heartbeat_s: int = 60
    handshake_max: int = 1 << 20
    inbound_max: int = 64 << 20
    request_timeout_s: float = 10.0
    unconfirmed_max: int = 5_000
    unconfirmed_bytes: int = 16 << 20
    waiting_max: int = 1_000
    parked_bytes: int = 8 << 20
    auto_reconnect: bool = True
    first_delay_s: float = 0.3
    longest_delay_s: float = 4.0
