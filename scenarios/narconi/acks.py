"""NARC-3 WebSocket consume: acknowledgements, redelivery, the graceful end."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.adapter.messages import Message
from conformance.suite import Client, Expect, scenario
from fakebrokers import Narconi
from fakebrokers.core.session import HangUp
from fakebrokers.faults import drop, rewrite
from fakebrokers.journal import Tap
from scenarios._common import maybe_reconnecting, received
from scenarios.narconi._steps import (
    CONSUMER,
    PROJECT,
    QUEUE,
    acks,
    bodies_are,
    end,
    malformed,
    newest,
    ready,
    settle,
    stored,
    subscribed,
)
from scenarios.narconi.consume import delivered


async def outstanding(
    broker: Narconi, client: Client, expect: Expect, count: int, **options: Any
) -> list[Message]:
    """A subscription with ack on which so many messages (``1``, ``2`` ...) were delivered."""
    await ready(broker, client, **maybe_reconnecting(client))
    await subscribed(broker, client, QUEUE, ack=True, **options)
    for number in range(1, count + 1):
        broker.publish(PROJECT, QUEUE, b"%d" % number)
    return await delivered(client, expect, count)


async def subscribed_again(broker: Narconi, client: Client, sub: str) -> str:
    """The name under which messages come after a loss."""
    if client.reconnects("consumer"):
        return "c1"
    if not (await client.state())["open"]:  # a lost connection ends the session of some
        await client.connected(project=PROJECT)
    await subscribed(broker, client, QUEUE, sub, ack=True)
    return sub


async def all_done(broker: Narconi, expect: Expect, criterion: str, *, id: str) -> None:
    """Nothing is left in the queue, and nothing is unacknowledged."""
    for _ in range(100):
        if not stored(broker) and not broker.unacked(PROJECT, QUEUE):
            break
        await asyncio.sleep(0.02)
    expect.equal((stored(broker), broker.unacked(PROJECT, QUEUE)), ([], 0), criterion, id=id)


async def acked_ids(
    broker: Narconi, count: int, connection: str | None = None
) -> list[tuple[str | None, str | None]]:
    """``ackId`` and ``ackToId`` of what came, once there are `count`, or what there is after 1 s."""
    for _ in range(50):
        if len(acks(broker, connection=connection)) >= count:
            break
        await asyncio.sleep(0.02)
    return [(ack.ack_id, ack.ack_to_id) for ack in acks(broker, connection=connection)]


@scenario("NARC-3.07", "MUST", "high", basis=["N10", "N13"], roles=CONSUMER, server={"profile": "seed"})
async def opaque_ids(broker: Narconi, client: Client, expect: Expect) -> None:
    """ackId is opaque.

    Fault: ackIds "7", "007", "abc/==", 200 characters
    Pass: Echoed unchanged as a JSON string; a JSON number = fail (the real server refuses it with
    `Unrecognized command.`)
    Profile: `seed` for ids of any form (the real server only has decimal ones, from "1" on each connection);
    "7" in both
    """
    ids = ["7", "007", "abc/==", "x" * 200]
    for number, ack_id in enumerate(ids):
        broker.faults.add(rewrite(fields={"ack_id": ack_id}, kind="WsDeliver", nth=number + 1))
    broker.faults.add(drop(kind="WsAck", direction="in"))
    messages = await outstanding(broker, client, expect, 4)
    for message in messages:
        expect.ok(await settle(client, message), "settle ends well", id="settle-ends-well")
    found = await acked_ids(broker, 4)
    expect.that(
        not malformed(broker),
        "each id comes back as a JSON string",
        malformed(broker)[:1],
        id="each-id-comes-back-as-a-json-string",
    )
    expect.equal(
        [one for one, _ in found], ids, "each id comes back unchanged", id="each-id-comes-back-unchanged"
    )


@scenario("NARC-3.08", "MUST", "critical", basis=["N13"], roles=CONSUMER)
async def ack_one(broker: Narconi, client: Client, expect: Expect) -> None:
    """Ack one.

    Fault: Settle one of two messages
    Pass: One text frame with a JSON object whose only known key is `ackId` with that id; no `ackToId` beside
    it (both = cumulative); no other data frame (binary, array, other commands are answered by an error and a
    close, `null` ends the real server)
    Profile: both
    """
    messages = await outstanding(broker, client, expect, 2)
    expect.ok(await settle(client, messages[1]), "settle ends well", id="settle-ends-well")
    found = await acked_ids(broker, 1)
    await asyncio.sleep(0.2)
    expect.equal(
        found,
        [("2", None)],
        "one text frame with an object whose only known key is ackId",
        id="one-text-frame-with-an-object-whose-only-known-key-is-ackid",
    )
    others = [*malformed(broker), *received(broker, "WsStop"), *acks(broker)[1:]]
    expect.that(not others, "no other data frame", others[:1], id="no-other-data-frame")
    expect.equal(
        broker.unacked(PROJECT, QUEUE),
        1,
        "the other message stays unacknowledged",
        id="the-other-message-stays-unacknowledged",
    )


@scenario("NARC-3.09", "MAY", "medium", basis=["N13"], needs=["ack_to"], roles=CONSUMER)
async def ack_up_to(broker: Narconi, client: Client, expect: Expect) -> None:
    """Ack up to.

    Fault: Three deliveries, settle `ack_to` the second
    Pass: {"ackToId": id of the second} once, no `ackId`, or single acks for the first and second; the third
    stays unacknowledged
    Profile: both
    """
    messages = await outstanding(broker, client, expect, 3)
    expect.ok(await settle(client, messages[1], "ack_to"), "settle ends well", id="settle-ends-well")
    await asyncio.sleep(0.3)
    found = await acked_ids(broker, 1)
    fits = found in ([(None, "2")], [("1", None), ("2", None)])
    expect.that(
        fits,
        "ackToId of the second once, or single acks for the first two",
        found,
        id="acktoid-of-the-second-once-or-single-acks-for-the-first-two",
    )
    expect.equal(
        broker.unacked(PROJECT, QUEUE),
        1,
        "the third stays unacknowledged",
        id="the-third-stays-unacknowledged",
    )


@scenario("NARC-3.10", "MUST", "high", basis=["N13"], roles=CONSUMER)
async def ack_order(broker: Narconi, client: Client, expect: Expect) -> None:
    """Ack order.

    Fault: Three deliveries; settle 3 only, wait 500 ms, drop; 1 and 2 come again; settle them
    Pass: Before the drop only ackId of 3 on the wire, no `ackToId`; messages 1 and 2 delivered again
    Profile: both
    """
    messages = await outstanding(broker, client, expect, 3)
    connection = newest(broker)
    expect.ok(await settle(client, messages[2]), "settle ends well", id="settle-ends-well")
    await asyncio.sleep(0.5)
    found = await acked_ids(broker, 1, connection)
    expect.equal(
        found,
        [("3", None)],
        "only ackId of the third before the drop",
        id="only-ackid-of-the-third-before-the-drop",
    )
    end(broker, connection, HangUp.RST)
    sub = await subscribed_again(broker, client, "c2")
    again = (await client.wait_messages(5 if sub == "c1" else 2, sub))[-2:]
    bodies_are(
        expect,
        again,
        [b"1", b"2"],
        "messages 1 and 2 are delivered again",
        id="messages-n-and-n-are-surfaced-again",
    )
    for message in again:
        expect.ok(await settle(client, message, sub=sub), "settle ends well", id="settle-ends-well")
    await all_done(broker, expect, "they are acknowledged", id="they-are-acknowledged")


@scenario("NARC-3.11", "MUST", "medium", basis=["N13"], roles=CONSUMER)
async def implicit_mode(broker: Narconi, client: Client, expect: Expect) -> None:
    """No ack in implicit mode.

    Fault: Connect without ack
    Pass: No ack frames are sent
    Seen: narconi source closes such connections
    """
    await ready(broker, client)
    await subscribed(broker, client, QUEUE)
    for number in range(3):
        broker.publish(PROJECT, QUEUE, b"%d" % number)
    await delivered(client, expect, 3)
    await asyncio.sleep(0.3)
    frames = [*acks(broker), *malformed(broker)]
    expect.that(not frames, "no ack frames without ack", frames[:1], id="no-ack-frames-without-ack")


@scenario("NARC-3.13", "MUST", "critical", basis=["N10", "N13", "N18"], roles=CONSUMER, variants=("real",))
@scenario("NARC-3.13", roles=CONSUMER, variants=("seed",), server={"profile": "seed"})
async def redelivered(broker: Narconi, client: Client, expect: Expect) -> None:
    """Redelivered after reconnect.

    Fault: rst with 2 unacked; both come again with redelivered=true
    Pass: Both delivered again (not suppressed because the ackId was seen), redelivered true (missing:
    non-strict), acks carry the ids of the new connection
    Profile: run in each: `seed` with other ackIds than before, `real` with the same strings again ("1", "2"
    on every connection). Without `auto_reconnect` the runner subscribes again
    Seen: amqplib#271; EasyNetQ#1329
    """
    await outstanding(broker, client, expect, 2)
    connection = newest(broker)
    end(broker, connection, HangUp.RST)
    sub = await subscribed_again(broker, client, "c2")
    again = (await client.wait_messages(4 if sub == "c1" else 2, sub))[-2:]
    bodies_are(expect, again, [b"1", b"2"], "both are delivered again", id="both-are-surfaced-again")
    flags = [message.redelivered for message in again]
    expect.that(False not in flags, "redelivered is true", flags, id="redelivered-is-true")
    expect.tolerate(None not in flags, "redelivered is reported", flags, id="redelivered-is-reported")
    for message in again:
        expect.ok(await settle(client, message, sub=sub), "settle ends well", id="settle-ends-well")
    wanted = [(message.position, None) for message in again]
    found = await acked_ids(broker, 2, newest(broker))
    expect.equal(
        found,
        wanted,
        "acks carry the ids of the new connection",
        id="acks-carry-the-ids-of-the-new-connection",
    )
    await all_done(broker, expect, "both are acknowledged", id="both-are-acknowledged")


@scenario("NARC-3.15", "MUST", "high", basis=["N15"], roles=CONSUMER)
async def graceful_end(broker: Narconi, client: Client, expect: Expect) -> None:
    """Graceful shutdown.

    Fault: unsubscribe (drain) with 3 unacked, 2 more messages waiting in the queue
    Pass: One empty message (text or binary; a second one is harmless); then the 3 outstanding are processed
    and acked; then the client closes (the server leaves the connection open); the 2 waiting ones stay in the
    queue, not redelivered
    Profile: both
    Seen: amqplib#637
    """
    messages = await outstanding(broker, client, expect, 3, limit=3)
    connection = newest(broker)
    for body in (b"4", b"5"):
        broker.publish(PROJECT, QUEUE, body)
    ending = client.begin("unsubscribe", 8.0, sub="c1", drain=True)
    await expect.wire(
        broker,
        "one empty message asks for the end",
        within_s=2.0,
        kind="WsStop",
        tap=Tap.RECEIVED,
        connection=connection,
        id="one-empty-message-asks-for-the-end",
    )
    for message in messages:
        expect.ok(
            await settle(client, message),
            "the outstanding are acknowledged",
            id="the-outstanding-are-acknowledged",
        )
    expect.ok(await ending, "unsubscribe ends", id="unsubscribe-ends")
    found = await acked_ids(broker, 3, connection)
    expect.equal(
        found,
        [("1", None), ("2", None), ("3", None)],
        "the outstanding are acknowledged",
        id="the-outstanding-are-acknowledged",
    )
    await expect.socket_closed(
        broker, connection, "then the client closes", within_s=2.0, id="then-the-client-closes"
    )
    closes = received(broker, "WsClose", connection=connection)
    last = received(broker, "WsAck", connection=connection)[-1].seq
    expect.that(
        closes and closes[0].seq > last,
        "the close frame comes after the acks",
        closes,
        id="the-close-frame-comes-behind-the-acks",
    )
    waiting = [(m.payload, m.redelivered) for m in broker.messages(PROJECT, QUEUE)]
    expect.equal(
        waiting,
        [(b"4", False), (b"5", False)],
        "the waiting ones stay, not redelivered",
        id="the-waiting-ones-stay-not-redelivered",
    )


@scenario("NARC-3.22", "MUST", "high", basis=["N11", "N13"], roles=CONSUMER)
async def window_moves(broker: Narconi, client: Client, expect: Expect) -> None:
    """Window moves with acks.

    Fault: limit=2, 6 messages; the fake never has more than 2 unacked outstanding; the runner settles one at
    a time, 200 ms after the client has delivered it
    Pass: All 6 delivered and acked within 10 s; no ack on the wire before its settle
    Profile: both
    """
    await ready(broker, client)
    await subscribed(broker, client, QUEUE, ack=True, limit=2)
    for number in range(6):
        broker.publish(PROJECT, QUEUE, b"%d" % number)
    for number in range(6):
        messages = await client.wait_messages(number + 1, within_s=2.0)
        expect.that(
            len(messages) > number,
            "all 6 are delivered as acks make room",
            len(messages),
            id="all-n-are-surfaced-as-acks-make-room",
        )
        await asyncio.sleep(0.2)
        sent_acks = len(acks(broker))
        expect.that(
            sent_acks <= number,
            "no ack on the wire before its settle",
            sent_acks,
            id="no-ack-on-the-wire-before-its-settle",
        )
        expect.ok(await settle(client, messages[number]), "settle ends well", id="settle-ends-well")
    await all_done(
        broker, expect, "all 6 are acknowledged within 10 s", id="all-n-are-acknowledged-within-n-s"
    )


@scenario("NARC-3.23", "SHOULD", "high", basis=["N13"], roles=CONSUMER)
async def settled_twice(broker: Narconi, client: Client, expect: Expect) -> None:
    """Settled twice.

    Fault: Settle the same message twice; a second message stays unacked
    Pass: One ack frame for the id; the second settle ends `invalid`/`closed` or ok without a frame. Sent
    twice: the real server answers 500 (406 unknown delivery tag), closes, and everything unacked comes again:
    fail
    Profile: both
    """
    messages = await outstanding(broker, client, expect, 2)
    expect.ok(
        await settle(client, messages[0]), "the first settle ends well", id="the-first-settle-ends-well"
    )
    second = await settle(client, messages[0])
    if not second.ok:
        expect.failed(
            second,
            ("invalid", "closed"),
            "the second settle is invalid, or ok without a frame",
            id="the-second-settle-is-invalid-or-ok-without-a-frame",
        )
    await asyncio.sleep(0.3)
    expect.equal(
        await acked_ids(broker, 1), [("1", None)], "one ack frame for the id", id="one-ack-frame-for-the-id"
    )
    expect.equal(
        broker.unacked(PROJECT, QUEUE),
        1,
        "the other message stays unacknowledged",
        id="the-other-message-stays-unacknowledged",
    )
