"""Which PZQ the fake is (`Profile`), and the daemon's own settings (`Options`).

Sources: docs/protocols/pzq.md, "Seed document against daemon", "Monitor" and "Options"; the seed
document, "PZQ Sockets & Formats".
"""

from __future__ import annotations

from typing import Literal

import msgspec

from fakebrokers.errors import UsageError


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One switch for each behaviour in which the document and the recorded daemon differ.

    Attributes:
        name: What users ask for.
        stored: Status of a producer's acknowledgement: the message is stored.
        refused: The same for: not stored.
        positive: Statuses of a consumer that mean "processed"; all others are negative.
        monitor_keys: Keys of the monitor's reply, in order.
        monitor_end: What stands after the last line of that reply.
        empty_db_size: The monitor's ``db_size`` with no message stored, in bytes.
        empty_inflight_size: The monitor's size of the in-flight table with nothing in flight, in bytes.
        identity: Routing id of the send socket, which consumers then see as part 0 of a delivery;
            b"" leaves it to the consumer's own socket.
        producer_ids: A message is delivered under the producer's id where that is free; else the
            store always makes a key of its own.
        replicas: A header that begins with ``REPLICA:`` marks a copy from another node.
        late_acks: A positive acknowledgement removes the message also when it is not in flight.
        reaper_frequency: Default of the option of that name, in microseconds.
    """

    name: str
    stored: bytes = b"1"
    refused: bytes = b"0"
    positive: frozenset[bytes] = frozenset({b"1"})
    monitor_keys: tuple[str, ...]
    monitor_end: str
    empty_db_size: int
    empty_inflight_size: int
    identity: bytes = b""
    producer_ids: bool
    replicas: bool
    late_acks: bool
    reaper_frequency: int


#: The recorded daemon: commit 39aa9f6 of July 2014.
REAL = Profile(
    name="real",
    monitor_keys=(
        "messages",
        "messages_inflight",
        "db_size",
        "inflight_db_size",
        "syncs",
        "expired_messages",
    ),
    monitor_end="\n",
    empty_db_size=400_128,
    empty_inflight_size=8_390_592,
    producer_ids=False,
    replicas=True,
    late_acks=False,
    reaper_frequency=2_500_000,
)

#: The document's letter.
SEED = Profile(
    name="seed",
    monitor_keys=(
        "messages",
        "messages_in_flight",
        "db_size",
        "in_flightdb_size",
        "syncs",
        "expired_messages",
    ),
    monitor_end="",
    empty_db_size=1_438_720,
    empty_inflight_size=0,
    identity=b"pzq",
    producer_ids=True,
    replicas=False,
    late_acks=True,
    reaper_frequency=0,
)

#: The document's letter with its other pair of status words, which the daemon used before October 2011.
SEED_WORDS = msgspec.structs.replace(
    SEED, name="seed-words", stored=b"OK", refused=b"NO", positive=frozenset({b"1", b"OK"})
)

PROFILES = {profile.name: profile for profile in (REAL, SEED, SEED_WORDS)}


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The daemon's options, in its own units, and the order of delivery.

    Attributes:
        ack_timeout: Microseconds until an unacknowledged delivery expires.
        reaper_frequency: Microseconds between two looks at the in-flight table: a lone message comes
            again between `ack_timeout` and `ack_timeout` + `reaper_frequency`. 0 looks at each expiry
            exactly in time. None: as the profile has it (real: 2 500 000, seed: 0).
        inflight_size: Bytes of the in-flight table. When it is too small, marks vanish and messages
            are delivered again and again.
        order: ``strict`` delivers by key, ``skip`` as the recorded daemon does in every other period
            of 24.86 days: a message that finds the pipe full waits for the next walk.
    """

    ack_timeout: int = 5_000_000
    reaper_frequency: int | None = None
    inflight_size: int = 31_457_280
    order: Literal["strict", "skip"] = "strict"

    def __post_init__(self) -> None:
        if self.ack_timeout < 0:
            raise UsageError(f"ack_timeout: expected microseconds from 0, got {self.ack_timeout}")
        if self.reaper_frequency is not None and self.reaper_frequency < 0:
            raise UsageError(f"reaper_frequency: expected microseconds from 0, got {self.reaper_frequency}")
        if self.inflight_size < 1:
            raise UsageError(f"inflight_size: expected bytes from 1, got {self.inflight_size}")
        if self.order not in ("strict", "skip"):
            raise UsageError(f"order: expected 'strict' or 'skip', got {self.order!r}")
