"""RMQS-3 Publishing: windows, batches, many at once, lengths."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Any

from conformance.clients.adapter.base import Call
from conformance.clients.adapter.messages import same_body
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import RabbitMQStream
from fakebrokers.faults import hold
from scenarios._common import received
from scenarios._footprint import Footprint
from scenarios.rabbitmq_stream._confirming import published
from scenarios.rabbitmq_stream._deliveries import FIRST, bodies_of
from scenarios.rabbitmq_stream._lifecycle import kept
from scenarios.rabbitmq_stream._sending import sends_singly
from scenarios.rabbitmq_stream._steps import BOTH, PUBLISHER, STREAM, stored_bodies, stores, stream_exists
from scenarios.rabbitmq_stream.sweep.records import plain_content

WINDOW = 60_000


@scenario(
    "RMQS-3.16",
    "SHOULD",
    "high",
    basis=["R7"],
    roles=PUBLISHER,
    ops=("publish_many",),
    process=True,
    alone=True,
    timeout_s=120,
    revision=3,
)
async def window_full(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Window full blocks, then frees.

    Fault: Hold all confirms; publish 60 000 × 100 B without waiting. As the real server: stop reading at 50
    000 unconfirmed, read on below 37 500; after 5 s confirm everything
    Pass: The client stops at its own limit (blocks or fails fast) or is stopped by back pressure; its RSS
    grows < 128 MiB; the connection survives; after the release every accepted message ends `acked` once, at
    least one more publish works
    Seen: stream-go-client#378; stream-go-client#374
    """
    broker.create_stream(STREAM)
    await client.connected()
    expect.prepared(await client.publish(STREAM, b"first"))
    mark, footprint = broker.journal.last_seq, Footprint(client)
    broker.faults.add(hold(role="confirm", name="confirms"))
    batch = {
        "session": "s1",
        "target": STREAM,
        "messages": [{"body": {"text": "w" * 100}}] * 500,
        "wait": True,
    }
    # a library that keeps one batch open stops at once, so a few show it as well
    count = WINDOW if sends_singly(client, WINDOW) else 5000
    calls = [client.begin("publish_many", 60.0, **batch) for _ in range(count // 500)]
    await asyncio.sleep(5.0)
    names = {record.connection for record, _ in published(broker, mark)}
    expect.exercised(names, "no message came", id="no-message-came")
    expect.exercised(broker.faults.fired("confirms"), "no confirm was held", id="no-confirm-was-held")
    early = [call for call in calls if call.done and (await call).ok]
    expect.that(
        not early,
        "nothing is acked without a confirm",
        f"{len(early)} batches",
        id="nothing-is-acked-without-a-confirm",
    )
    footprint.judge(expect, rss_mib=128)
    broker.faults.clear()
    results = [await call for call in calls]
    gone = sorted(names - set(kept(broker)))
    expect.that(not gone, "the connection survives", f"{', '.join(gone)} ended", id="the-connection-survives")
    refused = [r for r in results if r.error is not None and r.error.kind.value == "invalid"]
    outcomes = [row["outcome"] for r in results if r.ok for row in r.value["outcomes"]]
    expect.equal(
        len(outcomes) + 500 * len(refused),
        count,
        "every message has an outcome",
        id="every-message-has-an-outcome",
    )
    expect.that(
        outcomes,
        "every accepted message ends acked once",
        "none was accepted",
        id="every-accepted-message-ends-acked-once",
    )
    expect.equal(
        outcomes.count("acked"),
        len(outcomes),
        "every accepted message ends acked once",
        id="every-accepted-message-ends-acked-once",
    )
    stored = stores(broker, b"w" * 100)
    expect.that(
        stored >= len(outcomes),
        "what was acked is stored",
        f"{stored} of {len(outcomes)} are",
        id="what-was-acked-is-stored",
    )
    expect.outcome(
        await client.publish(STREAM, b"last"), "acked", "one more publish works", id="one-more-publish-works"
    )
    expect.that(
        stores(broker, b"last"),
        "one more publish works: it is stored",
        "it is not",
        id="one-more-publish-works-it-is-stored",
    )


@scenario(
    "RMQS-3.17",
    "MAY",
    "medium",
    basis=["R7"],
    needs=["subentry"],
    roles=PUBLISHER,
    ops=("publish_many",),
    target=True,
    revision=3,
)
async def sub_entry_batches(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Sub-entry batches.

    Fault: Compressed batch, of which one member is empty and one is a byte long
    Pass: Confirm by batch id completes every member
    Seen: rstream#93; rstream#107
    """
    await client.connected()
    await stream_exists(broker, client)
    members = ["", "m", *(f"member {n}" for n in range(8))]
    messages = [{"body": {"text": member}} for member in members]
    for compression in ("none", "gzip"):
        args = {
            "session": "s1",
            "target": STREAM,
            "messages": messages,
            "subentry": compression,
            "wait": True,
        }
        result = await client.op("publish_many", 5.0, **args)
        outcomes = [
            row["outcome"]
            for row in expect.ok(
                result, f"{compression}: the batch ends", id=slug("{}-the-batch-ends", compression)
            )["outcomes"]
        ]
        expect.equal(
            outcomes,
            ["acked"] * 10,
            f"{compression}: the confirm by batch id completes every member",
            id=slug("{}-the-confirm-by-batch-id-completes-every-member", compression),
        )
    if expect.wire_visible:
        batches = [r.frame.batches for r in received(broker, "Publish")]  # type: ignore[union-attr]
        expect.exercised(
            any(batches), "the client sent no sub-entry batch", id="the-client-sent-no-sub-entry-batch"
        )
        stored = [plain_content(message.body) for message in broker.messages(STREAM)]
        held = [stored.count(member.encode()) for member in members]
        expect.equal(
            held,
            [2] * 10,
            "every member that was acked is stored",
            id="every-member-that-was-acked-is-stored",
        )


@scenario(
    "RMQS-3.22",
    "SHOULD",
    "critical",
    basis=["R7", "R8"],
    needs=["subentry", "named_publisher"],
    roles=BOTH,
    ops=("publish_many",),
    target=True,
)
async def batches_of_a_name(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Sub-entry batches of a named publisher.

    Fault: Two sessions, one after the other, send two sub-entry batches each under one name, each batch after
    the answer to the one before; dedup as the real server: a batch whose id is not above the highest one of
    its name is dropped and confirmed
    Pass: What is `acked` is stored, once: each batch has an id above those before
    Seen: source: rabbitmq-stream-js-client 1.0.0 `sendSubEntries` takes the last id again
    """
    await client.connected()
    await stream_exists(broker, client)
    bodies: list[str] = []
    for session in ("a", "b"):
        await client.connected(session)
        for number in range(2):
            members = [f"{session}{number}{member}" for member in range(3)]
            bodies += members
            messages = [{"body": {"text": body}} for body in members]
            args = {"session": session, "target": STREAM, "messages": messages, "name": "ref"}
            result = await client.op("publish_many", 5.0, **args, subentry="none", wait=True)
            rows = expect.ok(result, "each batch ends", id="each-batch-ends")["outcomes"]
            expect.equal(
                [row["outcome"] for row in rows],
                ["acked"] * 3,
                "every member of each batch is acked",
                id="every-member-of-each-batch-is-acked",
            )
        await client.close(session)
    if expect.wire_visible:
        held = {body: stores(broker, body.encode()) for body in bodies}
    else:
        await client.subscribed(STREAM, offset=FIRST)
        found = bodies_of(await client.wait_messages(len(bodies)))
        held = {body: found.count(body.encode()) for body in bodies}
    lost = {body: count for body, count in held.items() if count != 1}
    criterion = "every member that was acked is stored, once"
    expect.that(not lost, criterion, lost, id="every-member-is-stored-once")


@scenario(
    "RMQS-3.18", "MUST", "critical", basis=["R7"], roles=PUBLISHER, alone=True, timeout_s=90, target=True
)
async def concurrent_publishing(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Concurrent publishing.

    Fault: 8 tasks × 500 on one unnamed publisher; (b) the same on a named one if `named_publisher`
    Pass: Every frame decodes; no publishing id is used twice; 4000 `acked`, 4000 payloads in the stream. (b)
    ids increase in wire order (non-strict if not, as long as no payload is missing)
    Seen: stream-dotnet-client#220; pika#509
    """
    await client.connected()
    for stream, name in ((STREAM, None), ("named", "ref")):
        if name is not None and not client.can("named_publisher"):
            continue
        await stream_exists(broker, client, stream)
        mark = broker.journal.last_seq if expect.wire_visible else 0
        more: dict[str, Any] = {} if name is None else {"name": name}
        bodies = [b"%d/%d" % (task, number) for number in range(500) for task in range(8)]
        calls = [client.begin_publish(stream, body, timeout=30.0, **more) for body in bodies]
        if expect.wire_visible:  # first, as an id that is used twice leaves an op without an end
            await _all_came(broker, calls, mark)
            expect.equal(
                len(broker.journal.select(kind="Malformed")),
                0,
                f"{stream}: every frame decodes",
                id=slug("{}-every-frame-decodes", stream),
            )
            keys = [key for _, key in published(broker, mark)]
            expect.that(
                len(set(keys)) == len(keys),
                f"{stream}: no publishing id is used twice",
                len(keys),
                id=slug("{}-no-publishing-id-is-used-twice", stream),
            )
            if name is not None:
                expect.tolerate(
                    keys == sorted(keys),
                    f"{stream}: ids increase in wire order",
                    "they do not",
                    id=slug("{}-ids-increase-in-wire-order", stream),
                )
        outcomes = [(await call).outcome for call in calls]
        expect.equal(
            outcomes.count("acked"),
            4000,
            f"{stream}: 4000 messages are acked",
            id=slug("{}-n-messages-are-acked", stream),
        )
        stored = await stored_bodies(broker, client, 4000, stream)
        expect.equal(
            len(stored),
            4000,
            f"{stream}: 4000 payloads are in the stream",
            id=slug("{}-n-payloads-are-in-the-stream", stream),
        )
        expect.equal(
            len(set(stored)), 4000, f"{stream}: each payload once", id=slug("{}-each-payload-once", stream)
        )


async def _all_came(broker: RabbitMQStream, calls: Sequence[Call], since: int) -> None:
    """Wait until all messages are on the wire, or all ops have ended, for 30 s at most."""
    deadline = asyncio.get_running_loop().time() + 30.0
    while not all(call.done for call in calls) and asyncio.get_running_loop().time() < deadline:
        if len(published(broker, since)) >= len(calls):
            return
        await asyncio.sleep(0.1)


@scenario("RMQS-3.20", "MUST", "high", basis=["R4"], roles=BOTH, target=True)
async def boundary_lengths(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Boundary payload lengths.

    Fault: Body of 0, 1, 254, 255, 256, 65535, 65536 B
    Pass: Round trip identical
    Seen: stream-dotnet-client#161; rstream#240
    """
    await client.connected()
    await stream_exists(broker, client)
    await client.subscribed(STREAM, offset={"type": "first"})
    sizes = (0, 1, 254, 255, 256, 65535, 65536)
    bodies = [hashlib.sha256(b"%d" % size).digest() * (size // 32 + 1) for size in sizes]
    bodies = [body[:size] for body, size in zip(bodies, sizes, strict=True)]
    for body in bodies:
        result = await client.publish(STREAM, body)
        expect.outcome(
            result, "acked", f"a body of {len(body)} bytes is acked", id="a-body-of-n-bytes-is-acked"
        )
    messages = await client.wait_messages(len(bodies))
    expect.equal(len(messages), len(bodies), "every message comes back", id="every-message-comes-back")
    for message, body in zip(messages, bodies, strict=True):
        expect.that(
            same_body(message.body, body),
            f"a body of {len(body)} bytes comes back identical",
            message.body,
            id="a-body-of-n-bytes-comes-back-identical",
        )
