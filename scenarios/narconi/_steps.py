"""Steps and questions that the scenarios of Narconi share."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from conformance.clients.adapter.base import Call
from conformance.clients.adapter.messages import Message, same_body
from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect
from conformance.suite.client import as_body
from conformance.suite.expect import Inconclusive, Unsupported, slug
from fakebrokers import Narconi
from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.core.session import HangUp
from fakebrokers.errors import UsageError
from fakebrokers.faults import drop
from fakebrokers.narconi.broker import Message as Stored
from fakebrokers.narconi.frames import HttpRequest, WsAck, WsConfirm, WsPublish
from scenarios._common import received, sent, until

PROJECT = "gold"
QUEUE = "orders"
ADMIN = ("admin",)
HTTP = ("http",)
PUBLISHER = ("publisher",)
CONSUMER = ("consumer",)

ALL_BYTES = bytes(range(256))
#: How an op ends that may have taken effect.
LOST = ("connection", "closed", "timeout")
WITHHELD = "confirms are withheld"
#: How long a first publish may take on a busy machine.
FIRST_S = 2.5


async def ready(broker: Narconi, client: Client, *queues: str, **options: Any) -> None:
    """The queues are there, and the client knows the project."""
    for queue in queues or (QUEUE,):
        broker.create_queue(PROJECT, queue)
    await client.connected(project=PROJECT, **options)


async def connected_again(client: Client, session: str = "s1", project: str = PROJECT) -> None:
    """A publishing connection was lost: the application connects, where the library leaves that to it."""
    if not client.reconnects("producer"):
        await client.connected(session, project=project)


async def subscribed(
    broker: Narconi, client: Client, queue: str = QUEUE, sub: str = "c1", **options: Any
) -> None:
    """A subscription that is open, also where the op does not wait for that."""
    mark = broker.journal.last_seq
    await client.subscribed(queue, sub, **options)
    await until(lambda: sent(broker, "WsAccept", since=mark), 2.0)


async def published_again(
    broker: Narconi, client: Client, body: bytes | str, session: str = "s1", within_s: float = 15.0
) -> Result:
    """Publish after a loss, again while that fails before anything has left: some refuse to publish until
    they are connected again, others wait, or connect for it."""
    loop = asyncio.get_running_loop()
    until_s = loop.time() + within_s
    while True:
        mark = broker.journal.last_seq
        result = await client.publish(QUEUE, body, session=session)
        has_left = bool(received(broker, "WsPublish", since=mark))
        if result.word not in ("connection", "closed") or has_left or loop.time() > until_s:
            return result
        await asyncio.sleep(0.2)


# ops


async def ensure(client: Client, queue: str = QUEUE, session: str = "s1") -> Result:
    """Ensure a queue."""
    return await client.op("narc.ensure_queue", session=session, target=queue)


async def delete(client: Client, queue: str = QUEUE) -> Result:
    """Delete a queue."""
    return await client.op("narc.delete_queue", session="s1", target=queue)


async def post(
    client: Client, body: bytes | str = b"hello", queue: str = QUEUE, timeout: float = 5.0, **headers: Any
) -> Result:
    """Publish over HTTP; see `named` for the headers."""
    return await client.op(
        "narc.post", timeout, session="s1", target=queue, body=as_body(body), headers=named(headers)
    )


async def take(client: Client, queue: str = QUEUE, timeout: float = 5.0) -> Result:
    """Consume one message over HTTP."""
    return await client.op("narc.take", timeout, session="s1", target=queue)


def publish(client: Client, body: bytes | str = b"hello", timeout: float = 5.0, **headers: Any) -> Call:
    """Publish over the WebSocket; see `named` for the headers."""
    return client.begin_publish(QUEUE, body, timeout=timeout, headers=named(headers))


def named(headers: Mapping[str, Any]) -> dict[str, Any]:
    """``content_type`` is ``Content-Type``, ``n`` is ``x-msg-x-n``."""
    return {"Content-Type" if k == "content_type" else f"x-msg-x-{k}": v for k, v in headers.items()}


async def settle(client: Client, message: Message, how: str = "ack", sub: str = "c1") -> Result:
    """Acknowledge a message."""
    return await client.op("settle", sub=sub, ref=message.ref, how=how)


# messages


def header(headers: Mapping[str, Any], name: str) -> Any:
    """A header, in upper or lower case."""
    return next((value for key, value in headers.items() if key.lower() == name.lower()), None)


def bodies_are(
    expect: Expect, messages: Sequence[Message], wanted: Sequence[bytes], criterion: str, *, id: str
) -> None:
    """The messages have these bodies, in this order."""
    fits = len(messages) == len(wanted)
    fits = fits and all(same_body(m.body, body) for m, body in zip(messages, wanted, strict=True))
    expect.that(fits, criterion, [m.body for m in messages][:6], id=id)


def stored(broker: Narconi, queue: str = QUEUE) -> list[bytes]:
    """The bodies that wait in a queue; none in a queue that the client was to make and did not."""
    with suppress(KeyError, UsageError):
        return [message.payload for message in broker.messages(PROJECT, queue)]
    return []


def the_message(broker: Narconi, expect: Expect, next_position: int = 0) -> Stored:
    """The one message that waits in the queue, after so many that were there before."""
    found = broker.messages(PROJECT, QUEUE)[next_position:]
    expect.equal(len(found), 1, "one message is stored", id="one-message-is-stored")
    return found[0]


def exists(broker: Narconi, queue: str = QUEUE) -> bool:
    """Whether the broker has the queue."""
    try:
        broker.messages(PROJECT, queue)
    except (KeyError, UsageError):
        return False
    return True


# the journal


def requests(broker: Narconi, kind: str, *, since: int = 0) -> list[HttpRequest]:
    """Requests of that kind that the broker received."""
    return [r.frame for r in received(broker, kind, since=since) if isinstance(r.frame, HttpRequest)]


def published(broker: Narconi, *, since: int = 0) -> list[WsPublish]:
    """Messages that came over WebSockets."""
    return [r.frame for r in received(broker, "WsPublish", since=since) if isinstance(r.frame, WsPublish)]


def acks(broker: Narconi, *, since: int = 0, connection: str | None = None) -> list[WsAck]:
    """Acknowledgements that the broker received."""
    found = received(broker, "WsAck", since=since, connection=connection)
    return [r.frame for r in found if isinstance(r.frame, WsAck)]


def malformed(broker: Narconi, *, since: int = 0) -> list[Malformed]:
    """What came and had no meaning."""
    return [r.frame for r in received(broker, "Malformed", since=since) if isinstance(r.frame, Malformed)]


def newest(broker: Narconi, kind: str = "WsUpgrade") -> str:
    """The connection on which the newest frame of that kind came. Raises `Inconclusive`: none did."""
    found = received(broker, kind)
    if not found:
        raise Inconclusive(f"no {kind} came", id=slug("no-{}-came", kind))
    return found[-1].connection


# what the server does by hand


def say(broker: Narconi, connection: str, *frames: Frame) -> None:
    """Say unasked frames. The client may end the connection before it has heard them all."""
    with suppress(UsageError):
        for frame in frames:
            broker.say(connection, frame)


def end(broker: Narconi, connection: str, how: HangUp) -> None:
    """End a connection, if the client has not done so already."""
    with suppress(UsageError):
        broker.kill(connection, how)


# publishing


def withhold_confirms(broker: Narconi) -> None:
    """From here on only `confirm` confirms."""
    broker.faults.add(drop(kind="WsConfirm", direction="out", name=WITHHELD))


async def came(broker: Narconi, count: int, *, since: int = 0, quiet_s: float = 0.5) -> int:
    """Wait for so many messages, or until nothing new came for a while; returns how many there are.

    The first one may take longer: it opens the WebSocket.
    """
    there, waited = 0, 0.0
    while waited < (quiet_s if there else FIRST_S):
        now = len(received(broker, "WsPublish", since=since))
        if now >= count:
            return now
        waited = waited + 0.02 if now == there else 0.0
        there = now
        await asyncio.sleep(0.02)
    return there


async def withheld(
    broker: Narconi, client: Client, expect: Expect, count: int, *, timeout: float = 4.0
) -> list[Call]:
    """Publish so many messages (``message 0`` ...) whose confirms never leave."""
    most = client.limits.get("unconfirmed", count)
    if most < count:
        raise Unsupported(f"{most:g} messages can be open, and {count} are needed")
    withhold_confirms(broker)
    mark = broker.journal.last_seq
    calls = [publish(client, b"message %d" % n, timeout=timeout) for n in range(count)]
    there = await came(broker, count, since=mark)
    expect.exercised(
        there == count,
        f"{there} of {count} messages came before a confirm",
        id=slug("{}-of-n-messages-came-before-a-confirm", there),
    )
    return calls


def confirm(broker: Narconi) -> None:
    """Confirm one message on the newest publishing connection."""
    say(broker, newest(broker, "WsPublish"), WsConfirm())


def never_acked(expect: Expect, result: Result, criterion: str, *, id: str) -> None:
    """The op ended, and not acked. A definite refusal is the document's letter: non-strict."""
    expect.outcome(result, ("unknown", "nacked"), criterion, id=id)
    if result.outcome == "nacked":
        text = "an unconfirmed message may be stored"
        expect.tolerate(
            False,
            f"the outcome is unknown, because {text}",
            str(result),
            id="the-outcome-is-unknown-because-an-unconfirmed-message-may",
        )
    else:
        expect.failed(result, LOST, criterion, id=id)


def refused(
    expect: Expect, result: Result, code: int, criterion: str, *, kinds: Sequence[str] = ("refused",), id: str
) -> None:
    """The op was refused with the status of the wire; another of `kinds` needs no status."""
    expect.failed(result, kinds, criterion, id=id)
    if result.word == "refused":
        expect.equal(result.code, code, f"{criterion}, with the code", id=slug("{}-with-the-code", id))


async def subscription_refused(
    client: Client,
    expect: Expect,
    result: Result,
    sub: str,
    code: int,
    criterion: str,
    *,
    since: int,
    id: str,
) -> None:
    """The same of a subscription; a library whose `subscribe` waits for nothing reports it by an event."""
    if not (result.ok and client.can("lazy_subscribe")):
        upgrade_refused(expect, result, code, criterion, id=id)
        return
    reported = await client.event("error", 2.0, since, sub=sub)
    expect.that(reported, criterion, "no error event", id=id)


def upgrade_refused(expect: Expect, result: Result, code: int, criterion: str, *, id: str) -> None:
    """The opening failed. Interfaces like a browser's do not show the status, and a client that tries again
    until its time is up where the server has an outage does not, either: non-strict."""
    if result.word != "refused":
        kinds = ("connection", "timeout") if code >= 500 else ("connection",)
        expect.failed(result, kinds, criterion, id=id)
        expect.tolerate(
            False,
            "the status of the refusal is reported",
            str(result),
            id="the-status-of-the-refusal-is-reported",
        )
        return
    expect.failed(result, ("refused",), criterion, code=code, definite=True, id=id)
