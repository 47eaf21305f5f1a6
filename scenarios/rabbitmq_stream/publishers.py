"""RMQS-3 Publishing: what a loss, a name and a deletion leave."""

from __future__ import annotations

import asyncio
from functools import partial

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import RabbitMQStream
from fakebrokers.faults import drop
from fakebrokers.journal import Record, Tap
from fakebrokers.rabbitmq_stream.binary import pack_ids
from fakebrokers.rabbitmq_stream.frames import PublishConfirm
from scenarios._common import came, received
from scenarios.rabbitmq_stream._confirming import (
    LOST,
    confirmed,
    hold_confirms,
    no_second_completion,
    numbered_body,
    published,
    publisher_of,
)
from scenarios.rabbitmq_stream._lifecycle import kept
from scenarios.rabbitmq_stream._sending import begin_publishing, sends_singly
from scenarios.rabbitmq_stream._steps import (
    PUBLISHER,
    STREAM,
    answered,
    publish_batch,
    say,
    say_if_open,
    stored_bodies,
    stores,
    stream_exists,
)

FRAME_MAX = 4096


@scenario("RMQS-3.10", "MUST", "critical", basis=["R7"], roles=PUBLISHER, timeout_s=60, revision=2)
async def unconfirmed_at_disconnect(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Unconfirmed at disconnect.

    Fault: RST with 20 unconfirmed; accept a new connection and confirm whatever is published there
    Pass: Each is reported once: unknown, or `acked` after it was published again (the same payload may then
    be twice in the stream when no reference is used); none `acked` without a confirm; non-strict: no outcome
    per message, but a `connection_lost` event after the last publish
    Seen: rstream#276; stream-rust-client#293; stream-java-client#642
    """
    broker.create_stream(STREAM)
    await client.connected()
    calls = await hold_confirms(broker, client, expect, 20)
    mark, events = broker.journal.last_seq, len(client.events)
    broker.faults.clear()
    broker.kill(how="rst")
    results = [await call for call in calls]
    for number, result in enumerate(results):
        if result.ok:
            again = confirmed(broker, numbered_body(number), mark)
            criterion = f"message {number + 1} is acked only after it was published again and confirmed"
            expect.that(
                again,
                criterion,
                f"{result}, without a confirm for it",
                id="message-n-is-acked-only-after-it-was-published-again-and",
            )
        elif result.hang:
            reported = [e for e in client.events[events:] if e["what"] in ("connection_lost", "disconnected")]
            expect.that(
                reported,
                f"message {number + 1} is reported",
                "no outcome, and no connection_lost event",
                id="message-n-is-reported",
            )
            expect.tolerate(
                False,
                f"message {number + 1} ends unknown",
                "no outcome, but a loss event",
                id="message-n-ends-unknown",
            )
        else:
            expect.outcome(
                result,
                "unknown",
                f"message {number + 1} ends unknown, or acked anew",
                id="message-n-ends-unknown-or-acked-anew",
            )
    no_second_completion(client, expect)


@scenario(
    "RMQS-3.11",
    "MUST",
    "high",
    basis=["R7", "R8"],
    needs=["named_publisher"],
    roles=PUBLISHER,
    target=True,
    timeout_s=60,
    revision=2,
)
async def publishing_ids_go_on(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Publishing id continuity.

    Fault: (a) new session with the same reference, QueryPublisherSequence answers 41; (b) with
    auto_reconnect: ids up to 57 used, 50..57 unconfirmed, RST, sequence answers 49
    Pass: (a) first new id ≥ 42 and the message is stored; (b) re-published ones keep their ids, next new id ≥
    58
    Seen: stream-rust-client#234; stream-js-client#230; stream-js-client#233
    """
    if not expect.wire_visible:
        await _ids_go_on_in_a_new_session(broker, client, expect)
        return
    broker.create_stream(STREAM)
    broker.store_sequence(STREAM, "ref", 41)
    await client.connected("a")
    result = await client.publish(STREAM, b"after 41", session="a", name="ref")
    expect.outcome(result, "acked", "(a) the message is confirmed", id="a-the-message-is-confirmed")
    first = [key for _, key in published(broker)]
    expect.that(
        first and first[0] >= 42,
        "(a) the first new id is at least 42",
        first[:1],
        id="a-the-first-new-id-is-at-least-n",
    )
    stored = [m.body for m in broker.messages(STREAM)]
    expect.that(
        any(b"after 41" in body for body in stored),
        "(a) the message is stored",
        stored,
        id="a-the-message-is-stored",
    )
    if not client.reconnects("producer"):
        return
    await _republished_with_their_ids(broker, client, expect)


async def _ids_go_on_in_a_new_session(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """(a) without a look at the wire: a broker drops what comes with a used id."""
    await client.connected()
    await stream_exists(broker, client)
    bodies = [b"0", b"1"]
    for number, body in enumerate(bodies):
        session = f"a{number}"
        await client.connected(session)
        result = await client.publish(STREAM, body, session=session, name="ref")
        expect.outcome(result, "acked", "(a) the message is confirmed", id="a-the-message-is-confirmed")
        await client.close(session)
    expect.equal(
        await stored_bodies(broker, client, 2),
        bodies,
        "(a) the message is stored",
        id="a-the-message-is-stored",
    )


async def _republished_with_their_ids(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    broker.create_stream("bills")
    await client.connected("b")
    mark = broker.journal.last_seq
    for number in range(49):
        expect.prepared(await client.publish("bills", b"%d" % number, session="b", name="again"))
    # not stored either: the server's sequence stays at 49 while the client has used ids up to 57
    broker.faults.add(drop(kind="Publish", direction="in", name=LOST))
    bodies = [b"open %d" % n for n in range(8)]
    calls = begin_publishing(client, "bills", bodies, session="b", name="again")
    await came(expect, partial(published, broker, mark), 57)
    before = [key for _, key in published(broker, mark)]
    broker.faults.clear()
    cut = broker.journal.last_seq
    broker.kill(how="rst")
    results = [await call for call in calls]
    later = await client.publish("bills", b"new", session="b", name="again", timeout=10.0)
    expect.outcome(
        later,
        "acked",
        "(b) a new message is confirmed after the reconnect",
        id="b-a-new-message-is-confirmed-after-the-reconnect",
    )
    after = [key for _, key in published(broker, cut)]
    expect.that(
        after and after[-1] > max(before),
        "(b) the next new id is above all that were used",
        after[-1:],
        id="b-the-next-new-id-is-above-all-that-were-used",
    )
    repeated = set(after[:-1])
    expect.that(
        repeated <= set(before),
        "(b) re-published messages keep their ids",
        sorted(repeated - set(before)),
        id="b-re-published-messages-keep-their-ids",
    )
    for result in results:
        expect.outcome(
            result,
            ("acked", "unknown"),
            "(b) the open ones end acked or unknown",
            id="b-the-open-ones-end-acked-or-unknown",
        )
    for body, result in zip([*bodies, b"new"], [*results, later], strict=True):
        if result.ok:
            expect.that(
                stores(broker, body, "bills"),
                "(b) what was acked is stored",
                f"{body!r} is not",
                id="b-what-was-acked-is-stored",
            )


@scenario(
    "RMQS-3.12",
    "SHOULD",
    "high",
    basis=["R7", "R8"],
    needs=["named_publisher", "auto_reconnect.producer"],
    roles=PUBLISHER,
    timeout_s=60,
)
async def dedup_on_republish(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Dedup answer on re-publish.

    Fault: Publish 10; the server stores all but confirms only 5, RST; then accepts; dedup as the real server:
    id ≤ highest id of (stream, reference) is dropped and confirmed, in its own frame before the new ids
    Pass: Stream holds each payload once; each message reported once (`acked`, or unknown if the client does
    not re-publish)
    Seen: rstream#227; librdkafka#4953
    """
    broker.create_stream(STREAM)
    await client.connected()
    broker.faults.add(drop(role="confirm", name=LOST))
    bodies = [b"payload %d" % n for n in range(10)]
    calls = begin_publishing(client, STREAM, bodies, name="ref", timeout=15.0)
    await came(expect, partial(published, broker), 10)
    keys = [key for _, key in published(broker)]
    connection, publisher_id = publisher_of(broker, expect)
    say(broker, expect, connection, PublishConfirm(publisher_id, pack_ids(keys[:5])))
    await asyncio.sleep(0.1)
    broker.faults.clear()
    broker.kill(how="rst")
    for number, call in enumerate(calls):
        result = await call
        told_singly = number < 5 and sends_singly(client, 10)
        wanted = "acked" if told_singly else ("acked", "unknown")
        expect.outcome(
            result, wanted, f"message {number + 1} is reported once", id="message-n-is-reported-once"
        )
    stored = [m.body for m in broker.messages(STREAM)]
    for number in range(10):
        copies = sum(b"payload %d" % number in body for body in stored)
        expect.equal(
            copies, 1, f"the stream holds payload {number} once", id="the-stream-holds-payload-n-once"
        )
    no_second_completion(client, expect)


@scenario(
    "RMQS-3.13", "SHOULD", "medium", basis=["R8"], needs=["named_publisher"], roles=PUBLISHER, revision=2
)
async def sequence_is_asked(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """QueryPublisherSequence after reopening.

    Fault: Name given; sequence answer for a new reference is 0 with code 1
    Pass: Sequence is asked on the wire before the first Publish of each new declaration (non-strict: not
    asked because the caller gives the ids, or because the client keeps its own counter over a reconnect)
    Seen: stream-js-client#233
    """
    broker.create_stream(STREAM)
    for session in ("a", "b"):
        mark = broker.journal.last_seq
        await client.connected(session)
        body = f"of session {session}".encode()
        result = await client.publish(STREAM, body, session=session, name="ref")
        expect.outcome(
            result,
            "acked",
            f"session {session}: the message is confirmed",
            id=slug("session-{}-the-message-is-confirmed", session),
        )
        stored = stores(broker, body)
        expect.equal(
            stored,
            1,
            f"session {session}: the message is stored once: its id was not used before",
            id=slug("session-{}-the-message-is-stored-once-its-id-was-not-used-before", session),
        )
        came = received(broker, "Publish", since=mark)
        expect.exercised(
            came, f"session {session}: no Publish came", id=slug("session-{}-no-publish-came", session)
        )
        asked = [r for r in answered(broker, "QueryPublisherSequence", mark) if _is_about(r, "ref", STREAM)]
        in_time = asked and asked[0].seq < came[0].seq
        criterion = f"session {session}: the sequence is asked before the first Publish"
        expect.tolerate(
            in_time,
            criterion,
            f"{len(asked)} queries",
            id=slug("session-{}-the-sequence-is-asked-before-the-first-publish", session),
        )
        await client.close(session)
    keys = [key for _, key in published(broker)]
    expect.that(keys and len(set(keys)) == len(keys), "no id is used again", keys, id="no-id-is-used-again")


def _is_about(record: Record, reference: str, stream: str) -> bool:
    frame = record.frame
    return getattr(frame, "reference", "") == reference and getattr(frame, "stream", "") == stream


@scenario(
    "RMQS-3.14",
    "MUST",
    "critical",
    basis=["R16"],
    roles=PUBLISHER,
    server={"frame_max": FRAME_MAX},
    revision=3,
)
async def frame_size_respected(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Frame size respected.

    Fault: FrameMax 4096 (4.3: a larger size field is answered with Close 14 as soon as it is read; 3.10 and
    4.0 do not enforce it); send 200 × 100 B as one batch and one of 5000 B
    Pass: No frame of the client has a size field > 4096; the 200 are confirmed; oversize message fails
    `invalid` locally (definite) and does not cost the connection
    Seen: stream-go-client#499; measured: stream-js-client checks single messages only, so its batches exceed
    the limit
    """
    broker.create_stream(STREAM)
    await client.connected()
    outcomes = await publish_batch(client, expect, 200, 100)
    _no_frame_above(broker, expect, FRAME_MAX)
    expect.equal(
        outcomes.count("acked"), 200, "the 200 messages are confirmed", id="the-n-messages-are-confirmed"
    )
    expect.equal(
        stores(broker, b"x" * 100),
        200,
        "the 200 messages are confirmed: the stream holds them",
        id="the-n-messages-are-confirmed-the-stream-holds-them",
    )
    names = _publishing(broker, expect)
    large = await client.publish(STREAM, b"y" * 5000)
    _no_frame_above(broker, expect, FRAME_MAX)
    expect.failed(
        large,
        ("invalid",),
        "the oversize message fails locally, definite",
        definite=True,
        id="the-oversize-message-fails-locally-definite",
    )
    expect.outcome(
        await client.publish(STREAM, b"z"),
        "acked",
        "it does not cost the connection",
        id="it-does-not-cost-the-connection",
    )
    gone = sorted(names - set(kept(broker)))
    expect.that(
        not gone,
        "it does not cost the connection",
        f"{', '.join(gone)} ended",
        id="it-does-not-cost-the-connection",
    )


def _publishing(broker: RabbitMQStream, expect: Expect) -> set[str]:
    """The open connections on which messages came."""
    names = {record.connection for record, _ in published(broker)} & set(kept(broker))
    expect.exercised(
        names,
        "the client keeps no connection that it publishes on",
        id="the-client-keeps-no-connection-that-it-publishes-on",
    )
    return names


def _no_frame_above(broker: RabbitMQStream, expect: Expect, limit: int) -> None:
    above = [str(r) for r in broker.journal.select(tap=Tap.RECEIVED) if r.size - 4 > limit]
    above += [str(r) for r in broker.journal.select(kind="Malformed")]
    expect.that(
        not above,
        f"no frame of the client has a size field above {limit}",
        above[:1],
        id=slug("no-frame-of-the-client-has-a-size-field-above-{}", limit),
    )


@scenario("RMQS-3.19", "SHOULD", "high", basis=["R6", "R7"], roles=PUBLISHER)
async def delete_with_unconfirmed(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Delete publisher with unconfirmed.

    Fault: Close the producer with 5 pending; confirm 2 of them before DeletePublisher is answered, none after
    it (the real server stores the messages but never confirms them once the publisher is deleted)
    Pass: All 5 end by the close deadline: 2 `acked`, 3 unknown (never `nacked`); close itself ends; waiting
    for confirms before DeletePublisher is right and then all 5 may be `acked` or unknown
    Seen: stream-dotnet-client#298; stream-dotnet-client#458; measured on 4.3.6: 2000 unconfirmed and a
    DeletePublisher after them: no confirm, 2000 stored
    """
    broker.create_stream(STREAM)
    await client.connected()
    calls = await hold_confirms(broker, client, expect, 5)
    keys = [key for _, key in published(broker)]
    connection, publisher_id = publisher_of(broker, expect)
    closing = client.begin("close", 5.0, session="s1")
    await asyncio.sleep(0.2)
    say_if_open(broker, connection, PublishConfirm(publisher_id, pack_ids(keys[:2])))
    result = await closing
    expect.ended(result, "close itself ends", id="close-itself-ends")
    for number, call in enumerate(calls):
        ended = await call
        expect.outcome(
            ended,
            ("acked", "unknown"),
            f"message {number + 1} ends acked or unknown, never nacked",
            id="message-n-ends-acked-or-unknown-never-nacked",
        )
        if number > 1:
            expect.that(
                ended.outcome != "acked",
                f"message {number + 1}, never confirmed, is not acked",
                str(ended),
                id="message-n-never-confirmed-is-not-acked",
            )
