"""RMQS-3 Publishing: confirms."""

from __future__ import annotations

import asyncio
from functools import partial

from conformance.clients.adapter.base import Call
from conformance.suite import Client, Expect, scenario
from fakebrokers import RabbitMQStream
from fakebrokers.faults import drop, duplicate, inject
from fakebrokers.journal import Tap
from fakebrokers.rabbitmq_stream.binary import pack_ids
from fakebrokers.rabbitmq_stream.frames import PublishConfirm
from scenarios._common import came, limit_s, until
from scenarios.rabbitmq_stream._confirming import (
    LOST,
    all_acked,
    confirm,
    hold_confirms,
    no_second_completion,
    published,
    publisher_of,
)
from scenarios.rabbitmq_stream._sending import begin_publishing, sends_singly
from scenarios.rabbitmq_stream._steps import PUBLISHER, STREAM, say, stores

LOST_TIMEOUT_S = 3.0


WINDOW_MAX = 2000


BURST = 100  #: messages that are begun before the next look at what came


@scenario("RMQS-3.01", "MUST", "critical", basis=["R7"], roles=PUBLISHER)
async def publish_and_confirm(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Publish and confirm.

    Fault: Publish 6; confirm in all legal groupings in turn: one frame per id, one frame for all, one frame
    with the ids of two Publish frames
    Pass: Every message reported `acked` once
    """
    broker.create_stream(STREAM)
    await client.connected()
    for grouping in ("one frame per id", "one frame for all", "ids of two Publish frames"):
        if grouping == "ids of two Publish frames" and not sends_singly(client, 6):
            continue
        broker.faults.clear()
        mark = broker.journal.last_seq
        broker.faults.add(drop(role="confirm", name=LOST))
        bodies = [b"%d" % n for n in range(6)]
        if grouping == "ids of two Publish frames":
            calls = begin_publishing(client, STREAM, bodies[:3])
            await asyncio.sleep(0.1)
            calls += begin_publishing(client, STREAM, bodies[3:])
        else:
            calls = begin_publishing(client, STREAM, bodies)
        await came(expect, partial(published, broker, mark), 6)
        ids = [key for _, key in published(broker, mark)]
        for group in [[key] for key in ids] if grouping == "one frame per id" else [ids]:
            confirm(broker, expect, group)
        all_acked(expect, [await call for call in calls], f"{grouping}: every message is reported acked")
    no_second_completion(client, expect)


@scenario("RMQS-3.02", "MUST", "critical", basis=["R7"], roles=PUBLISHER)
async def confirms_out_of_order(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Confirm batch out of order.

    Fault: Publish 5, take the ids from the wire; one PublishConfirm with the ids of messages 5, 1, 3, then
    one with 2, 4
    Pass: Each message confirmed once, by id and not by position (checked with message 2 and 4 still open
    after the first frame)
    Seen: rstream#107
    """
    broker.create_stream(STREAM)
    await client.connected()
    calls = await hold_confirms(broker, client, expect, 5)
    ids = [key for _, key in published(broker)]
    confirm(broker, expect, [ids[4], ids[0], ids[2]])
    wanted = [1, 3, 5] if sends_singly(client, 5) else []
    await until(lambda: sum(call.done for call in calls) >= len(wanted), 3.0)
    await asyncio.sleep(0.3)
    done = [number + 1 for number, call in enumerate(calls) if call.done]
    expect.equal(
        done,
        wanted,
        "messages are confirmed by id, not by position",
        id="messages-are-confirmed-by-id-not-by-position",
    )
    confirm(broker, expect, [ids[1], ids[3]])
    all_acked(expect, [await call for call in calls], "each message is confirmed")
    no_second_completion(client, expect)


@scenario("RMQS-3.03", "MUST", "critical", basis=["R7"], roles=PUBLISHER)
async def partial_confirm(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Partial confirm.

    Fault: Publish 10, confirm 6 (ids 1, 2, 4, 6, 9, 10 by position), drop 4
    Pass: exactly those 6 are `acked`; the other 4 are never `acked` or `nacked`, they end `timeout`/unknown;
    non-strict: the library has no confirm timeout and leaves them open until close, where they end unknown
    Seen: stream-go-client#378
    """
    broker.create_stream(STREAM)
    await client.connected()
    calls = await hold_confirms(broker, client, expect, 10)
    ids = [key for _, key in published(broker)]
    confirmed = (0, 1, 3, 5, 8, 9)
    confirm(broker, expect, [ids[n] for n in confirmed])
    for number in confirmed if sends_singly(client, 10) else ():
        expect.outcome(
            await calls[number],
            "acked",
            f"message {number + 1}, which was confirmed, is acked",
            id="message-n-which-was-confirmed-is-acked",
        )
    open_calls = [call for number, call in enumerate(calls) if number not in confirmed]
    await asyncio.sleep(0.2)
    early = [call for call in open_calls if call.done]
    for call in early:
        result = await call
        expect.outcome(
            result,
            "unknown",
            "the others are never acked or nacked",
            id="the-others-are-never-acked-or-nacked",
        )
    if client.can("ack_timeout"):
        for call in open_calls:
            expect.outcome(
                await call,
                "unknown",
                "the others end unknown at their time-out",
                id="the-others-end-unknown-at-their-time-out",
            )
        return
    expect.tolerate(
        False,
        "the others end as timeout",
        "the library has no confirm time-out",
        id="the-others-end-as-timeout",
    )
    closing = await client.close()
    expect.ended(closing, "close ends", id="close-ends")
    for call in open_calls:
        expect.outcome(
            await call,
            "unknown",
            "the others end unknown with the close",
            id="the-others-end-unknown-with-the-close",
        )


@scenario("RMQS-3.06", "MUST", "high", basis=["R7"], roles=PUBLISHER)
async def confirm_for_unknown_id(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Confirm for unknown id.

    Fault: Confirm id never sent
    Pass: Ignored
    """
    broker.create_stream(STREAM)
    await client.connected()
    expect.prepared(await client.publish(STREAM, b"first"))
    _, publisher_id = publisher_of(broker, expect)
    stray = {"publisher_id": publisher_id, "publishing_ids": pack_ids([1 << 40])}
    broker.faults.add(
        inject(kind="PublishConfirm", fields=stray, place="before", role="confirm", nth=1, name="stray")
    )
    result = await client.publish(STREAM, b"second")
    expect.outcome(
        result,
        "acked",
        "a confirm for an id that was never sent is ignored",
        id="a-confirm-for-an-id-that-was-never-sent-is-ignored",
    )
    expect.exercised(broker.faults.fired("stray"), "no confirm was sent", id="no-confirm-was-sent")
    expect.outcome(
        await client.publish(STREAM, b"third"), "acked", "the publisher goes on", id="the-publisher-goes-on"
    )
    for body in (b"second", b"third"):
        expect.that(
            stores(broker, body),
            "what was acked is stored",
            f"{body.decode()} is not",
            id="what-was-acked-is-stored",
        )


@scenario("RMQS-3.07", "MUST", "high", basis=["R7"], roles=PUBLISHER)
async def confirm_for_unknown_publisher(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Confirm for unknown publisher.

    Fault: PublishConfirm with PublisherId 200 (not declared) and the publishing ids that are pending at the
    real publisher; 1 s later the right confirm
    Pass: No message ends by the first frame; all end `acked` by the second; reader alive
    Seen: rstream#262
    """
    broker.create_stream(STREAM)
    await client.connected()
    calls = await hold_confirms(broker, client, expect, 3)
    ids = [key for _, key in published(broker)]
    connection, publisher_id = publisher_of(broker, expect)
    expect.exercised(
        publisher_id != 200, "the client's publisher has the id 200", id="the-client-s-publisher-has-the-id-n"
    )
    say(broker, expect, connection, PublishConfirm(200, pack_ids(ids)))
    await asyncio.sleep(1.0)
    expect.that(
        not any(call.done for call in calls),
        "no message ends by the first frame",
        "some ended",
        id="no-message-ends-by-the-first-frame",
    )
    confirm(broker, expect, ids)
    all_acked(expect, [await call for call in calls], "all end acked by the second frame")


@scenario("RMQS-3.08", "MUST", "high", basis=["R7"], roles=PUBLISHER)
async def duplicate_confirm(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Duplicate confirm.

    Fault: dup(PublishConfirm)
    Pass: One completion
    """
    broker.create_stream(STREAM)
    await client.connected()
    broker.faults.add(duplicate(role="confirm"))
    first, second = client.begin_publish(STREAM, b"1"), client.begin_publish(STREAM, b"2")
    all_acked(expect, [await first, await second], "each message is reported acked")
    await expect.reached(
        broker,
        "a confirm did not go out twice",
        role="confirm",
        tap=Tap.SENT,
        count=2,
        id="a-confirm-did-not-go-out-twice",
    )
    await asyncio.sleep(0.2)
    no_second_completion(client, expect)
    expect.outcome(
        await client.publish(STREAM, b"3"), "acked", "the publisher goes on", id="the-publisher-goes-on"
    )


@scenario("RMQS-3.09", "SHOULD", "critical", basis=["R7"], roles=PUBLISHER, timeout_s=90, revision=3)
async def confirm_lost(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Confirm lost, connection alive.

    Fault: Never confirm; heartbeats go on; publish until the client's window is full or 2000 messages
    Pass: Each publish with wait ends `timeout`/unknown at timeout_ms or at the library's documented confirm
    timeout (≤ 60 s); the producer accepts new messages afterwards and they are confirmed
    Seen: stream-dotnet-client#139; stream-go-client#378
    """
    broker.create_stream(STREAM)
    await client.connected()
    deadline = client.deadline_s("publish", LOST_TIMEOUT_S)
    broker.faults.add(drop(role="confirm", name=LOST))
    calls = await _until_the_window_is_full(broker, client)
    # by what is stored: the journal keeps no long frames, and clients may put many messages into one
    came_so_far = b"|".join(message.body for message in broker.messages(STREAM))
    open_ones = {body for body in calls if body in came_so_far}
    expect.exercised(open_ones, "no message came", id="no-message-came")
    expect.note(f"{len(open_ones)} of {len(calls)} messages came before the window was full")
    if client.can("ack_timeout"):
        for body, call in calls.items():
            result = await call
            expect.that(
                not result.ok,
                "no publish is acked without a confirm",
                str(result),
                id="no-publish-is-acked-without-a-confirm",
            )
            if body in open_ones:
                expect.outcome(result, "unknown", "each publish ends unknown", id="each-publish-ends-unknown")
            expect.ended(
                result,
                "each publish ends at its deadline, no hang",
                id="each-publish-ends-at-its-deadline-no-hang",
            )
            expect.within(
                result.elapsed_ms / 1000,
                limit_s(deadline),
                "each publish ends at its deadline",
                id="each-publish-ends-at-its-deadline",
            )
    else:
        expect.tolerate(
            False,
            "each publish ends at its time-out",
            "the library has no confirm time-out",
            id="each-publish-ends-at-its-time-out",
        )
    broker.faults.remove(LOST)
    after = await client.publish(STREAM, b"again")
    expect.outcome(
        after,
        "acked",
        "the producer accepts new messages afterwards",
        id="the-producer-accepts-new-messages-afterwards",
    )
    expect.that(
        stores(broker, b"again"),
        "they are confirmed: the stream holds them",
        "it does not",
        id="they-are-confirmed-the-stream-holds-them",
    )


async def _until_the_window_is_full(broker: RabbitMQStream, client: Client) -> dict[bytes, Call]:
    """Publish until no more messages come, or 2000 have."""
    calls: dict[bytes, Call] = {}
    while len(calls) < WINDOW_MAX:
        first = len(calls)
        for number in range(first, first + BURST):
            body = b"number %04d" % number
            calls[body] = client.begin_publish(STREAM, body, timeout=LOST_TIMEOUT_S)
        if not await until(lambda: len(published(broker)) >= len(calls), 0.5):
            break
    return calls
