"""BMQ-3 Publish and ACK: which answer belongs to which message."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from conformance.clients.adapter.base import Call
from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import Unsupported
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.codes import UNSET_GUID, AckStatus
from fakebrokers.blazingmq.frames import Ack, AckMessage, OpenQueue, PutMessage
from fakebrokers.faults import duplicate, slice_
from scenarios.blazingmq._steps import (
    BOTH,
    PUBLISHER,
    READ,
    accepted,
    ack_for,
    acknowledge,
    came,
    guid,
    identity,
    makes_guids,
    posts,
    quiet,
    ready,
    received,
    reported,
    say,
    sent,
    still_works,
    withhold,
)

CORRELATION_MAX = 0xFFFFFF
NEVER_USED = 0xABCDE
ELSEWHERE = 77  #: a queue that no client opens


def body(number: int) -> bytes:
    """The body of a message; none is the beginning of another."""
    return b"message %04d" % number


def begin_posts(client: Client, count: int, timeout: float = 5.0) -> list[Call]:
    """Start so many posts."""
    return [client.begin_publish("q", body(number), timeout=timeout) for number in range(count)]


async def withheld(broker: BlazingMQ, client: Client, expect: Expect, count: int) -> tuple[list[Call], Any]:
    """Posts whose ACKs never leave, and their messages on the wire, in the order of the posts."""
    withhold(broker)
    mark = broker.journal.last_seq
    calls = begin_posts(client, count)
    there = {message.data: message for message in await came(broker, expect, count, mark)}
    return calls, [there[body(number)] for number in range(count)]


def has_guid(expect: Expect, result: Result, wanted: bytes, criterion: str, *, id: str) -> None:
    """The result has this GUID, if the client shows any."""
    shown = (result.value or {}).get("meta", {}).get("guid")
    if shown is not None:
        expect.equal(str(shown).upper(), wanted.hex().upper(), criterion, id=id)


def acked_guid(broker: BlazingMQ, at: int = -1) -> bytes:
    """The GUID of an ACK that left."""
    frame = sent(broker, "ACK")[at].frame
    assert isinstance(frame, Ack)
    return frame.messages[0].guid


async def all_acked(expect: Expect, calls: Sequence[Call], criterion: str, *, id: str) -> list[Result]:
    """Demand that every post ended acked."""
    results = [await call for call in calls]
    for result in results:
        expect.outcome(result, "acked", criterion, id=id)
    return results


def no_extra_completion(client: Client, expect: Expect) -> None:
    """No outcome of an op was reported a second time."""
    extra = [e for e in client.events if e.event == "outcome"]
    expect.that(not extra, "each op ends once", extra[:1], id="each-op-ends-once")


def names_itself(broker: BlazingMQ, expect: Expect, message: PutMessage) -> None:
    """The id of a PUT is what the client announced: its own GUID, or a correlation id."""
    if makes_guids(broker, expect):
        info = identity(broker, expect).guid_info
        assert info is not None
        expect.equal(
            message.guid[0] >> 6,
            1,
            "the id of a PUT is a GUID of version 1",
            id="the-id-of-a-put-is-a-guid-of-version-n",
        )
        expect.equal(
            message.guid[-6:].hex().upper(),
            info.client_id.upper(),
            "it ends with the client id",
            id="it-ends-with-the-client-id",
        )
        return
    zeros = message.guid[:1] + message.guid[4:]
    expect.that(
        not any(zeros),
        "the id of a PUT is a correlation id and zeros",
        message.guid.hex(),
        id="the-id-of-a-put-is-a-correlation-id-and-zeros",
    )
    expect.that(message.correlation_id, "the correlation id is not 0", id="the-correlation-id-is-not-n")


@scenario("BMQ-3.01", "MUST", "critical", basis=["B9", "B11", "B12"], roles=PUBLISHER)
async def one_post(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """One post, one ACK.

    Fault: ACK status 0: to a client with a non-empty guidInfo.clientId echo the PUT's GUID and correlation id
    0; to any other client the PUT's correlation id and a fresh GUID
    Pass: PUT carries the qId and flag ACK_REQUESTED; its 16-byte id field is either a version-1 GUID whose
    last 6 bytes are the announced clientId, or (no clientId announced) byte 0 zero, a non-zero 24-bit
    correlation id, 12 zero bytes; op ends `acked` exactly once and, if the client shows it, with the GUID of
    the ACK; non-strict: ACK_REQUESTED missing although a correlation id is set (a real broker acknowledges
    it)
    """
    await ready(client, expect)
    result = await client.publish("q", b"hello")
    expect.outcome(result, "acked", "the post is acked", id="the-post-is-acked")
    await quiet(0.2)
    found = posts(broker)
    expect.equal(len(found), 1, "one PUT message", id="one-put-message")
    message = found[0][1]
    opening = received(broker, "openQueue")[0].frame
    assert isinstance(opening, OpenQueue)
    expect.equal(
        message.queue_id,
        opening.handle_parameters.q_id,
        "it has the qId of the queue",
        id="it-has-the-qid-of-the-queue",
    )
    names_itself(broker, expect, message)
    expect.tolerate(message.wants_ack, "it has the flag ACK_REQUESTED", id="it-has-the-flag-ack-requested")
    has_guid(
        expect,
        result,
        acked_guid(broker),
        "the client shows the GUID of the ACK",
        id="the-client-shows-the-guid-of-the-ack",
    )
    no_extra_completion(client, expect)


@scenario("BMQ-3.05", "MUST", "high", basis=["B12"], roles=PUBLISHER)
async def duplicate_ack(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Duplicate ACK.

    Fault: Positive ACK twice, byte-identical, in two events (a broker bug: a real broker never does it on
    purpose); then a second post
    Pass: Exactly one completion; the copy is ignored or shown only as an extra event that belongs to no op;
    process alive; second post acked
    Seen: measured ok on Node SDK 1.4.0; measured: wheel 1.2.2 aborts (SIGABRT); Java shows a second ACK with
    a made-up correlation id; MQTT.jl#13
    """
    broker.faults.add(duplicate(kind="ACK", direction="out", nth=1))
    await ready(client, expect)
    expect.outcome(await client.publish("q", b"first"), "acked", "the post is acked", id="the-post-is-acked")
    await quiet(0.2)
    await still_works(broker, client, expect, "a second post is acked", id="a-second-post-is-acked")
    expect.that(client.alive, "the process is alive", id="the-process-is-alive")
    no_extra_completion(client, expect)


@scenario("BMQ-3.06", "MUST", "critical", basis=["B12"], roles=PUBLISHER, revision=2)
async def acks_reordered(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """ACKs reordered.

    Fault: Post 10 different bodies, ACK them in random order, one event each; id rule of BMQ-3.01
    Pass: Each op completes once; where the client shows GUIDs, each op has the GUID that was acknowledged for
    its own body (GUID clients: the one in its PUT); non-strict: the order of completions is not the order of
    the ACK events
    """
    await ready(client, expect)
    calls, messages = await withheld(broker, client, expect, 10)
    order = list(range(10))
    random.Random(7).shuffle(order)
    answers = {number: ack_for(broker, expect, messages[number]) for number in order}
    say(broker, expect, *[Ack((answers[number],)) for number in order])
    results = await all_acked(expect, calls, "each post is acked", id="each-post-is-acked")
    for number, result in enumerate(results):
        has_guid(
            expect,
            result,
            answers[number].guid,
            "each has the GUID that was acknowledged for its body",
            id="each-has-the-guid-that-was-acknowledged-for-its-body",
        )
    ended = sorted(range(10), key=lambda number: results[number].n or 0)
    expect.tolerate(  # each may be reported by a thread of its own
        ended == order,
        "they complete in the order of the ACKs",
        ended,
        id="they-complete-in-the-order-of-the-acks",
    )
    no_extra_completion(client, expect)


@scenario("BMQ-3.07", "MUST", "critical", basis=["B12"], roles=PUBLISHER)
async def acks_in_one_event(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """ACKs coalesced in one event.

    Fault: One ACK event with 10 messages
    Pass: All 10 ops complete
    """
    await ready(client, expect)
    calls, messages = await withheld(broker, client, expect, 10)
    acknowledge(broker, expect, *messages)
    await all_acked(expect, calls, "all posts are acked", id="all-posts-are-acked")
    no_extra_completion(client, expect)


@scenario("BMQ-3.08", "MUST", "critical", basis=["B12", "W1"], roles=PUBLISHER)
async def ack_in_pieces(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """ACK event split over TCP segments.

    Fault: frag(7) through an ACK event
    Pass: All ops complete
    Seen: pulsar-client-go#163
    """
    broker.faults.add(slice_(size=7, gap_s=0.005, kind="ACK", direction="out"))
    await ready(client, expect)
    await all_acked(expect, begin_posts(client, 10), "all posts are acked", id="all-posts-are-acked")
    no_extra_completion(client, expect)


REASONS = (
    AckStatus.LIMIT_MESSAGES,
    AckStatus.LIMIT_BYTES,
    AckStatus.STORAGE_FAILURE,
    AckStatus.NOT_READY,
    AckStatus.UNKNOWN,
)


def reason(result: Result) -> Any:
    """What a refused post says for itself."""
    assert result.error is not None
    return result.code if result.code is not None else result.error.text


@scenario("BMQ-3.09", "MUST", "critical", basis=["B12"], roles=PUBLISHER)
async def negative_acks(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Negative ACK codes mapped.

    Fault: Five posts, ACK statuses 1 (message limit), 2 (byte limit), 6 (storage failure), 7 (not ready), 5
    (unknown); seed switch: 3 for storage failure, 15 for not ready
    Pass: Each op ends `nacked` (kind `refused`), never `acked`; 1, 2, 6 and 7 give four distinct reasons, 5
    the generic one; non-strict: 6 or 7 reported with the generic reason
    Seen: measured: C++ and Java map 6 and 7; Node SDK 1.4.0 knows 3 and 15 instead and reports 6 and 7 as
    UNKNOWN
    """
    await ready(client, expect)
    calls, messages = await withheld(broker, client, expect, len(REASONS))
    for message, status in zip(messages, REASONS, strict=True):
        acknowledge(broker, expect, message, status=status)
    results = [await call for call in calls]
    for result in results:
        expect.outcome(result, "nacked", "each post is nacked", id="each-post-is-nacked")
        expect.failed(result, ("refused",), "each fails as refused", id="each-fails-as-refused")
    *reasons, generic = map(reason, results)
    distinct = len({*reasons[:2], generic}) == 3
    expect.that(
        distinct,
        "the limits have reasons of their own",
        [*reasons, generic],
        id="the-limits-have-reasons-of-their-own",
    )
    distinct = len({*reasons, generic}) == len(REASONS)
    expect.tolerate(
        distinct,
        "storage failure and not ready have reasons of their own",
        [*reasons, generic],
        id="storage-failure-and-not-ready-have-reasons-of-their-own",
    )


@scenario("BMQ-3.10", "MUST", "high", basis=["B12"], roles=PUBLISHER)
async def unknown_status(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Unknown ACK status code.

    Fault: ACK status 9
    Pass: op ends `nacked` reason unknown; not `acked`; no crash; parser goes on
    Seen: stream-java-client#1005
    """
    await ready(client, expect)
    calls, messages = await withheld(broker, client, expect, 1)
    acknowledge(broker, expect, messages[0], status=9)
    expect.outcome(await calls[0], "nacked", "the post is nacked", id="the-post-is-nacked")
    broker.faults.clear()
    await still_works(broker, client, expect, "the next post is acked", id="the-next-post-is-acked")


def dropped(broker: BlazingMQ) -> bool:
    """Whether the client has ended its first connection."""
    return broker.client_holds(accepted(broker)[0].connection) is False


async def own_answer(
    broker: BlazingMQ, client: Client, expect: Expect, call: Call, message: PutMessage
) -> None:
    """The waiting post ends acked; or unknown, where the client has dropped the connection."""
    left = dropped(broker)
    broker.faults.clear()
    if client.alive and not left:
        acknowledge(broker, expect, message)
    wanted = ("acked", "unknown") if left else ("acked",)
    criterion = "the waiting post gets its own ACK"
    expect.outcome(await call, wanted, criterion, id="the-waiting-post-gets-its-own-ack")


@scenario("BMQ-3.11", "MUST", "high", basis=["B12"], roles=PUBLISHER, revision=2)
async def unknown_ack(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """ACK for an unknown message.

    Fault: Inject, for an open queue, a positive ACK with a GUID that was never used and correlation id
    0xABCDE (not in use); then a normal post
    Pass: No op completes by it; ignored or reported as an event; process alive and the next post is acked
    (the client may drop and re-establish the connection)
    Seen: blazingmq-sdk-java#26; MQTT.jl#13; measured: wheel 1.2.2 aborts on a positive one and ignores a
    negative one
    """
    await ready(client, expect)
    calls, messages = await withheld(broker, client, expect, 1)
    queue_id = messages[0].queue_id
    correlation = 0 if makes_guids(broker, expect) else NEVER_USED
    say(broker, expect, Ack((AckMessage(queue_id, guid(99), 0, correlation),)))
    await quiet()
    expect.that(
        not calls[0].done or not client.alive or dropped(broker),
        "no op completes by it",
        id="no-op-completes-by-it",
    )
    await own_answer(broker, client, expect, calls[0], messages[0])
    await still_works(broker, client, expect, "the next post is acked", id="the-next-post-is-acked")


@scenario(
    "BMQ-3.12",
    "MUST",
    "critical",
    basis=["B9"],
    needs=["counter_seed"],
    roles=PUBLISHER,
    ops=("set_counter",),
)
async def correlation_wraps(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """24-bit correlationId wrap.

    Fault: Start counter at 0xFFFFFD; post 6 with ACK; hold the ACKs until all six PUTs are there or 1 s has
    passed
    Pass: Ids on the wire stay in 1..0xFFFFFF, none is 0, the six differ, all six complete with their own ACK;
    clients that send GUIDs: `skipped: profile`
    Seen: kafka-python#344; kafkajs#1180; platformatic/kafka#302
    """
    await ready(client, expect)
    if makes_guids(broker, expect):
        raise Unsupported("the client makes GUIDs")
    await client.prepare("set_counter", session="s1", which="correlation", value=CORRELATION_MAX - 2)
    calls, messages = await withheld(broker, client, expect, 6)
    numbers = [message.correlation_id for message in messages]
    expect.that(0 not in numbers, "no correlation id is 0", numbers, id="no-correlation-id-is-n")
    expect.equal(len(set(numbers)), 6, "the six differ", id="the-six-differ")
    expect.that(max(numbers) > min(numbers) + 6, "they wrap at 0xFFFFFF", numbers, id="they-wrap-at-0xffffff")
    for message in messages:
        acknowledge(broker, expect, message)
    await all_acked(expect, calls, "all six are acked", id="all-six-are-acked")


@scenario("BMQ-3.13", "SHOULD", "medium", basis=["B9"], roles=BOTH)
async def not_open_for_write(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Post on a queue not open for write.

    Fault: Post to a read-only queue
    Pass: Fails `invalid` without wire traffic
    """
    await ready(client, expect, READ)
    result = await client.publish("q", timeout=2.0)
    expect.failed(result, ("invalid",), "the post fails as invalid", id="the-post-fails-as-invalid")
    await quiet(0.2)
    expect.that(not posts(broker), "no PUT on the wire", id="no-put-on-the-wire")


@scenario("BMQ-3.24", "SHOULD", "high", basis=["B12"], roles=PUBLISHER)
async def refusal_without_request(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Negative ACK for a post that asked for none.

    Fault: Post with wait:false so that the PUT has no ACK_REQUESTED flag and, for clients without GUIDs,
    correlation id 0; answer status 1 (correlation id 0; GUID clients: its GUID); then a normal post
    Pass: No crash, no other op is completed by it, the next post is acked; the refusal is visible as
    `outcome` or `error` event; non-strict: only in the log; a client that always asks for an ACK:
    `inconclusive`
    Seen: measured: wheel 1.2.2 logs it and goes on
    """
    await ready(client, expect)
    withhold(broker)
    expect.may_not_fire("*", "a broker has nothing to answer to a post that asks for no ACK")
    expect.prepared(await client.publish("q", b"nobody asks", wait=False))
    (message,) = await came(broker, expect, 1)
    asked = message.wants_ack or (not makes_guids(broker, expect) and message.correlation_id)
    expect.exercised(
        not asked, "the client asks for an ACK all the same", id="the-client-asks-for-an-ack-all-the-same"
    )
    answer = message.guid if makes_guids(broker, expect) else UNSET_GUID
    status = AckStatus.LIMIT_MESSAGES
    say(broker, expect, Ack((AckMessage(message.queue_id, answer, status),)))
    await quiet()
    broker.faults.clear()
    await still_works(broker, client, expect, "the next post is acked", id="the-next-post-is-acked")
    shown = reported(client) or any(e.event == "outcome" for e in client.events)
    expect.tolerate(shown, "an event reports the refusal", id="the-refusal-is-told-by-an-event")


@scenario("BMQ-3.25", "SHOULD", "high", basis=["B12", "B19"], roles=PUBLISHER, revision=2)
async def ack_for_another_queue(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """ACK for a queue the client does not have.

    Fault: Inject ACK events with qId 77, GUID and correlation id never used: one positive, one with status 6;
    then a normal post
    Pass: No op completes by them; process alive; the next post is acked, on the same connection or after the
    client dropped it and came back
    Seen: measured: wheel 1.2.2 SIGSEGV on both; Java and Node SDK survive one with a known correlation id
    """
    await ready(client, expect)
    calls, messages = await withheld(broker, client, expect, 1)
    correlation = 0 if makes_guids(broker, expect) else NEVER_USED
    for number, status in enumerate((AckStatus.SUCCESS, AckStatus.STORAGE_FAILURE)):
        say(broker, expect, Ack((AckMessage(ELSEWHERE, guid(90 + number), status, correlation + number),)))
    await quiet()
    expect.that(
        not calls[0].done or not client.alive or dropped(broker),
        "no op completes by them",
        id="no-op-completes-by-them",
    )
    await own_answer(broker, client, expect, calls[0], messages[0])
    await still_works(broker, client, expect, "the next post is acked", id="the-next-post-is-acked")
