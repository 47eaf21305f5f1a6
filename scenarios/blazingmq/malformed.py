"""BMQ-7 Malformed frames."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.adapter.base import Call
from conformance.suite import Client, Expect, scenario
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq import ber
from fakebrokers.blazingmq.codec import event_bytes
from fakebrokers.blazingmq.codes import Encoding, EventType
from fakebrokers.blazingmq.control import write
from fakebrokers.blazingmq.events import padded
from fakebrokers.blazingmq.frames import Ack, OpenQueue, Push
from fakebrokers.core.session import HangUp
from fakebrokers.faults import drop, hold
from scenarios._footprint import Footprint
from scenarios.blazingmq._steps import (
    CONSUMER,
    DOMAIN,
    LOST,
    PUBLISHER,
    READ,
    WITHHELD,
    Q,
    accepted,
    ack_for,
    acked_on_the_wire,
    begin_open,
    broken_control,
    came,
    control,
    current,
    encoded,
    encoding,
    eventually,
    lost_within,
    open_queue,
    opened,
    push_message,
    quiet,
    ready,
    received,
    reported,
    say_raw,
    sent,
    survives,
    tellings,
)
from scenarios.blazingmq.negotiation import Nodes, connect_with
from scenarios.blazingmq.queue_answers import answer_to, asked

Json = dict[str, Any]
UNKNOWN_TYPE = 40
LENGTH_MAX = 0x7FFFFFFF
NINE_OCTETS = bytes(range(0x41, 0x4A))


async def pending_post(
    broker: BlazingMQ, client: Client, expect: Expect, session: str = "s1"
) -> tuple[Call, bytes, str]:
    """A post that waits, its ACK as bytes, and the connection."""
    await client.connected(session)
    await opened(client, expect, session, Q, session=session)
    name = current(broker, expect)
    broker.faults.add(drop(kind="ACK", direction="out", connection=name, name=f"{WITHHELD} {session}"))
    mark = broker.journal.last_seq
    call = client.begin_publish(session, b"waits", session=session, timeout=8.0)
    (message,) = await came(broker, expect, 1, mark)
    return call, encoded(Ack((ack_for(broker, expect, message),))), name


async def closes(broker: BlazingMQ, name: str, within_s: float = 1.5) -> bool:
    """Whether the client lets go of a connection."""
    return await eventually(lambda: broker.client_holds(name) is False, within_s)


async def reports(client: Client, since: int) -> bool:
    """Whether the client reports a loss or an error."""
    return await eventually(lambda: tellings(client, since=since) or reported(client, since=since), 1.0)


@scenario("BMQ-7.01", "MUST", "high", basis=["B19", "W1"], roles=PUBLISHER)
async def length_below_header(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Length below header size.

    Fault: Event length 4 (second run: 0), followed in the same write by a valid ACK for a pending post;
    reconnecting clients are accepted again and served normally
    Pass: Framing is not resumed on garbage: the client closes the connection (re-establishing it is allowed)
    and reports a loss or error; no loop, process alive; fail: the connection is kept and the following event
    is lost or misread
    Seen: measured: Node SDK 1.4.0 drops its buffer and goes on, losing the next valid event (P-11); wheel
    1.2.2 closes, reconnects and retransmits
    """
    for length in (4, 0):
        session = f"s{length}"
        events = len(client.events)
        call, ack, name = await pending_post(broker, client, expect, session)
        mark = broker.journal.last_seq
        say_raw(broker, expect, length.to_bytes(4) + event_bytes(EventType.ACK, [])[4:] + ack)
        left = await closes(broker, name)
        await survives(client, expect, "the process is alive", id="the-process-is-alive")
        expect.that(
            left,
            "the client closes the connection",
            f"length {length}",
            id="the-client-closes-the-connection",
        )
        expect.that(
            await reports(client, events),
            "and reports a loss or an error",
            id="and-reports-a-loss-or-an-error",
        )
        result = await call
        if result.ok:
            again = acked_on_the_wire(broker, b"waits", mark)
            expect.that(again, "nothing after the garbage is read", id="nothing-behind-the-garbage-is-read")
        else:
            expect.failed(
                result,
                LOST,
                "what waited ends as lost, or is repeated",
                id="what-waited-ends-as-lost-or-is-repeated",
            )


@scenario("BMQ-7.02", "MUST", "high", basis=["B19", "W1"], roles=PUBLISHER, revision=2)
async def length_near_the_limit(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Length near the limit, then nothing.

    Fault: Event header with length 0x7FFFFFFF, 8 more bytes, then silence for 5 s; one openQueue (timeout 1
    s) is issued meanwhile; then stop
    Pass: Client treats it as an error and closes within 1 s (soft maximum is 512 MiB); memory grows by less
    than 64 MiB; the openQueue and stop end by their deadlines; non-strict: it waits for the rest (the value
    is formally legal: the field has 31 bits), memory flat, ops and stop end in time; fail: big allocation, a
    hang, or reading on as if a new event began on the same connection
    Seen: stream-java-client#1030; clickhouse-cpp#486; measured: wheel 1.2.2 waits; Node SDK drops its buffer
    and keeps the connection (source)
    """
    await client.connected(timeouts={"disconnect": 2000})
    name = current(broker, expect)
    cost = Footprint(client)
    say_raw(broker, expect, LENGTH_MAX.to_bytes(4) + bytes((0x44, 2, 0, 0)) + bytes(8))
    left = await closes(broker, name)
    expect.tolerate(
        left, "the client closes the connection within 1 s", id="the-client-closes-the-connection-within-n-s"
    )
    mark = broker.journal.last_seq
    result = await open_queue(client, timeout=1.0)
    expect.ended(result, "an open ends by its deadline", id="an-open-ends-by-its-deadline")
    if result.ok:
        there = sent(broker, "openQueueResponse", since=mark)
        expect.that(
            there,
            "an open is ok only if the broker says so",
            "it has not",
            id="an-open-is-ok-only-if-the-broker-says-so",
        )
    if not left:
        expect.that(
            not result.ok,
            "nothing is read as if a new event began",
            str(result),
            id="nothing-is-read-as-if-a-new-event-began",
        )
    await asyncio.sleep(1.5)
    cost.judge(expect, rss_mib=64)
    expect.ended(await client.close(timeout=3.0), "stop ends by its deadline", id="stop-ends-by-its-deadline")
    expect.that(client.alive, "the process is alive", id="the-process-is-alive")


async def odd_ack(broker: BlazingMQ, client: Client, expect: Expect, change: Any) -> None:
    """An ACK whose header is odd: taken, or the connection ends; never something else is read."""
    call, ack, name = await pending_post(broker, client, expect)
    mark = broker.journal.last_seq
    say_raw(broker, expect, change(ack))
    await eventually(lambda: call.done or broker.client_holds(name) is False, 1.5)
    await survives(client, expect, "the process is alive", id="the-process-is-alive")
    if call.done and broker.client_holds(name):
        expect.outcome(await call, "acked", "it is taken as it is", id="it-is-taken-as-it-is")
    elif broker.client_holds(name) is False:
        result = await call
        if result.ok:
            expect.that(
                acked_on_the_wire(broker, b"waits", mark),
                "acked only by an ACK of a new connection",
                id="acked-only-by-an-ack-of-a-new-connection",
            )
        else:
            expect.failed(result, LOST, "or refused with the connection", id="or-refused-with-the-connection")
        return
    broker.faults.clear()
    after = await client.publish("s1", b"after", timeout=3.0)
    expect.outcome(after, "acked", "the events after it are read", id="the-events-behind-it-are-read")
    if not call.done:
        say_raw(broker, expect, ack)
    expect.outcome(await call, "acked", "and so is the right ACK", id="and-so-is-the-right-ack")


@scenario("BMQ-7.03", "SHOULD", "low", basis=["W1"], roles=PUBLISHER)
async def fragment_bit(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Fragment bit set.

    Fault: Bit 31 = 1 on a valid event
    Pass: Rejected cleanly or masked; no mis-framing
    """
    await odd_ack(broker, client, expect, lambda ack: bytes([ack[0] | 0x80]) + ack[1:])


@scenario("BMQ-7.05", "SHOULD", "medium", basis=["W1"], roles=PUBLISHER)
async def protocol_version(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Unknown protocol version bits.

    Fault: PV=3
    Pass: Clean error or tolerant handling; no hang
    """
    await odd_ack(broker, client, expect, lambda ack: ack[:4] + bytes([3 << 6 | ack[4] & 0x3F]) + ack[5:])


@scenario("BMQ-7.04", "MUST", "high", basis=["B19"], roles=PUBLISHER)
async def unknown_type(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Unknown event type.

    Fault: Type 40 with body, then a valid ACK
    Pass: Skipped by length; the ACK is processed
    Seen: measured: stream-js-client 1.0.0 crashed on the analogous frame (P-32)
    """
    call, ack, name = await pending_post(broker, client, expect)
    say_raw(broker, expect, event_bytes(UNKNOWN_TYPE, [b"whatever this is"]) + ack)
    expect.outcome(await call, "acked", "the ACK after it is processed", id="the-ack-behind-it-is-processed")
    expect.that(broker.client_holds(name) is not False, "the connection is kept", id="the-connection-is-kept")


WAITS = "the right answer waits"


def broken_bodies(right: bytes, written: Encoding) -> list[bytes]:
    """Control events whose frame is right, and whose body cannot be read."""
    if written is Encoding.JSON:
        bodies = [right[: len(right) // 2], bytes(16)]
    else:
        bodies = [right[: len(right) // 2], bytes(range(7, 71))]
    return [broken_control(body, written) for body in bodies]


def badly_written(right: bytes, written: Encoding) -> list[bytes]:
    """The answer with a padding byte of 0, with one that is larger than the body, and not in UTF-8.

    Many decoders of JSON put another character in the place of what is not UTF-8.
    """
    whole = padded(right)
    events = [control(whole[:-1] + last, written) for last in (b"\0", b"\xff")]
    if written is Encoding.JSON:
        events.append(broken_control(right.replace(b"uri", b"u\xff\xfe"), written))
    return events


async def say_broken(broker: BlazingMQ, expect: Expect, name: str, events: list[bytes]) -> bool:
    """Say broken events; whether the client keeps the connection."""
    for event in events:
        if broker.client_holds(name) is False:
            break
        say_raw(broker, expect, event)
        await quiet(0.05)
    await quiet(0.2)
    return broker.client_holds(name) is not False


@scenario("BMQ-7.06", "MUST", "high", basis=["B19"], roles=PUBLISHER, revision=2)
async def broken_control_body(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """CONTROL with a broken body.

    Fault: With an openQueue pending, CONTROL events whose frame is right and whose body is broken in the
    encoding of the session: JSON: truncated, NUL bytes; BER: truncated, random octets; both: padding byte 0
    and padding byte larger than the body; JSON: invalid UTF-8; then the right answer
    Pass: The broken ones complete no op; process alive; the right answer is used on the same connection, or
    the client closes the connection and the op ends `connection` or is repeated after a reconnect; error
    event; non-strict: only a log line; an answer with wrong padding or invalid UTF-8 is used
    Seen: measured: wheel 1.2.2 logs, skips and goes on
    """
    broker.faults.add(hold(kind="openQueue", direction="in", name=WAITS, first=1, scope="run"))
    await client.connected()
    name, written = current(broker, expect), encoding(broker, expect)
    call = begin_open(client, timeout=8.0)
    expect.exercised(
        await eventually(lambda: asked(broker), 3.0), "no openQueue came", id="no-openqueue-came"
    )
    right = write(answer_to(asked(broker)[0]), written)
    kept = await say_broken(broker, expect, name, broken_bodies(right, written))
    await survives(client, expect, "the process is alive", id="the-process-is-alive")
    if kept:
        expect.that(not call.done, "the broken ones complete no op", id="the-broken-ones-complete-no-op")
        kept = await say_broken(broker, expect, name, badly_written(right, written))
        await survives(client, expect, "the process is alive", id="the-process-is-alive")
        if kept:
            expect.tolerate(
                not call.done,
                "an answer with wrong padding, or not in UTF-8, is not used",
                id="an-answer-with-wrong-padding-is-not-used",
            )
            broker.faults.release(WAITS)
    result = await call
    if kept:
        expect.ok(result, "the right answer is used", id="the-right-answer-is-used")
    elif result.ok:
        again = [r for r in received(broker, "openQueue") if r.connection != name]
        expect.that(again, "it is repeated on a new connection", id="it-is-repeated-on-a-new-connection")
    else:
        expect.failed(result, LOST, "else the op ends as connection", id="else-the-op-ends-as-connection")
    expect.tolerate(reported(client), "an error event reports it", id="an-error-event-tells-it")


def long_number(known: Nodes) -> Nodes:
    """The category of the result has 9 octets."""
    result, *rest = known
    number = ber.Node(ber.CONTEXT, 0, NINE_OCTETS)
    return (result._replace(content=(number, *result.parts[1:])), *rest)


def no_result(table: Json) -> Json:
    """The same document, with null as its result."""
    return {**table, "result": None}


def wrong_number(request: OpenQueue, written: Encoding) -> bytes:
    """The answer to a request, with its number as a string, or in 9 octets."""
    text = write(answer_to(request), written)
    if written is Encoding.JSON:
        right = request.r_id or 0
        return broken_control(text.replace(b'"rId":%d' % right, b'"rId":"%d"' % right), written)
    message = ber.parse(text)
    _, *rest = message.parts
    number = ber.Node(ber.CONTEXT, 0, NINE_OCTETS)
    return broken_control(ber.write(message._replace(content=(number, *rest))), written)


@scenario("BMQ-7.07", "SHOULD", "medium", basis=["B19"], roles=PUBLISHER)
async def wrong_types(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """CONTROL with wrong types.

    Fault: (a) brokerResponse with `result` null (BER: result of wrong length); (b) openQueueResponse with rId
    as a string (BER: rId of 9 octets), then nothing
    Pass: (a) connect ends by its deadline, with an error or (missing result read as default) ok; (b) the open
    ends by its deadline with `timeout` or `protocol`, or the answer is taken if the string is the right
    number; no crash; a later open works or the connection is re-established
    """
    result = await connect_with(broker, client, expect, long_number, no_result)
    expect.ended(result, "(a) connect ends by its deadline", id="a-connect-ends-by-its-deadline")
    await survives(client, expect, "(a) the process is alive", id="a-the-process-is-alive")
    await client.connected("s2")
    broker.faults.add(drop(kind="openQueue", direction="in", nth=1, scope="run", name="not answered"))
    mark = broker.journal.last_seq
    call = begin_open(client, "wrong", session="s2", timeout=1.5)
    there = await eventually(lambda: received(broker, "openQueue", since=mark), 3.0)
    expect.exercised(there, "no openQueue came", id="no-openqueue-came")
    say_raw(broker, expect, wrong_number(asked(broker)[-1], encoding(broker, expect)))
    result = await call
    expect.ended(result, "(b) the open ends by its deadline", id="b-the-open-ends-by-its-deadline")
    if not result.ok:
        kinds = ("timeout", "protocol", "connection")
        expect.failed(
            result,
            kinds,
            "(b) as timeout or protocol, or the number is read",
            id="b-as-timeout-or-protocol-or-the-number-is-read",
        )
    await survives(client, expect, "(b) the process is alive", id="b-the-process-is-alive")
    later = await open_queue(client, "later", session="s2", timeout=8.0)
    expect.ok(later, "(b) a later open works", id="b-a-later-open-works")


@scenario("BMQ-7.08", "MUST", "critical", basis=["B19"], roles=CONSUMER)
async def cut_in_an_event(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """RST in the middle of an event.

    Fault: Send 60 % of a PUSH, rst
    Pass: Partial message is never delivered; loss event
    """
    await ready(client, expect, READ, uri=DOMAIN + "q")
    event = encoded(Push((push_message(broker, expect, b"partial" * 20),)))
    say_raw(broker, expect, event[: len(event) * 6 // 10])
    await quiet(0.1)
    broker.kill(accepted(broker)[0].connection, HangUp.RST)
    await lost_within(client, expect, 1.5, "the loss is reported", id="the-loss-is-told")
    await quiet(0.2)
    expect.that(
        not client.messages(),
        "the partial message is not delivered",
        id="the-partial-message-is-not-delivered",
    )
    await survives(client, expect, "the process is alive", id="the-process-is-alive")
