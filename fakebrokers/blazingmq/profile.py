"""Which broker the fake is: one switch per behaviour (docs/protocols/blazingmq.md, 6.1, 8 and 14)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from fakebrokers.blazingmq.codes import AckStatus, Language
from fakebrokers.blazingmq.options import PushOption
from fakebrokers.core.profiles import find_profile
from fakebrokers.options import check_names

_ENCODINGS = "PROTOCOL_ENCODING:BER,JSON"
_HIGH_AVAILABILITY = "HA:GRACEFUL_SHUTDOWN,GRACEFUL_SHUTDOWN_V2,BROADCAST_TO_PROXIES"
PROPERTIES_EX = "MPS:MESSAGE_PROPERTIES_EX"
_SUBSCRIPTIONS = "SUBSCRIPTIONS:CONFIGURE_STREAM"
_OLDEST_SDKS: Mapping[int, tuple[int, int]] = MappingProxyType(
    {Language.E_CPP: (10_500, 10_900), Language.E_JAVA: (2, 2)}
)


class Profile(msgspec.Struct, frozen=True):
    """The behaviour of one broker.

    Attributes:
        name: What users ask for.
        features: What the broker says it can. Without ``MPS`` clients send properties in the old style;
            without ``SUBSCRIPTIONS`` the C++ SDK sends configureQueueStream.
        user_agent: What the broker calls itself.
        broker_version: 999999 is a development version, as the broker's container images have it.
        heartbeat_interval_ms, max_missed_heartbeats: What brokerResponse tells the client.
        watches_clients: The broker asks a silent client for a sign of life, and cuts it off after
            `max_missed_heartbeats` + 1 silent intervals. On in the configurations that a broker is shipped
            with; off here, since the Java SDK stops reading at the first request.
        asks_always: It asks at every interval, whatever the client sends.
        heartbeat_grace_s: A client that has said nothing since its identity is asked, and not cut off until
            this has passed as well.
        oldest_sdks: By language: the oldest version that is supported, and the oldest that is not deprecated.
        push_option: How deliveries say which subscription they are for.
        statuses: Other numbers for ACKs than the wire's, by the usual ones.
        checks_crc: A message with a wrong CRC is refused; a broker stores it unread.
        poison_delays_s: How long a consumer's last message out of turn keeps back a message that clients were
            lost with: attempts that remain at most, and seconds; the first that fits.
        mechanisms: The ways in which clients may show who they are; None: any. A broker without
            authenticators takes those alone who show nothing.
        negotiation_timeout_s: Until then the client must have said who it is.
    """

    name: str
    features: str = f"{_ENCODINGS};{_HIGH_AVAILABILITY};{PROPERTIES_EX};{_SUBSCRIPTIONS}"
    user_agent: str = "bmqbrkr:99.99.99"
    broker_version: int = 999_999
    heartbeat_interval_ms: int = 3000
    max_missed_heartbeats: int = 10
    watches_clients: bool = False
    asks_always: bool = False
    heartbeat_grace_s: float = 180.0
    oldest_sdks: Mapping[int, tuple[int, int]] = _OLDEST_SDKS
    push_option: PushOption = PushOption.IDS
    statuses: Mapping[int, int] = {}
    checks_crc: bool = False
    poison_delays_s: tuple[tuple[int, float], ...] = ((2, 3.0), (4, 1.0))
    mechanisms: tuple[str, ...] | None = ("ANONYMOUS",)
    negotiation_timeout_s: float = 180.0

    @property
    def heartbeat_s(self) -> float:
        """The interval in seconds."""
        return self.heartbeat_interval_ms / 1000


REAL = Profile("real")

#: A broker whose configuration leaves out what can be left out.
PLAIN = Profile("plain", features=f"{_ENCODINGS};{_HIGH_AVAILABILITY}")

#: Exactly what the document about the Node SDK says: heartbeats at every interval, and its numbers of ACKs.
SEED = Profile(
    "seed",
    watches_clients=True,
    asks_always=True,
    heartbeat_grace_s=0.0,
    poison_delays_s=(),
    mechanisms=None,
    statuses={AckStatus.STORAGE_FAILURE: 3, AckStatus.NOT_READY: 15},
)

PROFILES = {"real": REAL, "0.95": REAL, "plain": PLAIN, "seed": SEED}


def switched(name: str, changes: Mapping[str, Any]) -> Profile:
    """A profile with some fields changed.

    Raises:
        UsageError: There is no such profile or field.
    """
    check_names(changes, Profile.__struct_fields__, "switch")
    return msgspec.structs.replace(find_profile(PROFILES, name, "blazingmq"), **changes)
