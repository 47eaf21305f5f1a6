"""RMQS-4 Consuming: what chunks may look like, and what they may not."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from zlib import crc32

from conformance.clients.adapter.messages import same_body
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import RabbitMQStream
from fakebrokers.faults import coalesce, corrupt, rewrite, slice_
from fakebrokers.rabbitmq_stream.chunk import ChunkType
from fakebrokers.rabbitmq_stream.entries import simple_entries
from scenarios._common import received, sent
from scenarios._reading import read_to_the_end
from scenarios.rabbitmq_stream._deliveries import (
    CHUNK_PER_CREDIT,
    FIRST,
    QUIET_S,
    asked,
    bodies_of,
    complaints,
    delivered_messages,
    error_reported,
    good_chunk,
    model,
    numbered,
    positions,
    record,
    subscribed_with_backlog,
    subscribes,
    write,
)
from scenarios.rabbitmq_stream._steps import CONSUMER, STREAM

#: bytes of a Deliver frame up to the first entry, version 2: all header fields lie within
HEADER_BYTES = 4 + 13 + 48


@scenario("RMQS-4.10", "MUST", "critical", basis=["R1", "R10"], roles=CONSUMER)
async def chunk_split_at_each_offset(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Chunk split at each offset.

    Fault: frag(1) and cuts in all header fields
    Pass: Same messages
    Seen: pulsar-client-go#163
    """
    broker.create_stream(STREAM)
    await client.connected()
    broker.faults.add(slice_(walk=True, kind="Deliver", first=HEADER_BYTES + 8, name="cuts"))
    count = 2 * (HEADER_BYTES + 8)
    for first in range(0, count, 2):
        write(broker, client, numbered(first, 2))
    await client.subscribed(STREAM, offset=FIRST)
    got = await delivered_messages(client, count, within_s=10.0)
    expect.equal(
        bodies_of(got),
        numbered(0, count),
        "the same messages, wherever a chunk is cut",
        id="the-same-messages-wherever-a-chunk-is-cut",
    )
    broker.faults.remove("cuts")
    broker.faults.add(slice_(1, gap_s=0.0005, kind="Deliver", name="bytes"))
    write(broker, client, numbered(count, 3))
    got = await delivered_messages(client, count + 3)
    expect.equal(
        bodies_of(got),
        numbered(0, count + 3),
        "the same messages, byte by byte",
        id="the-same-messages-byte-by-byte",
    )
    expect.exercised(
        broker.faults.fired("bytes"), "the last chunk was not split", id="the-last-chunk-was-not-split"
    )
    expect.equal(positions(got), [*range(count + 3)], "the same positions", id="the-same-positions")


@scenario("RMQS-4.17", "SHOULD", "critical", basis=["R10"], needs=["crc"], roles=CONSUMER, revision=3)
async def crc_mismatch(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """CRC mismatch.

    Fault: Flip one bit in the data section, CRC field unchanged (CRC-32, zlib polynomial, over the data
    section only); a good chunk follows
    Pass: No message of the bad chunk delivered; error reported; the good chunk is delivered on this or a new
    connection; process alive
    Seen: stream-dotnet-client#285; rabbitmq-server#8971; stream-go-client#368
    """
    broker.create_stream(STREAM)
    bad, good = numbered(0, 3, "bad"), numbered(3, 2)
    await client.connected()
    mark, stderr = len(client.events), client.adapter.stderr_mark
    broker.faults.add(corrupt(at=-1, xor=1, kind="Deliver", nth=1, scope="run", name="flipped bit"))
    await client.subscribed(STREAM, offset=FIRST)
    write(broker, client, bad)
    write(broker, client, good)
    got = await good_chunk(broker, client, expect, good[-1], len(bad), mark)
    expect.exercised(broker.faults.fired("flipped bit"), "nothing was delivered", id="nothing-was-delivered")
    if any((asked(one).offset or 0) < len(bad) for one in subscribes(broker)[1:]):  # it came again, undamaged
        got = [body for body in got if body not in bad]
    expect.equal(
        got, good, "no message of the bad chunk is delivered", id="no-message-of-the-bad-chunk-is-surfaced"
    )
    await error_reported(client, expect, mark, stderr)


@scenario("RMQS-4.18", "MUST", "medium", basis=["R10"], roles=CONSUMER)
async def crc_with_the_top_bit(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """CRC disabled or good.

    Fault: Good CRC with the top bit set (negative int32)
    Pass: Accepted (no signed compare error)
    Seen: stream-js-client#86
    """
    broker.create_stream(STREAM)
    high = (word for number in range(100) if _crc(client, word := numbered(number, 3, "high")) >> 31)
    low = (word for number in range(100) if not _crc(client, word := numbered(number, 3, "low")) >> 31)
    wanted = [*next(high), *next(low)]
    write(broker, client, wanted[:3])
    write(broker, client, wanted[3:])
    await client.connected()
    mark = len(client.events)
    await client.subscribed(STREAM, offset=FIRST)
    got = bodies_of(await delivered_messages(client, 6))
    expect.equal(
        got,
        wanted,
        "a good CRC is accepted, as a negative int32 too",
        id="a-good-crc-is-accepted-as-a-negative-int32-too",
    )
    errors = [e for e in client.events[mark:] if e.event == "error"]
    expect.that(not errors, "no error is reported", errors, id="no-error-is-reported")


def _crc(client: Client, bodies: Sequence[bytes]) -> int:
    return crc32(simple_entries([record(client, body) for body in bodies]))


@scenario("RMQS-4.19", "MUST", "high", basis=["R1", "R10"], roles=CONSUMER, timeout_s=40)
async def data_length_does_not_match(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """DataLength does not match.

    Fault: DataLength field 7 larger, then 7 smaller than the data in the frame (entries intact); a good chunk
    follows in the same segment
    Pass: No body that is not in the data section is delivered; then either the next chunk is delivered, or
    the connection is closed/replaced with an error within 2 s; non-strict: the intact entries are delivered
    without an error (field unused); fail: hang, silent reader, crash
    Seen: stream-java-client#1028; stream-js-client#112
    """
    for case, wrong in (("7 larger", 7), ("7 smaller", -7)):
        name = f"orders {case}"
        broker.create_stream(name)
        odd, good = numbered(0, 3, "odd"), numbered(3, 2, "good")
        write(broker, client, odd, name)
        write(broker, client, good, name)
        size = len(simple_entries([record(client, body) for body in odd]))
        broker.faults.clear()
        broker.faults.add(
            rewrite(fields={"chunk.data_length": size + wrong}, kind="Deliver", nth=1, scope="run"),
            coalesce(frames=2, kind="Deliver", nth=1, scope="run"),
        )
        await client.connected(case)
        mark, wire = len(client.events), broker.journal.last_seq
        await client.subscribed(name, case, session=case, offset=FIRST, credit=10)
        await client.wait_messages(5, case, 2.0)
        await asyncio.sleep(QUIET_S)
        got = bodies_of(client.messages(case))
        strange = [body for body in got if body not in (*odd, *good)]
        expect.that(
            not strange,
            f"{case}: no body that is not in the data section is delivered",
            strange,
            id=slug("{}-no-body-that-is-not-in-the-data-section-is-surfaced", case),
        )
        delivered = sent(broker, "Deliver", since=wire)
        expect.exercised(
            delivered, f"{case}: nothing was delivered", id=slug("{}-nothing-was-delivered", case)
        )
        gone = not broker.client_holds(delivered[0].connection)
        reported = complaints(client, mark)
        expect.that(
            good[-1] in got or (gone and reported),
            f"{case}: the next chunk is delivered, or the connection is closed with an error within 2 s",
            f"delivered {got}, {'closed' if gone else 'open'}, reported {reported}",
            id=slug(
                "{}-the-next-chunk-is-surfaced-or-the-connection-is-closed-with-an-error-within-n-s", case
            ),
        )
        expect.tolerate(
            not set(got) & set(odd) or reported,
            f"{case}: the chunk is not delivered without an error",
            "the intact entries were",
            id=slug("{}-the-chunk-is-not-surfaced-without-an-error", case),
        )


@scenario(
    "RMQS-4.20", "SHOULD", "high", basis=["R10", "R20"], roles=CONSUMER, server=CHUNK_PER_CREDIT, timeout_s=40
)
async def unknown_chunk(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Unknown chunk magic or type.

    Fault: Between two user chunks: (a) chunk type 1 (tracking delta; a 4.3 server sends it only on request),
    (b) magic 0x60
    Pass: Nothing of it delivered as a message, the next user chunk is delivered and the credit comes back;
    non-strict: error reported and the connection closed or replaced within 2 s; fail: delivered, silent
    reader, crash
    Seen: source: rstream raises, stream-js-client ignores the type
    """
    cases: Sequence[tuple[str, Mapping[str, int]]] = (
        ("(a) chunk type 1", {"chunk.chunk_type": ChunkType.TRACKING_DELTA}),
        ("(b) magic 0x60", {"chunk.magic": 0x60}),
    )
    for case, change in cases:
        broker.faults.clear()
        name = f"orders {case}"
        broker.create_stream(name)
        await client.connected(case)
        mark = len(client.events)

        def fill(credit: int, name: str = name, change: Mapping[str, int] = change) -> None:
            """A user chunk, as many odd ones as there is credit, and another user chunk."""
            write(broker, client, [b"before"], name)
            for number in range(credit):
                write(broker, client, [b"hidden %d" % number], name)
            write(broker, client, [b"behind"], name)
            where = {"chunk.first_offset": {"ge": 1, "le": credit}}
            broker.faults.add(rewrite(fields=change, kind="Deliver", where=where, name=f"odd {name}"))

        credit = await subscribed_with_backlog(
            broker, client, expect, fill, session=case, sub=case, target=name
        )
        await client.wait_messages(credit + 2, case, 2.0)
        got = bodies_of(client.messages(case))
        hidden = [body for body in got if body.startswith(b"hidden")]
        expect.that(
            not hidden,
            f"{case}: nothing of it is delivered as a message",
            hidden[:3],
            id=slug("{}-nothing-of-it-is-surfaced-as-a-message", case),
        )
        if b"behind" in got:
            expect.equal(
                got,
                [b"before", b"behind"],
                f"{case}: the next user chunk is delivered",
                id=slug("{}-the-next-user-chunk-is-surfaced", case),
            )
            continue
        reported = complaints(client, mark)
        delivered = sent(broker, "Deliver")[-1].connection
        gone = not broker.client_holds(delivered)
        expect.that(
            reported and gone,
            f"{case}: the next user chunk is delivered, the credit comes back; or an end with an error",
            f"delivered {got}, {'closed' if gone else 'open'}, reported {reported}",
            id=slug("{}-the-next-user-chunk-is-surfaced-the-credit-comes-back-or-a-loud-end", case),
        )
        expect.tolerate(
            False,
            f"{case}: the chunk is skipped",
            f"reported {reported[0]}",
            id=slug("{}-the-chunk-is-skipped", case),
        )


@scenario("RMQS-4.29", "MUST", "critical", basis=["R10"], roles=CONSUMER)
async def gaps_between_chunks(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Gaps between chunks.

    Fault: Chunks with first offsets 0 (2 records), 4 (3), 9 (1): the offsets between were used by stored
    offsets, whose chunks are not delivered
    Pass: Positions 0, 1, 4, 5, 6, 9 delivered once each; no error, no re-subscribe, no waiting for 2, 3, 7, 8
    Seen: measured: 2 messages, 2 stored offsets, 1 message gave chunk ids 0 and 4
    """
    broker.create_stream(STREAM)
    writer = model(broker).writer

    def store_two() -> None:
        for offset in (1, 2):
            writer.store_offset("app", offset, broker.engine.now)
            broker.engine.handle_timers(broker.engine.now)

    write(broker, client, numbered(0, 2))
    broker.call(store_two)
    write(broker, client, numbered(4, 3))
    broker.call(store_two)
    write(broker, client, numbered(9, 1))
    await client.connected()
    mark = len(client.events)
    await client.subscribed(STREAM, offset=FIRST)
    messages = await delivered_messages(client, 6, within_s=3.0)
    wanted = [0, 1, 4, 5, 6, 9]
    expect.equal(
        positions(messages),
        wanted,
        "each position is delivered once, none waits for the others",
        id="each-position-is-surfaced-once-nobody-waits-for-the-others",
    )
    expect.equal(
        bodies_of(messages),
        [b"message %d" % number for number in wanted],
        "with the right bodies",
        id="with-the-right-bodies",
    )
    errors = [e for e in client.events[mark:] if e.event in ("error", "session")]
    expect.that(not errors, "no error", errors, id="no-error")
    expect.equal(len(received(broker, "Subscribe")), 1, "no second Subscribe", id="no-second-subscribe")


@scenario("RMQS-4.30", "MUST", "high", basis=["R1", "R10"], roles=CONSUMER)
async def sizes_without_their_bytes(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Trailer and filter size without their bytes.

    Fault: Chunk header with trailer length 14 and bloom size 16; neither is in the frame (as the real server:
    both stay in the log); the next Deliver in the same segment
    Pass: Both chunks delivered complete
    Seen: measured: trailer length 14 with a reference publisher
    """
    broker.create_stream(STREAM)
    stream, wanted = model(broker), numbered(0, 5)
    broker.store_offset(STREAM, "ref1", 0)
    first = [record(client, body) for body in wanted[:3]]
    broker.call(lambda: stream.publish(first, broker.engine.now, ["europe"] * 3))
    write(broker, client, wanted[3:])
    await client.connected()
    broker.faults.add(coalesce(frames=2, kind="Deliver", nth=1, scope="run"))
    await client.subscribed(STREAM, offset=FIRST, credit=10)
    messages = sorted(await delivered_messages(client, 5, within_s=3.0), key=lambda m: int(m.position))
    expect.equal(
        positions(messages),
        [*range(5)],
        "both chunks are delivered complete",
        id="both-chunks-are-surfaced-complete",
    )
    expect.equal(bodies_of(messages), wanted, "with their own bodies", id="with-their-own-bodies")


@scenario("RMQS-4.31", "MUST", "high", basis=["R10", "R20"], roles=CONSUMER)
async def deliver_version_2(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Deliver version 2.

    Fault: ExchangeCommandVersions is answered with the real list; if the client's list has Deliver with max ≥
    2, every Deliver is version 2 (u64 committed chunk id before the chunk), else version 1
    Pass: Same messages and positions in both cases; the report names the version that was used
    Seen: measured on 4.0.5 and 4.3.6
    """
    broker.create_stream(STREAM)
    for first in (0, 4):
        write(broker, client, numbered(first, 4))
    await client.connected()
    await client.subscribed(STREAM, offset=FIRST)
    messages = await delivered_messages(client, 8, within_s=3.0)
    delivered = sent(broker, "Deliver")
    expect.exercised(delivered, "nothing was delivered", id="nothing-was-delivered")
    versions = {record.frame.version for record in delivered}  # type: ignore[union-attr]
    expect.note(f"Deliver version {', '.join(map(str, versions))}")
    expect.equal(bodies_of(messages), numbered(0, 8), "the same messages", id="the-same-messages")
    expect.equal(positions(messages), [*range(8)], "the same positions", id="the-same-positions")


@scenario(
    "RMQS-4.32",
    "MUST",
    "critical",
    basis=["R10", "R16"],
    roles=CONSUMER,
    server={"frame_max": 1 << 20},
    timeout_s=90,
)
async def chunk_larger_than_the_frame_max(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Chunk larger than the frame max.

    Fault: FrameMax 1 MiB agreed; one Deliver with 8 × 250 000 B and one with 32 × 250 000 B (8 MB)
    Pass: 40 messages delivered with the right SHA-256; the connection stays
    Seen: measured on 4.3.6: Deliver frames of 8, 16 and 32 MB at FrameMax 1 MiB; source: Java lifts its
    inbound limit after Open
    """
    broker.create_stream(STREAM)
    bodies = [hashlib.sha256(b"%d" % number).digest() * (250_000 // 32) for number in range(40)]
    write(broker, client, bodies[:8])
    write(broker, client, bodies[8:])
    await client.connected(frame_max=1 << 20)
    await client.subscribed(STREAM, offset=FIRST)
    messages = await read_to_the_end(broker, client, expect, 40, within_s=15.0)
    expect.equal(len(messages), 40, "40 messages are delivered", id="n-messages-are-surfaced")
    wrong = [m.position for m, body in zip(messages, bodies, strict=True) if not same_body(m.body, body)]
    expect.that(not wrong, "with the right SHA-256", wrong, id="with-the-right-sha-n")
    delivered = {record.connection for record in sent(broker, "Deliver")}
    expect.that(
        len(delivered) == 1 and broker.client_holds(delivered.pop()),
        "the connection stays",
        delivered,
        id="the-connection-stays",
    )
