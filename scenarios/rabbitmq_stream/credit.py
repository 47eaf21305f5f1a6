"""RMQS-4 Consuming: how fast the server may send."""

from __future__ import annotations

import asyncio

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import RabbitMQStream
from fakebrokers.faults import rewrite
from scenarios._common import sent
from scenarios._footprint import Footprint
from scenarios.rabbitmq_stream._deliveries import (
    CHUNK_PER_CREDIT,
    complaints,
    credits_given,
    delivered_messages,
    numbered,
    positions,
    subscribed_with_backlog,
    write,
)
from scenarios.rabbitmq_stream._steps import CONSUMER, STREAM

#: how long a slow consumer is watched
WATCH_S = 3.0


def _single(broker: RabbitMQStream, client: Client, count: int) -> None:
    """Write `count` chunks of one message each."""
    for number in range(count):
        write(broker, client, numbered(number, 1))


@scenario("RMQS-4.03", "MUST", "critical", basis=["R9", "R11"], roles=CONSUMER, server=CHUNK_PER_CREDIT)
async def credit_is_returned(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Credit is returned.

    Fault: Subscribe (credit 2 asked; C = credit in the Subscribe frame); 5 × C chunks are waiting, one chunk
    is sent per credit (3.10 rule)
    Pass: All chunks delivered within 10 s; sum of the credits on the wire ≥ 4 × C (number of Credit frames is
    free)
    Seen: stream-go-client#440
    """
    broker.create_stream(STREAM)
    await client.connected()
    credit = await subscribed_with_backlog(
        broker, client, expect, lambda credit: _single(broker, client, 5 * credit), credit=2
    )
    messages = await delivered_messages(client, 5 * credit, within_s=10.0)
    expect.equal(
        positions(messages),
        [*range(5 * credit)],
        "all chunks are delivered within 10 s",
        id="all-chunks-are-delivered-within-n-s",
    )
    given = credits_given(broker)
    expect.that(
        given >= 4 * credit,
        "the credits on the wire are 4 x C or more",
        f"{given}, C = {credit}",
        id="the-credits-on-the-wire-are-n-x-c-or-more",
    )


@scenario(
    "RMQS-4.04",
    "SHOULD",
    "high",
    basis=["R11"],
    needs=["callback_sleep"],
    roles=CONSUMER,
    server=CHUNK_PER_CREDIT,
)
async def no_credit_beyond_consumption(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """No credit beyond consumption.

    Fault: 300 chunks of 1 message are waiting, callback sleeps 50 ms per message; C = credit in the Subscribe
    frame
    Pass: At any time: chunks sent on the wire minus chunks whose messages the application has seen ≤ 2 × C +
    2; RSS growth < 64 MiB
    Seen: stream-dotnet-client#250; moleculer#1243
    """
    broker.create_stream(STREAM)
    await client.connected()
    footprint = Footprint(client)
    slow = {"mode": "event", "sleep_ms": 50}
    credit = await subscribed_with_backlog(
        broker, client, expect, lambda _: _single(broker, client, 300), on_message=slow
    )
    expect.exercised(
        2 * credit + 2 < 300,
        f"the client's credit of {credit} covers all that waits",
        id=slug("the-client-s-credit-of-{}-covers-all-that-waits", credit),
    )
    for _ in range(int(WATCH_S / 0.05)):
        await asyncio.sleep(0.05)
        seen, delivered = len(client.messages()), len(sent(broker, "Deliver"))
        expect.that(
            delivered - seen <= 2 * credit + 2,
            "chunks sent but not yet seen by the application are at most 2 x C + 2",
            f"{delivered} sent, {seen} seen, C = {credit}",
            id="chunks-sent-but-not-yet-seen-by-the-application-are-at-most",
        )
    expect.exercised(client.messages(), "nothing was delivered", id="nothing-was-surfaced")
    footprint.judge(expect, rss_mib=64)


@scenario(
    "RMQS-4.05", "SHOULD", "high", basis=["R11"], needs=["callback_sleep"], roles=CONSUMER, timeout_s=40
)
async def credit_starvation_recovered(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Credit starvation recovered.

    Fault: Low-water rule of 4.x (RMQS-4.28), callback sleeps 200 ms per chunk, 20 chunks waiting
    Pass: Credits arrive as chunks are processed; all 20 delivered within 15 s, in order
    Seen: stream-rust-client#314
    """
    broker.create_stream(STREAM)
    _single(broker, client, 20)
    await client.connected()
    slow = {"mode": "event", "sleep_ms": 200}
    await client.subscribed(STREAM, offset={"type": "first"}, credit=4, on_message=slow)
    messages = await delivered_messages(client, 20, within_s=15.0)
    expect.equal(
        positions(messages),
        [*range(20)],
        "all 20 chunks are delivered within 15 s, in order",
        id="all-n-chunks-are-surfaced-within-n-s-in-order",
    )


@scenario("RMQS-4.06", "SHOULD", "medium", basis=["R11"], roles=CONSUMER)
async def over_delivery(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Over-delivery by the server.

    Fault: Send 5 chunks on credit 2
    Pass: All handled, or connection closed cleanly; no crash
    """
    broker.create_stream(STREAM)
    await client.connected()
    broker.faults.add(
        rewrite(fields={"credit": {"add": 3}}, kind="Subscribe", direction="in", name="3 chunks too many")
    )
    credit = await subscribed_with_backlog(
        broker, client, expect, lambda credit: _single(broker, client, credit + 3), credit=2
    )
    got = positions(await delivered_messages(client, credit + 3, within_s=3.0))
    if got == [*range(credit + 3)]:
        expect.that(True, "all chunks are handled", id="all-chunks-are-handled")
        return
    for name in {record.connection for record in sent(broker, "Deliver")}:
        await expect.socket_closed(
            broker,
            name,
            "all chunks are handled, or the connection is closed",
            within_s=2.0,
            id="all-chunks-are-handled-or-the-connection-is-closed",
        )
    expect.that(
        complaints(client),
        "the connection is closed cleanly: an error is reported",
        got,
        id="the-connection-is-closed-cleanly-an-error-is-reported",
    )


@scenario("RMQS-4.28", "MUST", "critical", basis=["R11"], roles=CONSUMER)
async def single_credits_are_held_back(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Single credits are held back.

    Fault: Rule of 4.x: with C = credit of the Subscribe, nothing is sent while the credit is ≤ C ÷ 2
    (integer), above it chunks are sent until it is 0; 40 chunks of 1 message, C asked 10
    Pass: All 40 delivered within 10 s; the client gives one credit (or more) per chunk without waiting for a
    chunk after each
    Seen: measured on 4.3.6: C = 10: 10 chunks, five single credits release nothing, the sixth releases 6; C =
    4: three; stream-dotnet-client#12
    """
    broker.create_stream(STREAM)
    await client.connected()
    credit = await subscribed_with_backlog(
        broker, client, expect, lambda credit: _single(broker, client, max(40, 4 * credit))
    )
    count = max(40, 4 * credit)
    got = positions(await delivered_messages(client, count, within_s=10.0))
    given = credits_given(broker)
    what = f"the client gave {given} credits for {len(got)} chunks; C = {credit}"
    expect.that(
        got == [*range(count)],
        "all chunks are delivered within 10 s",
        what,
        id="all-chunks-are-surfaced-within-n-s",
    )
