"""The ops that publish and consume."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from conformance.clients.adapter.messages import Message, Outcome
from conformance.clients.adapter.ops.define import Arguments, Incoming, Op, Outgoing, ops_in
from conformance.clients.adapter.ops.values import Bodies, Code, Json, Key, Milliseconds, Ordinal


class PublishResult(Incoming, frozen=True):
    """What became of the message."""

    outcome: Literal["acked", "sent"]
    key: Key = None
    meta: dict[str, Any] | None = None


def _waited(args: Mapping[str, Any], result: PublishResult) -> str:
    return _only_sent(args, [result.outcome])


def _only_sent(args: Mapping[str, Any], outcomes: list[Any]) -> str:
    if args.get("wait", True) and "sent" in outcomes:
        return "the outcome was to be waited for, got 'sent'"
    return ""


class Publish(Arguments, frozen=True):
    """Publish one message. `acked`, or it fails: `refused` (nacked), `timeout`, `connection` (unknown). With
    `wait: false` it is `sent` at once, and an `outcome` event comes later.

    Attributes:
        body: A list where the protocol has messages of several parts.
        key: The id of the message, where the library lets the user give it.
    """

    spec = Op("publish", PublishResult, ("publisher",), rule=_waited)

    session: str
    target: str
    body: Bodies
    headers: Json | UnsetType = UNSET
    properties: Json | UnsetType = UNSET
    key: Key | UnsetType = UNSET
    wait: bool = True


class Item(Outgoing, frozen=True):
    """One of many messages."""

    body: Bodies
    key: Key | UnsetType = UNSET
    headers: Json | UnsetType = UNSET
    properties: Json | UnsetType = UNSET


class ItemOutcome(Incoming, frozen=True):
    """What became of one of many messages."""

    outcome: Outcome | Literal["sent"]
    key: Key = None
    code: Code = None


class PublishManyResult(Incoming, frozen=True):
    """One for each message, in input order."""

    outcomes: list[ItemOutcome]


def _all_reported(args: Mapping[str, Any], result: PublishManyResult) -> str:
    messages = args.get("messages", ())
    if len(result.outcomes) != len(messages):
        return f"outcomes: expected one for each of {len(messages)} messages, got {len(result.outcomes)}"
    return _only_sent(args, [each.outcome for each in result.outcomes])


class PublishMany(Arguments, frozen=True):
    """Publish many messages by the library's call for that
    ([which call?](#a-batch-call-and-a-single-one)), with an `outcome` event for each of which the library
    tells singly.
    """

    spec = Op("publish_many", PublishManyResult, rule=_all_reported)

    session: str
    target: str
    messages: list[Item]
    wait: bool = True


class Flush(Arguments, frozen=True):
    """Wait until all sent messages have an outcome."""

    spec = Op("flush")

    session: str


class Do(Outgoing, frozen=True):
    """An op to run inside a callback."""

    op: str
    args: Json | UnsetType = UNSET
    timeout_ms: Milliseconds | UnsetType = UNSET


class OnMessage(Outgoing, frozen=True):
    """What to do with each message, inside the library's callback.

    Attributes:
        mode: `buffer` keeps them for `next`, `event` reports them at once.
        auto_settle: `ack` when the callback ends.
        sleep_ms: Wait in the library's own manner.
        sleep_on: Only for these; ordinals from 1.
        block: Wait on the library's thread.
        raise_on: Raise for these.
        do: Ops to run and wait for; each ends in a `done` event.
    """

    mode: Literal["buffer", "event"] = "buffer"
    auto_settle: Literal["ack", "none"] | UnsetType = UNSET
    sleep_ms: Milliseconds | UnsetType = UNSET
    sleep_on: list[Ordinal] | UnsetType = UNSET
    block: bool | UnsetType = UNSET
    raise_on: list[Ordinal] | UnsetType = UNSET
    do: list[Do] | UnsetType = UNSET


class SubscribeOptions(Outgoing, frozen=True):
    """How to consume; every protocol has options of its own."""


class Subscribe(Arguments, frozen=True):
    """Begin to consume.

    Attributes:
        sub: A name for it.
    """

    spec = Op("subscribe", needed_by=("consumer",))

    session: str
    sub: str
    target: str
    options: SubscribeOptions | UnsetType = UNSET
    on_message: OnMessage | UnsetType = UNSET


class NextResult(Incoming, frozen=True):
    """Messages from the buffer."""

    messages: list[Message]


class Next(Arguments, frozen=True):
    """Take messages from the buffer: at once if there are any, else when one comes or `wait_ms` have
    passed.
    """

    spec = Op("next", NextResult, ("consumer",))

    sub: str
    max: Ordinal = 1
    wait_ms: Milliseconds = 0


class Settle(Arguments, frozen=True):
    """Acknowledge a message, refuse it, or acknowledge all up to it."""

    spec = Op("settle", needed_by=("consumer",), unless_settles="none")

    sub: str
    ref: str
    how: Literal["ack", "nack", "ack_to"]


class Unsubscribe(Arguments, frozen=True):
    """End a subscription.

    Attributes:
        drain: Hand over what is on its way, and wait until all of it is settled, before the end.
    """

    spec = Op("unsubscribe", needed_by=("consumer",))

    sub: str
    drain: bool | UnsetType = UNSET


OPS = ops_in(globals())
