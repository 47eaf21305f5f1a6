"""The ops that every protocol knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from conformance.adapter.messages import Hello, Message, Outcome
from conformance.adapter.ops.define import EVERY_ROLE, Arguments, Incoming, Op, Outgoing, ops_in
from conformance.adapter.ops.values import (
    Bodies,
    Body,
    Code,
    Integer64,
    Json,
    Key,
    Milliseconds,
    Natural,
    Ordinal,
    Report,
)

_ALL = (EVERY_ROLE,)


class HelloArguments(Arguments, frozen=True):
    """Say what the adapter can do ([section 3](#3-start-up-and-capabilities))."""

    spec = Op("hello", Hello, _ALL)

    version: int
    protocol: str


class EchoResult(Incoming, frozen=True):
    """The same body, decoded and encoded again."""

    body: Report


class Echo(Arguments, frozen=True):
    """Give a body back; no library is involved."""

    spec = Op("echo", EchoResult, _ALL)

    body: Body


class Tls(Outgoing, frozen=True):
    """How to trust the server."""

    ca_file: str | UnsetType = UNSET
    server_name: str | UnsetType = UNSET


class ConnectOptions(Outgoing, frozen=True):
    """Options that every protocol knows.

    Attributes:
        auto_reconnect: Else the library's default.
        listen: False installs no listeners for session and error events.
    """

    user: str | UnsetType = UNSET
    password: str | UnsetType = UNSET
    auto_reconnect: bool | UnsetType = UNSET
    listen: bool | UnsetType = UNSET
    tls: Tls | UnsetType = UNSET


class Connect(Arguments, frozen=True):
    """Connect a session; done as soon as it is usable.

    Attributes:
        session: A name.
        endpoints: `["host:port"]`; addresses by role where the protocol has several.
        roles: What the script will use first; a hint for libraries with one object per role.
    """

    spec = Op("connect", needed_by=_ALL)

    session: str
    endpoints: list[str] | dict[str, str]
    options: ConnectOptions | UnsetType = UNSET
    roles: list[str] | UnsetType = UNSET


class Close(Arguments, frozen=True):
    """Close gracefully; `closed` (definite) for a session that does not exist. While `connect` runs:
    [Closing](#closing).
    """

    spec = Op("close", needed_by=_ALL)

    session: str


class Abort(Arguments, frozen=True):
    """Close without goodbye."""

    spec = Op("abort")

    session: str


class StateResult(Incoming, frozen=True):
    """Whether it is open.

    Attributes:
        pending: Requests without an answer, null if the library does not tell.
    """

    open: bool
    pending: int | None = None


class State(Arguments, frozen=True):
    """Tell how a session is; one that does not exist is not open."""

    spec = Op("state", StateResult, _ALL)

    session: str


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


def _all_told(args: Mapping[str, Any], result: PublishManyResult) -> str:
    messages = args.get("messages", ())
    if len(result.outcomes) != len(messages):
        return f"outcomes: expected one for each of {len(messages)} messages, got {len(result.outcomes)}"
    return _only_sent(args, [each.outcome for each in result.outcomes])


class PublishMany(Arguments, frozen=True):
    """Publish many messages by the library's call for that
    ([which call?](#a-batch-call-and-a-single-one)), with an `outcome` event for each of which the library
    tells singly.
    """

    spec = Op("publish_many", PublishManyResult, rule=_all_told)

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
        drain: Wait for what is on its way.
    """

    spec = Op("unsubscribe", needed_by=("consumer",))

    sub: str
    drain: bool | UnsetType = UNSET


class Cancel(Arguments, frozen=True):
    """Cancel a running request."""

    spec = Op("cancel", capability="cancel")

    id: int


class RaiseNextResult(Incoming, frozen=True):
    """False where the library has no such callback."""

    armed: bool


class RaiseNext(Arguments, frozen=True):
    """Let the next callbacks of a kind raise, on the library's thread."""

    spec = Op("raise_next", RaiseNextResult, capability="callback_raise")

    callback: Literal["message", "confirm", "session", "error"]
    session: str | UnsetType = UNSET
    times: Natural = 1


class SetClock(Arguments, frozen=True):
    """Move the wall clock as the library sees it."""

    spec = Op("set_clock", capability="clock_offset")

    offset_ms: float


class SetCounter(Arguments, frozen=True):
    """Set a counter of the library."""

    spec = Op("set_counter", capability="counter_seed")

    session: str
    which: Literal["correlation", "publishing", "request"]
    value: Integer64


class StatsResult(Incoming, frozen=True):
    """As far as known; other numbers are welcome."""

    threads: float | None = None
    tasks: float | None = None
    timers: float | None = None
    pending: float | None = None
    buffered_bytes: float | None = None


class Stats(Arguments, frozen=True):
    """Tell what the process holds."""

    spec = Op("stats", StatsResult, capability="stats")


class Reset(Arguments, frozen=True):
    """Go back to the state after hello."""

    spec = Op("reset", needed_by=_ALL)


class Shutdown(Arguments, frozen=True):
    """Answer, then exit with 0."""

    spec = Op("shutdown", needed_by=_ALL)


OPS = ops_in(globals())

#: What a library may be able to do, whatever it speaks; the protocols add their own words.
CAPABILITIES: Mapping[str, str] = {
    "concurrent": "ops overlap (the default: only `false` says otherwise; synchronous libraries use threads)",
    "ack_timeout": "waiting for a confirm ends by the library's own timer; without it outcomes come by event "
    "only",
    "auto_reconnect": "the library reconnects by itself: true, false, or a list of `locator`, `producer`, "
    "`consumer` ([What reconnects](#what-reconnects))",
    "retry": "it repeats what failed",
    "dedup": "it drops what came twice",
    "endpoints": "it takes several addresses",
    "cancel": "a running op can be cancelled",
    "callback_raise": "callbacks may raise; not in languages where that ends the process whatever the "
    "library does",
    "callback_sleep": "callbacks may take long",
    "reentrant": "callbacks may run ops",
    "stop_in_callback": "callbacks may close the session",
    "properties": "message properties",
    "named_publisher": "publishers with a reference, for deduplication",
    "clock_offset": "its wall clock can be moved",
    "counter_seed": "its counters can be set",
    "stats": "it tells what it holds",
    "tls": "TLS connections",
}
