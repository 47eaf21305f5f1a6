"""BlazingMQ: queues are opened by URI, under a name that is the target of the other ops."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from conformance.clients.adapter.ops import messaging, session
from conformance.clients.adapter.ops.define import Arguments, Op, Outgoing, Profile, ops_in
from conformance.clients.adapter.ops.values import Body, Integer64, Milliseconds

_BOTH = ("publisher", "consumer")


class Timeouts(Outgoing, frozen=True):
    """The library's time-outs, in milliseconds."""

    connect: Milliseconds | UnsetType = UNSET
    open: Milliseconds | UnsetType = UNSET
    configure: Milliseconds | UnsetType = UNSET
    close: Milliseconds | UnsetType = UNSET
    disconnect: Milliseconds | UnsetType = UNSET


class ConnectOptions(session.ConnectOptions, frozen=True):
    """Settings of the session.

    Attributes:
        compression: Of every message, `none` or `zlib`, where the library knows no other way.
    """

    timeouts: Timeouts | UnsetType = UNSET
    compression: str | UnsetType = UNSET


class Connect(session.Connect, frozen=True):
    """With options of its own."""

    options: ConnectOptions | UnsetType = UNSET


class Property(Outgoing, frozen=True):
    """A message property; the value of `char` and `binary` is a body."""

    type: Literal["bool", "char", "short", "int32", "int64", "string", "binary"]
    value: bool | int | str | Body


class Publish(messaging.Publish, frozen=True):
    """With typed properties.

    Attributes:
        compression: `none` or `zlib`.
    """

    properties: dict[str, Property] | UnsetType = UNSET
    compression: str | UnsetType = UNSET


class QueueOptions(Outgoing, frozen=True):
    """How a consumer takes part."""

    max_unconfirmed_messages: Integer64 | UnsetType = UNSET
    max_unconfirmed_bytes: Integer64 | UnsetType = UNSET
    consumer_priority: int | UnsetType = UNSET


class OpenQueue(Arguments, frozen=True):
    """Open a queue; `subscribe` only attaches the callback, and `settle` with `ack` is CONFIRM.

    Attributes:
        target: A name for it.
    """

    spec = Op("bmq.open_queue", needed_by=_BOTH)

    session: str
    target: str
    uri: str
    flags: list[Literal["read", "write"]]
    options: QueueOptions | UnsetType = UNSET


class ConfigureQueue(Arguments, frozen=True):
    """Change the options of an open queue."""

    spec = Op("bmq.configure_queue")

    session: str
    target: str
    options: QueueOptions | UnsetType = UNSET


class CloseQueue(Arguments, frozen=True):
    """Close a queue."""

    spec = Op("bmq.close_queue", needed_by=_BOTH)

    session: str
    target: str


PROFILE = Profile(
    protocol="blazingmq",
    roles=_BOTH,
    ops=ops_in(globals()),
    capabilities={"compression.zlib": "compressed messages"},
    settles=True,
)
