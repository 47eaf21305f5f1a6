"""RMQS-3 Publishing: what the broker refuses, and equal publishing ids."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import RabbitMQStream
from fakebrokers.faults import drop
from fakebrokers.rabbitmq_stream.binary import pack_ids
from fakebrokers.rabbitmq_stream.frames import Publish, PublishConfirm, PublishError
from scenarios._common import came, received
from scenarios.rabbitmq_stream._confirming import (
    LOST,
    all_acked,
    confirm,
    hold_confirms,
    published,
    publisher_of,
)
from scenarios.rabbitmq_stream._sending import begin_publishing, sends_singly
from scenarios.rabbitmq_stream._steps import PUBLISHER, STREAM, say

Json = dict[str, Any]


@scenario("RMQS-3.04", "MUST", "critical", basis=["R7"], roles=PUBLISHER)
async def publish_error(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """PublishError.

    Fault: Publish 5; one PublishError frame with two entries, messages 2 and 3, code 17; confirm the others
    Pass: 2 and 3 `nacked` with code 17; others `acked`
    Seen: source: rabbitmq-stream-js-client 1.0.0 decodes only the first entry
    """
    broker.create_stream(STREAM)
    await client.connected()
    calls = await hold_confirms(broker, client, expect, 5)
    ids = [key for _, key in published(broker)]
    connection, publisher_id = publisher_of(broker, expect)
    say(broker, expect, connection, PublishError(publisher_id, ((ids[1], 17), (ids[2], 17))))
    confirm(broker, expect, [ids[0], ids[3], ids[4]])
    for number in (1, 2):
        result = await calls[number]
        criterion = f"message {number + 1} is nacked with code 17"
        expect.outcome(result, "nacked", criterion, id="message-n-is-nacked-with-code-n")
        expect.equal(result.code, 17, criterion, id="message-n-is-nacked-with-code-n")
    for number in (0, 3, 4) if sends_singly(client, 5) else ():
        expect.outcome(
            await calls[number], "acked", f"message {number + 1} is acked", id="message-n-is-acked"
        )


@scenario("RMQS-3.05", "MUST", "high", basis=["R7", "R20"], roles=PUBLISHER)
async def unknown_error_code(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """PublishError with unknown code.

    Fault: Code 999
    Pass: `nacked`, no crash
    """
    broker.create_stream(STREAM)
    await client.connected()
    (call,) = await hold_confirms(broker, client, expect, 1)
    (_, key), (connection, publisher_id) = published(broker)[0], publisher_of(broker, expect)
    say(broker, expect, connection, PublishError(publisher_id, ((key, 999),)))
    expect.outcome(await call, "nacked", "the message is nacked", id="the-message-is-nacked")
    broker.faults.clear()
    expect.outcome(
        await client.publish(STREAM, b"next"), "acked", "the publisher goes on", id="the-publisher-goes-on"
    )


@scenario("RMQS-3.15", "MUST", "high", basis=["R5", "R7"], roles=PUBLISHER)
async def publisher_does_not_exist(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Publisher not existing.

    Fault: One PublishError frame with code 18 for all ids of the Publish (what the server does after the
    stream was deleted or the id is unknown); a new DeclarePublisher is accepted
    Pass: Each message ends once: `nacked` with 18, or `acked` after re-declaration and re-publish; not left
    open, not `acked` otherwise
    """
    broker.create_stream(STREAM)
    await client.connected()
    broker.faults.add(drop(role="confirm", first=1, name=LOST))
    call = client.begin_publish(STREAM, b"1", timeout=4.0)
    await came(expect, partial(published, broker), 1)
    connection, publisher_id = publisher_of(broker, expect)
    keys = [key for _, key in published(broker)]
    say(broker, expect, connection, PublishError(publisher_id, tuple((key, 18) for key in keys)))
    result = await call
    expect.outcome(
        result,
        ("nacked", "acked"),
        "each message ends once: nacked with 18, or acked anew",
        id="each-message-ends-once-nacked-with-n-or-acked-anew",
    )
    if result.outcome == "nacked":
        expect.equal(result.code, 18, "nacked with code 18", id="nacked-with-code-n")
    else:
        again = [key for _, key in published(broker)][1:]
        expect.that(
            again,
            "acked only after it was published again",
            "it was not",
            id="acked-only-after-it-was-published-again",
        )


@scenario("RMQS-3.21", "MUST", "critical", basis=["R6", "R7"], roles=PUBLISHER, timeout_s=60, revision=2)
async def equal_publishing_ids(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Two publishers with equal publishing ids.

    Fault: Two publishers on one connection (same broker, two streams, then the same stream), three messages
    each with the ids of the wire; confirm only those of the first, then PublishError 17 for those of the
    second
    Pass: First's messages `acked`, second's `nacked` 17, none earlier or otherwise; a client with one
    connection per publisher: `inconclusive`
    Seen: measured on 4.3.6: one confirm frame per publisher with equal ids; source: stream-js-client 1.0.0
    does not look at the publisher id
    """
    for name in (STREAM, "bills"):
        broker.create_stream(name)
    await client.connected("two streams")
    tried = await _equal_ids(
        broker,
        client,
        expect,
        "two streams",
        {"target": STREAM, "session": "two streams"},
        {"target": "bills", "session": "two streams"},
    )
    await client.connected("one stream")
    first: Json = {"target": STREAM, "session": "one stream"}
    second = first | {"name": "second"}
    if not client.can("named_publisher"):  # then only another session has a publisher of its own
        await client.connected("again")
        second = first | {"session": "again"}
    tried |= await _equal_ids(broker, client, expect, "one stream", first, second)
    expect.exercised(
        tried,
        "no two publishers with equal ids share a connection",
        id="no-two-publishers-with-equal-ids-share-a-connection",
    )


async def _equal_ids(
    broker: RabbitMQStream, client: Client, expect: Expect, case: str, *publishers: Json
) -> bool:
    """Confirm what the first publisher has sent and refuse the second's.

    Returns:
        Whether that could be tried: they share a connection, and ids.
    """
    for place in publishers:  # one after the other: only then do pools find the connection of the first
        declared = await client.publish(body=b"to declare the publisher", **place)
        expect.outcome(
            declared,
            "acked",
            f"{case}: each publisher gets its own first confirm",
            id=slug("{}-each-publisher-is-told-of-its-own-first-confirm", case),
        )
    mark = broker.journal.last_seq
    broker.faults.add(drop(role="confirm", name=LOST))
    bodies = [[b"%s %d/%d" % (case.encode(), which, n) for n in range(3)] for which in (1, 2)]
    calls = [
        begin_publishing(client, bodies=texts, timeout=5.0, **place)
        for place, texts in zip(publishers, bodies, strict=True)
    ]
    await came(expect, partial(published, broker, mark), 6)
    sent_by: dict[tuple[str, int], dict[int, bytes]] = {}
    for record in received(broker, "Publish", since=mark):
        if isinstance(record.frame, Publish):
            mine = sent_by.setdefault((record.connection, record.frame.publisher_id), {})
            mine.update((int(key), record.frame.entries) for key in record.keys)
    broker.faults.remove(LOST)
    by_place = {
        which: place
        for place, mine in sent_by.items()
        for which in (0, 1)
        if any(bodies[which][0] in entries for entries in mine.values())
    }
    if len(by_place) < 2 or by_place[0] == by_place[1] or by_place[0][0] != by_place[1][0]:
        expect.note(f"{case}: not tried, no two publishers on one connection")
        return False
    connection, first = by_place[0]
    second = by_place[1][1]
    ids = [sorted(sent_by[place]) for place in (by_place[0], by_place[1])]
    if not set(ids[0]) & set(ids[1]):
        expect.note(f"{case}: not tried, the ids are not equal")
        return False
    say(broker, expect, connection, PublishConfirm(first, pack_ids(ids[0])))
    results = [await call for call in calls[0]]
    all_acked(expect, results, f"{case}: the first publisher's messages are acked")
    await asyncio.sleep(0.2)
    early = any(call.done for call in calls[1])
    expect.that(
        not early,
        f"{case}: none of the second's ends by it",
        "some ended",
        id=slug("{}-none-of-the-second-s-ends-by-it", case),
    )
    say(broker, expect, connection, PublishError(second, tuple((key, 17) for key in ids[1])))
    criterion = f"{case}: the second publisher's messages are nacked with 17"
    for call in calls[1]:
        result = await call
        expect.outcome(
            result, "nacked", criterion, id=slug("{}-the-second-publisher-s-messages-are-nacked-with-n", case)
        )
        expect.equal(
            result.code, 17, criterion, id=slug("{}-the-second-publisher-s-messages-are-nacked-with-n", case)
        )
    return True
