"""PZQ: messages of several parts, settled one by one; endpoints are addresses by role."""

from __future__ import annotations

import base64
from typing import Any

from msgspec import UNSET, UnsetType

from conformance.clients.adapter.messages import Message
from conformance.clients.adapter.ops import messaging
from conformance.clients.adapter.ops.define import Arguments, Incoming, Op, Profile, ops_in


class SubscribeOptions(messaging.SubscribeOptions, frozen=True):
    """What the library does with what has expired."""

    filter_expired: bool | UnsetType = UNSET


class Subscribe(messaging.Subscribe, frozen=True):
    """With options of its own."""

    options: SubscribeOptions | UnsetType = UNSET


class MonitorResult(Incoming, frozen=True):
    """What the monitor reported.

    Attributes:
        values: By name: an integer, or its digits; any other text as it is.
    """

    values: dict[str, Any]


class Monitor(Arguments, frozen=True):
    """Ask the monitor for its values."""

    spec = Op("pzq.monitor", MonitorResult, ("monitor",))

    session: str


def _message_rule(message: Message) -> str:
    """The meta of a message: what is there has to be what it is said to be."""
    identity = message.meta.get("pzq_id")
    if identity is not None and not _is_base64(identity):
        return f"meta.pzq_id: expected base64 text (the first part of the message), got {identity!r:.80}"
    for name in ("sent_us", "timeout_us"):
        if (value := message.meta.get(name)) is not None and not _is_integer(value):
            return f"meta.{name}: expected an integer, or its digits, got {value!r:.80}"
    return ""


def _is_integer(value: Any) -> bool:
    """Of any size: the wire's own may be nonsense."""
    digits = value.removeprefix("-").isdigit() if isinstance(value, str) else False
    return digits or (isinstance(value, int) and not isinstance(value, bool))


def _is_base64(value: Any) -> bool:
    try:
        return isinstance(value, str) and base64.b64decode(value, validate=True) is not None
    except ValueError:
        return False


PROFILE = Profile(
    protocol="pzq",
    roles=("publisher", "consumer", "monitor"),
    ops=ops_in(globals()),
    capabilities={
        "caller_key": "the user gives the id of a message",
        "filter_expired": "the library drops messages that have expired",
    },
    message_rule=_message_rule,
    settles=True,
    parts=True,
    addresses=("receive", "send", "monitor"),
)
