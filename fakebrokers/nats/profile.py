"""Which NATS server the fake is (docs/protocols/nats.md, 1 "The server that was measured")."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from fakebrokers.options import Seconds


class Profile(msgspec.Struct, frozen=True):
    """The behaviour of one version.

    Attributes:
        name: What users ask for.
        version, go: Of the server and its compiler, as INFO has them.
        max_payload: Bytes of a message.
        ping_interval_s: Silence after which a client is asked whether it lives.
        ping_max: Questions without an answer after which it is given up.
        auth_timeout_s: How long a client may take to say who it is.
        lame_duck_s: How long clients may stay once the server has said that it goes.
    """

    name: str
    version: str = "2.9.10"
    go: str = "go1.19.8"
    max_payload: Annotated[int, Meta(ge=0, lt=1 << 31)] = 1024 * 1024
    ping_interval_s: Seconds = 120.0
    ping_max: Annotated[int, Meta(ge=0)] = 2
    auth_timeout_s: Seconds = 2.0
    lame_duck_s: Seconds = 10.0


V2_9 = Profile(name="2.9")

PROFILES = {"real": V2_9, "2.9": V2_9}
