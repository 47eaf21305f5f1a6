"""NARC-3 WebSocket consume: pings, frames that must not be, messages that are too large or too many."""

from __future__ import annotations

import asyncio
import hashlib

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import Narconi
from fakebrokers.core.session import HangUp
from fakebrokers.narconi.frames import WsFrame, WsPing, WsPong
from scenarios._common import limit_s, received, until
from scenarios.narconi._steps import (
    CONSUMER,
    PROJECT,
    QUEUE,
    bodies_are,
    end,
    malformed,
    newest,
    ready,
    say,
    subscribed,
)
from scenarios.narconi.consume import delivered


@scenario("NARC-3.17", "SHOULD", "high", basis=["N14"], needs=["keepalive"], roles=CONSUMER)
async def ping_unanswered(broker: Narconi, client: Client, expect: Expect) -> None:
    """Ping unanswered by the server.

    Fault: halfopen; client's ping period set to 1 s, or to the shortest that it takes
    Pass: `connection_lost` within 3 periods of the first unanswered ping (limits as in the timing rule)
    Profile: both
    Seen: ws#2207; python-websockets#1049
    """
    period_s = client.heartbeat_s(1.0, 5.0)
    await ready(broker, client, keepalive_s=period_s)
    await subscribed(broker, client, QUEUE, ack=True)
    pings = await until(lambda: received(broker, "WsPing"), 2.5 * period_s)
    expect.exercised(pings, "the client sends no pings", id="the-client-sends-no-pings")
    await asyncio.sleep(period_s / 2)
    mark, before = len(client.events), client.adapter.now_ns()
    end(broker, newest(broker), HangUp.HALF_OPEN)
    reported = await client.event("session", 6 * period_s, mark, what="connection_lost")
    seconds = (client.adapter.now_ns() - before) / 1e9
    expect.that(
        reported,
        "connection_lost within 3 s of the first unanswered ping",
        f"no event in {6 * period_s:g} s",
        id="connection-lost-within-n-s-of-the-first-unanswered-ping",
    )
    expect.within(
        seconds,
        period_s + limit_s(3 * period_s),
        "connection_lost within 3 s of the first unanswered ping",
        id="connection-lost-within-n-s-of-the-first-unanswered-ping",
    )


PONG = "a pong within 1 s of each ping, with its payload"


@scenario(
    "NARC-3.18",
    "SHOULD",
    "medium",
    basis=["N14"],
    needs=["callback_sleep"],
    roles=CONSUMER,
    allows=("answers-questions",),
)
async def ping_from_server(broker: Narconi, client: Client, expect: Expect) -> None:
    """Ping from the server.

    Fault: Ping every second while the callback takes 3 s (`sleep_ms`)
    Pass: Pong within 1 s of each ping, same payload. Where the library's callbacks block the thread that
    reads, the pongs, or that of the last ping, within 1 s of the callback: non-strict
    Profile: both (the real server never pings: gateway)
    Seen: pika#93
    """
    await ready(broker, client)
    expect.prepared(await client.subscribe(QUEUE, on_message={"mode": "event", "sleep_ms": 3000}))
    broker.publish(PROJECT, QUEUE, b"hello")
    await delivered(client, expect, 1)
    connection, mark = newest(broker), broker.journal.last_seq

    def answered(number: int) -> bool:
        frames = [r.frame for r in received(broker, "WsPong", since=mark, connection=connection)]
        return any(isinstance(frame, WsPong) and frame.payload == b"ping %d" % number for frame in frames)

    in_time = True
    for number in range(3):
        say(broker, connection, WsPing(b"ping %d" % number))
        in_time = in_time and await until(lambda number=number: answered(number), 1.0)  # type: ignore[misc]
        await asyncio.sleep(0.8)
    if not in_time:  # a library that calls its user on the thread that reads
        expect.lapse()
        expect.tolerate(False, PONG, "after the callback", id="pongs-come-while-a-callback-runs")
        await client.event("returned", 5.0)
    expect.that(
        await until(lambda: answered(2), 1.0),
        PONG,
        "not even after the callback",
        id="a-pong-within-n-s-of-each-ping-with-its-payload",
    )


async def ends_it(broker: Narconi, client: Client, expect: Expect, case: str, mark: int) -> None:
    """The client ends the newest connection and reports that; nothing was delivered."""
    await expect.socket_closed(
        broker,
        newest(broker),
        f"{case}: the client ends the connection",
        within_s=2.0,
        id=slug("{}-the-client-ends-the-connection", case),
    )
    reported = await client.event("session", 1.0, mark) or await client.event("error", 0.1, mark)
    expect.that(
        reported,
        f"{case}: a loss or a protocol error is reported",
        "no event",
        id=slug("{}-a-loss-or-a-protocol-error-is-reported", case),
    )


@scenario("NARC-3.19", "SHOULD", "medium", basis=["N14"], roles=CONSUMER)
async def bad_frames(broker: Narconi, client: Client, expect: Expect) -> None:
    """Masked or reserved-bit frames from the server.

    Fault: One run with a masked frame, one with RSV1 set
    Pass: Frame not delivered; client ends the connection (close 1002, or TCP end without a close frame) and
    reports a loss or a `protocol` error
    Profile: both
    Seen: autobahn test families 3 and 4; measured: aiohttp 3.14 accepts masked frames, undici ends without a
    close frame
    """
    await ready(broker, client)
    for number, case in enumerate(("masked", "RSV1")):
        sub = f"c{number}"
        await subscribed(broker, client, QUEUE, sub)
        mark = len(client.events)
        flags = {"masked": True} if case == "masked" else {"rsv": 4}
        frames = [WsFrame(1, b'{"redelivered":false}', **flags), WsFrame(2, b"hello", **flags)]
        say(broker, newest(broker), *frames)
        await ends_it(broker, client, expect, case, mark)
        expect.that(
            not client.messages(sub),
            f"{case}: the frame is not delivered",
            client.messages(sub),
            id=slug("{}-the-frame-is-not-surfaced", case),
        )


@scenario(
    "NARC-3.20", "SHOULD", "medium", basis=["N19"], roles=CONSUMER, process=True, alone=True, timeout_s=60
)
async def oversize_message(broker: Narconi, client: Client, expect: Expect) -> None:
    """Oversize message.

    Fault: Payload of 64 MiB
    Pass: Delivered with equal SHA-256, RSS growth below 384 MiB; or closed with 1009 (or TCP end) and
    reported, RSS growth below 128 MiB; no crash
    Profile: both (an AMQP publisher can store more than 64 KB)
    Seen: stream-java-client#1030
    """
    await ready(broker, client)
    await subscribed(broker, client, QUEUE)
    facts = client.facts()
    before = facts.rss_bytes or 0 if facts else 0
    body = bytes(64 << 20)
    mark = len(client.events)
    broker.publish(PROJECT, QUEUE, body)
    messages = await client.wait_messages(1, within_s=20.0) if not await _ended(client, mark) else []
    facts = client.facts()
    grown = ((facts.rss_bytes or 0) if facts else 0) - before
    came = f"{grown >> 20} MiB"
    expect.note(f"resident memory grew by {came}")
    expect.that(client.alive, "no crash", id="no-crash")
    if messages:
        digest = {"sha256": hashlib.sha256(body).hexdigest(), "len": len(body)}
        expect.equal(
            messages[0].body, digest, "delivered with equal SHA-256", id="delivered-with-equal-sha-n"
        )
        expect.that(
            grown < 384 << 20, "memory grows by less than 384 MiB", f"{grown >> 20} MiB", id="memory-whole"
        )
        return
    await ends_it(broker, client, expect, "64 MiB", mark)
    expect.that(
        grown < 128 << 20, "memory grows by less than 128 MiB", f"{grown >> 20} MiB", id="memory-after"
    )


async def _ended(client: Client, mark: int) -> bool:
    """Whether the connection is reported lost before a message comes."""
    for _ in range(400):
        if client.messages():
            return False
        if any(event.event in ("session", "error") for event in client.events[mark:]):
            return True
        await asyncio.sleep(0.05)
    return True


@scenario("NARC-3.21", "SHOULD", "medium", basis=["N14"], roles=CONSUMER)
async def invalid_utf8(broker: Narconi, client: Client, expect: Expect) -> None:
    """Invalid UTF-8 in a text frame.

    Fault: Bad metadata bytes
    Pass: Closed with 1007 or protocol error
    """
    await ready(broker, client)
    await subscribed(broker, client, QUEUE)
    mark, connection = len(client.events), newest(broker)
    say(broker, connection, WsFrame(1, b'{"redelivered":false,"x-msg-x-n":"\xff\xfe"}'))

    def codes() -> list[int | None]:
        return [record.status for record in received(broker, "WsClose", connection=connection)]

    def fits() -> bool:
        errors = [event for event in client.events[mark:] if event.event == "error"]
        is_protocol = any(event.error.kind.value == "protocol" for event in errors)
        has_gone = not codes() and not broker.client_holds(connection)
        return codes() in ([1007], [1002]) or is_protocol or has_gone

    await until(lambda: fits() or codes(), 2.0)
    expect.that(
        fits(), "closed with 1007, or as a protocol error", codes(), id="closed-with-n-or-as-a-protocol-error"
    )
    await ends_it(broker, client, expect, "bad UTF-8", mark)


@scenario("NARC-3.24", "SHOULD", "medium", basis=["N11", "N17"], roles=CONSUMER, alone=True, timeout_s=60)
async def flood_without_ack(broker: Narconi, client: Client, expect: Expect) -> None:
    """Flood without ack.

    Fault: Subscribe without ack; 10 000 messages of 100 B pushed at once
    Pass: All delivered once and in order; client sends no data frame; RSS growth reported
    Profile: both (limit has no effect without ack)
    """
    await ready(broker, client)
    await subscribed(broker, client, QUEUE)
    mark = broker.journal.last_seq
    for number in range(10_000):
        broker.publish(PROJECT, QUEUE, b"%-100d" % number)
    messages = await client.wait_messages(10_000, within_s=30.0)
    bodies_are(
        expect,
        messages,
        [b"%-100d" % n for n in range(10_000)],
        "all delivered once and in order",
        id="all-surfaced-once-and-in-order",
    )
    frames = [*received(broker, "WsAck", since=mark), *received(broker, "WsStop", since=mark)]
    expect.that(
        not frames and not malformed(broker),
        "the client sends no data frame",
        frames[:1],
        id="the-client-sends-no-data-frame",
    )
    facts = client.facts()
    if facts is not None and facts.rss_bytes is not None:
        expect.note(f"resident memory at the end: {facts.rss_bytes >> 20} MiB")
