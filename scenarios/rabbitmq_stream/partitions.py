"""RMQS-7 Super streams: partitions that move or go, and consumers of all partitions."""

from __future__ import annotations

import asyncio
from functools import partial

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import RabbitMQStream
from fakebrokers.journal import Record
from fakebrokers.rabbitmq_stream.frames import ConsumerUpdate
from scenarios._common import limit_s, received, sent, until
from scenarios.rabbitmq_stream._deliveries import FIRST, QUIET_S, asked, subscribes
from scenarios.rabbitmq_stream._lifecycle import losses, node_port, reconnecting
from scenarios.rabbitmq_stream._partitions import (
    EAST,
    KEYS,
    NORTH,
    PARTITIONS,
    SUPER,
    WEST,
    by_partition,
    fill,
    places,
    publish,
    super_stream,
)
from scenarios.rabbitmq_stream._steps import BOTH, CONSUMER, PUBLISHER

COUNTS = {WEST: 3, EAST: 5, NORTH: 8}
GROUP = "app"
TWO = {"amer": WEST, "apac": EAST}


async def _goes_on(broker: RabbitMQStream, client: Client, expect: Expect, body: bytes) -> None:
    """A message for each partition but the first is stored there."""
    for key in ("apac", "emea"):
        result = await publish(client, body + key.encode(), key)
        expect.outcome(
            result,
            "acked",
            f"{key}: the other partitions go on",
            id="messages-for-other-partitions-are-acked",
        )
        criterion = f"{key}: its message is stored in its partition"
        found = places(broker, body + key.encode())
        expect.equal(found, [KEYS[key]], criterion, id="messages-are-in-the-partition-of-their-key")


@scenario(
    "RMQS-7.09",
    "SHOULD",
    "critical",
    basis=["R13", "R14", "R19"],
    needs=["super_streams", "auto_reconnect"],
    roles=PUBLISHER,
    server={"nodes": 2},
    timeout_s=90,
)
async def partition_moves(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Leader of a partition moves.

    Fault: Two nodes; MetadataUpdate(6) for one partition, whose leader is on the other node then
    Pass: Messages for the other partitions are `acked` meanwhile; within 30 s one for the partition that
    moved is stored by its new leader; all that was `acked` is stored in the partition of its key
    """
    super_stream(broker)
    for partition in PARTITIONS:
        broker.move_leader(partition, 1)
    await reconnecting(client)
    for key in KEYS:
        expect.prepared(await publish(client, b"<first>", key, timeout=10.0))
    mark, begun = broker.journal.last_seq, broker.now
    acked: list[bytes] = []
    new = broker.nodes[1].port
    broker.move_leader(WEST, 2)

    def is_there() -> bool:
        frames = received(broker, "Publish", since=mark)
        return bool(acked) and any(node_port(broker, r.connection) == new for r in frames)

    await _goes_on(broker, client, expect, b"meanwhile ")
    while not is_there() and broker.now - begun < 30.0:
        body = b"<moved %d>" % round(broker.now * 1000)
        if (await publish(client, body, "amer")).ok:
            acked.append(body)
        await asyncio.sleep(0.1)
    expect.that(
        is_there(),
        "within 30 s the new leader gets the partition's messages",
        f"{len(acked)} were acked",
        id="within-n-s-the-new-leader-gets-the-partition-s-messages",
    )
    lost = [body for body in acked if WEST not in places(broker, body)]
    expect.that(not lost, "what was acked is stored", lost[:3], id="what-was-acked-is-stored")


@scenario(
    "RMQS-7.10", "SHOULD", "critical", basis=["R14", "R19"], needs=["super_streams"], roles=BOTH, timeout_s=90
)
async def partition_is_deleted(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Partition is deleted.

    Fault: A partition is deleted while the client publishes to all three and reads all three:
    MetadataUpdate(6), Metadata says 2
    Pass: The end of the partition is reported, or a message for it fails; that message is not `acked` and
    does not hang; messages for the other partitions are `acked`, and delivered
    """
    super_stream(broker)
    await reconnecting(client)
    await client.subscribed(SUPER, offset=FIRST, super_stream=True)
    for key in KEYS:
        expect.prepared(await publish(client, f"{KEYS[key]} 0".encode(), key))
    await client.wait_messages(len(KEYS))
    events = len(client.events)
    broker.delete_stream(WEST)
    await until(lambda: losses(client, events), 5.0)
    result = await publish(client, b"lost", "amer", timeout=10.0)
    expect.outcome(
        result,
        ("nacked", "unknown"),
        "a message for the partition that is gone fails",
        id="a-message-for-the-partition-that-is-gone-fails",
    )
    for key in ("apac", "emea"):
        body = f"{KEYS[key]} 1".encode()
        result = await publish(client, body, key, timeout=10.0)
        criterion = f"{key}: messages for the other partitions are acked"
        expect.outcome(result, "acked", criterion, id="messages-for-other-partitions-are-acked")
        await until(partial(_has, client, "c1", KEYS[key], (1, body)), 5.0)
        criterion = f"{key}: messages of the other partitions are delivered"
        got = by_partition(client)[KEYS[key]]
        expect.that((1, body) in got, criterion, got, id="messages-of-other-partitions-are-surfaced")


@scenario("RMQS-7.11", "SHOULD", "critical", basis=["R9", "R19"], needs=["super_streams"], roles=CONSUMER)
async def all_partitions(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Consumer of all partitions.

    Fault: Three partitions with different numbers of messages, in several chunks each
    Pass: One Subscribe for each partition; every message is delivered once, in the order of its partition,
    with its offset there
    """
    super_stream(broker)
    wanted = {name: list(enumerate(fill(broker, client, name, 0, count))) for name, count in COUNTS.items()}
    await client.connected()
    await client.subscribed(SUPER, offset=FIRST, super_stream=True)
    total = sum(COUNTS.values())
    await client.wait_messages(total)
    await client.wait_messages(total + 1, within_s=QUIET_S)
    asked_for = [asked(record).stream for record in received(broker, "Subscribe")]
    expect.equal(
        sorted(asked_for), sorted(PARTITIONS), "one Subscribe for each partition", id="one-subscribe-for-each"
    )
    for partition, found in by_partition(client).items():
        criterion = f"{partition}: each message once, in order, with its offset"
        expect.equal(found, wanted[partition], criterion, id="each-message-once-in-order-with-its-offset")


@scenario(
    "RMQS-7.12",
    "SHOULD",
    "critical",
    basis=["R9", "R19"],
    needs=["super_streams", "auto_reconnect"],
    roles=CONSUMER,
    timeout_s=90,
)
async def offsets_of_each_partition(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Offsets of each partition after a loss.

    Fault: Three partitions with different numbers of messages, all of them delivered; RST on all connections;
    then two more in each
    Pass: Each partition goes on without a gap: its own messages after those that were delivered (repeats
    allowed)
    """
    super_stream(broker)
    for name, count in COUNTS.items():
        fill(broker, client, name, 0, count)
    await reconnecting(client)
    await client.subscribed(SUPER, offset=FIRST, super_stream=True)
    total = sum(COUNTS.values())
    found = await client.wait_messages(total)
    expect.exercised(len(found) == total, "not everything was delivered", id="not-everything-was-surfaced")
    mark = broker.journal.last_seq
    broker.kill(how="rst")
    for name, count in COUNTS.items():
        fill(broker, client, name, count, 2)

    def missing() -> dict[str, list[int]]:
        got = {name: {at for at, _ in messages} for name, messages in by_partition(client).items()}
        return {name: gap for name in COUNTS if (gap := sorted({*range(COUNTS[name] + 2)} - got[name]))}

    await until(lambda: not missing(), 30.0)
    expect.that(
        all(subscribes(broker, name, mark) for name in COUNTS),
        "each partition is subscribed again",
        [name for name in COUNTS if not subscribes(broker, name, mark)],
        id="each-partition-is-subscribed-again",
    )
    expect.that(not missing(), "each partition goes on without a gap", missing(), id="no-partition-has-a-gap")
    for name, messages in by_partition(client).items():
        wrong = [(at, body) for at, body in messages if body != f"{name} {at}".encode()]
        expect.that(
            not wrong, "each message has its own offset", wrong[:3], id="each-message-has-its-own-offset"
        )


def _updates(broker: RabbitMQStream, partition: str, active: int) -> list[Record]:
    """What the server has said to consumers of a partition: begin, or stop."""
    reported = []
    for found in subscribes(broker, partition):
        for record in sent(broker, "ConsumerUpdate", connection=found.connection):
            frame = record.frame
            assert isinstance(frame, ConsumerUpdate)
            if frame.active == active and frame.subscription_id == asked(found).subscription_id:
                reported.append(record)
    return reported


async def _all_answered(broker: RabbitMQStream, expect: Expect, updates: list[Record]) -> None:
    for update in updates:
        await expect.wire(
            broker,
            "each ConsumerUpdate is answered within 5 s",
            within_s=limit_s(5.0),
            kind="ConsumerUpdateResponse",
            connection=update.connection,
            where=lambda r, update=update: r.keys == update.keys,  # type: ignore[misc]
            id="each-consumerupdate-is-answered",
        )


def _has(client: Client, sub: str, partition: str, one: tuple[int, bytes]) -> bool:
    return one in by_partition(client, sub)[partition]


async def _read_by(
    broker: RabbitMQStream, client: Client, expect: Expect, number: int, wanted: dict[str, str]
) -> None:
    """What comes now in a partition is delivered by the session's consumer that is named for it."""
    for partition in wanted:
        fill(broker, client, partition, number, 1)
    for partition, sub in wanted.items():
        one = (number, f"{partition} {number}".encode())
        await until(partial(_has, client, sub, partition, one), 5.0)
        subs = [each for each in ("c1", "c2") if _has(client, each, partition, one)]
        criterion = f"{partition}: the active consumer, and no other, delivers its messages"
        expect.equal(subs, [sub], criterion, id=slug("message-{}-is-surfaced-by-the-active-consumer", number))


@scenario(
    "RMQS-7.13",
    "SHOULD",
    "critical",
    basis=["R9", "R19", "R20"],
    needs=["super_streams", "sac"],
    roles=CONSUMER,
    timeout_s=90,
)
async def single_active_consumers(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Single active consumers of a super stream.

    Fault: Two partitions, two sessions with a consumer of the same group; the second makes the server take
    one partition from the first (ConsumerUpdate active 0, then active 1 to the second); later the second is
    closed
    Pass: The Subscribe frames name the group, the super stream and `single-active-consumer` with the string
    `true`; each ConsumerUpdate is answered within 5 s; each session delivers what comes in one partition
    then, and the first that of both after the other's end
    """
    super_stream(broker, TWO)
    properties = {"single-active-consumer": "true", "name": GROUP}
    said_by_client = {**properties, "super-stream": SUPER}
    more = {"offset": FIRST, "name": GROUP, "properties": properties, "super_stream": True}
    await client.connected("s1")
    await client.subscribed(SUPER, "c1", session="s1", **more)
    await until(lambda: all(_updates(broker, name, 1) for name in TWO.values()), 5.0)
    for name in TWO.values():
        said = {
            key: text for r in subscribes(broker, name) for key, text in (asked(r).properties or {}).items()
        }
        named = {key: said.get(key) for key in said_by_client}
        expect.equal(
            named, said_by_client, "Subscribe names group and super stream", id="subscribe-has-the-properties"
        )
        await _all_answered(broker, expect, _updates(broker, name, 1))
    await asyncio.sleep(0.1)
    await _read_by(broker, client, expect, 0, {WEST: "c1", EAST: "c1"})
    await client.connected("s2")
    await client.subscribed(SUPER, "c2", session="s2", **more)
    await until(lambda: len(_updates(broker, EAST, 1)) > 1, 10.0)
    await _all_answered(broker, expect, [*_updates(broker, EAST, 0), *_updates(broker, EAST, 1)])
    expect.that(
        len(_updates(broker, EAST, 1)) > 1,
        "the second partition is given to the second consumer",
        "it is not",
        id="the-second-partition-is-given-to-the-second-consumer",
    )
    await asyncio.sleep(0.1)
    await _read_by(broker, client, expect, 1, {WEST: "c1", EAST: "c2"})
    expect.prepared(await client.close("s2", timeout=10.0))
    await until(lambda: len(_updates(broker, EAST, 1)) > 2, 10.0)
    await _all_answered(broker, expect, _updates(broker, EAST, 1)[2:])
    await asyncio.sleep(0.1)
    await _read_by(broker, client, expect, 2, {WEST: "c1", EAST: "c1"})
