"""Redis: channels as targets, and any command; an answer is reported without its kind of string."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, UnsetType

from conformance.clients.adapter.ops import messaging, session
from conformance.clients.adapter.ops.define import Arguments, Incoming, Op, Profile, ops_in
from conformance.clients.adapter.ops.values import Body

#: A command: text is UTF-8.
Words = list[str | Body]


class ConnectOptions(session.ConnectOptions, frozen=True):
    """How to connect.

    Attributes:
        resp: The version of RESP; else 2.
    """

    resp: Literal[2, 3] | UnsetType = UNSET


class Connect(session.Connect, frozen=True):
    """With options of its own."""

    options: ConnectOptions | UnsetType = UNSET


class SubscribeOptions(messaging.SubscribeOptions, frozen=True):
    """What the target is; else a channel."""

    way: Literal["channel", "pattern", "shard"] | UnsetType = UNSET


class Subscribe(messaging.Subscribe, frozen=True):
    """With options of its own; `meta.channel` of a message is where it was published."""

    options: SubscribeOptions | UnsetType = UNSET


class CallResult(Incoming, frozen=True):
    """The answer.

    Attributes:
        value: A string as a reported body, a number, null, or a list of such.
    """

    value: Any


class Call(Arguments, frozen=True):
    """Say a command and wait for its answer, by the library's way for any command. An error of the server is
    `refused`, or `auth`, with its first word as code.
    """

    spec = Op("redis.call", CallResult, ("caller",))

    session: str
    words: Words


class PipelineResult(Incoming, frozen=True):
    """One for each command: `value` as for `redis.call`, or `error` with the first word of the error."""

    results: list[dict[str, Any]]


class Pipeline(Arguments, frozen=True):
    """Say commands at once, by the library's pipeline without a transaction."""

    spec = Op("redis.pipeline", PipelineResult)

    session: str
    commands: list[Words]


PROFILE = Profile(
    protocol="redis",
    roles=("publisher", "consumer", "caller"),
    ops=ops_in(globals()),
    capabilities={
        "resp3": "the library speaks RESP3 if asked to",
        "shards": "subscriptions to sharded channels",
    },
)
