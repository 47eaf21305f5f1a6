"""NATS: a publish is acknowledged once the server has answered a PING after it; a target is a subject."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from conformance.clients.adapter.ops import messaging, session
from conformance.clients.adapter.ops.define import Arguments, Incoming, Op, Profile, ops_in
from conformance.clients.adapter.ops.values import Body, Ordinal, Report


class ConnectOptions(session.ConnectOptions, frozen=True):
    """Settings of the connection; what is left out is the library's default.

    Attributes:
        token: In place of a user and a password.
        ping_interval_s: Seconds between two PINGs of the client.
        max_pings: How many of them may be without an answer.
    """

    token: str | UnsetType = UNSET
    ping_interval_s: float | UnsetType = UNSET
    max_pings: Ordinal | UnsetType = UNSET


class Connect(session.Connect, frozen=True):
    """With options of its own."""

    options: ConnectOptions | UnsetType = UNSET


class SubscribeOptions(messaging.SubscribeOptions, frozen=True):
    """How to listen.

    Attributes:
        queue: The queue group.
        max: Messages after which the subscription ends by itself.
        pending_limit: Messages that may wait for the callback; further ones are dropped, with an error event.
    """

    queue: str | UnsetType = UNSET
    max: Ordinal | UnsetType = UNSET
    pending_limit: Ordinal | UnsetType = UNSET


class Subscribe(messaging.Subscribe, frozen=True):
    """Begin to consume; done when the server has taken the subscription in.

    Attributes:
        sub: A name for it.
    """

    options: SubscribeOptions | UnsetType = UNSET


class RequestResult(Incoming, frozen=True):
    """The answer."""

    body: Report


class Request(Arguments, frozen=True):
    """Publish with a reply subject, and wait for an answer; `refused` with code 503 if nobody listens."""

    spec = Op("nats.request", RequestResult, ("requester",))

    session: str
    target: str
    body: Body


class Drain(Arguments, frozen=True):
    """Drain the connection: end all subscriptions, hand over what has come, send what waits, close."""

    spec = Op("nats.drain")

    session: str


PROFILE = Profile(
    protocol="nats",
    roles=("publisher", "consumer", "requester"),
    ops=ops_in(globals()),
    capabilities={
        "keepalive": "the user sets how often the library asks whether the server is there",
        "queue_groups": "subscriptions can be members of a queue group",
        "max_messages": "a subscription can end by itself after so many messages",
        "pending_limit": "the user sets how many messages may wait for a callback",
        "token": "the user can give a token",
    },
)
