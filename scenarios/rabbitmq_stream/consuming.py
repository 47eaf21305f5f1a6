"""RMQS-4 Consuming: subscriptions, their ids and their callbacks."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

from conformance.clients.adapter.base import Call
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import RabbitMQStream
from fakebrokers.faults import hold, reply
from fakebrokers.journal import Tap
from fakebrokers.rabbitmq_stream.chunk import Chunk
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.entries import simple_entries
from fakebrokers.rabbitmq_stream.frames import CreditResponse, Deliver
from scenarios._common import until
from scenarios.rabbitmq_stream._deliveries import (
    FIRST,
    QUIET_S,
    asked,
    attached,
    begin_at,
    bodies_of,
    complaints,
    delivered_messages,
    model,
    numbered,
    positions,
    record,
    store,
    subscribe_error,
    subscribes,
    write,
)
from scenarios.rabbitmq_stream._steps import CONSUMER, STREAM, say, say_if_open, stream_exists

OTHER = "invoices"
FOREIGN_ID = 250
REUSE_TRIES = 300


@scenario("RMQS-4.01", "MUST", "critical", basis=["R9", "R10"], roles=CONSUMER, target=True)
async def subscribe_and_deliver(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Subscribe and deliver.

    Fault: One chunk with 10 entries
    Pass: 10 messages, offsets ChunkFirstOffset..+9
    Seen: stream-js-client#86
    """
    await client.connected()
    await stream_exists(broker, client)
    first = 0
    if isinstance(broker, RabbitMQStream):
        begin_at(broker, first := 1000)
    sent = numbered(first, 10)
    await store(broker, client, sent)
    expect.ok(await client.subscribe(STREAM, offset=FIRST), "subscribe succeeds", id="subscribe-succeeds")
    messages = await delivered_messages(client, 10)
    expect.equal(bodies_of(messages), sent, "10 messages are delivered", id="n-messages-are-surfaced")
    expect.equal(
        positions(messages),
        [*range(first, first + 10)],
        "offsets are ChunkFirstOffset to +9",
        id="offsets-are-chunkfirstoffset-to-n",
    )


@scenario("RMQS-4.02", "MUST", "critical", basis=["R10"], roles=CONSUMER, target=True)
async def many_entries(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """NumEntries greater than 1.

    Fault: Chunks with 2, 3 and 1000 entries
    Pass: No message lost, none doubled
    Seen: stream-js-client#86
    """
    await client.connected()
    await stream_exists(broker, client)
    for first, count in ((0, 2), (2, 3), (5, 1000)):
        await store(broker, client, numbered(first, count))
    await client.subscribed(STREAM, offset=FIRST)
    messages = await delivered_messages(client, 1005)
    lost = sorted({*range(1005)} - {*positions(messages)})
    expect.that(not lost, "no message is lost", f"{len(lost)} lost, from {lost[:1]}", id="no-message-is-lost")
    expect.equal(len(messages), 1005, "none is doubled", id="none-is-doubled")
    expect.equal(
        bodies_of(messages),
        numbered(0, 1005),
        "each has its own body and place",
        id="each-has-its-own-body-and-place",
    )


async def _two_subscriptions(
    broker: RabbitMQStream, client: Client, expect: Expect
) -> tuple[tuple[str, int], tuple[str, int]]:
    """One subscription on each of two streams, each with one message so far: their (connection, id)."""
    for name in (STREAM, OTHER):
        broker.create_stream(name)
        write(broker, client, [b"one"], name)
    await client.connected()
    places = []
    for name, sub in ((STREAM, "a"), (OTHER, "b")):
        await client.subscribed(name, sub, offset=FIRST)
        found = await attached(broker, expect, name)
        places.append((found.connection, asked(found).subscription_id))
        expect.exercised(
            await client.wait_messages(1, sub),
            f"nothing is delivered of {name}",
            id=slug("nothing-is-surfaced-of-{}", name),
        )
    return places[0], places[1]


async def _goes_on(
    broker: RabbitMQStream,
    client: Client,
    expect: Expect,
    what: str,
    sub: str = "b",
    stream: str = OTHER,
    *,
    id: str,
) -> None:
    """The subscription delivers what is written next."""
    before = len(client.messages(sub))
    write(broker, client, [b"next"], stream)
    found = await client.wait_messages(before + 1, sub, 3.0)
    expect.equal(bodies_of(found[before:]), [b"next"], what, id=id)


async def _pending(broker: RabbitMQStream, client: Client, expect: Expect) -> tuple[Call, str]:
    """A request whose answer is held back: QueryOffset where the client has it, else Create."""
    mark = broker.journal.last_seq
    query = client.has("rmqs.query_offset")
    kind = "QueryOffset" if query else "Create"
    name = f"answer to {kind}"
    broker.faults.add(hold(kind=f"{kind}Response", nth=1, scope="run", name=name))
    args: dict[str, Any] = {"target": STREAM, "name": "app"} if query else {"target": "third"}
    call = client.begin("rmqs.query_offset" if query else "rmqs.create", session="s1", **args)
    await expect.reached(broker, f"no {kind} came", kind=kind, since=mark, id=slug("no-{}-came", kind))
    return call, name


@scenario("RMQS-4.07", "MUST", "high", basis=["R11"], roles=CONSUMER)
async def credit_response_error(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """CreditResponse error.

    Fault: With a second subscription running and a QueryOffset pending: CreditResponse (0x8009, no
    correlation id) (a) code 4 for an id just unsubscribed (real race), (b) code 17 for a live subscription
    (real answer for an inactive single active consumer; the credit counts)
    Pass: No op ends by it; the pending request gets its own answer; the second subscription goes on; in (b)
    the consumer is kept; reporting it is optional
    Seen: stream-dotnet-client#159; stream-dotnet-client#205
    """
    dead, live = await _two_subscriptions(broker, client, expect)
    broker.store_offset(STREAM, "app", 7)
    call, held = await _pending(broker, client, expect)
    expect.prepared(await client.unsubscribe("a"))
    gone = CreditResponse(Code.SUBSCRIPTION_ID_DOES_NOT_EXIST, dead[1])
    if not say_if_open(broker, dead[0], gone):
        expect.note("(a) left out: the connection of the first subscription is gone with it")
    await _goes_on(
        broker, client, expect, "(a): the second subscription goes on", id="a-the-second-subscription-goes-on"
    )
    say(broker, expect, live[0], CreditResponse(Code.PRECONDITION_FAILED, live[1]))
    await _goes_on(broker, client, expect, "(b): the consumer is kept", id="b-the-consumer-is-kept")
    expect.that(
        not call.done,
        "no op ends by a CreditResponse",
        "the pending request ended",
        id="no-op-ends-by-a-creditresponse",
    )
    broker.faults.remove(held)
    value = expect.ok(
        await call, "the pending request gets its own answer", id="the-pending-request-gets-its-own-answer"
    )
    if "offset" in (value or {}):
        expect.equal(
            int(value["offset"]),
            7,
            "the pending request gets its own answer",
            id="the-pending-request-gets-its-own-answer",
        )
    expect.equal(
        len(subscribes(broker, OTHER)),
        1,
        "(b): the consumer does not subscribe again",
        id="b-the-consumer-does-not-subscribe-again",
    )


def _stray(client: Client, body: bytes, offset: int = 1) -> Chunk:
    data = simple_entries([record(client, body)])
    return Chunk.build(data, entries=1, records=1, first_offset=offset, timestamp_ms=1_700_000_000_000)


@scenario("RMQS-4.08", "MUST", "high", basis=["R9", "R10"], roles=CONSUMER)
async def deliver_for_unknown_subscription(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Deliver for unknown subscription.

    Fault: Id 250
    Pass: Ignored; others go on
    Seen: stream-dotnet-client#313
    """
    first, second = await _two_subscriptions(broker, client, expect)
    expect.exercised(
        FOREIGN_ID not in (first[1], second[1]),
        f"the client uses id {FOREIGN_ID} itself",
        id=slug("the-client-uses-id-{}-itself", FOREIGN_ID),
    )
    for connection in {first[0], second[0]}:
        say(broker, expect, connection, Deliver(FOREIGN_ID, _stray(client, b"stray")))
    await _goes_on(
        broker,
        client,
        expect,
        "the first subscription goes on",
        "a",
        STREAM,
        id="the-first-subscription-goes-on",
    )
    await _goes_on(
        broker, client, expect, "the second subscription goes on", id="the-second-subscription-goes-on"
    )
    got = [body for sub in ("a", "b") for body in bodies_of(client.messages(sub))]
    expect.that(
        b"stray" not in got,
        "a chunk for an unknown subscription is ignored",
        got,
        id="a-chunk-for-an-unknown-subscription-is-ignored",
    )
    expect.equal(
        len(subscribes(broker)) + len(subscribes(broker, OTHER)),
        2,
        "no client subscribes again",
        id="nobody-subscribes-again",
    )


@scenario("RMQS-4.09", "MUST", "high", basis=["R9"], roles=CONSUMER)
async def deliver_after_unsubscribe(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Deliver after Unsubscribe.

    Fault: A chunk written after the Unsubscribe request was read and before its answer (legal); (b) one more
    after the answer (illegal)
    Pass: No message event after the unsubscribe op ended; no crash; other subscriptions go on; credit for the
    dead id is tolerated (answered with CreditResponse 4)
    Seen: stream-js-client#211; stream-go-client#481; stream-dotnet-client#313
    """
    dead, _ = await _two_subscriptions(broker, client, expect)
    mark = broker.journal.last_seq
    broker.faults.add(hold(kind="Unsubscribe", direction="in", name="Unsubscribe"))
    call = client.begin("unsubscribe", sub="a", drain=False)
    await expect.reached(
        broker, "no Unsubscribe came", kind="Unsubscribe", since=mark, id="no-unsubscribe-came"
    )
    say(broker, expect, dead[0], Deliver(dead[1], _stray(client, b"before the answer")))
    broker.faults.remove("Unsubscribe")
    result = await call
    expect.ok(result, "unsubscribe ends ok", id="unsubscribe-ends-ok")
    if not say_if_open(broker, dead[0], Deliver(dead[1], _stray(client, b"behind the answer", 2))):
        expect.note("(b) left out: the connection is gone with its subscription")
    await asyncio.sleep(QUIET_S)
    late = [e for e in client.events if e.event == "message" and e["sub"] == "a" and e.n > (result.n or 0)]
    expect.that(
        not late,
        "no message event after the unsubscribe op ended",
        late,
        id="no-message-event-after-the-unsubscribe-op-ended",
    )
    await _goes_on(broker, client, expect, "other subscriptions go on", id="other-subscriptions-go-on")


@scenario("RMQS-4.24", "MUST", "high", basis=["R9"], roles=CONSUMER, timeout_s=60)
async def two_subscriptions_on_one_connection(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Two subscriptions, one connection.

    Fault: Two streams whose Metadata names the same broker; subscribe both; interleave chunks for the two ids
    seen on the wire; unsubscribe the first; later subscribe again until its id is reused (at most 300 times,
    else skip that part)
    Pass: Each message reaches the callback of its own stream; the second goes on; a reused id never calls the
    old callback; a client that opens one connection per subscription: `inconclusive`
    Seen: rstream#204; rstream#211; rstream#246
    """
    first, second = await _two_subscriptions(broker, client, expect)
    expect.exercised(
        first[0] == second[0],
        "the client opens one connection per subscription",
        id="the-client-opens-one-connection-per-subscription",
    )
    for number in range(5):
        write(broker, client, [b"a%d" % number], STREAM)
        write(broker, client, [b"b%d" % number], OTHER)
    for sub in ("a", "b"):
        got = bodies_of(await delivered_messages(client, 6, sub))
        wanted = [b"one", *(b"%s%d" % (sub.encode(), number) for number in range(5))]
        expect.equal(
            got,
            wanted,
            "each message reaches the callback of its own stream",
            id="each-message-reaches-the-callback-of-its-own-stream",
        )
    expect.ok(await client.unsubscribe("a"), "unsubscribe ends ok", id="unsubscribe-ends-ok")
    await _goes_on(broker, client, expect, "the second goes on", id="the-second-goes-on")
    for number in range(REUSE_TRIES):
        sub, mark = f"a{number}", broker.journal.last_seq
        await client.subscribed(STREAM, sub, offset={"type": "next"})
        found = await attached(broker, expect, since=mark)
        if (found.connection, asked(found).subscription_id) == first:
            before = len(client.messages("a"))
            await _goes_on(
                broker,
                client,
                expect,
                "a reused id calls the new callback",
                sub,
                STREAM,
                id="a-reused-id-calls-the-new-callback",
            )
            expect.equal(
                len(client.messages("a")),
                before,
                "a reused id never calls the old callback",
                id="a-reused-id-never-calls-the-old-callback",
            )
            return
        expect.prepared(await client.unsubscribe(sub))
    expect.note(f"no id was used again within {REUSE_TRIES} subscriptions")


@scenario(
    "RMQS-4.25",
    "MUST",
    "medium",
    basis=["R5"],
    roles=CONSUMER,
    timeout_s=60,
    revision=2,
    allows=("delivers-what-came",),
)
async def subscription_id_exists(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Subscription id exists.

    Fault: Subscribe answered with code 3, then a chunk for that id (no server sends that); the next Subscribe
    is accepted
    Pass: Op fails with code 3 (or ok after an automatic retry); the next subscribe works; non-strict: refused
    without the number; a message event of the failed subscription
    """
    broker.create_stream(STREAM)
    await client.connected()
    broker.faults.add(reply(code=Code.SUBSCRIPTION_ID_ALREADY_EXISTS, kind="Subscribe", nth=1, scope="run"))
    result = await client.subscribe(STREAM, "a", offset=FIRST)
    refused = await subscribe_error(client, result, "a")
    found = subscribes(broker)
    expect.exercised(found, "no Subscribe came", id="no-subscribe-came")
    if refused is not None:
        reported = refused.code == 3
        if refused.code is None and refused.kind.value == "refused":  # the library has one error for them all
            expect.tolerate(reported, "the op fails with code 3", refused, id="the-op-fails-with-code-n")
        else:
            expect.that(reported, "the op fails with code 3", refused, id="the-op-fails-with-code-n")
        stray = Deliver(asked(found[0]).subscription_id, _stray(client, b"stray"))
        say_if_open(broker, found[0].connection, stray)
        await asyncio.sleep(QUIET_S)
        expect.tolerate(  # no server sends a chunk to a subscription that it has refused
            not client.messages("a"),
            "no message event of the failed subscription",
            client.messages("a"),
            id="no-message-event-of-the-failed-subscription",
        )
        await client.unsubscribe("a")
        expect.ok(
            await client.subscribe(STREAM, "b", offset=FIRST),
            "the next subscribe works",
            id="the-next-subscribe-works",
        )
        await attached(broker, expect)
        await _goes_on(
            broker, client, expect, "the next subscribe works", "b", STREAM, id="the-next-subscribe-works"
        )
        return
    expect.that(
        await until(lambda: len(subscribes(broker)) > 1, 15.0),
        "the op fails with code 3, or is ok after a retry",
        "ok without a retry",
        id="the-op-fails-with-code-n-or-is-ok-after-a-retry",
    )
    await attached(broker, expect)
    await _goes_on(
        broker,
        client,
        expect,
        "the retried subscription works",
        "a",
        STREAM,
        id="the-retried-subscription-works",
    )


@scenario("RMQS-4.26", "SHOULD", "high", basis=["R9"], roles=CONSUMER, timeout_s=60)
async def subscribe_failure_is_clean(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Subscribe failure is clean.

    Fault: Subscribe answered with code 6, 10 times, then OK
    Pass: Each failed op reports 6, or the library retries by itself with ≥ 50 ms between tries and ends ok;
    at the end one live subscription on the wire; with `stats` declared: tasks/threads as before ± 1
    Seen: stream-go-client#486; stream-dotnet-client#339
    """
    broker.create_stream(STREAM)
    write(broker, client, [b"one"])
    await client.connected()
    broker.faults.add(
        reply(code=Code.STREAM_NOT_AVAILABLE, kind="Subscribe", first=10, scope="run", name="not available")
    )
    loads = []
    for number in range(11):
        mark = broker.journal.last_seq
        sub = f"c{number}"
        result = await client.subscribe(STREAM, sub, offset=FIRST, timeout=15.0)
        if client.can("lazy_subscribe"):
            await client.wait_messages(1, sub, 15.0)
        refused = await subscribe_error(client, result, sub)
        tries = subscribes(broker, since=mark)
        if len(tries) > 1:
            gap = min(later.at - earlier.at for earlier, later in pairwise(tries))
            expect.not_before(
                gap,
                0.05,
                "the library retries with 50 ms or more between two tries",
                id="the-library-retries-with-n-ms-or-more-between-two-tries",
            )
        if refused is None:
            break
        expect.that(refused.code == 6, "each failed op reports 6", refused, id="each-failed-op-reports-n")
        loads.append(await _load(client))
    expect.equal(
        broker.faults.fired("not available"),
        10,
        "every subscribe asks the server",
        id="every-subscribe-asks-the-server",
    )
    live = await client.wait_messages(1, sub)
    expect.equal(
        bodies_of(live),
        [b"one"],
        "the subscribe after the last refusal works",
        id="the-subscribe-after-the-last-refusal-works",
    )
    expect.equal(
        len(model(broker).subscriptions),
        1,
        "one live subscription at the end",
        id="one-live-subscription-at-the-end",
    )
    if len(loads) > 1 and client.can("stats"):
        expect.that(
            loads[-1] <= loads[0] + 1,
            "tasks and threads as before, plus or minus 1",
            loads,
            id="tasks-and-threads-as-before-plus-or-minus-n",
        )


async def _load(client: Client) -> int:
    """Tasks and threads of the library; 0 where it does not report them."""
    if not client.can("stats"):
        return 0
    found = (await client.op("stats")).value or {}
    return sum(found.get(key) or 0 for key in ("tasks", "threads"))


@scenario("RMQS-4.27", "MUST", "critical", basis=["R10"], needs=["callback_raise"], roles=CONSUMER)
async def callback_raises(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Callback raises.

    Fault: One chunk of 10, raise in message 3; a second chunk of 5 follows when credit comes
    Pass: 4..10 and the second chunk delivered, credit returned; non-strict: the consumer stops with an
    error/closed event and delivers nothing more; fail: later chunks delivered with 4..10 missing, silent
    stop, crash
    Seen: stream-rust-client#314; rstream#215; stream-js-client#224
    """
    broker.create_stream(STREAM)
    write(broker, client, numbered(0, 10))
    write(broker, client, numbered(10, 5))
    await client.connected()
    await client.subscribed(STREAM, offset=FIRST, credit=1, on_message={"mode": "event", "raise_on": [3]})
    got = positions(await delivered_messages(client, 15, within_s=3.0))
    expect.exercised(len(got) >= 3, "message 3 was never delivered", id="message-n-was-never-surfaced")
    expect.that(client.alive, "the process goes on", "it ended", id="the-process-lives-on")
    if got == [0, 1, 2]:
        reported = complaints(client)
        expect.that(
            reported,
            "messages 4 to 10 are delivered, or the consumer stops with an error",
            "a silent stop",
            id="messages-n-to-n-are-surfaced-or-the-consumer-stops-loudly",
        )
        expect.tolerate(
            False,
            "messages 4 to 10 are delivered",
            f"the consumer stops: {reported[0]}",
            id="messages-n-to-n-are-surfaced",
        )
        return
    expect.equal(
        got,
        [*range(15)],
        "messages 4 to 10 and the second chunk are delivered",
        id="messages-n-to-n-and-the-second-chunk-are-surfaced",
    )
    await expect.wire(
        broker, "credit is returned", within_s=1.0, kind="Credit", tap=Tap.RECEIVED, id="credit-is-returned"
    )
