"""PZQ-2 Consumer: acknowledgements, and messages that come again."""

from __future__ import annotations

import asyncio

from conformance.suite import Client, Expect, scenario
from fakebrokers import PZQ
from fakebrokers.pzq.faults import lose_consumer_ack
from scenarios._common import limit_s, until
from scenarios.pzq._steps import (
    CONSUMER,
    QUICK,
    acknowledged,
    acks,
    auto,
    connected_again,
    consuming,
    delivered,
    deliveries,
    key_of,
    microseconds,
    settle,
    statuses,
    with_body,
    works_on,
)


@scenario("PZQ-2.04", "MUST", "critical", basis=["P8"], roles=CONSUMER)
async def positive_ack(broker: PZQ, client: Client, expect: Expect) -> None:
    """Positive ACK.

    Fault: Deliver one message (ack timeout 5 s); the runner settles 300 ms after the client has delivered it
    Pass: The fake gets exactly one [key]["1"], key bytewise equal, status one byte (the daemon takes `OK`,
    `01` or empty as negative), no empty part in front, not before the settle op or the return of the
    callback; no redelivery. Parts after the status: non-strict
    Profile: both
    """
    await consuming(client, expect)
    key = broker.publish(b"hello")
    (message, *_) = await delivered(
        client, expect, b"hello", criterion="the message is delivered", id="the-message-is-surfaced"
    )
    await asyncio.sleep(0.3)
    expect.that(
        not acks(broker),
        "nothing is acknowledged before it is settled",
        acks(broker),
        id="nothing-is-acknowledged-before-it-is-settled",
    )
    await settle(client, message)
    await until(lambda: acks(broker), 2.0)
    await asyncio.sleep(0.3)
    came = acks(broker)
    expect.equal(len(came), 1, "exactly one acknowledgement comes", id="exactly-one-acknowledgement-comes")
    expect.equal(
        came[0].key,
        key,
        "it begins with the key, bytewise, and no empty part in front",
        id="it-begins-with-the-key-bytewise-and-no-empty-part-in-front",
    )
    expect.equal(came[0].status, b"1", "its status is the one byte 1", id="its-status-is-the-one-byte-n")
    expect.tolerate(
        not came[0].extra,
        "there is nothing after the status",
        came[0].extra,
        id="there-is-nothing-behind-the-status",
    )
    expect.equal(
        (len(deliveries(broker)), len(broker.messages())),
        (1, 0),
        "it is settled, and not sent again",
        id="it-is-settled-and-not-sent-again",
    )


@scenario("PZQ-2.05", "MUST", "critical", basis=["P8"], roles=CONSUMER)
async def negative_ack(broker: PZQ, client: Client, expect: Expect) -> None:
    """Negative ACK.

    Fault: Consumer rejects the first delivery; the fake redelivers at once (same key, new time), then the
    consumer accepts
    Pass: [key]["0"] (another status that is not "1": non-strict), second delivery handed to the application
    with the same `position` and a later `sent_us`, then [key]["1"]
    Profile: both
    """
    await consuming(client, expect)
    key = broker.publish(b"hello")
    (first, *_) = await delivered(
        client, expect, b"hello", criterion="the message is delivered", id="the-message-is-surfaced"
    )
    await settle(client, first, "nack")
    await until(lambda: statuses(broker, key), 2.0)
    expect.that(
        statuses(broker, key),
        "a negative acknowledgement comes for the key",
        acks(broker),
        id="a-negative-acknowledgement-comes-for-the-key",
    )
    expect.that(
        statuses(broker, key)[0] != b"1",
        "its status is not 1",
        statuses(broker, key),
        id="its-status-is-not-n",
    )
    expect.tolerate(
        statuses(broker, key)[0] == b"0", "its status is 0", str(statuses(broker, key)), id="its-status-is-n"
    )
    criterion = "the second delivery is handed to the application"
    copies = await delivered(
        client, expect, b"hello", count=2, criterion=criterion, id="the-second-delivery-is-surfaced"
    )
    expect.equal(key_of(copies[1]), key, "with the same position", id="with-the-same-position")
    times = [microseconds(copy, "sent_us") for copy in copies[:2]]
    if times[0] is not None and times[1] is not None:
        expect.that(times[1] > times[0], "and a later sent_us", times, id="and-a-later-sent-us")
    await settle(client, copies[1])
    await acknowledged(
        broker,
        expect,
        key,
        "the second one is acknowledged with 1",
        id="the-second-one-is-acknowledged-with-n",
    )


@scenario(
    "PZQ-2.06", "MUST", "critical", basis=["P8", "P9"], needs=["callback_raise"], roles=CONSUMER, server=QUICK
)
async def no_ack_on_failure(broker: PZQ, client: Client, expect: Expect) -> None:
    """No ACK on failure.

    Fault: Callback raises on the first delivery only
    Pass: No "1" for the key before its second delivery ("0" or nothing); second delivery reaches the
    callback, then "1"; error visible as event
    Profile: both; ack timeout 1 s, reaper 0.5 s
    Seen: rstream#215
    """
    await consuming(client, expect, on_message={"mode": "event", "raise_on": [1]})
    key = broker.publish(b"hello")
    copies = await delivered(
        client,
        expect,
        b"hello",
        count=2,
        criterion="the second delivery reaches the callback",
        id="the-second-delivery-reaches-the-callback",
    )
    expect.that(
        b"1" not in statuses(broker, key),
        "no 1 before the second delivery",
        statuses(broker, key),
        id="no-n-before-the-second-delivery",
    )
    error = await client.event("error", 1.0)
    expect.that(
        error is not None,
        "the callback's error is visible as an event",
        "there is none",
        id="the-callback-s-error-is-visible-as-an-event",
    )
    await settle(client, copies[1])
    await acknowledged(
        broker, expect, key, "then it is acknowledged with 1", id="then-it-is-acknowledged-with-n"
    )


@scenario("PZQ-2.07", "MUST", "high", basis=["P6", "P9"], roles=CONSUMER, server=QUICK)
async def redelivery(broker: PZQ, client: Client, expect: Expect) -> None:
    """Redelivery after the timeout.

    Fault: First delivery is not settled; second one is
    Pass: Two messages delivered with equal `position`; [key]["1"] accepted for the second; no third delivery
    in 3 s. With `dedup` declared the second copy may be suppressed if settling the first then still sends the
    "1"
    Profile: both; ack timeout 1 s, reaper 0.5 s: the second copy comes 1.0 to 1.5 s after the first, with a
    new time
    """
    await consuming(client, expect)
    key = broker.publish(b"hello")
    (first, *_) = await delivered(
        client, expect, b"hello", criterion="the message is delivered", id="the-message-is-surfaced"
    )
    await until(lambda: len(with_body(client, b"hello")) > 1, 2.5)
    expect.exercised(
        len(deliveries(broker, key)) > 1,
        "the message was not sent again",
        id="the-message-was-not-sent-again",
    )
    copies = with_body(client, b"hello")
    expect.that(
        b"1" not in statuses(broker, key),
        "no 1 before anything is settled",
        acks(broker),
        id="no-n-before-anything-is-settled",
    )
    if len(copies) == 1 and client.can("dedup"):
        await settle(client, first)
    else:
        expect.that(
            len(copies) == 2,
            "both copies are delivered",
            f"{len(copies)} came",
            id="both-copies-are-surfaced",
        )
        expect.equal(key_of(copies[1]), key_of(copies[0]), "with equal positions", id="with-equal-positions")
        await settle(client, copies[1])
    await acknowledged(broker, expect, key, "settling it sends the 1", id="settling-it-sends-the-n")
    await asyncio.sleep(3.0)
    expect.equal(
        len(deliveries(broker, key)), 2, "there is no third delivery", id="there-is-no-third-delivery"
    )


@scenario("PZQ-2.08", "MAY", "low", basis=["P6"], needs=["dedup"], roles=CONSUMER, server=QUICK)
async def duplicate_suppression(broker: PZQ, client: Client, expect: Expect) -> None:
    """Duplicate suppression.

    Fault: The first "1" is ignored by the fake; the message comes again with the same key
    Pass: Second copy not delivered, and acknowledged with "1" again
    Profile: both; ack timeout 1 s, reaper 0.5 s
    """
    await consuming(client, expect, on_message=auto())
    broker.faults.add(lose_consumer_ack(nth=1))
    key = broker.publish(b"hello")
    await delivered(
        client, expect, b"hello", criterion="the message is delivered", id="the-message-is-surfaced"
    )
    await until(lambda: len(deliveries(broker, key)) > 1, 3.0)
    expect.exercised(
        len(deliveries(broker, key)) > 1,
        "the message was not sent again",
        id="the-message-was-not-sent-again",
    )
    await acknowledged(
        broker,
        expect,
        key,
        "the second copy is acknowledged with 1 again",
        count=2,
        id="the-second-copy-is-acknowledged-with-n-again",
    )
    await asyncio.sleep(0.2)
    expect.equal(
        len(with_body(client, b"hello")),
        1,
        "the second copy is not delivered",
        id="the-second-copy-is-not-surfaced",
    )


@scenario("PZQ-2.15", "SHOULD", "medium", basis=["P8"], roles=CONSUMER)
async def ack_to_a_vanished_instance(broker: PZQ, client: Client, expect: Expect) -> None:
    """ACK to a vanished instance.

    Fault: Server closes before ACK
    Pass: ack op does not block for ever; reported or dropped
    Seen: chumak#38; jeromq#335
    """
    await consuming(client, expect)
    broker.publish(b"hello")
    (message, *_) = await delivered(
        client, expect, b"hello", criterion="the message is delivered", id="the-message-is-surfaced"
    )
    broker.crash()
    await asyncio.sleep(0.2)
    result = await client.op("settle", 3.0, sub="c1", ref=message.ref, how="ack")
    expect.ended(result, "settling does not block forever", id="settling-does-not-block-forever")
    expect.within(
        result.elapsed_ms / 1000,
        limit_s(client.deadline_s("request", 3.0)),
        "settling ends in its deadline",
        id="settling-ends-in-its-deadline",
    )


@scenario("PZQ-2.16", "SHOULD", "high", basis=["P9"], roles=CONSUMER, server=QUICK, process=True)
async def consumer_restart(broker: PZQ, client: Client, expect: Expect) -> None:
    """Consumer restart.

    Fault: Kill the adapter process with the message unacknowledged, start it again at once
    Pass: Message received again (the daemon does not free it on disconnect, only 1.0 to 1.5 s after the
    delivery) and acknowledged once; nothing lost
    Profile: both; ack timeout 1 s, reaper 0.5 s
    Seen: libzmq#160
    """
    await consuming(client, expect)
    key = broker.publish(b"hello")
    await delivered(
        client, expect, b"hello", criterion="the message is delivered", id="the-message-is-surfaced"
    )
    early = list(statuses(broker, key))
    await client.adapter.restart()
    await consuming(client, expect)
    criterion = "the message is received again after the restart"
    (message, *_) = await delivered(
        client, expect, b"hello", criterion=criterion, id="the-message-is-received-again-after-the-restart"
    )
    expect.that(
        b"1" not in early,
        "it was not acknowledged before it was settled",
        early,
        id="it-was-not-acknowledged-before-it-was-settled",
    )
    await settle(client, message)
    await acknowledged(broker, expect, key, "it is acknowledged", id="it-is-acknowledged")
    await until(lambda: not broker.messages(), 1.0)
    expect.equal(
        len(broker.messages()), 0, "nothing is left, nothing is lost", id="nothing-is-left-nothing-is-lost"
    )


@scenario(
    "PZQ-2.17",
    "SHOULD",
    "high",
    basis=["P5"],
    roles=CONSUMER,
    server={"ack_timeout_s": 60.0},
    alone=True,
    timeout_s=90,
)
async def burst(broker: PZQ, client: Client, expect: Expect) -> None:
    """Burst of 10 000 messages.

    Fault: 10 000 stored, sent as fast as the client takes them; client settles each
    Pass: Every body delivered once and acknowledged with its own key within 60 s; order free; RSS growth
    reported
    Profile: both; ack timeout 60 s; any order
    Seen: jeromq#703; jeromq#381
    """
    keys = {b"%d" % n: broker.publish(b"%d" % n) for n in range(10_000)}
    before = client.facts()
    await consuming(client, expect, on_message=auto())
    await until(lambda: not broker.statistics["messages"], 60.0)
    left = broker.statistics["messages"]
    expect.equal(
        left, 0, "every message is acknowledged within 60 s", id="every-message-is-acknowledged-within-n-s"
    )
    await until(lambda: len(client.messages("c1")) >= len(keys), 1.0)
    positions = [key_of(message) for message in client.messages("c1")]
    expect.equal(len(positions), len(keys), "every body is delivered once", id="every-body-is-surfaced-once")
    expect.equal(set(positions), set(keys.values()), "each with its own key", id="each-with-its-own-key")
    after = client.facts()
    if before is not None and after is not None and before.rss_bytes and after.rss_bytes:
        expect.note(f"RSS grew by {(after.rss_bytes - before.rss_bytes) / (1 << 20):.1f} MiB")


@scenario(
    "PZQ-2.18",
    "SHOULD",
    "medium",
    basis=["P9"],
    needs=["callback_sleep"],
    roles=CONSUMER,
    server=QUICK,
    timeout_s=40,
)
async def slow_consumer(broker: PZQ, client: Client, expect: Expect) -> None:
    """Slow consumer.

    Fault: Callback of the first delivery takes 2.5 s
    Pass: `sent_us` and `timeout_us` available before settling (missing: non-strict); the late "1" may be sent
    or held back; later copies of the key may be delivered or suppressed, each delivered one is answered; a
    message after it is delivered and acknowledged; no crash
    Profile: both; ack timeout 1 s, reaper 0.5 s
    Seen: pika#93
    """
    await consuming(client, expect, on_message=auto(sleep_ms=2500, sleep_on=[1]))
    slow = broker.publish(b"slow")
    (message, *_) = await delivered(
        client, expect, b"slow", criterion="the message is delivered", id="the-message-is-surfaced"
    )
    times = (microseconds(message, "sent_us"), microseconds(message, "timeout_us"))
    expect.tolerate(
        None not in times,
        "sent_us and timeout_us are there before settling",
        str(times),
        id="sent-us-and-timeout-us-are-there-before-settling",
    )
    next_position = broker.publish(b"behind it")
    criterion = "a message after it is delivered"
    await delivered(
        client, expect, b"behind it", criterion=criterion, within_s=8.0, id="a-message-behind-it-is-surfaced"
    )
    await acknowledged(broker, expect, next_position, "and acknowledged", within_s=5.0, id="and-acknowledged")
    copies = with_body(client, b"slow")[1:]
    await until(lambda: len(statuses(broker, slow)) >= len(copies), 3.0)
    answers = statuses(broker, slow)
    expect.that(
        len(answers) >= len(copies),
        "each later copy that was delivered is answered",
        answers,
        id="each-later-copy-that-was-surfaced-is-answered",
    )


@scenario("PZQ-2.22", "MUST", "critical", basis=["P6", "P8", "P9"], roles=CONSUMER, server=QUICK)
async def positive_ack_lost(broker: PZQ, client: Client, expect: Expect) -> None:
    """Positive ACK lost.

    Fault: The first "1" is ignored; the message comes again
    Pass: Second copy is delivered, or suppressed by a `dedup` client; in both cases "1" is sent for it; no
    third delivery; monitor shows messages 0
    Profile: both (the daemon ignores a "1" that comes after the expiry and before the next delivery); ack
    timeout 1 s, reaper 0.5 s
    """
    await consuming(client, expect, on_message=auto())
    broker.faults.add(lose_consumer_ack(nth=1))
    key = broker.publish(b"hello")
    await delivered(
        client, expect, b"hello", criterion="the message is delivered", id="the-message-is-surfaced"
    )
    await until(lambda: len(deliveries(broker, key)) > 1, 3.0)
    expect.exercised(
        len(deliveries(broker, key)) > 1,
        "the message was not sent again",
        id="the-message-was-not-sent-again",
    )
    if not client.can("dedup"):
        await delivered(
            client,
            expect,
            b"hello",
            count=2,
            criterion="the second copy is delivered",
            id="the-second-copy-is-surfaced",
        )
    await acknowledged(
        broker,
        expect,
        key,
        "1 is sent for the second copy, too",
        count=2,
        id="n-is-sent-for-the-second-copy-too",
    )
    await asyncio.sleep(1.7)
    expect.equal(
        len(deliveries(broker, key)), 2, "there is no third delivery", id="there-is-no-third-delivery"
    )
    expect.equal(
        broker.statistics["messages"], 0, "the monitor shows no messages", id="the-monitor-shows-no-messages"
    )


@scenario("PZQ-2.23", "MUST", "critical", basis=["P8", "P9", "P10"], roles=CONSUMER, timeout_s=40, revision=2)
async def daemon_restarts(broker: PZQ, client: Client, expect: Expect) -> None:
    """Daemon restarts under a consumer.

    Fault: 5 delivered, 3 acknowledged; connections cut, listener back after 0.5 s; the 2 unacknowledged and 1
    of the acknowledged come at once, same keys, new times
    Pass: All 3 delivered (or the known one suppressed by `dedup`) and each acknowledged with "1"; a new
    message is handled; no second session needed from the user (runner subscribes again: non-strict; a client
    without `auto_reconnect` is connected anew by the script)
    Profile: both; in `real` the routing part stays the same over the reconnect
    Seen: measured: acknowledged messages come back after a kill of the real daemon
    """
    await consuming(client, expect)
    keys = [broker.publish(b"%d" % n) for n in range(5)]
    for n in range(5):
        (message, *_) = await delivered(
            client, expect, b"%d" % n, criterion=f"message {n} is delivered", id="message-n-is-surfaced"
        )
        if n < 3:
            await settle(client, message)
            await acknowledged(
                broker, expect, keys[n], f"message {n} is acknowledged", id="message-n-is-acknowledged"
            )
    await until(lambda: len(broker.messages()) == 2, 1.0)
    broker.crash()
    broker.publish(b"2", key=keys[2])
    await asyncio.sleep(0.5)
    broker.restart()
    expected = [2, 3, 4]
    if client.can("dedup"):
        expected.remove(2)
    if not client.reconnects("consumer"):
        await connected_again(client, expect)
        await client.subscribed("")
    elif not await until(lambda: all(len(with_body(client, b"%d" % n)) > 1 for n in expected), 5.0):
        expect.tolerate(
            False,
            "no second subscription is needed",
            "the runner subscribed again",
            id="no-second-subscription-is-needed",
        )
        await client.subscribed("")
    for n in expected:
        copies = await delivered(
            client,
            expect,
            b"%d" % n,
            count=2,
            criterion=f"message {n} is delivered again",
            id="message-n-is-surfaced-again",
        )
        await settle(client, copies[1])
    await until(lambda: len(with_body(client, b"2")) > 1, 0.3)
    if client.can("dedup") and len(with_body(client, b"2")) > 1:
        await settle(client, with_body(client, b"2")[1])
    for n, count in ((2, 2), (3, 1), (4, 1)):
        await acknowledged(
            broker,
            expect,
            keys[n],
            f"message {n} is acknowledged again",
            count=count,
            id="message-n-is-acknowledged-again",
        )
    await works_on(broker, client, expect, b"new")


@scenario(
    "PZQ-2.24",
    "SHOULD",
    "high",
    basis=["P7", "P9"],
    needs=["callback_sleep"],
    roles=CONSUMER,
    server=QUICK,
    timeout_s=40,
)
async def aged_copies(broker: PZQ, client: Client, expect: Expect) -> None:
    """Copies that aged in the socket.

    Fault: 20 messages; callback of the first takes 3 s, the others return at once. There is no prefetch
    limit: all are in flight meanwhile, expire and come again
    Pass: Every body processed at least once and acknowledged; copies past sent + timeout may be dropped
    without an answer; store empty within 10 s; no crash
    Profile: both; ack timeout 1 s, reaper 0.5 s
    """
    keys = [broker.publish(b"%d" % n) for n in range(20)]
    options = {"filter_expired": True} if client.can("filter_expired") else {}
    await consuming(client, expect, on_message=auto(sleep_ms=3000, sleep_on=[1]), **options)
    await until(lambda: not broker.messages(), 13.0)
    for n, key in enumerate(keys):
        expect.that(
            with_body(client, b"%d" % n),
            f"message {n} is processed",
            "it never came",
            id="message-n-is-processed",
        )
        expect.that(
            b"1" in statuses(broker, key),
            f"message {n} is acknowledged",
            statuses(broker, key),
            id="message-n-is-acknowledged",
        )
    expect.equal(
        len(broker.messages()), 0, "the store is empty within 10 s", id="the-store-is-empty-within-n-s"
    )
