"""RMQS-5 Connection life cycle: how connections end."""

from __future__ import annotations

import asyncio
from functools import partial

from conformance.suite import Client, Expect, scenario
from fakebrokers import RabbitMQStream
from fakebrokers.faults import drop, hold, latency, rewrite
from fakebrokers.journal import Tap
from fakebrokers.rabbitmq_stream.codes import Code
from scenarios._common import limit_s, received, sent, until
from scenarios.rabbitmq_stream._deliveries import FIRST, record, subscribed_with_backlog
from scenarios.rabbitmq_stream._lifecycle import at_work, goes_on, kept, losses, reconnecting, standing, users
from scenarios.rabbitmq_stream._steps import BOTH, CONSUMER, STREAM, close_if_open

REASON = "unknown frame"


@scenario("RMQS-5.06", "MUST", "critical", basis=["R17"])
async def server_close(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Server Close.

    Fault: Close with correlation id 1, code 13, reason `unknown frame`, while idle; FIN as soon as the
    CloseResponse is read, else after 10 s (as the real server)
    Pass: CloseResponse (0x8016) with id 1 and code 1 within 1 s; client socket closed within 2 s of the FIN;
    one close/loss event (non-strict: without the reason), or a reconnect with auto_reconnect
    Seen: stream-js-client#188
    """
    await reconnecting(client)
    await at_work(broker, client, expect)
    names = users(broker) or list(standing(broker))
    expect.exercised(names, "the client keeps no connection", id="the-client-keeps-no-connection")
    name = names[0]
    mark, events = broker.journal.last_seq, len(client.events)
    broker.say_close(name, Code.UNKNOWN_FRAME, REASON)
    criterion = "CloseResponse with id 1 and code 1 within 1 s"
    answers = await expect.wire(
        broker,
        criterion,
        within_s=1.0,
        kind="CloseResponse",
        tap=Tap.RECEIVED,
        connection=name,
        since=mark,
        id="closeresponse-with-id-n-and-code-n-within-n-s",
    )
    expect.that(
        answers[0].keys == (1,) and answers[0].status == 1,
        criterion,
        str(answers[0]),
        id="closeresponse-with-id-n-and-code-n-within-n-s",
    )
    await expect.socket_closed(
        broker,
        name,
        "the client's socket is closed within 2 s of the FIN",
        within_s=2.0,
        id="the-client-s-socket-is-closed-within-n-s-of-the-fin",
    )
    patience = 10.0 if client.can("auto_reconnect") else 2.0
    reported = await until(lambda: losses(client, events) or received(broker, "Open", since=mark), patience)
    expect.that(
        reported,
        "one close or loss event, or a reconnect",
        "neither",
        id="one-close-or-loss-event-or-a-reconnect",
    )
    await asyncio.sleep(0.2)
    lost = [event for event in losses(client, events) if event["what"] == "connection_lost"]
    expect.that(
        len(lost) <= 1,
        "one close or loss event",
        [event.fields for event in lost],
        id="one-close-or-loss-event",
    )
    if lost and not received(broker, "Open", since=mark):
        named = any(REASON in str(event["text"]) or event["code"] == Code.UNKNOWN_FRAME for event in lost)
        expect.tolerate(
            named, "the event names the reason", str(lost[0].fields), id="the-event-tells-the-reason"
        )


@scenario("RMQS-5.07", "MUST", "high", basis=["R17"], revision=2)
async def client_close(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Client Close.

    Fault: Answer normally
    Pass: Close sent, socket closed after the answer
    Seen: aiormq#48
    """
    await client.connected()
    await at_work(broker, client, expect)
    names = kept(broker)
    expect.exercised(names, "the client keeps no connection", id="the-client-keeps-no-connection")
    broker.faults.add(latency(0.2, kind="CloseResponse", direction="out"))
    expect.ended(await client.close(), "close ends", id="close-ends")
    for name in names:
        came = await until(partial(received, broker, "Close", connection=name), 1.0)
        expect.that(
            came, "Close is sent on each connection", f"none on {name}", id="close-is-sent-on-each-connection"
        )
        await expect.socket_closed(
            broker,
            name,
            "the socket is closed after the answer",
            within_s=2.0,
            id="the-socket-is-closed-after-the-answer",
        )
        answers = sent(broker, "CloseResponse", connection=name)
        expect.that(
            answers,
            "the socket is closed after the answer, not before",
            f"{name} ended early",
            id="the-socket-is-closed-after-the-answer-not-before",
        )


@scenario("RMQS-5.08", "MUST", "high", basis=["R17"], timeout_s=60, revision=2)
async def close_answer_missing(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Close answer missing.

    Fault: Drop
    Pass: close op ends in its deadline; socket closed
    Seen: rabbitmq-java-client#46; stream-java-client#813
    """
    await client.connected()
    await at_work(broker, client, expect)
    names, mark = kept(broker), broker.journal.last_seq
    broker.faults.add(drop(kind="Close", direction="in", name="Close is not answered"))
    deadline = client.deadline_s("close", 2.0)
    result = await client.close(timeout=2.0)
    came = await until(partial(received, broker, "Close", since=mark), 1.0)
    expect.exercised(came, "the client sent no Close", id="the-client-sent-no-close")
    expect.ended(result, "close ends by its deadline", id="close-ends-by-its-deadline")
    expect.within(
        result.elapsed_ms / 1000,
        limit_s(deadline),
        "close ends by its deadline",
        id="close-ends-by-its-deadline",
    )
    for name in names:
        await expect.socket_closed(
            broker, name, "the socket is closed", within_s=1.5, id="the-socket-is-closed"
        )


@scenario("RMQS-5.09", "SHOULD", "medium", basis=["R17"], timeout_s=60)
async def close_is_idempotent(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Close is idempotent.

    Fault: close twice and concurrently
    Pass: Both ops end within their deadline (ok or `closed`); at most one Close per connection on the wire
    Seen: stream-go-client#481
    """
    await client.connected()
    await at_work(broker, client, expect)
    calls = [client.begin("close", 5.0, session="s1") for _ in range(2)]
    results = [await call for call in calls]
    results.append(await client.begin("close", 5.0, session="s1"))
    for number, result in enumerate(results):
        if not result.ok:
            expect.failed(
                result,
                ("closed",),
                f"close {number + 1} ends ok or as closed by its deadline",
                id="close-n-ends-ok-or-as-closed-by-its-deadline",
            )
    closes = [r.connection for r in received(broker, "Close")]
    expect.equal(
        sorted(set(closes)),
        sorted(closes),
        "at most one Close per connection",
        id="at-most-one-close-per-connection",
    )


@scenario(
    "RMQS-5.10", "SHOULD", "high", basis=["R9", "R17"], needs=["callback_sleep"], roles=CONSUMER, timeout_s=60
)
async def close_with_a_full_queue(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Close with a full delivery queue.

    Fault: Subscribe with credit 50 if it can be set, else its own C; fill the credit with chunks of 20
    messages, callback sleeps 200 ms; close after the first callback
    Pass: close ends in its deadline (at most one running callback is waited for), no message event after it,
    process alive
    Seen: stream-go-client#412
    """
    broker.create_stream(STREAM)
    await client.connected()

    def fill(credit: int) -> None:
        for chunk in range(credit):
            broker.publish(STREAM, [record(client, b"%d/%d" % (chunk, number)) for number in range(20)])

    slow = {"mode": "event", "sleep_ms": 200}
    await subscribed_with_backlog(broker, client, expect, fill, sub=STREAM, credit=50, on_message=slow)
    expect.exercised(
        await client.wait_messages(1, STREAM), "no message was delivered", id="no-message-was-surfaced"
    )
    deadline = client.deadline_s("close", 5.0)
    result = await client.close(timeout=5.0)
    expect.ended(result, "close ends in its deadline", id="close-ends-in-its-deadline")
    expect.within(
        result.elapsed_ms / 1000,
        limit_s(deadline),
        "close ends in its deadline",
        id="close-ends-in-its-deadline",
    )
    await asyncio.sleep(0.6)
    after = [e for e in client.events if e.event == "message" and result.n is not None and e.n > result.n]
    expect.that(
        not after, "no message event after close", f"{len(after)} came", id="no-message-event-after-close"
    )
    expect.that(client.alive, "the process goes on", "it ended", id="the-process-lives")


@scenario(
    "RMQS-5.22",
    "SHOULD",
    "high",
    basis=["R17"],
    server={"switches": {"close_timeout_s": 4.0}},
    timeout_s=60,
    revision=2,
)
async def close_from_both_sides(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Close from both sides.

    Fault: When the client's Close is read the server has just sent its own Close (code 13, same correlation
    id) and does not answer the client's; FIN after 10 s
    Pass: close op ends (ok or `closed`) by its deadline and at the latest 1 s after the FIN; socket closed;
    answering the server's Close is optional; no crash
    Seen: measured on 4.3.6: a Close after a bad frame is never answered, FIN after 9–10 s
    """
    await client.connected()
    await at_work(broker, client, expect)
    names, mark = kept(broker), broker.journal.last_seq
    broker.faults.add(hold(kind="Close", direction="in", nth=1, scope="run", name="crossing"))
    deadline = client.deadline_s("close", 8.0)
    call = client.begin("close", 8.0, session="s1")
    asked = (
        await expect.reached(
            broker, "no Close came", kind="Close", tap=Tap.RECEIVED, since=mark, id="no-close-came"
        )
    )[0]
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
        expect.failed(
            result, ("closed", "connection"), "close ends, ok or as closed", id="close-ends-ok-or-as-closed"
        )
    expect.within(result.elapsed_ms / 1000, limit_s(deadline), "by its deadline", id="by-its-deadline")
    ends = broker.journal.select(kind="fin", connection=asked.connection)
    if ends:
        late = result.ended_ns / 1e9 - (ends[0].at + broker.journal.started_at)
        expect.within(late, 1.0, "at the latest 1 s after the FIN", id="at-the-latest-n-s-after-the-fin")
    for name in names:
        await expect.socket_closed(
            broker, name, "the socket is closed", within_s=1.5, id="the-socket-is-closed"
        )
    expect.exercised(
        crossed,
        "the client does not wait for the answer to its Close: nothing crosses it",
        id="the-client-does-not-wait-for-the-answer-to-its-close",
    )


@scenario("RMQS-5.24", "MUST", "critical", basis=["R17", "R18"], roles=BOTH, timeout_s=90, revision=2)
async def fin_while_idle(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """FIN without Close while idle.

    Fault: Idle consumer and idle producer; the server ends with FIN and no Close frame (real for operator
    close, missed heartbeats, internal errors)
    Pass: Within 2 s a loss event for each, or with auto_reconnect a new connection and a new
    Subscribe/DeclarePublisher within 30 s; the next publish ends `connection`/`closed` or `acked` on the new
    connection, never hangs
    Seen: stream-rust-client#286; stream-rust-client#162; measured on 4.3.6
    """
    broker.create_stream(STREAM)
    for session in ("p", "c"):
        await reconnecting(client, session)
    expect.prepared(await client.publish(STREAM, b"first", session="p"))
    await client.subscribed(STREAM, STREAM, session="c", offset=FIRST)
    await client.wait_messages(1, STREAM)
    mark, events = broker.journal.last_seq, len(client.events)
    consumes_again = client.reconnects("consumer")
    publishes_again = client.reconnects("producer")
    broker.kill()

    def reported(session: str) -> bool:
        return bool(losses(client, events, session))

    def noticed() -> bool:
        consumer = reported("c") or (consumes_again and bool(received(broker, "Subscribe", since=mark)))
        # some declare their publishers with the next message only
        return consumer and (reported("p") or publishes_again)

    criterion = "a loss event for each within 2 s, or a new Subscribe within 30 s"
    expect.that(
        await until(noticed, 30.0 if consumes_again else 2.0),
        criterion,
        "none",
        id="a-loss-event-for-each-within-n-s-or-a-new-subscribe-within",
    )
    result = await client.publish(STREAM, b"next", session="p", timeout=20.0 if publishes_again else 5.0)
    expect.ended(result, "the next publish never hangs", id="the-next-publish-never-hangs")
    if not result.ok:
        criterion = "the next publish ends as connection or closed, or acked on the new connection"
        expect.failed(
            result,
            ("connection", "closed"),
            criterion,
            id="the-next-publish-ends-as-connection-or-closed-or-acked-on",
        )
    producer = reported("p") or received(broker, "DeclarePublisher", since=mark)
    expect.that(
        producer,
        "a loss event for each, or a new DeclarePublisher",
        "none for the producer",
        id="a-loss-event-for-each-or-a-new-declarepublisher",
    )
    if consumes_again and publishes_again and not reported("c"):
        await goes_on(
            broker,
            client,
            expect,
            "the stream goes on",
            STREAM,
            session="p",
            within_s=10.0,
            id="the-stream-goes-on",
        )
