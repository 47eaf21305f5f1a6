"""RMQS-5 Heartbeats, and how connections end."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from conformance.adapter.base import Call
from conformance.suite import Client, Expect, scenario
from fakebrokers import RabbitMQStream
from fakebrokers.faults import drop, hold, latency, rewrite
from fakebrokers.journal import Tap
from fakebrokers.rabbitmq_stream.codes import Code
from scenarios._common import limit_s, received, sent, until
from scenarios.rabbitmq_stream._deliveries import FIRST, attached, record, subscribed_with_backlog, write
from scenarios.rabbitmq_stream._lifecycle import (
    BEAT,
    at_work,
    clock,
    fall_silent,
    goes_on,
    judge_gaps,
    kept,
    lasting,
    let_go,
    losses,
    periods,
    positions,
    reconnecting,
    standing,
    used_again,
    users,
)
from scenarios.rabbitmq_stream._steps import (
    BOTH,
    CONSUMER,
    PUBLISHER,
    STREAM,
    answered,
    close_if_open,
    heartbeat_of,
)
from scenarios.rabbitmq_stream.publishing import confirmed

REASON = "unknown frame"


@scenario("RMQS-5.01", server=BEAT, timeout_s=60, revision=3)
async def client_sends_heartbeats(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Client sends heartbeats.

    Fault: Server offers 1 s; T = value of the client's Tune answer; idle 6 T (judged if 1 ≤ T ≤ 5); like the
    real server, close with FIN after two checks of T without a byte
    Pass: gaps between the client's bytes ≤ 1.5 T + 250 ms (non-strict up to 2 T); no FIN by the rule; T = 0
    or > 5: `inconclusive`
    """
    await client.connected()
    await lasting(broker, client, expect)
    tuned = periods(broker, expect)
    begin, mark = clock(broker), broker.journal.last_seq
    await asyncio.sleep(6 * max(tuned.values()))
    closed = {record.connection for record in received(broker, "Close")}
    ends = broker.journal.select(kind="fin", since=mark)
    dropped = [str(record) for record in ends if record.connection not in closed]
    expect.that(not dropped, "no FIN by the rule of two checks without a byte", dropped)
    judge_gaps(broker, expect, tuned, begin, clock(broker))


@scenario("RMQS-5.02", server=BEAT, timeout_s=60)
async def server_heartbeats_missing(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Server heartbeats missing.

    Fault: Server offers 1 s, then sends nothing but keeps reading; T as in RMQS-5.01
    Pass: Client closes or reports loss within 8 T
    """
    await client.connected()
    await at_work(broker, client, expect)
    names, events = list(standing(broker)), len(client.events)
    limit = 8 * await fall_silent(broker, expect) + 0.25
    noticed = await until(lambda: losses(client, events) or let_go(broker, names), limit)
    expect.that(noticed, "the client closes or reports loss within 8 T", f"nothing in {limit} s")


@scenario("RMQS-5.03", server=BEAT, timeout_s=90)
async def loss_by_heartbeat(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Loss by heartbeat is an unexpected close.

    Fault: As RMQS-5.02; a new connection is accepted
    Pass: within 8 T + 5 s: a new connection with full handshake and Subscribe/DeclarePublisher, or an
    error/`connection_lost` event and `state.open` false; next publish not confirmed silently nor left hanging
    """
    await reconnecting(client)
    await at_work(broker, client, expect)
    mark, events = broker.journal.last_seq, len(client.events)
    limit = 8 * await fall_silent(broker, expect) + 5.0
    done = await until(lambda: used_again(broker, client, mark), limit)
    if not done:
        told = losses(client, events) and not (await client.state())["open"]
        expect.that(
            told,
            "within 8 T + 5 s a new connection, handshake and Subscribe or DeclarePublisher, "
            "or a loss event with state.open false",
            f"nothing in {limit} s",
        )
    if client.has_role("publisher"):
        confirms = len(sent(broker, "PublishConfirm"))
        result = await client.publish(STREAM, b"next")
        expect.ended(result, "the next publish is not left hanging")
        if result.ok:
            came = len(sent(broker, "PublishConfirm"))
            expect.that(came > confirms, "the next publish is not confirmed by itself", "no confirm was sent")


@scenario("RMQS-5.04", roles=CONSUMER, server=BEAT, timeout_s=60)
async def any_frame_is_liveness(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Any frame is liveness.

    Fault: T = 1 s; a chunk every 300 ms for 8 s and never a Heartbeat (what the real server does while it has
    something to send)
    Pass: No close, no loss event, all chunks surfaced
    """
    broker.create_stream(STREAM)
    await client.connected(heartbeat_s=heartbeat_of(client, 1))
    await client.subscribed(STREAM, STREAM, offset=FIRST)
    name = (await attached(broker, expect)).connection
    tuned = periods(broker, expect)
    expect.exercised(name in tuned, "the consumer's connection has no short heartbeat")
    broker.faults.add(drop(kind="Heartbeat", direction="out", connection=name, name="no heartbeats"))
    expect.may_not_fire("no heartbeats", "a broker that delivers may send none")
    events, count = len(client.events), 27 * tuned[name]  # for 8 T
    for number in range(count):
        write(broker, client, [b"message %d" % number])
        await asyncio.sleep(0.3)
        expect.that(name in standing(broker), "the connection is not closed", f"after {0.3 * number:.1f} s")
    expect.that(not losses(client, events), "no loss event", losses(client, events)[:1])
    await client.wait_messages(count, STREAM)
    expect.equal(positions(client), list(range(count)), "all chunks are surfaced")


@scenario("RMQS-5.05", roles=CONSUMER, server=BEAT, timeout_s=90, revision=2)
async def heartbeat_while_busy(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Heartbeat while the callback blocks.

    Fault: T = 1 s; callback waits 4 T in the library's own manner (await in async libraries, sleep on the
    callback thread in threaded ones; not `block` on a single event loop)
    Pass: gaps between the client's bytes ≤ 1.5 T + 250 ms (non-strict up to 2 T); the connection survives;
    the following message is surfaced
    """
    broker.create_stream(STREAM)
    own = heartbeat_of(client, 1)
    await client.connected(heartbeat_s=own)
    busy_s = 4.0 * own
    busy = {"mode": "event", "sleep_ms": 1000 * busy_s}
    await client.subscribed(STREAM, STREAM, offset=FIRST, on_message=busy)
    name = (await attached(broker, expect)).connection
    tuned = periods(broker, expect)
    expect.exercised(name in tuned, "the consumer's connection has no short heartbeat")
    expect.exercised(4 * tuned[name] <= busy_s, f"T = {tuned[name]} s, though {own} s were asked for")
    write(broker, client, [b"slow"])
    expect.exercised(await client.wait_messages(1, STREAM), "the callback was never called")
    begin = clock(broker)
    write(broker, client, [b"following"])
    await asyncio.sleep(busy_s)
    expect.that(name in standing(broker), "the connection survives", "it ended")
    judge_gaps(broker, expect, tuned, begin, clock(broker))
    messages = await client.wait_messages(2, STREAM)
    expect.equal(len(messages), 2, "the following message is surfaced")


@scenario("RMQS-5.06")
async def server_close(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Server Close.

    Fault: Close with correlation id 1, code 13, reason `unknown frame`, while idle; FIN as soon as the
    CloseResponse is read, else after 10 s (as the real server)
    Pass: CloseResponse (0x8016) with id 1 and code 1 within 1 s; client socket closed within 2 s of the FIN;
    one close/loss event (non-strict: without the reason), or a reconnect with auto_reconnect
    """
    await reconnecting(client)
    await at_work(broker, client, expect)
    names = users(broker) or list(standing(broker))
    expect.exercised(names, "the client keeps no connection")
    name = names[0]
    mark, events = broker.journal.last_seq, len(client.events)
    broker.say_close(name, Code.UNKNOWN_FRAME, REASON)
    criterion = "CloseResponse with id 1 and code 1 within 1 s"
    answers = await expect.wire(
        broker, criterion, within_s=1.0, kind="CloseResponse", tap=Tap.RECEIVED, connection=name, since=mark
    )
    expect.that(answers[0].keys == (1,) and answers[0].status == 1, criterion, str(answers[0]))
    await expect.socket_closed(
        broker, name, "the client's socket is closed within 2 s of the FIN", within_s=2.0
    )
    patience = 10.0 if client.can("auto_reconnect") else 2.0
    told = await until(lambda: losses(client, events) or received(broker, "Open", since=mark), patience)
    expect.that(told, "one close or loss event, or a reconnect", "neither")
    await asyncio.sleep(0.2)
    lost = [event for event in losses(client, events) if event["what"] == "connection_lost"]
    expect.that(len(lost) <= 1, "one close or loss event", [event.fields for event in lost])
    if lost and not received(broker, "Open", since=mark):
        named = any(REASON in str(event["text"]) or event["code"] == Code.UNKNOWN_FRAME for event in lost)
        expect.tolerate(named, "the event tells the reason", str(lost[0].fields))


@scenario("RMQS-5.07", revision=2)
async def client_close(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Client Close.

    Fault: Answer normally
    Pass: Close sent, socket closed after the answer
    """
    await client.connected()
    await at_work(broker, client, expect)
    names = kept(broker)
    expect.exercised(names, "the client keeps no connection")
    broker.faults.add(latency(0.2, kind="CloseResponse", direction="out"))
    expect.ended(await client.close(), "close ends")
    for name in names:
        came = await until(partial(received, broker, "Close", connection=name), 1.0)
        expect.that(came, "Close is sent on each connection", f"none on {name}")
        await expect.socket_closed(broker, name, "the socket is closed after the answer", within_s=2.0)
        answers = sent(broker, "CloseResponse", connection=name)
        expect.that(answers, "the socket is closed after the answer, not before", f"{name} ended early")


@scenario("RMQS-5.08", timeout_s=60, revision=2)
async def close_answer_missing(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Close answer missing.

    Fault: Drop
    Pass: close op ends in its deadline; socket closed
    """
    await client.connected()
    await at_work(broker, client, expect)
    names, mark = kept(broker), broker.journal.last_seq
    broker.faults.add(drop(kind="Close", direction="in", name="Close is not answered"))
    deadline = client.deadline_s("close", 2.0)
    result = await client.close(timeout=2.0)
    came = await until(partial(received, broker, "Close", since=mark), 1.0)
    expect.exercised(came, "the client sent no Close")
    expect.ended(result, "close ends by its deadline")
    expect.within(result.elapsed_ms / 1000, limit_s(deadline), "close ends by its deadline")
    for name in names:
        await expect.socket_closed(broker, name, "the socket is closed", within_s=1.5)


@scenario("RMQS-5.09", timeout_s=60)
async def close_is_idempotent(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Close is idempotent.

    Fault: close twice and concurrently
    Pass: Both ops end within their deadline (ok or `closed`); at most one Close per connection on the wire
    """
    await client.connected()
    await at_work(broker, client, expect)
    calls = [client.begin("close", 5.0, session="s1") for _ in range(2)]
    results = [await call for call in calls]
    results.append(await client.begin("close", 5.0, session="s1"))
    for number, result in enumerate(results):
        if not result.ok:
            expect.failed(result, ("closed",), f"close {number + 1} ends ok or as closed by its deadline")
    closes = [r.connection for r in received(broker, "Close")]
    expect.equal(sorted(set(closes)), sorted(closes), "at most one Close per connection")


@scenario("RMQS-5.10", roles=CONSUMER, timeout_s=60)
async def close_with_a_full_queue(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Close with a full delivery queue.

    Fault: Subscribe with credit 50 if it can be set, else its own C; fill the credit with chunks of 20
    messages, callback sleeps 200 ms; close after the first callback
    Pass: close ends in its deadline (at most one running callback is waited for), no message event after it,
    process alive
    """
    broker.create_stream(STREAM)
    await client.connected()

    def fill(credit: int) -> None:
        for chunk in range(credit):
            broker.publish(STREAM, [record(client, b"%d/%d" % (chunk, number)) for number in range(20)])

    slow = {"mode": "event", "sleep_ms": 200}
    await subscribed_with_backlog(broker, client, expect, fill, sub=STREAM, credit=50, on_message=slow)
    expect.exercised(await client.wait_messages(1, STREAM), "no message was surfaced")
    deadline = client.deadline_s("close", 5.0)
    result = await client.close(timeout=5.0)
    expect.ended(result, "close ends in its deadline")
    expect.within(result.elapsed_ms / 1000, limit_s(deadline), "close ends in its deadline")
    await asyncio.sleep(0.6)
    after = [e for e in client.events if e.event == "message" and result.n is not None and e.n > result.n]
    expect.that(not after, "no message event after close", f"{len(after)} came")
    expect.that(client.alive, "the process lives", "it ended")


def _pending_request(client: Client) -> tuple[str, dict[str, Any], str] | None:
    """An op that asks the server something, its arguments, and the kind of the request."""
    choices = (
        ("rmqs.query_offset", {"target": STREAM, "name": "a"}, "QueryOffset"),
        ("rmqs.create", {"target": "new"}, "Create"),
        ("rmqs.metadata", {"targets": [STREAM]}, "Metadata"),
    )
    return next((choice for choice in choices if client.has(choice[0])), None)


@scenario("RMQS-5.17", roles=PUBLISHER, server=BEAT, timeout_s=90, revision=2)
async def half_open_connection(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Half-open connection.

    Fault: T = 1 s, a publish and a request pending, then halfopen (drop all packets both ways)
    Pass: Loss reported or connection given up within 8 T; the request ends at its deadline, the publish ends
    unknown
    """
    await reconnecting(client, heartbeat_s=heartbeat_of(client, 1))
    await at_work(broker, client, expect)
    period = max(periods(broker, expect).values())
    broker.faults.add(drop(role="confirm", name="no confirms"))
    publishing = client.begin_publish(STREAM, b"pending", timeout=8.0 * period)
    asking: Call | None = None
    asking_kind = ""
    mark = broker.journal.last_seq
    request, deadline = _pending_request(client), client.deadline_s("request", 5.0)
    if request is not None:
        op, args, kind = request
        asking_kind = kind
        broker.faults.add(drop(kind=kind, direction="in", name="no answers"))
        asking = client.begin(op, 5.0, session="s1", **args)
        await expect.reached(broker, f"no {kind} came", kind=kind, since=mark)
    await expect.reached(broker, "no Publish came", kind="Publish", count=2)
    names, events = list(standing(broker)), len(client.events)
    lost = broker.journal.last_seq
    broker.kill(how="half-open")
    broker.faults.clear()
    limit = 8 * period + 0.25
    noticed = await until(lambda: losses(client, events) or let_go(broker, names), limit)
    expect.that(noticed, "the loss is reported, or the connection given up, within 8 T", f"not in {limit} s")
    if asking is not None:
        result = await asking
        if result.ok:
            anew = answered(broker, asking_kind, lost)
            expect.that(anew, "the request is ok only with an answer from a new connection", "none was sent")
        else:
            kinds = ("timeout", "connection", "closed")
            expect.failed(result, kinds, "the request ends at its deadline")
        expect.within(result.elapsed_ms / 1000, limit_s(deadline), "the request ends at its deadline")
    published = await publishing
    if published.ok:
        again = confirmed(broker, b"pending", lost)
        expect.that(again, "the publish is not acked without a confirm", str(published))
        expect.tolerate(False, "the publish ends unknown", "it was published and confirmed anew")
    else:
        expect.outcome(published, "unknown", "the publish ends unknown")


@scenario("RMQS-5.22", server={"switches": {"close_timeout_s": 4.0}}, timeout_s=60, revision=2)
async def close_from_both_sides(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Close from both sides.

    Fault: When the client's Close is read the server has just sent its own Close (code 13, same correlation
    id) and does not answer the client's; FIN after 10 s
    Pass: close op ends (ok or `closed`) by its deadline and at the latest 1 s after the FIN; socket closed;
    answering the server's Close is optional; no crash
    """
    await client.connected()
    await at_work(broker, client, expect)
    names, mark = kept(broker), broker.journal.last_seq
    broker.faults.add(hold(kind="Close", direction="in", nth=1, scope="run", name="crossing"))
    deadline = client.deadline_s("close", 8.0)
    call = client.begin("close", 8.0, session="s1")
    asked = (await expect.reached(broker, "no Close came", kind="Close", tap=Tap.RECEIVED, since=mark))[0]
    same_id = {"correlation_id": asked.keys[0]}
    broker.faults.add(
        rewrite(fields=same_id, kind="Close", direction="out", connection=asked.connection, name="same id")
    )
    await asyncio.sleep(0.1)
    waits = broker.client_holds(asked.connection) is not False
    crossed = close_if_open(broker, asked.connection, Code.UNKNOWN_FRAME, REASON) and waits
    broker.faults.release("crossing")
    result = await call
    if not result.ok:
        expect.failed(result, ("closed", "connection"), "close ends, ok or as closed")
    expect.within(result.elapsed_ms / 1000, limit_s(deadline), "by its deadline")
    ends = broker.journal.select(kind="fin", connection=asked.connection)
    if ends:
        late = result.ended_ns / 1e9 - (ends[0].at + broker.journal.started_at)
        expect.within(late, 1.0, "at the latest 1 s after the FIN")
    for name in names:
        await expect.socket_closed(broker, name, "the socket is closed", within_s=1.5)
    expect.exercised(crossed, "the client does not wait for the answer to its Close: nothing crosses it")


@scenario("RMQS-5.24", roles=BOTH, timeout_s=90)
async def fin_while_idle(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """FIN without Close while idle.

    Fault: Idle consumer and idle producer; the server ends with FIN and no Close frame (real for operator
    close, missed heartbeats, internal errors)
    Pass: Within 2 s a loss event for each, or with auto_reconnect a new connection and a new
    Subscribe/DeclarePublisher within 30 s; the next publish ends `connection`/`closed` or `acked` on the new
    connection, never hangs
    """
    broker.create_stream(STREAM)
    for session in ("p", "c"):
        await reconnecting(client, session)
    expect.prepared(await client.publish(STREAM, b"first", session="p"))
    await client.subscribed(STREAM, STREAM, session="c", offset=FIRST)
    await client.wait_messages(1, STREAM)
    mark, events = broker.journal.last_seq, len(client.events)
    again = client.reconnects("producer") and client.reconnects("consumer")
    broker.kill()

    def told(session: str) -> bool:
        return bool(losses(client, events, session))

    def noticed() -> bool:
        if again:  # some declare their publishers with the next message only
            return told("c") or bool(received(broker, "Subscribe", since=mark))
        return told("c") and told("p")

    criterion = "a loss event for each within 2 s, or a new Subscribe within 30 s"
    expect.that(await until(noticed, 30.0 if again else 2.0), criterion, "none")
    result = await client.publish(STREAM, b"next", session="p", timeout=20.0 if again else 5.0)
    expect.ended(result, "the next publish never hangs")
    if not result.ok:
        criterion = "the next publish ends as connection or closed, or acked on the new connection"
        expect.failed(result, ("connection", "closed"), criterion)
    producer = told("p") or received(broker, "DeclarePublisher", since=mark)
    expect.that(producer, "a loss event for each, or a new DeclarePublisher", "none for the producer")
    if again and not told("c"):
        await goes_on(broker, client, expect, "the stream goes on", STREAM, session="p", within_s=10.0)
