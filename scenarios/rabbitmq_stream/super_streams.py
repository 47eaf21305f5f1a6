"""RMQS-7 Super streams: partitions, and which of them a message goes to."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect, scenario
from fakebrokers import RabbitMQStream
from scenarios._common import until
from scenarios.rabbitmq_stream._deliveries import FIRST, bodies_of, record
from scenarios.rabbitmq_stream._partitions import (
    EAST,
    KEYS,
    NORTH,
    PARTITIONS,
    SUPER,
    WEST,
    bind,
    places,
    publish,
    super_stream,
)
from scenarios.rabbitmq_stream._steps import NOT_LATE, PUBLISHER, STREAM

#: MurmurHash3 of keys, 32 bits, seed 104729; of another implementation than that of the reference client.
HASHES = {
    "": 0xC6757D56,
    "a": 0x40C5855A,
    "ab": 0x17C238A8,
    "abc": 0xCB3BE711,
    "abcd": 0xCBF34FEC,
    "0": 0xAE9784FD,
    "1": 0x91CF8AEE,
    "2": 0x644A3F3D,
    "invoice-1": 0x4FCC53D2,
    "invoice-2": 0x3AF914CB,
    "key with spaces": 0x94D6694B,
    "ключ": 0x218303C5,
    "é": 0xAE3193D2,
    "ñ": 0xB2593D92,
}


async def _unknown(client: Client, expect: Expect, op: str, **args: Any) -> None:
    """A question about a super stream that does not exist is refused."""
    result = await client.op(op, session="s1", target="nobody", **args)
    expect.failed(result, NOT_LATE, "a super stream that does not exist is refused", id="unknown-is-refused")
    if result.code is not None:
        expect.equal(result.code, 2, "the code is 2", id="the-code-is-n")


@scenario("RMQS-7.01", "SHOULD", "high", basis=["R19"], ops=("rmqs.partitions",))
async def partitions(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Partitions of a super stream.

    Fault: Super stream of three partitions whose names are in no alphabetical order; then one that does not
    exist
    Pass: The partitions in the order of the server; of the other: refused, code 2 where the library shows it
    """
    super_stream(broker)
    await client.connected()
    result = await client.op("rmqs.partitions", session="s1", target=SUPER)
    value = expect.ok(result, "the partitions are returned", id="the-partitions-are-told")
    found = list(value["streams"])
    expect.equal(
        found, list(PARTITIONS), "all partitions, in the server's order", id="all-partitions-in-order"
    )
    await _unknown(client, expect, "rmqs.partitions")


@scenario("RMQS-7.02", "SHOULD", "high", basis=["R19"], ops=("rmqs.route",))
async def route(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Route of a key.

    Fault: Keys of one partition, of two, and of none; then a super stream that does not exist
    Pass: Exactly the partitions of each key, none for the last; of the other: refused, code 2 where the
    library shows it
    """
    super_stream(broker)
    bind(broker, "both", WEST)
    bind(broker, "both", NORTH)
    await client.connected()
    for key, wanted in {"apac": [EAST], "both": [NORTH, WEST], "nowhere": [], "amer": [WEST]}.items():
        result = await client.op("rmqs.route", session="s1", target=SUPER, key=key)
        value = expect.ok(
            result, "the partitions of a key are returned", id="the-partitions-of-a-key-are-told"
        )
        found = sorted(value["streams"])
        expect.equal(found, wanted, f"{key}: exactly its partitions", id="exactly-the-partitions-of-the-key")
    await _unknown(client, expect, "rmqs.route", key="apac")


@scenario(
    "RMQS-7.03", "SHOULD", "critical", basis=["R19"], needs=["super_streams"], roles=PUBLISHER, timeout_s=60
)
async def hash_routing(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Partition by the hash of a key.

    Fault: Three partitions; a message for each of fourteen keys: empty, of one to four bytes and more, with
    letters outside ASCII, at the end too, and with hashes above 2^31
    Pass: All `acked`; each is stored once, in the partition with the index MurmurHash3 (32 bits, seed 104729,
    of the UTF-8 bytes, unsigned) modulo 3, as other clients of the super stream expect it
    """
    super_stream(broker)
    await client.connected()
    for key in HASHES:
        result = await publish(client, f"<{key}>".encode(), key, "hash")
        expect.outcome(result, "acked", f"{key!r}: the message is acked", id="each-message-is-acked")
    for key, hashed in HASHES.items():
        wanted = [PARTITIONS[hashed % len(PARTITIONS)]]
        criterion = f"{key!r}: it is stored once, in the partition that its hash chooses"
        found = places(broker, f"<{key}>".encode())
        expect.equal(found, wanted, criterion, id="each-message-is-in-the-partition-of-its-hash")


@scenario("RMQS-7.04", "SHOULD", "critical", basis=["R19"], needs=["super_streams"], roles=PUBLISHER)
async def key_routing(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Partition by the key itself.

    Fault: Three partitions, each bound with a key; messages for all three keys in turn, twice
    Pass: All `acked`; each is stored once, in the partition of its key
    """
    super_stream(broker)
    await client.connected()
    for turn in (1, 2):
        for key, partition in KEYS.items():
            body = f"<{key} {turn}>".encode()
            result = await publish(client, body, key)
            expect.outcome(result, "acked", f"{key}: the message is acked", id="each-message-is-acked")
            criterion = f"{key}: it is stored once, in the partition of its key"
            found = places(broker, body)
            expect.equal(found, [partition], criterion, id="each-message-is-in-the-partition-of-its-key")


@scenario("RMQS-7.05", "SHOULD", "high", basis=["R19"], needs=["super_streams"], roles=PUBLISHER)
async def key_of_two_partitions(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Key of two partitions.

    Fault: A key that is bound to two partitions
    Pass: `acked`; both partitions store the message, the third does not
    """
    super_stream(broker)
    bind(broker, "both", WEST)
    bind(broker, "both", NORTH)
    await client.connected()
    result = await publish(client, b"<both>", "both")
    expect.outcome(result, "acked", "the message is acked", id="the-message-is-acked")
    await until(lambda: len(places(broker, b"<both>")) > 1, 5.0)  # a client may report each confirm singly
    found = places(broker, b"<both>")
    expect.equal(found, [WEST, NORTH], "both partitions store it, once", id="both-partitions-store-it")


@scenario(
    "RMQS-7.06", "SHOULD", "critical", basis=["R19"], needs=["super_streams"], roles=PUBLISHER, timeout_s=60
)
async def key_of_no_partition(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Key of no partition.

    Fault: A message whose key is bound to no partition, then one with a key that is
    Pass: The first fails (any kind but `timeout`) within its time-out, and no partition stores it; the second
    is `acked` and stored
    """
    super_stream(broker)
    await client.connected()
    result = await publish(client, b"<lost>", "nowhere")
    criterion = "the message that has nowhere to go fails"
    expect.failed(result, NOT_LATE, criterion, id="the-message-that-has-nowhere-to-go-fails")
    found = places(broker, b"<lost>")
    expect.equal(found, [], "no partition stores it", id="no-partition-stores-it")
    result = await publish(client, b"<found>", "emea")
    expect.outcome(result, "acked", "the next message is acked", id="the-next-message-is-acked")
    expect.equal(places(broker, b"<found>"), [NORTH], "and stored", id="the-next-message-is-stored")


@scenario(
    "RMQS-7.07", "SHOULD", "medium", basis=["R19"], needs=["super_streams"], roles=PUBLISHER, timeout_s=60
)
async def key_bound_later(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Key that is bound later.

    Fault: A message whose key is bound to no partition; then the key is bound, and messages with it are sent
    for up to 5 s
    Pass: One of them is `acked` and stored in the partition that the key has now
    """
    super_stream(broker)
    await client.connected()
    result = await publish(client, b"<early>", "later")
    expect.exercised(
        not result.ok and not result.hang,
        "the early message did not fail",
        id="the-early-message-did-not-fail",
    )
    bind(broker, "later", EAST)
    begun = broker.now
    while not (result := await publish(client, b"<late>", "later")).ok and broker.now - begun < 5.0:
        await asyncio.sleep(0.5)
    criterion = "within 5 s a message with the key is acked"
    expect.outcome(result, "acked", criterion, id="within-n-s-a-message-with-the-key-is-acked")
    criterion = "it is stored in the partition that the key has now"
    expect.equal(places(broker, b"<late>"), [EAST], criterion, id="it-is-stored-in-the-partition-of-the-key")


@scenario("RMQS-7.08", "SHOULD", "high", basis=["R5", "R19"], needs=["super_streams"])
async def unknown_super_stream(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Super stream that does not exist.

    Fault: Publish to a super stream that does not exist, and subscribe to it, as roles go
    Pass: Both fail, any kind but `timeout`; a request afterwards is answered
    """
    broker.create_stream(STREAM)
    await client.connected()
    if client.has_role("publisher"):
        result = await client.publish("nobody", b"lost", routing={"by": "hash", "key": "a"})
        expect.failed(result, NOT_LATE, "publish fails", id="publish-fails")
    if client.has_role("consumer"):
        result = await client.subscribe("nobody", "lost", super_stream=True)
        expect.failed(result, NOT_LATE, "subscribe fails", id="subscribe-fails")
        result = await client.subscribe(STREAM, "good")
    else:
        result = await client.publish(STREAM, b"good")
    expect.ok(result, "what is asked for afterwards works", id="what-is-asked-for-afterwards-works")


@scenario(
    "RMQS-7.14",
    "SHOULD",
    "high",
    basis=["R2", "R19", "R20"],
    needs=["super_streams"],
    server={"profile": "3.10"},
    timeout_s=60,
)
async def older_broker(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Super stream of an older broker.

    Fault: Profile 3.10: Route and Partitions are answered with their own keys, without the top bit
    Pass: Messages for the hash of a key and for the key itself are `acked` and stored where they belong, and
    delivered, as roles go; non-strict: publish or subscribe fails (any kind but `timeout`)
    Seen: measured on 3.10.8
    """
    super_stream(broker)
    await client.connected()
    results: list[Result] = []
    if client.has_role("publisher"):
        wanted = {"hash": EAST, "key": NORTH}
        sent = {by: await publish(client, f"<{by}>".encode(), "emea", by) for by in wanted}
        results += sent.values()
        for by, result in sent.items():
            if result.ok:
                found = places(broker, f"<{by}>".encode())
                criterion = f"{by}: the message is stored in its partition"
                expect.equal(found, [wanted[by]], criterion, id="each-message-is-in-its-partition")
    if client.has_role("consumer"):
        broker.publish(WEST, record(client, b"<written>"))
        results.append(result := await client.subscribe(SUPER, offset=FIRST, super_stream=True))
        if result.ok:
            await until(lambda: b"<written>" in bodies_of(client.messages()), 5.0)
            got = bodies_of(client.messages())
            expect.that(b"<written>" in got, "the partitions are read", got, id="the-partitions-are-read")
    for result in results:
        if not expect.tolerate(result.ok, "super streams work", str(result), id="super-streams-work"):
            expect.failed(result, NOT_LATE, "what does not work fails", id="what-does-not-work-fails")


MADE = ("rmqs.create_super_stream", "rmqs.delete_super_stream")


def _bound(broker: RabbitMQStream, name: str) -> list[tuple[str, str]]:
    """The partitions of a super stream with their keys, in order; none if it is not there."""
    found = broker.call(lambda: broker.broker.super_streams.get(("/", name)))
    return [] if found is None else [(one.partition, one.key) for one in found.bindings]


@scenario("RMQS-7.15", "SHOULD", "high", basis=["R13", "R19"], ops=MADE)
async def made(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """A super stream is created and deleted.

    Fault: One of three partitions; one with two keys and an argument; the first once more; then it is
    deleted, and once more
    Pass: Each has its partitions with their keys, in order, and the argument; nothing is left of the one that
    was deleted; the second delete: refused, code 2 where the library shows it; non-strict: to create what
    exists works
    """
    await client.connected()
    result = await client.op(MADE[0], session="s1", target="invoices", partitions=3)
    expect.ok(result, "a super stream is created", id="a-super-stream-is-created")
    wanted = [(f"invoices-{number}", f"{number}") for number in range(3)]
    criterion = "it has its partitions with their keys, in order"
    expect.equal(_bound(broker, "invoices"), wanted, criterion, id="partitions-and-keys-in-order")
    arguments = {"max-length-bytes": "5000000000"}
    result = await client.op(MADE[0], session="s1", target="bills", keys=["b", "a"], arguments=arguments)
    expect.ok(result, "a super stream is created", id="a-super-stream-is-created")
    wanted = [("bills-b", "b"), ("bills-a", "a")]
    expect.equal(_bound(broker, "bills"), wanted, criterion, id="partitions-and-keys-in-order")
    limits = broker.call(lambda: [broker.broker.stream(name).arguments.max_length for name, _ in wanted])
    expect.equal(limits, [5_000_000_000] * 2, "each partition has the argument", id="each-has-the-argument")
    again = await client.op(MADE[0], session="s1", target="invoices", partitions=3)
    expect.tolerate(not again.ok, "what exists is refused", str(again), id="what-exists-is-refused")
    expect.ok(await client.op(MADE[1], session="s1", target="invoices"), "it is deleted", id="it-is-deleted")
    left = [name for name in broker.streams if name.startswith("invoices")]
    expect.equal((_bound(broker, "invoices"), left), ([], []), "nothing is left of it", id="nothing-is-left")
    again = await client.op(MADE[1], session="s1", target="invoices")
    expect.failed(again, NOT_LATE, "what is gone cannot be deleted", id="what-is-gone-is-refused")
    if again.code is not None:
        expect.equal(again.code, 2, "the code is 2", id="the-code-is-n")
