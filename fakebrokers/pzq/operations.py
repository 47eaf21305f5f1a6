"""What a fake PZQ daemon can be told over the control API, and the options that it is started with."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from fakebrokers.control.describe import BrokerOptions, Control, Operation
from fakebrokers.errors import UsageError
from fakebrokers.faults.control import FaultControl
from fakebrokers.faults.plan import load_plan
from fakebrokers.options import Port, Seconds, in_seconds
from fakebrokers.pzq.server import HIGH_WATER_MARKS, PZQ

_I64 = Annotated[int, Meta(ge=0, le=(1 << 62))]


class PZQOptions(BrokerOptions, frozen=True, kw_only=True):
    """Options of a fake PZQ daemon; see `PZQ`.

    Attributes:
        ack_timeout, reaper_frequency: Old names of `ack_timeout_s` and `reaper_interval_s`, in microseconds.
    """

    send_port: Port | None = None
    monitor: str | None = None
    ack_timeout_s: Seconds = 5.0
    reaper_interval_s: Seconds | None = None
    ack_timeout: _I64 | None = None
    reaper_frequency: _I64 | None = None
    inflight_size: _I64 = 31_457_280
    order: Literal["strict", "skip"] = "strict"
    high_water_marks: tuple[_I64, _I64, _I64] = HIGH_WATER_MARKS
    proxied: bool = False

    def keywords(self) -> dict[str, Any]:
        return in_seconds(super().keywords(), PZQ)


class MessageRow(msgspec.Struct, frozen=True):
    """A stored message; see `StoredMessage`."""

    key: bytes
    body: list[bytes]
    in_flight: bool


def messages(server: PZQ) -> list[MessageRow]:
    """What is stored, in the order of delivery."""
    return [MessageRow(each.key, list(each.body), each.in_flight) for each in server.messages()]


def publish(server: PZQ, body: list[bytes], key: bytes | None = None) -> bytes:
    """Store a message of these parts as if a producer had sent it; its key.

    With the `key` of a message that was acknowledged, it is back, as after a daemon that was killed early.
    """
    return server.publish(*body, key=key)


def change_identity(server: PZQ, identity: bytes) -> None:
    """The send socket comes back with another routing id; its connections end."""
    if len(identity) > 255 or identity[:1] == b"\0":
        raise UsageError(f"expected at most 255 bytes that do not begin with 0, got {identity[:20]!r}")
    server.change_identity(identity)


def _proxy(server: PZQ) -> FaultControl:
    if server.proxy is None:
        raise UsageError("there is no byte proxy in front of this fake: start it with the option proxied")
    return server.proxy.faults


def add_proxy_faults(server: PZQ, plan: dict[str, Any]) -> list[str]:
    """Add a plan's faults of the line to the byte proxy in front; the names of those at work."""
    _proxy(server).add(*load_plan(plan).faults)
    return list(_proxy(server).names)


def clear_proxy_faults(server: PZQ) -> None:
    """Take all faults out of the byte proxy, and let go what they hold back."""
    _proxy(server).clear()


CONTROL = Control(
    PZQOptions,
    (
        Operation(messages, reads=True),
        Operation(publish, old="put"),
        Operation("expire"),
        Operation(change_identity),
        Operation("statistics"),
        Operation("lost_acknowledgements"),
        Operation("receive_url"),
        Operation("send_url"),
        Operation("monitor_url"),
        Operation(add_proxy_faults),
        Operation(clear_proxy_faults),
    ),
)
