"""BMQ-2 Queues: answers that are late, missing, doubled, refused, or that no client asked for."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from conformance.clients.adapter.base import Call
from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.codes import Category, Encoding
from fakebrokers.blazingmq.control import write
from fakebrokers.blazingmq.frames import (
    ControlFrame,
    OpenQueue,
    OpenQueueResponse,
    Request,
    StatusResponse,
)
from fakebrokers.blazingmq.schema import HandleParameters, OpenQueueRequest, RoutingConfiguration
from fakebrokers.errors import UsageError
from fakebrokers.faults import drop, duplicate, hold, reply
from fakebrokers.journal import Tap
from scenarios.blazingmq._steps import (
    CONSUMER,
    DOMAIN,
    GRACE,
    GRACE_S,
    PUBLISHER,
    READ,
    Q,
    accepted,
    begin_open,
    broken_control,
    close_queue,
    current,
    encoding,
    eventually,
    needs_json,
    one_connection,
    open_queue,
    quiet,
    ready,
    received,
    refused,
    say,
    say_raw,
)

OPENS = 50
SHORT_S = 1.0


def answer_to(request: OpenQueue) -> OpenQueueResponse:
    """What a broker answers to this openQueue."""
    original = OpenQueueRequest(request.handle_parameters)
    return OpenQueueResponse(request.r_id, original, RoutingConfiguration(2))


def asked(broker: BlazingMQ) -> list[OpenQueue]:
    """The openQueue requests that came."""
    found = [r.frame for r in received(broker, "openQueue")]
    return [frame for frame in found if isinstance(frame, OpenQueue)]


@scenario("BMQ-2.03", "MUST", "high", basis=["B5", "B7"], roles=PUBLISHER)
async def many_opens(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """qId and rId never repeat while in use.

    Fault: Open 50 queues (50 URIs) for write concurrently; hold the answers until 50 requests are there or
    none came for 500 ms, then answer in reverse order; continue so until all are answered
    Pass: All qId differ, all rId differ, each op gets its own answer and ends ok; a client that sends one
    request at a time passes too (noted)
    Seen: amqp-connection-manager#297; measured: wheel 1.2.2 sends all 50 at once and passes
    """
    broker.faults.add(drop(kind="openQueue", direction="in"))
    await client.connected()
    calls = [begin_open(client, f"q{number}", timeout=10.0) for number in range(OPENS)]
    answered, patience = 0, 0.5
    while answered < OPENS:
        before = answered
        await eventually(lambda: len(asked(broker)) == OPENS, patience)
        found = asked(broker)
        say(broker, expect, *[answer_to(request) for request in reversed(found[answered:])])
        answered, patience = len(found), 0.05
        if answered == before and all(call.done for call in calls):
            break
    results = [await call for call in calls]
    for result in results:
        expect.ok(result, "each open ends ok", id="each-open-ends-ok")
    found = asked(broker)
    expect.equal(
        len({frame.handle_parameters.q_id for frame in found}), OPENS, "all qIds differ", id="all-qids-differ"
    )
    expect.equal(len({frame.r_id for frame in found}), OPENS, "all rIds differ", id="all-rids-differ")


async def on_time(client: Client, expect: Expect, **more: Any) -> None:
    """An open fails by its time-out, or by the library's own, when that is over."""
    result = await open_queue(client, timeout=SHORT_S, **more)
    timeout_s = client.deadline_s("request", SHORT_S)
    expect.failed(result, ("timeout",), "the open fails as timeout", id="the-open-fails-as-timeout")
    if timeout_s == SHORT_S:  # the library's own is how long it takes at most
        expect.not_before(
            result.elapsed_ms / 1000, 0.9 * timeout_s, "not before its time-out", id="not-before-its-time-out"
        )
    expect.within(result.elapsed_ms / 1000, timeout_s * GRACE + GRACE_S, "in time", id="in-time")


def second_open(expect: Expect, result: Result) -> None:
    """An open after one that was never answered."""
    expect.ended(result, "a second open ends by its deadline", id="a-second-open-ends-by-its-deadline")
    if not expect.tolerate(result.ok, "the second open ends ok", str(result), id="the-second-open-ends-ok"):
        definite = result.error is not None and result.error.definite
        expect.that(
            definite and result.elapsed_ms < 1000,
            "else it is rejected at once",
            str(result),
            id="else-it-is-rejected-at-once",
        )


@scenario("BMQ-2.05", "MUST", "critical", basis=["B8"], roles=PUBLISHER, timeout_s=60, revision=2)
async def open_times_out(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """openQueue times out.

    Fault: Drop the first openQueue answer; open again after the failure; then send the answer of the first
    rId 300 ms after the second op ended
    Pass: First open fails with kind `timeout` on time; the late answer completes no op and emits no `opened`
    (a closeQueue for the late handle, or a dropped channel, is allowed); the second open ends by its
    deadline: ok, or after an automatic reconnect ok; non-strict: it is rejected at once with a definite error
    while the late answer is still out; after the late answer the process is alive and a third open ends by
    its deadline
    Seen: blazingmq#996; measured: wheel 1.2.2 rejects the second open with NOT_SUPPORTED until the late
    answer came, then closes the late handle and opens again
    """
    broker.faults.add(drop(kind="openQueueResponse", direction="out", nth=1, scope="run"))
    await client.connected()
    first = current(broker, expect)
    await on_time(client, expect)
    second_open(expect, await open_queue(client))
    await asyncio.sleep(0.3)
    with suppress(UsageError):  # a client may have dropped the connection
        broker.say(first, answer_to(asked(broker)[0]))
    await quiet(0.2)
    expect.that(
        client.alive,
        "the process is alive after the late answer",
        id="the-process-is-alive-after-the-late-answer",
    )
    expect.ended(
        await open_queue(client), "a third open ends by its deadline", id="a-third-open-ends-by-its-deadline"
    )


@scenario("BMQ-2.06", "MUST", "high", basis=["B8"], roles=CONSUMER, timeout_s=60, revision=2)
async def configure_times_out(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """configureStream times out during open.

    Fault: Drop only the first configure answer (readers); open the same URI again after the failure
    Pass: open fails with kind `timeout` on time; nothing is delivered for that qId; the second open ends by
    its deadline: ok (also after an automatic reconnect); non-strict: rejected at once with a definite error;
    no hang
    Seen: blazingmq-sdk-java BrokerSessionIT.openQueueConfigureTimeoutTest; blazingmq#996; measured: wheel
    1.2.2 sends no closeQueue and rejects the reopen with NOT_SUPPORTED
    """
    broker.faults.add(drop(role="flow", direction="in", nth=1, scope="run"))
    broker.publish(DOMAIN + "q", b"waiting")
    await client.connected()
    await on_time(client, expect, flags=READ)
    pushed = broker.journal.select(kind="PUSH", tap=Tap.SENT)
    expect.that(not pushed, "nothing is delivered for that qId", id="nothing-is-delivered-for-that-qid")
    second_open(expect, await open_queue(client, flags=READ))
    expect.that(client.alive, "the process is alive", id="the-process-is-alive")


@scenario("BMQ-2.07", "MUST", "medium", basis=["B7"], roles=PUBLISHER)
async def duplicate_response(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Duplicate response for one rId.

    Fault: dup(openQueueResponse)
    Pass: Second copy ignored; no crash; exactly one op completion
    Seen: tchannel-node#161
    """
    broker.faults.add(duplicate(kind="openQueueResponse", direction="out", nth=1))
    await client.connected()
    expect.ok(await open_queue(client), "the open ends ok", id="the-open-ends-ok")
    await quiet(0.2)
    expect.ok(
        await open_queue(client, "other"),
        "the next open gets its own answer",
        id="the-next-open-gets-its-own-answer",
    )
    expect.outcome(await client.publish("q"), "acked", "the queue works", id="the-queue-works")
    one_connection(broker, expect, "the copy is ignored", id="the-copy-is-ignored")


@scenario("BMQ-2.08", "MUST", "medium", basis=["B7", "B19"], roles=PUBLISHER)
async def unknown_response(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Response with unknown rId.

    Fault: Inject response rId=999999
    Pass: Ignored or reported as session error event; connection stays
    Seen: blazingmq-sdk-java#26
    """
    await ready(client, expect)
    broker.faults.add(hold(kind="openQueue", direction="in", name="the answer waits"))
    call = begin_open(client, "other")
    expect.exercised(
        await eventually(lambda: len(asked(broker)) == 2, 3.0),
        "no second openQueue came",
        id="no-second-openqueue-came",
    )
    handle = HandleParameters(DOMAIN + "elsewhere", 77, flags=4, write_count=1)
    say(broker, expect, answer_to(OpenQueue(999_999, handle)))
    await quiet()
    expect.that(not call.done, "no pending op is completed by it", id="no-pending-op-is-completed-by-it")
    broker.faults.release("the answer waits")
    expect.ok(await call, "the pending open ends ok", id="the-pending-open-ends-ok")
    expect.outcome(await client.publish("q"), "acked", "the session works on", id="the-session-works-on")
    one_connection(broker, expect, "the connection stays", id="the-connection-stays")


def unknown_choice(encoded: Encoding) -> bytes:
    """A control message without rId, with an unknown choice."""
    if encoded is Encoding.JSON:
        return broken_control(b'{"futureChoice":{"a":1}}', encoded)
    return broken_control(bytes.fromhex("3080 a180 b980 800101 0000 0000 0000"), encoded)


@scenario("BMQ-2.09", "SHOULD", "medium", basis=["B19"], roles=PUBLISHER)
async def unsolicited_control(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Unsolicited CONTROL without rId.

    Fault: Inject, in the encoding of the session, a CONTROL without rId: (a) with an unknown choice (JSON
    unknown key; BER selection tag 25), (b) a `status` E_UNKNOWN; then open another queue
    Pass: Both ignored (log or error event); no pending op is completed by them; the open succeeds on the same
    connection
    Seen: stream-java-client#1005; measured: wheel 1.2.2 logs and goes on
    """
    broker.faults.add(hold(kind="openQueue", direction="in", name="the answer waits"))
    await client.connected()
    call = begin_open(client)
    expect.exercised(
        await eventually(lambda: asked(broker), 3.0), "no openQueue came", id="no-openqueue-came"
    )
    say_raw(broker, expect, unknown_choice(encoding(broker, expect)))
    say(broker, expect, StatusResponse(None, Category.E_UNKNOWN, -1, "what was that"))
    await quiet()
    expect.that(not call.done, "no pending op is completed by them", id="no-pending-op-is-completed-by-them")
    broker.faults.release("the answer waits")
    expect.ok(await call, "the open succeeds", id="the-open-succeeds")
    one_connection(broker, expect, "on the same connection", id="on-the-same-connection")


@scenario("BMQ-2.11", "SHOULD", "medium", basis=["B6", "B8"], roles=CONSUMER)
async def close_without_configure_answer(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Close: configure answer missing.

    Fault: Drop the answer of the draining configureStream; answer everything else
    Pass: The close op ends by the sum of its own timeouts (ok or `timeout`), and by then closeQueue was sent
    or the connection was dropped; process alive, stop works
    Seen: blazingmq-sdk-java BrokerSessionIT.closeQueueConfigurationTimeoutTest; blazingmq#996; measured:
    wheel 1.2.2 ends with TIMEOUT, sends no closeQueue and keeps the connection
    """
    await ready(client, expect, READ)
    broker.faults.add(drop(role="flow", direction="in"))
    result = await close_queue(client, timeout=2 * SHORT_S)
    expect.ended(result, "the close ends by its own time-outs", id="the-close-ends-by-its-own-time-outs")
    if not result.ok:
        expect.failed(result, ("timeout",), "ok or as timeout", id="ok-or-as-timeout")
    dropped = broker.client_holds(accepted(broker)[0].connection) is False
    done = received(broker, "closeQueue") or dropped
    expect.that(
        done,
        "closeQueue was sent, or the connection dropped",
        id="closequeue-was-sent-or-the-connection-dropped",
    )
    expect.that(client.alive, "the process is alive", id="the-process-is-alive")
    expect.ended(await client.close(), "stop works", id="stop-works")


def alternating(frame: ControlFrame) -> bytes:
    """A control message in JSON, with every second slash escaped."""
    first, *rest = write(frame, Encoding.JSON).replace(b"\\/", b"/").split(b"/")
    parts = [(b"\\/" if number % 2 else b"/") + part for number, part in enumerate(rest)]
    return broken_control(first + b"".join(parts), Encoding.JSON)


async def answer_by_hand(broker: BlazingMQ, expect: Expect, done: int) -> None:
    """Send what the broker meant to, after `done` answers that were understood."""

    def meant() -> list[ControlFrame]:
        found = broker.journal.select(tap=Tap.SAID, role="response")
        return [r.frame for r in found if isinstance(r.frame, ControlFrame)]

    is_due = await eventually(lambda: len(meant()) > done, 3.0)
    expect.exercised(is_due or done, "no answer was due", id="no-answer-was-due")
    expect.that(is_due, "the answers before are understood", id="the-answers-before-are-understood")
    say_raw(broker, expect, alternating(meant()[done]))


@scenario("BMQ-2.16", "SHOULD", "low", basis=["W2"], roles=CONSUMER)
async def slashes(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Slash escaping tolerated.

    Fault: JSON answers (to clients that list JSON): alternate `\\/` and `/` in the strings of
    openQueueResponse, configureStreamResponse and status
    Pass: Both are accepted, queue works; clients that list only BER: `skipped: profile`
    """
    await client.connected()
    needs_json(broker, expect)
    broker.faults.add(drop(role="response", direction="out"))
    call = begin_open(client, flags=READ)
    await answer_by_hand(broker, expect, 0)
    await answer_by_hand(broker, expect, 1)
    expect.ok(await call, "the open succeeds", id="the-open-succeeds")
    await client.subscribed("q")
    refusal = begin_open(client, "bad", "bmq://no.such.domain/q")
    await answer_by_hand(broker, expect, 2)
    refused(expect, await refusal, Category.E_UNKNOWN, "a status is understood", id="a-status-is-understood")
    broker.faults.clear()
    broker.publish(DOMAIN + "q", b"works")
    expect.equal(len(await client.wait_messages(1)), 1, "the queue works", id="the-queue-works")


CATEGORIES = {
    "E_UNKNOWN": ("refused",),
    "E_TIMEOUT": ("refused", "timeout"),
    "E_NOT_CONNECTED": ("refused",),
    "E_NOT_SUPPORTED": ("refused",),
    "E_INVALID_ARGUMENT": ("refused",),
    "E_NOT_READY": ("refused",),
    "E_CANCELED": ("refused",),
}


def future_status(request: Request, encoded: Encoding, number: int = -77) -> bytes:
    """A status with an unknown category: `number` in BER, ``E_FUTURE`` in JSON."""
    frame = StatusResponse(request.r_id, Category.E_REFUSED, number, "from the future")
    text = write(frame, encoded)
    if encoded is Encoding.JSON:
        return broken_control(text.replace(b"E_REFUSED", b"E_FUTURE"), encoded)
    return broken_control(
        text.replace(b"\x80\x01\xfa", b"\x80\x01" + number.to_bytes(1, signed=True), 1), encoded
    )


@scenario("BMQ-2.18", "MUST", "critical", basis=["B7", "B19"], roles=PUBLISHER)
async def every_refusal(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Every refusal category ends the open.

    Fault: Answer openQueue with status E_UNKNOWN, E_TIMEOUT, E_NOT_CONNECTED, E_CANCELED, E_NOT_SUPPORTED,
    E_INVALID_ARGUMENT, E_NOT_READY and an unknown category (JSON `E_FUTURE`, BER -77), each for another URI,
    op timeout 2 s
    Pass: Every open ends by its deadline, never ok, none leaves the session unusable; kind `refused` with the
    category (E_TIMEOUT may be reported as `timeout`, the unknown category as `timeout` or `protocol`);
    non-strict: generic kind
    Seen: measured: wheel 1.2.2 never returns from an open answered with E_CANCELED, its own timeout included
    """
    future = DOMAIN + "E_FUTURE"
    for name in CATEGORIES:
        where = {"handle_parameters.uri": DOMAIN + name}
        broker.faults.add(reply(Category[name], kind="openQueue", where=where, name=name))
    broker.faults.add(drop(kind="openQueue", where={"handle_parameters.uri": future}, name="E_FUTURE"))
    await client.connected()
    calls: dict[str, Call] = {name: begin_open(client, name, timeout=2.0) for name in CATEGORIES}
    unknown = begin_open(client, "E_FUTURE", timeout=2.0)

    def last() -> list[OpenQueue]:
        return [frame for frame in asked(broker) if frame.handle_parameters.uri == future]

    expect.exercised(await eventually(last, 3.0), "not every openQueue came", id="not-every-openqueue-came")
    say_raw(broker, expect, future_status(last()[0], encoding(broker, expect)))
    result = await unknown
    expect.ended(
        result, "E_FUTURE: the open ends by its deadline", id="e-future-the-open-ends-by-its-deadline"
    )
    kinds = ("refused", "timeout", "protocol", "internal")
    expect.failed(result, kinds, "E_FUTURE: it fails", id="e-future-it-fails")
    expect.tolerate(
        result.word != "internal",
        "E_FUTURE: as refused, timeout or protocol",
        str(result),
        id="e-future-as-refused-timeout-or-protocol",
    )
    for name, call in calls.items():
        result = await call
        expect.ended(result, f"{name}: the open ends by its deadline", id=slug("{}-ends", name))
        expect.that(not result.ok, f"{name}: never ok", str(result), id=slug("{}-not-ok", name))
        fits = result.word in CATEGORIES[name]
        expect.tolerate(fits, f"{name}: as refused", str(result), id=slug("{}-refused", name))
        if result.word == "refused":
            words = (Category[name], name)
            expect.tolerate(result.code in words, f"{name}: with the category", id=slug("{}-code", name))
    expect.ok(await open_queue(client, "q", Q), "the session stays usable", id="the-session-stays-usable")
