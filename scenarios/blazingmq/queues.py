"""BMQ-2 Queues: what opening, configuring and closing say on the wire."""

from __future__ import annotations

from typing import Any

from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect, scenario
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.codes import Category, QueueFlag
from fakebrokers.blazingmq.frames import (
    CloseQueue,
    ConfigureQueueStream,
    ConfigureStream,
    OpenQueue,
    Push,
    PushMessage,
)
from fakebrokers.blazingmq.options import SubscriptionInfo, write_options
from fakebrokers.blazingmq.schema import HandleParameters
from fakebrokers.faults import latency, reply
from fakebrokers.journal import Record, Tap
from scenarios.blazingmq._steps import (
    BOTH,
    CONSUMER,
    DOMAIN,
    FANOUT,
    PUBLISHER,
    READ,
    READ_WRITE,
    Q,
    accepted,
    bodies_are,
    close_queue,
    configure,
    configures,
    guid,
    open_queue,
    opened,
    posts,
    quiet,
    reached_confirms,
    reader,
    ready,
    received,
    refused,
    requests,
    say,
    sent,
    settle,
)

NO_PRIORITY = -(2**31)


def opens(broker: BlazingMQ, *, since: int = 0) -> list[HandleParameters]:
    """What was asked for with openQueue."""
    found = requests(broker, "openQueue", since=since)
    return [frame.handle_parameters for frame in found if isinstance(frame, OpenQueue)]


def consumer_of(frame: ConfigureStream | ConfigureQueueStream) -> tuple[int, int, int, int]:
    """Limits, priority and its count of the one consumer of a request; of none, those that take nothing."""
    if isinstance(frame, ConfigureQueueStream):
        one = frame.stream_parameters
        return (
            one.max_unconfirmed_messages,
            one.max_unconfirmed_bytes,
            one.consumer_priority,
            one.consumer_priority_count,
        )
    for subscription in frame.stream_parameters.subscriptions:
        for each in subscription.consumers:
            return (
                each.max_unconfirmed_messages,
                each.max_unconfirmed_bytes,
                each.consumer_priority,
                each.consumer_priority_count,
            )
    return (0, 0, NO_PRIORITY, 0)


def configure_answers(broker: BlazingMQ, *, since: int = 0) -> list[Record]:
    """Answers to requests that configure a reader, as they left."""
    kinds = ("configureStreamResponse", "configureQueueStreamResponse")
    return [r for r in broker.journal.select(tap=Tap.SENT, since=since) if r.kind in kinds]


def ended_after(broker: BlazingMQ, result: Result, record: Record) -> bool:
    """Whether an op ended only after a frame had left."""
    return result.ended_ns / 1e9 >= record.at + broker.journal.started_at


@scenario("BMQ-2.01", "MUST", "high", basis=["B4", "B5"], roles=PUBLISHER)
async def open_for_write(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Open for write.

    Fault: Answer normally (priority domain)
    Pass: One openQueue: flags contain 4 (WRITE) and not 2 (READ), bit 8 (ACK) optional; writeCount 1,
    readCount 0, adminCount 0; rId and qId unused before; no configureStream or configureQueueStream for that
    qId; result ok
    """
    await client.connected()
    expect.ok(await open_queue(client), "the open ends ok", id="the-open-ends-ok")
    await quiet(0.1)
    asked = opens(broker)
    expect.equal(len(asked), 1, "one openQueue", id="one-openqueue")
    writes = asked[0].flags & QueueFlag.WRITE and not asked[0].flags & QueueFlag.READ
    expect.that(
        writes, "its flags say WRITE and not READ", asked[0].flags, id="its-flags-say-write-and-not-read"
    )
    counts = (asked[0].read_count, asked[0].write_count, asked[0].admin_count)
    expect.equal(counts, (0, 1, 0), "its counts are one writer", id="its-counts-are-one-writer")
    expect.that(
        not configures(broker),
        "a writer is not configured",
        configures(broker)[:1],
        id="a-writer-is-not-configured",
    )


@scenario("BMQ-2.02", "MUST", "high", basis=["B4"], roles=CONSUMER)
async def open_for_read(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Open for read is two steps.

    Fault: Answer openQueue normally; answer the configure request 200 ms later with the matching response
    type
    Pass: openQueue (flags contain 2, readCount 1), then one configureStream for the same qId with one
    subscription whose consumer carries the requested maxUnconfirmedMessages, maxUnconfirmedBytes,
    consumerPriority and consumerPriorityCount 1; open is reported only after the configure answer;
    non-strict: configureQueueStream with the same values although the broker offered
    SUBSCRIPTIONS:CONFIGURE_STREAM
    """
    broker.faults.add(latency(0.2, role="flow", direction="in"))
    await client.connected()
    limits: Any = {"max_unconfirmed_messages": 7, "max_unconfirmed_bytes": 70_000, "consumer_priority": 3}
    result = await open_queue(client, flags=READ, **limits)
    expect.ok(result, "the open ends ok", id="the-open-ends-ok")
    asked, found = opens(broker), configures(broker)
    expect.equal(len(asked), 1, "one openQueue", id="one-openqueue")
    expect.that(
        asked[0].flags & QueueFlag.READ, "its flags say READ", asked[0].flags, id="its-flags-say-read"
    )
    expect.equal(asked[0].read_count, 1, "its counts are one reader", id="its-counts-are-one-reader")
    expect.equal(
        [frame.q_id for frame in found],
        [asked[0].q_id],
        "one configure for the same qId",
        id="one-configure-for-the-same-qid",
    )
    expect.equal(
        consumer_of(found[0]),
        (7, 70_000, 3, 1),
        "it has the consumer that was asked for",
        id="it-has-the-consumer-that-was-asked-for",
    )
    newer = isinstance(found[0], ConfigureStream)
    expect.tolerate(
        newer,
        "it is configureStream where the broker offers that",
        found[0].kind,
        id="it-is-configurestream-where-the-broker-offers-that",
    )
    answers = configure_answers(broker)
    waited = answers and ended_after(broker, result, answers[0])
    expect.that(
        waited,
        "the open is reported after the configure answer",
        id="the-open-is-reported-after-the-configure-answer",
    )


@scenario("BMQ-2.04", "MUST", "high", basis=["B19"], roles=PUBLISHER)
async def open_refused(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """openQueue refused.

    Fault: Answer E_REFUSED
    Pass: open fails with kind `refused`; queue is not usable afterwards; nothing else is sent for that qId
    """
    broker.faults.add(reply(Category.E_REFUSED, kind="openQueue"))
    await client.connected()
    result = await open_queue(client)
    mark = received(broker, "openQueue")[-1].seq
    refused(expect, result, Category.E_REFUSED, "the open fails as refused", id="the-open-fails-as-refused")
    after = await client.publish("q", b"not for this queue", timeout=2.0)
    expect.failed(
        after,
        ("closed", "invalid", "refused"),
        "the queue is not usable afterwards",
        id="the-queue-is-not-usable-afterwards",
    )
    await quiet(0.2)
    more = [r.kind for r in broker.journal.select(tap=Tap.RECEIVED, since=mark) if r.role != "heartbeat"]
    expect.that(not more, "nothing else is sent for that qId", more, id="nothing-else-is-sent-for-that-qid")


def repeats(expect: Expect, asked: HandleParameters, closing: CloseQueue) -> None:
    """closeQueue has what openQueue had."""
    expect.equal(
        closing.handle_parameters,
        asked,
        "closeQueue has the handle parameters of openQueue",
        id="closequeue-has-the-handle-parameters-of-openqueue",
    )
    expect.tolerate(
        closing.is_final,
        "the last handle of a qId is closed as final",
        id="the-last-handle-of-a-qid-is-closed-as-final",
    )


@scenario("BMQ-2.10", "MUST", "high", basis=["B6"], roles=BOTH)
async def close_repeats_the_handle(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Close sends the original handle parameters.

    Fault: Answer normally
    Pass: Readers only: configureStream with empty subscriptions (or configureQueueStream with
    consumerPriority -2147483648 and consumerPriorityCount 0) is answered before closeQueue is sent;
    closeQueue carries uri, qId, flags, readCount and writeCount of the openQueue (not zero) and isFinal true
    when it is the last handle of that qId; non-strict: isFinal missing or false on the last handle
    Seen: repository of the Node SDK
    """
    await client.connected()
    await opened(client, expect, "r", flags=READ_WRITE)
    await opened(client, expect, "w")
    reading, writing = opens(broker)
    broker.faults.add(latency(0.1, role="flow", direction="in"))
    mark = broker.journal.last_seq
    expect.ok(await close_queue(client, "r"), "the close ends ok", id="the-close-ends-ok")
    drained = configures(broker, since=mark)
    expect.equal(
        [frame.q_id for frame in drained],
        [reading.q_id],
        "a reader is configured once more",
        id="a-reader-is-configured-once-more",
    )
    nothing = consumer_of(drained[0]) == (0, 0, NO_PRIORITY, 0)
    expect.that(nothing, "with nothing to take", drained[0], id="with-nothing-to-take")
    closing = received(broker, "closeQueue", since=mark)
    expect.equal(len(closing), 1, "one closeQueue", id="one-closequeue")
    answered = configure_answers(broker, since=mark)[0]
    expect.that(
        answered.seq < closing[0].seq,
        "closeQueue comes after that was answered",
        id="closequeue-comes-after-that-was-answered",
    )
    assert isinstance(closing[0].frame, CloseQueue)
    repeats(expect, reading, closing[0].frame)
    mark = broker.journal.last_seq
    expect.ok(await close_queue(client, "w"), "the writer's close ends ok", id="the-writer-s-close-ends-ok")
    expect.that(
        not configures(broker, since=mark), "a writer is not configured", id="a-writer-is-not-configured"
    )
    frame = received(broker, "closeQueue", since=mark)[0].frame
    assert isinstance(frame, CloseQueue)
    repeats(expect, writing, frame)


@scenario("BMQ-2.12", "SHOULD", "low", basis=["B6"], roles=PUBLISHER, revision=2)
async def close_twice(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Close of an unknown or already closed queue.

    Fault: Close twice
    Pass: Second close ends with `invalid` or ok, no wire traffic, no hang
    Seen: ws#1125
    """
    await ready(client, expect)
    expect.ok(await close_queue(client), "the first close ends ok", id="the-first-close-ends-ok")
    expect.that(
        sent(broker, "closeQueueResponse"),
        "the first close ends ok",
        "the broker was not asked",
        id="the-first-close-ends-ok",
    )
    mark = broker.journal.last_seq
    again = await close_queue(client)
    if not again.ok:
        expect.failed(
            again,
            ("invalid", "closed"),
            "the second ends as invalid or closed, or ok",
            id="the-second-ends-as-invalid-or-closed-or-ok",
        )
    await quiet(0.1)
    more = broker.journal.select(tap=Tap.RECEIVED, since=mark)
    expect.that(not more, "it sends nothing", [r.kind for r in more], id="it-sends-nothing")


@scenario("BMQ-2.13", "SHOULD", "low", basis=["B5"], roles=PUBLISHER)
async def open_twice(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Open of an open queue.

    Fault: Open the same URI twice
    Pass: Second call fails `invalid` or shares the handle; no second qId leak
    Seen: blazingmq-sdk-java BrokerSessionIT.queueOpenAlreadyInProgress
    """
    await ready(client, expect)
    again = await open_queue(client, "q", Q)
    if not again.ok:
        expect.failed(
            again,
            ("invalid", "refused"),
            "the second open fails as invalid, or shares the handle",
            id="the-second-open-fails-as-invalid-or-shares-the-handle",
        )
    numbers = {asked.q_id for asked in opens(broker)}
    expect.equal(len(numbers), 1, "there is no second qId", id="there-is-no-second-qid")
    expect.outcome(await client.publish("q"), "acked", "the queue works", id="the-queue-works")


@scenario("BMQ-2.14", "MUST", "high", basis=["B5"], roles=PUBLISHER)
async def reopen_after_close(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Reopen after close gets a working handle.

    Fault: open-close-open-post
    Pass: The second generation uses a fresh or clean qId; ACK for it reaches the caller
    Seen: stream-dotnet-client#439
    """
    await ready(client, expect)
    expect.prepared(await close_queue(client))
    expect.ok(await open_queue(client, "q", Q), "the second open ends ok", id="the-second-open-ends-ok")
    expect.outcome(
        await client.publish("q", b"second life"),
        "acked",
        "its ACK reaches the caller",
        id="its-ack-reaches-the-caller",
    )
    _, message = posts(broker)[-1]
    expect.equal(
        message.queue_id,
        opens(broker)[-1].q_id,
        "the PUT has the qId of the second open",
        id="the-put-has-the-qid-of-the-second-open",
    )
    expect.equal(
        [m.data for m in broker.messages(Q)],
        [b"second life"],
        "the message is stored once",
        id="the-message-is-stored-once",
    )


@scenario("BMQ-2.15", "SHOULD", "low", basis=["B5", "B19"], roles=PUBLISHER)
async def uri_outside_the_grammar(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """URI outside the grammar.

    Fault: Open `bmq://bmq.test.mem.priority/q%20ä` and a queue name of 65 characters; the simulator answers
    any openQueue for them with status E_REFUSED
    Pass: Either rejected locally as `invalid` with no wire traffic, or the URI arrives byte-identical (valid
    UTF-8, no double escape, same text in JSON after unescaping) and the refusal is reported as `refused`; the
    session stays usable; never ok
    Seen: stream-java-client#1004; measured: wheel 1.2.2 rejects locally (INVALID_URI)
    """
    await client.connected()
    for number, uri in enumerate((DOMAIN + "q%20ä", DOMAIN + "x" * 65)):
        mark = broker.journal.last_seq
        result = await open_queue(client, f"odd{number}", uri)
        asked = opens(broker, since=mark)
        expect.that(not result.ok, "the open is never ok", str(result), id="the-open-is-never-ok")
        if asked:
            expect.equal(
                [each.uri for each in asked],
                [uri],
                "the URI arrives as it was given",
                id="the-uri-arrives-as-it-was-given",
            )
            refused(
                expect, result, Category.E_REFUSED, "the refusal is reported", id="the-refusal-is-reported"
            )
        else:
            expect.failed(result, ("invalid",), "else it fails as invalid", id="else-it-fails-as-invalid")
    expect.ok(await open_queue(client), "the session stays usable", id="the-session-stays-usable")


@scenario("BMQ-2.17", "SHOULD", "medium", basis=["B4"], roles=CONSUMER, ops=("bmq.configure_queue",))
async def reconfigure(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Reconfigure while open.

    Fault: Change maxUnconfirmed twice with `bmq.configure_queue`: answer the first normally, the second with
    status E_INVALID_ARGUMENT; then PUSH one message under the subscription id of the last accepted configure
    Pass: First op ok, second fails `refused` with the category; both requests carry the new value for the
    same qId (a new sId or the old one); the PUSH after the refusal is delivered and can be confirmed: the
    accepted configuration stays in force
    Seen: measured: wheel 1.2.2 passes
    """
    await ready(client, expect, READ, max_unconfirmed_messages=9)
    expect.ok(
        await configure(client, max_unconfirmed_messages=5),
        "the first configure ends ok",
        id="the-first-configure-ends-ok",
    )
    queue_id, subscription = reader(broker, expect)
    broker.faults.add(reply(Category.E_INVALID_ARGUMENT, role="flow"))
    result = await configure(client, max_unconfirmed_messages=6)
    refused(
        expect,
        result,
        Category.E_INVALID_ARGUMENT,
        "the second fails as refused",
        ("invalid",),
        id="the-second-fails-as-refused",
    )
    asked = [(frame.q_id, consumer_of(frame)[0]) for frame in configures(broker)]
    wanted = [(queue_id, 9), (queue_id, 5), (queue_id, 6)]
    expect.equal(
        asked, wanted, "each has the new value for the same qId", id="each-has-the-new-value-for-the-same-qid"
    )
    options = write_options([SubscriptionInfo(subscription)])
    say(broker, expect, Push((PushMessage(queue_id, guid(1), b"still there", options=options),)))
    messages = await client.wait_messages(1)
    bodies_are(
        expect,
        messages,
        [b"still there"],
        "what was accepted stays in force",
        id="what-was-accepted-stays-in-force",
    )
    expect.ok(
        await settle(client, messages[0]), "the message can be confirmed", id="the-message-can-be-confirmed"
    )
    expect.equal(len(await reached_confirms(broker, 1)), 1, "its confirm comes", id="its-confirm-comes")


@scenario("BMQ-2.19", "SHOULD", "high", basis=["B4", "B6", "B14"], roles=CONSUMER)
async def fanout_reader(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Fanout reader names its application.

    Fault: Fanout domain with apps foo and bar; open `?id=foo` for read; a real broker refuses (E_UNKNOWN) a
    fanout reader whose subIdInfo.appId is missing or unknown; PUSH one message, confirm it, close
    Pass: openQueue carries subIdInfo with appId `foo` and subId not 0; the configure request names the same
    app; CONFIRM carries that subId; closeQueue repeats the subIdInfo; non-strict: the library rejects `?id=`
    locally as `invalid` or `unsupported` with no wire traffic
    Seen: measured: C++ passes; Node SDK 1.4.0 sends appId `__default` (source)
    """
    await client.connected()
    result = await open_queue(client, "q", FANOUT + "?id=foo", flags=READ)
    if not result.ok and not opens(broker):
        expect.failed(
            result, ("invalid", "unsupported"), "else it is refused locally", id="else-it-is-refused-locally"
        )
        expect.tolerate(False, "the library takes ?id=", str(result), id="the-library-takes-id")
        return
    expect.ok(result, "the open ends ok", id="the-open-ends-ok")
    info = opens(broker)[0].sub_id_info
    expect.that(
        info is not None and info.app_id == "foo",
        "openQueue names the app",
        info,
        id="openqueue-names-the-app",
    )
    expect.that(
        info is not None and info.sub_id != 0,
        "with a subId that is not 0",
        info,
        id="with-a-subid-that-is-not-n",
    )
    assert info is not None
    parameters = configures(broker)[0].stream_parameters
    app = getattr(parameters, "app_id", None) or getattr(parameters.sub_id_info, "app_id", None)  # type: ignore[union-attr]
    expect.equal(
        app, "foo", "the configure request names the same app", id="the-configure-request-names-the-same-app"
    )
    await client.subscribed("q")
    broker.publish(FANOUT, b"news")
    messages = await client.wait_messages(1)
    bodies_are(expect, messages, [b"news"], "the message is delivered", id="the-message-is-delivered")
    expect.ok(await settle(client, messages[0]), "it can be confirmed", id="it-can-be-confirmed")
    found = await reached_confirms(broker, 1)
    expect.equal(
        [each.sub_id for each in found],
        [info.sub_id],
        "CONFIRM carries that subId",
        id="confirm-carries-that-subid",
    )
    expect.ok(await close_queue(client), "the close ends ok", id="the-close-ends-ok")
    frame = received(broker, "closeQueue")[0].frame
    assert isinstance(frame, CloseQueue)
    expect.equal(
        frame.handle_parameters.sub_id_info, info, "closeQueue repeats it", id="closequeue-repeats-it"
    )
    expect.equal(len(accepted(broker)), 1, "on one connection", id="on-one-connection")
    expect.that(sent(broker, "closeQueueResponse"), "it was answered", id="it-was-answered")
