"""Which Redis the fake is (docs/protocols/redis.md, 1 "The server that was measured")."""

from __future__ import annotations

import msgspec


class Profile(msgspec.Struct, frozen=True):
    """The behaviour of one version.

    Attributes:
        name: What users ask for.
        version: As HELLO and INFO have it.
    """

    name: str
    version: str = "7.0.15"


V7_0 = Profile(name="7.0")

PROFILES = {"real": V7_0, "7.0": V7_0}
