"""PZQ: messages of several parts, settled one by one; endpoints are addresses by role."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from conformance.adapter.ops import messaging
from conformance.adapter.ops.define import Arguments, Incoming, Op, Profile, ops_in


class SubscribeOptions(messaging.SubscribeOptions, frozen=True):
    """What the library does with what has expired."""

    filter_expired: bool | UnsetType = UNSET


class Subscribe(messaging.Subscribe, frozen=True):
    """With options of its own."""

    options: SubscribeOptions | UnsetType = UNSET


class MonitorResult(Incoming, frozen=True):
    """What the monitor told, by name."""

    values: dict[str, Any]


class Monitor(Arguments, frozen=True):
    """Ask the monitor for its values."""

    spec = Op("pzq.monitor", MonitorResult, ("monitor",))

    session: str


PROFILE = Profile(
    protocol="pzq",
    roles=("publisher", "consumer", "monitor"),
    ops=ops_in(globals()),
    capabilities={
        "caller_key": "the user gives the id of a message",
        "filter_expired": "the library drops messages that have expired",
    },
)
