"""RMQS-4 Consuming: sub-entry batches."""

from __future__ import annotations

import asyncio

from conformance.suite import Client, Expect, scenario
from fakebrokers import RabbitMQStream
from fakebrokers.rabbitmq_stream.batches import batch_entry
from fakebrokers.rabbitmq_stream.codes import Compression
from fakebrokers.rabbitmq_stream.entries import BATCH_HEADER, simple_entries
from scenarios._common import sent
from scenarios.rabbitmq_stream._deliveries import (
    FIRST,
    QUIET_S,
    begin_at,
    bodies_of,
    delivered_messages,
    error_reported,
    good_chunk,
    numbered,
    positions,
    record,
    write,
    write_entries,
)
from scenarios.rabbitmq_stream._steps import CONSUMER, STREAM

OPENED = 10  #: where the deflate data of a gzip member begins


@scenario("RMQS-4.21", "SHOULD", "high", basis=["R10"], needs=["subentry"], roles=CONSUMER)
async def sub_batch_entries(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Sub-batch entries.

    Fault: One chunk with first offset 100: simple entry, batch of 3 uncompressed, simple entry, batch of 5
    gzip (NumEntries 4, NumRecords 10)
    Pass: 10 messages with positions 100..109 in order
    Seen: rstream#93; stream-java-client#953; source: stream-js-client 1.0.0 decides by the first entry and
    numbers a batch from 0
    """
    broker.create_stream(STREAM)
    begin_at(broker, 100)
    sent_bodies = numbered(100, 10)
    one = [record(client, body) for body in sent_bodies]
    entries = simple_entries(one[:1]) + batch_entry(one[1:4])
    entries += simple_entries(one[4:5]) + batch_entry(one[5:], Compression.GZIP)
    await client.connected()
    await client.subscribed(STREAM, offset=FIRST)
    write_entries(broker, entries, 4, 10)
    messages = await delivered_messages(client, 10, within_s=3.0)
    expect.equal(bodies_of(messages), sent_bodies, "10 messages in order", id="n-messages-in-order")
    expect.equal(positions(messages), [*range(100, 110)], "with positions 100..109", id="with-positions-n-n")


async def _bad_batch(broker: RabbitMQStream, client: Client, expect: Expect, entry: bytes) -> int:
    """A batch of three that cannot be opened, alone in its chunk; a good chunk follows.

    Returns:
        The number of events before it.
    """
    broker.create_stream(STREAM)
    await client.connected()
    mark, stderr = len(client.events), client.adapter.stderr_mark
    await client.subscribed(STREAM, offset=FIRST)
    write_entries(broker, entry, 1, 3)
    write(broker, client, [b"good"])
    await client.wait_messages(1, within_s=3.0)
    await asyncio.sleep(QUIET_S)
    expect.exercised(sent(broker, "Deliver"), "nothing was delivered", id="nothing-was-delivered")
    got = bodies_of(client.messages())
    strange = [body for body in got if body != b"good"]
    expect.that(
        not strange,
        "nothing of the batch is delivered, opened or raw",
        strange,
        id="nothing-of-the-batch-is-surfaced-opened-or-raw",
    )
    await error_reported(client, expect, mark, stderr)
    return mark


@scenario("RMQS-4.22", "MUST", "high", basis=["R10"], needs=["subentry"], roles=CONSUMER, revision=3)
async def decompression_error(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Decompression error.

    Fault: Batch with broken gzip data and a right CRC; a good chunk follows
    Pass: Error reported; nothing of the batch delivered; the next chunk is delivered on this or a new
    connection
    Seen: stream-java-client#953; stream-go-client#404
    """
    hidden = numbered(0, 3, "hidden")
    entry = bytearray(batch_entry([record(client, body) for body in hidden], Compression.GZIP))
    entry[BATCH_HEADER + OPENED] = 0x07  # a deflate block of a type that does not exist
    mark = await _bad_batch(broker, client, expect, bytes(entry))
    await good_chunk(broker, client, expect, b"good", len(hidden), mark)


@scenario("RMQS-4.23", "SHOULD", "high", basis=["R10", "R20"], needs=["subentry"], roles=CONSUMER, revision=2)
async def unknown_compression_code(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Unknown compression code.

    Fault: Code 6
    Pass: Error reported; not delivered raw
    """
    hidden = numbered(0, 3, "hidden")
    entry = bytearray(batch_entry([record(client, body) for body in hidden]))
    entry[0] = 0x80 | 6 << 4
    await _bad_batch(broker, client, expect, bytes(entry))
