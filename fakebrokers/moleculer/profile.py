"""Which Moleculer the fake nodes are (docs/protocols/moleculer.md, 1)."""

from __future__ import annotations

import msgspec


class Profile(msgspec.Struct, frozen=True):
    """The behaviour of one version.

    Attributes:
        name: What users ask for.
        protocol: What its nodes send as `ver`.
        version: Of the library, as INFO has it.
        heartbeat_s: Seconds between two heartbeats.
        heartbeat_timeout_s: Silence after which a node is no more.
        request_id_on_null: 0.14 answers with a null `stream` where the params are null.
    """

    name: str
    protocol: str
    version: str
    heartbeat_s: float = 10.0
    heartbeat_timeout_s: float = 30.0
    request_id_on_null: bool = False


V0_15 = Profile(name="0.15", protocol="5", version="0.15.2")
V0_14 = Profile(name="0.14", protocol="4", version="0.14.36", request_id_on_null=True)
#: The document (protocol 4.0 rev. 1) has another default for heartbeats than the code.
SEED = Profile(name="seed", protocol="4", version="0.14.0-beta3", heartbeat_s=5.0)

PROFILES = {"real": V0_15, "0.15": V0_15, "0.14": V0_14, "seed": SEED}
