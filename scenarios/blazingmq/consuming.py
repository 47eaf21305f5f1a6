"""BMQ-4 Consume and confirm."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.adapter.messages import body_bytes
from conformance.suite import Client, Expect, scenario
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.codec import event_bytes
from fakebrokers.blazingmq.codes import EventType, PushFlag
from fakebrokers.blazingmq.events import write_push
from fakebrokers.blazingmq.frames import HeartbeatRequest, OpenQueue, Push
from fakebrokers.blazingmq.options import PushOption, SubscriptionInfo, write_options
from fakebrokers.core.session import HangUp
from fakebrokers.faults import hold
from scenarios.blazingmq._steps import (
    CONSUMER,
    FANOUT,
    READ,
    Q,
    accepted,
    bodies_are,
    configures,
    confirms,
    encoded,
    eventually,
    guid,
    open_queue,
    opened,
    push,
    push_message,
    quiet,
    reached_confirms,
    reader,
    ready,
    received,
    reported,
    say,
    say_raw,
    settle,
    survives,
    widest_gap_s,
)
from scenarios.blazingmq.queues import consumer_of, opens

Json = dict[str, Any]
ELSEWHERE = 77
SECOND_CHANCE_S = 10.0  #: for clients that drop the connection and come back


def sized(number: int) -> bytes:
    """A body of an odd size."""
    return bytes([number % 251]) * (number * 37 + 1)


async def delivered(client: Client, expect: Expect, *wanted: bytes, within_s: float = 5.0) -> None:
    """These bodies and no others are delivered, in this order."""
    await client.wait_messages(len(wanted), within_s=within_s)
    await quiet(0.1)
    bodies_are(
        expect,
        client.messages(),
        wanted,
        "the messages are delivered once each, in order",
        id="the-messages-are-delivered-once-each-in-order",
    )


@scenario("BMQ-4.01", "MUST", "critical", basis=["B13", "B14"], roles=CONSUMER)
async def push_and_confirm(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """One PUSH, one CONFIRM.

    Fault: PUSH one message with option SUB_QUEUE_IDS_OLD holding the subscription id that was configured
    Pass: Delivered once with URI, GUID, payload; one CONFIRM with the same qId and GUID and SubQueueId equal
    to the subId of openQueue (0 if none), only after confirm was called
    """
    await ready(client, expect, READ)
    push(broker, expect, b"hello")
    messages = await client.wait_messages(1)
    await quiet(0.2)
    bodies_are(
        expect,
        client.messages(),
        [b"hello"],
        "the message is delivered once, with its payload",
        id="the-message-is-delivered-once-with-its-payload",
    )
    expect.equal(messages[0].position, guid(1).hex().upper(), "with its GUID", id="with-its-guid")
    expect.equal(messages[0].meta.get("uri"), Q, "with the queue's URI", id="with-the-queue-s-uri")
    expect.that(
        not confirms(broker),
        "no CONFIRM before the application confirms",
        id="no-confirm-before-the-application-confirms",
    )
    expect.ok(await settle(client, messages[0]), "it can be confirmed", id="it-can-be-confirmed")
    await reached_confirms(broker, 1)
    await quiet(0.1)
    opening = received(broker, "openQueue")[0].frame
    assert isinstance(opening, OpenQueue)
    info = opening.handle_parameters.sub_id_info
    found = [(each.queue_id, each.guid, each.sub_id) for each in confirms(broker)]
    wanted = [(opening.handle_parameters.q_id, guid(1), info.sub_id if info else 0)]
    expect.equal(
        found,
        wanted,
        "one CONFIRM with the qId, the GUID and the subId of openQueue",
        id="one-confirm-with-the-qid-the-guid-and-the-subid-of-openqueue",
    )


@scenario("BMQ-4.02", "MUST", "critical", basis=["B13"], roles=CONSUMER)
async def many_in_one_event(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Many messages in one PUSH event.

    Fault: One event with 32 messages of odd sizes
    Pass: All 32 delivered in order, with right boundaries
    Seen: stream-js-client#86
    """
    await ready(client, expect, READ)
    bodies = [sized(number) for number in range(32)]
    push(broker, expect, *bodies)
    await delivered(client, expect, *bodies)


@scenario("BMQ-4.03", "MUST", "critical", basis=["B13", "W1"], roles=CONSUMER)
async def push_in_pieces(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """PUSH split at each byte offset.

    Fault: frag(1) and a cut at every offset of a two-message event
    Pass: Same deliveries as unfragmented
    Seen: pulsar-client-go#163
    """
    await ready(client, expect, READ)
    wanted: list[bytes] = []

    def event() -> bytes:
        number = len(wanted)
        bodies = [b"%d" % (1000 + number), b"%d, longer" % (1001 + number)]
        wanted.extend(bodies)
        made = [push_message(broker, expect, each, 1 + number + n) for n, each in enumerate(bodies)]
        return encoded(Push(tuple(made)))

    whole = event()
    for at in range(len(whole)):
        say_raw(broker, expect, whole[at : at + 1])
        await asyncio.sleep(0.001)
    await delivered(client, expect, *wanted)
    for at in range(1, len(whole)):
        piece = event()
        say_raw(broker, expect, piece[:at])
        await asyncio.sleep(0.002)
        say_raw(broker, expect, piece[at:])
    await delivered(client, expect, *wanted)


@scenario("BMQ-4.04", "MUST", "critical", basis=["B13"], roles=CONSUMER)
async def two_events_in_one_segment(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Two PUSH events in one segment.

    Fault: coalesce(2)
    Pass: Both delivered in order
    Seen: stream-js-client#112
    """
    await ready(client, expect, READ)
    events = [Push((push_message(broker, expect, body, n),)) for n, body in enumerate((b"one", b"two"), 1)]
    say_raw(broker, expect, encoded(*events))
    await delivered(client, expect, b"one", b"two")


@scenario(
    "BMQ-4.05", "MUST", "high", basis=["B14"], roles=CONSUMER, revision=2, allows=("delivers-what-came",)
)
async def redelivered(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Redelivered GUID is delivered.

    Fault: PUSH m1, then m1 again with the same GUID and flag OUT_OF_ORDER (4); second run: cut after the
    first delivery, reconnecting clients get it on the new connection with the flag
    Pass: Both copies reach the application (or the documented dedup drops the second before the callback);
    confirming both does not break the session and gives at most one CONFIRM per delivery
    Seen: measured: wheel 1.2.2 delivers both
    """
    await ready(client, expect, READ)
    push(broker, expect, b"twice")
    push(broker, expect, b"twice", flags=int(PushFlag.OUT_OF_ORDER))
    await client.wait_messages(2, within_s=2.0)
    messages = list(client.messages())
    copies = [body_bytes(m.body) for m in messages]
    expect.that(
        copies in ([b"twice"] * 2, [b"twice"]),
        "both copies are delivered, or the second dropped",
        copies,
        id="both-copies-are-delivered-or-the-second-dropped",
    )
    for message in messages:
        expect.ended(await settle(client, message), "confirming them ends", id="confirming-them-ends")
    await reached_confirms(broker, 1)
    await quiet(0.2)
    expect.that(
        1 <= len(confirms(broker)) <= len(messages),
        "at most one CONFIRM for each delivery",
        id="at-most-one-confirm-for-each-delivery",
    )
    await survives(client, expect, "the session survives it", id="the-session-survives-it")
    if not client.can("auto_reconnect"):
        return
    broker.publish(Q, b"again")
    before = len(await client.wait_messages(len(messages) + 1))
    expect.exercised(
        before == len(messages) + 1,
        "the message was not delivered before the cut",
        id="the-message-was-not-delivered-before-the-cut",
    )
    broker.kill(how=HangUp.RST)
    again = await client.wait_messages(before + 1, within_s=SECOND_CHANCE_S)
    copies = [body_bytes(m.body) for m in again[before - 1 :]]
    expect.that(
        copies == [b"again"] * 2 or (copies == [b"again"] and len(messages) == 1),
        "what was not confirmed comes again after a reconnect, unless the second is dropped here, too",
        copies,
        id="what-was-not-confirmed-comes-again-after-a-reconnect",
    )
    expect.ok(await settle(client, again[-1]), "and can be confirmed", id="and-can-be-confirmed")


async def then_a_normal_one(
    broker: BlazingMQ, client: Client, expect: Expect, already: tuple[bytes, ...] = ()
) -> None:
    """After something odd the next message is delivered, perhaps on a new connection."""
    broker.publish(Q, b"normal")

    def normal() -> bool:
        return any(m.body.get("b64") == "bm9ybWFs" for m in client.messages())

    done = await eventually(lambda: normal() or not client.alive, SECOND_CHANCE_S)
    await survives(client, expect)
    expect.that(done and normal(), "the next message is delivered", id="the-next-message-is-delivered")
    extra = {body_bytes(m.body) for m in client.messages()} - {b"normal", *already}
    expect.that(not extra, "nothing else is delivered", extra, id="nothing-else-is-delivered")


@scenario("BMQ-4.06", "SHOULD", "high", basis=["B13", "B19"], roles=CONSUMER, revision=2)
async def push_for_another_queue(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """PUSH for unknown queueId.

    Fault: Inject PUSH qId=77 under the subscription id of an open queue; then a normal PUSH
    Pass: No delivery for the first, no CONFIRM with qId 77, no crash; the second is delivered (same
    connection, or after the client dropped it and came back); error event or log
    Seen: stream-dotnet-client#313; measured: wheel 1.2.2 SIGSEGV; Java delivers it if it knows the
    subscription id; Node SDK ignores it
    """
    await ready(client, expect, READ)
    options = write_options([SubscriptionInfo(ELSEWHERE)])
    push(broker, expect, b"not for you", queue_id=ELSEWHERE, options=options)
    await quiet(0.2)
    await then_a_normal_one(broker, client, expect)
    wrong = [each for each in confirms(broker) if each.queue_id == ELSEWHERE]
    expect.that(not wrong, "no CONFIRM for the other queue", wrong, id="no-confirm-for-the-other-queue")


def implicit(broker: BlazingMQ, expect: Expect) -> bytes:
    """A message with the flag IMPLICIT_PAYLOAD, and no data, not even padding."""
    queue_id, subscription = reader(broker, expect)
    options = write_options([SubscriptionInfo(subscription)])
    words = 8 + len(options) // 4
    head = (PushFlag.IMPLICIT_PAYLOAD << 28 | words).to_bytes(4) + (len(options) // 4 << 8 | 8).to_bytes(4)
    return head + queue_id.to_bytes(4) + guid(1) + bytes(4) + options


@scenario("BMQ-4.07", "MAY", "low", basis=["B13"], roles=CONSUMER)
async def implicit_payload(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """PUSH without payload (IMPLICIT_PAYLOAD).

    Fault: One event: message with flag 1 and no application data (not even padding), then a normal message (a
    real broker sends the flag only to other brokers)
    Pass: First one delivered as an empty message or reported as an event; the second is delivered with the
    right boundaries; no parse error beyond the first
    Seen: measured: wheel 1.2.2 delivers an empty message
    """
    await ready(client, expect, READ)
    normal = write_push(Push((push_message(broker, expect, b"normal", 2),)))
    say_raw(broker, expect, event_bytes(EventType.PUSH, [implicit(broker, expect), *normal]))
    await eventually(lambda: len(client.messages()) == 2 or (client.messages() and reported(client)), 2.0)
    bodies = [body_bytes(m.body) for m in client.messages()]
    fits = bodies == [b"", b"normal"] or (bodies == [b"normal"] and reported(client))
    expect.that(
        fits,
        "the first is delivered empty or reported, the second as it is",
        bodies,
        id="the-first-is-delivered-empty-or-told-the-second-as-it-is",
    )


@scenario("BMQ-4.14", "SHOULD", "medium", basis=["B14"], roles=CONSUMER)
async def double_confirm(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Double confirm.

    Fault: Confirm the same message twice
    Pass: At most two CONFIRM on the wire, no crash, second may be `invalid`
    """
    await ready(client, expect, READ)
    broker.publish(Q, b"once")
    messages = await client.wait_messages(1)
    expect.ok(await settle(client, messages[0]), "it can be confirmed", id="it-can-be-confirmed")
    again = await settle(client, messages[0])
    expect.ended(again, "a second confirm ends", id="a-second-confirm-ends")
    if not again.ok:
        expect.failed(again, ("invalid", "closed"), "ok or as invalid", id="ok-or-as-invalid")
    await reached_confirms(broker, 1)
    await quiet(0.2)
    expect.that(
        1 <= len(confirms(broker)) <= 2,
        "at most two CONFIRMs",
        len(confirms(broker)),
        id="at-most-two-confirms",
    )
    await survives(client, expect)


@scenario("BMQ-4.15", "SHOULD", "medium", basis=["B4"], roles=CONSUMER)
async def flow_limit(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Flow limit is announced and respected.

    Fault: maxUnconfirmed=3; push 3, then 10 more
    Pass: configureStream carries 3; surplus is delivered or queued without crash
    """
    await ready(client, expect, READ, max_unconfirmed_messages=3)
    expect.equal(
        consumer_of(configures(broker)[0])[0],
        3,
        "the configure request carries the limit",
        id="the-configure-request-carries-the-limit",
    )
    bodies = [b"%d" % number for number in range(13)]
    push(broker, expect, *bodies[:3])
    push(broker, expect, *bodies[3:], first=4)
    await client.wait_messages(3)
    await quiet(0.3)
    await survives(client, expect)
    bodies_are(
        expect,
        client.messages()[:3],
        bodies[:3],
        "what the limit allows is delivered",
        id="what-the-limit-allows-is-delivered",
    )


@scenario("BMQ-4.16", "MAY", "low", basis=["B14"], roles=CONSUMER)
async def confirm_batch(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Confirm batch.

    Fault: Confirm 100 at once
    Pass: One or several valid CONFIRM events with all GUIDs
    """
    await ready(client, expect, READ, max_unconfirmed_messages=200)
    posted = {broker.publish(Q, b"%d" % number) for number in range(100)}
    messages = await client.wait_messages(100)
    expect.exercised(
        len(messages) == 100, "not all messages were delivered", id="not-all-messages-were-delivered"
    )
    calls = [client.begin("settle", sub="c1", ref=m.ref, how="ack") for m in messages]
    for call in calls:
        expect.ok(await call, "each confirm ends ok", id="each-confirm-ends-ok")
    found = await reached_confirms(broker, 100)
    expect.that(
        {each.guid for each in found} == posted,
        "all GUIDs are confirmed",
        len(found),
        id="all-guids-are-confirmed",
    )
    expect.that(
        not received(broker, "Malformed"),
        "every CONFIRM event can be read",
        id="every-confirm-event-can-be-read",
    )
    expect.equal(broker.messages(Q), [], "nothing is left in the queue", id="nothing-is-left-in-the-queue")


@scenario("BMQ-4.17", "MUST", "high", basis=["B4", "B13"], roles=CONSUMER, ops=("bmq.configure_queue",))
async def old_subscription(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """PUSH under the old subscription while a reconfigure is pending.

    Fault: On an open reader: hold the answer of a reconfigure, PUSH m1 under the subscription id of the
    previous configure, answer, wait for the op, then PUSH m2 under the new one (legal: m1 was on its way)
    Pass: m1 and m2 are delivered once each and can be confirmed; the op ends ok
    Seen: measured: wheel 1.2.2 passes, and crashes if an old id comes after the answer
    """
    await ready(client, expect, READ, max_unconfirmed_messages=9)
    early = push_message(broker, expect, b"under the old one", 1)
    broker.faults.add(hold(role="flow", direction="in", name="the answer waits"))
    args: Json = {"session": "s1", "target": "q", "options": {"max_unconfirmed_messages": 5}}
    call = client.begin("bmq.configure_queue", **args)
    expect.exercised(
        await eventually(lambda: len(configures(broker)) == 2, 3.0),
        "no second configure came",
        id="no-second-configure-came",
    )
    say(broker, expect, Push((early,)))
    await client.wait_messages(1, within_s=1.0)
    broker.faults.release("the answer waits")
    expect.ok(await call, "the configure ends ok", id="the-configure-ends-ok")
    push(broker, expect, b"under the new one", first=2)
    await delivered(client, expect, b"under the old one", b"under the new one")
    for message in client.messages():
        expect.ok(await settle(client, message), "each can be confirmed", id="each-can-be-confirmed")
    found = await reached_confirms(broker, 2)
    expect.equal(
        [each.guid for each in found], [guid(1), guid(2)], "each is confirmed", id="each-is-confirmed"
    )


@scenario("BMQ-4.19", "SHOULD", "medium", basis=["B13"], roles=CONSUMER)
async def option_forms(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Forms of the PUSH options area.

    Fault: Single default subscription; same message with option type 1 (what brokers send to clients), type 3
    with one 8-byte item, type 3 packed, and no options
    Pass: Type 1 is delivered; the others are delivered, or skipped without a crash (non-strict); payload
    never includes option bytes
    Seen: measured: wheel 1.2.2 delivers all four; Node SDK skips the area by OptionsWords
    """
    await ready(client, expect, READ)
    _, number = reader(broker, expect)
    forms = {
        b"type 1": write_options([SubscriptionInfo(number)], PushOption.IDS),
        b"type 3": write_options([SubscriptionInfo(number)], PushOption.INFOS),
        b"type 3 packed": write_options([SubscriptionInfo(0)], PushOption.PACKED),
        b"none": b"",
    }
    for n, (name, options) in enumerate(forms.items(), 1):
        say(broker, expect, Push((push_message(broker, expect, name, n, options=options),)))
        await quiet(0.1)
    await survives(client, expect)
    bodies = [body_bytes(m.body) for m in client.messages()]
    expect.that(
        b"type 1" in bodies,
        "what brokers send to clients is delivered",
        bodies,
        id="what-brokers-send-to-clients-is-delivered",
    )
    expect.that(
        set(bodies) <= set(forms),
        "the payload never has bytes of the options",
        bodies,
        id="the-payload-never-has-bytes-of-the-options",
    )
    expect.tolerate(
        bodies == list(forms),
        "the other forms are delivered too",
        bodies,
        id="the-other-forms-are-delivered-too",
    )


@scenario("BMQ-4.20", "SHOULD", "high", basis=["B13", "B19"], roles=CONSUMER)
async def unknown_subscription(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """PUSH with an unknown subscription id.

    Fault: PUSH for an open queue under subscription id 77 that was never configured; then a normal PUSH
    Pass: No crash; the first is dropped without a CONFIRM, or delivered to the queue of its qId (clients that
    route by queue only); the second is delivered, on the same connection or after the client dropped it and
    came back
    Seen: measured: wheel 1.2.2 SIGSEGV; Java ignores it; Node SDK delivers it
    """
    await ready(client, expect, READ)
    options = write_options([SubscriptionInfo(ELSEWHERE)])
    push(broker, expect, b"under 77", options=options)
    await quiet(0.2)
    await then_a_normal_one(broker, client, expect, (b"under 77",))
    wrong = [each for each in confirms(broker) if each.guid == guid(1)]
    expect.that(not wrong, "nothing is confirmed by itself", wrong, id="nothing-is-confirmed-by-itself")


@scenario("BMQ-4.21", "SHOULD", "medium", basis=["B13", "B14"], roles=CONSUMER)
async def two_applications(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """One PUSH for two applications of one client.

    Fault: Fanout queue opened on one session with `?id=foo` and `?id=bar` under one qId; one PUSH message
    whose option lists both subscription ids; a client that uses two qIds gets two PUSH messages instead
    (noted)
    Pass: Each of the two readers gets the message once; two CONFIRMs with the same GUID and the two different
    subIds; client without `?id=` support: non-strict if it rejected the open locally
    Seen: measured: C++ delivers once per id
    """
    await client.connected()
    for app in ("foo", "bar"):
        result = await open_queue(client, app, f"{FANOUT}?id={app}", flags=READ)
        if not result.ok and not opens(broker):
            expect.failed(
                result,
                ("invalid", "unsupported"),
                "else it is refused locally",
                id="else-it-is-refused-locally",
            )
            expect.tolerate(False, "the library takes ?id=", str(result), id="the-library-takes-id")
            return
        expect.ok(result, "each open ends ok", id="each-open-ends-ok")
        await client.subscribed(app, app)
    posted = broker.publish(FANOUT, b"news")
    for app in ("foo", "bar"):
        await client.wait_messages(1, app)
    await quiet(0.1)
    for app in ("foo", "bar"):
        bodies_are(
            expect,
            client.messages(app),
            [b"news"],
            "each reader gets the message once",
            id="each-reader-gets-the-message-once",
        )
        expect.ok(
            await settle(client, client.messages(app)[0], app),
            "each can be confirmed",
            id="each-can-be-confirmed",
        )
    found = await reached_confirms(broker, 2)
    expect.equal(
        [each.guid for each in found],
        [posted] * 2,
        "two CONFIRMs with the GUID",
        id="two-confirms-with-the-guid",
    )
    expect.equal(
        len({(each.queue_id, each.sub_id) for each in found}),
        2,
        "one for each reader",
        id="one-for-each-reader",
    )
    for app in ("foo", "bar"):
        expect.equal(broker.messages(FANOUT, app), [], "the broker has both", id="the-broker-has-both")
    if len({each.queue_id for each in found}) == 2:
        expect.note("two qIds, and so two PUSH messages")


# callbacks


@scenario("BMQ-4.12", "MUST", "critical", basis=["B19"], needs=["callback_raise"], roles=CONSUMER)
async def callback_raises(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Consumer callback raises.

    Fault: Callback throws for message 2 of 5 before it confirms; the others confirm
    Pass: Messages 3..5 still delivered and confirmed; message 2 not confirmed; process alive; error event
    emitted; non-strict: the error is only visible on stderr or in the log
    Seen: stream-rust-client#314; rstream#215; measured: wheel 1.2.2 prints a traceback and goes on
    """
    await client.connected()
    await opened(client, expect, "q", Q, flags=READ)
    await client.subscribed("q", on_message={"mode": "event", "raise_on": [2]})
    mark = len(client.adapter.stderr())
    posted = [broker.publish(Q, b"%d" % number) for number in range(1, 6)]
    messages = await client.wait_messages(5)
    await survives(client, expect, "the process is alive", id="the-process-is-alive")
    bodies_are(
        expect,
        messages,
        [b"%d" % n for n in range(1, 6)],
        "the messages after it are delivered",
        id="the-messages-behind-it-are-delivered",
    )
    for message in messages[:1] + messages[2:]:
        expect.ok(await settle(client, message), "and can be confirmed", id="and-can-be-confirmed")
    found = await reached_confirms(broker, 4)
    await quiet(0.1)
    wanted = posted[:1] + posted[2:]
    expect.equal(
        [each.guid for each in found],
        wanted,
        "all are confirmed but the one whose callback threw",
        id="all-are-confirmed-but-the-one-whose-callback-threw",
    )
    if not expect.tolerate(reported(client), "an error event reports it", id="an-error-event-tells-it"):
        expect.that(client.adapter.stderr()[mark:].strip(), "or at least the log", id="or-at-least-the-log")


BEAT = {"heartbeat_s": 0.4, "max_missed": 2}


@scenario(
    "BMQ-4.13", "MUST", "critical", basis=["B15"], needs=["callback_sleep"], roles=CONSUMER, server=BEAT
)
async def callback_is_slow(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Consumer callback is slow.

    Fault: heartbeatIntervalMs 400, maxMissedHeartbeats 2; HEARTBEAT_REQ every 400 ms; callback blocks 2.4 s
    on message 1
    Pass: No gap of more than (maxMissed+1) × interval without a HEARTBEAT_RSP while the callback blocks (that
    is when a real broker cuts); afterwards the message can be confirmed
    Seen: pika#93; pika#418; stream-dotnet-client#250
    """
    await client.connected()
    await opened(client, expect, "q", Q, flags=READ)
    await client.subscribed("q", on_message={"mode": "event", "sleep_ms": 2400, "sleep_on": [1]})
    broker.publish(Q, b"slow")
    messages = await client.wait_messages(1)
    began = broker.journal.last_seq
    begin_s = broker.now - broker.journal.started_at
    for _ in range(6):
        say(broker, expect, HeartbeatRequest())
        await asyncio.sleep(0.4)
    answers = [r.at for r in received(broker, "HEARTBEAT_RSP", since=began)]
    gap = widest_gap_s([begin_s, *answers, broker.now - broker.journal.started_at])
    expect.within(
        gap,
        1.2,
        "no gap of more than 3 intervals without HEARTBEAT_RSP while it blocks",
        id="no-gap-of-more-than-n-intervals-without-heartbeat-rsp-while",
    )
    expect.ok(
        await settle(client, messages[0]),
        "afterwards the message can be confirmed",
        id="afterwards-the-message-can-be-confirmed",
    )
    expect.equal(len(await reached_confirms(broker, 1)), 1, "its CONFIRM comes", id="its-confirm-comes")
    expect.equal(len(accepted(broker)), 1, "on the same connection", id="on-the-same-connection")
