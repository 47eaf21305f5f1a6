"""Narconi: publishing and consuming over WebSockets, and both over HTTP."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, UnsetType

from conformance.clients.adapter.messages import Message
from conformance.clients.adapter.ops import messaging, session
from conformance.clients.adapter.ops.define import Arguments, Incoming, Op, Profile, ops_in
from conformance.clients.adapter.ops.values import Body


class ConnectOptions(session.ConnectOptions, frozen=True):
    """Where and how to connect.

    Attributes:
        base: URL; else the endpoint, with https if `tls` is given.
        project: Else `test`.
        keepalive_s: Seconds between pings; a pong may take that long at most.
    """

    base: str | UnsetType = UNSET
    project: str | UnsetType = UNSET
    keepalive_s: float | UnsetType = UNSET


class Connect(session.Connect, frozen=True):
    """With options of its own."""

    options: ConnectOptions | UnsetType = UNSET


class SubscribeOptions(messaging.SubscribeOptions, frozen=True):
    """How to consume over the WebSocket."""

    ack: Any = UNSET
    limit: float | UnsetType = UNSET  # a fraction too: what is to be refused has to be said
    encoding: str | UnsetType = UNSET


class Subscribe(messaging.Subscribe, frozen=True):
    """With options of its own."""

    options: SubscribeOptions | UnsetType = UNSET


class EnsureQueue(Arguments, frozen=True):
    """Make a queue, if it is not there."""

    spec = Op("narc.ensure_queue", needed_by=("admin",))

    session: str
    target: str
    options: dict[str, Any] | UnsetType = UNSET


class DeleteQueue(Arguments, frozen=True):
    """Delete a queue."""

    spec = Op("narc.delete_queue", needed_by=("admin",))

    session: str
    target: str


class PostResult(messaging.PublishResult, frozen=True):
    """The message is stored."""

    outcome: Literal["acked"]


class Post(Arguments, frozen=True):
    """Publish over HTTP."""

    spec = Op("narc.post", PostResult, ("http",))

    session: str
    target: str
    body: Body
    headers: dict[str, Any] | UnsetType = UNSET


class Taken(Message, frozen=True, kw_only=True):
    """A message that was taken.

    Attributes:
        sub: Null or empty: it came by no subscription.
    """

    sub: str | None = None  # type: ignore[assignment]


class TakeResult(Incoming, frozen=True):
    """A message, or null if there was none."""

    message: Taken | None


class Take(Arguments, frozen=True):
    """Consume one message over HTTP."""

    spec = Op("narc.take", TakeResult, ("http",))

    session: str
    target: str


PROFILE = Profile(
    protocol="narconi",
    roles=("publisher", "consumer", "admin", "http"),
    ops=ops_in(globals()),
    capabilities={
        "ack_to": "cumulative acknowledgement",
        "encoding": "content encodings",
        "keepalive": "WebSocket pings by the client",
        "lazy_subscribe": "`subscribe` returns before the broker has answered; a refusal comes as an `error` "
        "event with `sub`",
    },
    settles=True,
)
