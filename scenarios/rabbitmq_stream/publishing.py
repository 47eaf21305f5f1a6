"""RMQS-3 Publishing: confirms and refusals."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from conformance.adapter.result import Result
from conformance.suite import Client, Expect, scenario
from fakebrokers import RabbitMQStream
from fakebrokers.core.frames import Frame
from fakebrokers.faults import drop, duplicate, inject
from fakebrokers.journal import Record, Tap
from fakebrokers.rabbitmq_stream.binary import pack_ids
from fakebrokers.rabbitmq_stream.frames import Publish, PublishConfirm, PublishError
from scenarios.rabbitmq_stream._sending import Sent, begin_publishing, sends_singly
from scenarios.rabbitmq_stream._steps import PUBLISHER, STREAM, received

LOST = "confirms are lost"


async def hold_confirms(broker: RabbitMQStream, client: Client, expect: Expect, count: int) -> list[Sent]:
    """Publish `count` messages whose confirms never leave; returns them once all are on the wire."""
    broker.faults.add(drop(role="confirm", name=LOST))
    mark = broker.journal.last_seq
    sent = begin_publishing(client, STREAM, [b"message %d" % n for n in range(count)])
    await came(broker, expect, count, mark)
    return sent


def published(broker: RabbitMQStream, since: int = 0) -> list[tuple[Record, int]]:
    """Each message that came: its Publish frame and publishing id."""
    return [(r, int(key)) for r in received(broker, "Publish", since=since) for key in r.keys]


def publisher_of(broker: RabbitMQStream) -> tuple[str, int]:
    """Connection and publisher id of the newest Publish."""
    record = received(broker, "Publish")[-1]
    assert isinstance(record.frame, Publish)
    return record.connection, record.frame.publisher_id


def confirm(broker: RabbitMQStream, ids: Sequence[int]) -> None:
    """Confirm publishing ids on the connection that published last."""
    connection, publisher_id = publisher_of(broker)
    broker.say(connection, PublishConfirm(publisher_id, pack_ids(ids)))


def all_acked(expect: Expect, results: Sequence[Result], criterion: str) -> None:
    """Every publish ended acked."""
    for number, result in enumerate(results):
        expect.outcome(result, "acked", f"{criterion} (message {number + 1})")


def no_second_completion(client: Client, expect: Expect) -> None:
    """No outcome or error was reported besides the answers."""
    late = [e for e in client.events if e.event in ("outcome", "error")]
    expect.that(not late, "one completion for each message", late[:2])


@scenario("RMQS-3.01", roles=PUBLISHER)
async def publish_and_confirm(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    broker.create_stream(STREAM)
    await client.connected()
    for grouping in ("one frame per id", "one frame for all", "ids of two Publish frames"):
        if grouping == "ids of two Publish frames" and not sends_singly(client, 6):
            continue
        broker.faults.clear()
        mark = broker.journal.last_seq
        broker.faults.add(drop(role="confirm", name=LOST))
        bodies = [b"%d" % n for n in range(6)]
        if grouping == "ids of two Publish frames":
            calls = begin_publishing(client, STREAM, bodies[:3])
            await asyncio.sleep(0.1)
            calls += begin_publishing(client, STREAM, bodies[3:])
        else:
            calls = begin_publishing(client, STREAM, bodies)
        await came(broker, expect, 6, mark)
        ids = [key for _, key in published(broker, mark)]
        for group in [[key] for key in ids] if grouping == "one frame per id" else [ids]:
            confirm(broker, group)
        all_acked(expect, [await call for call in calls], f"{grouping}: every message is reported acked")
    no_second_completion(client, expect)


async def came(broker: RabbitMQStream, expect: Expect, count: int, since: int = 0) -> None:
    """Wait for `count` messages on the wire."""
    for _ in range(200):
        if len(published(broker, since)) >= count:
            return
        await asyncio.sleep(0.02)
    expect.exercised(False, f"{len(published(broker, since))} of {count} messages came in 4 s")


@scenario("RMQS-3.02", roles=PUBLISHER)
async def confirms_out_of_order(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    broker.create_stream(STREAM)
    await client.connected()
    calls = await hold_confirms(broker, client, expect, 5)
    ids = [key for _, key in published(broker)]
    confirm(broker, [ids[4], ids[0], ids[2]])
    await asyncio.sleep(0.3)
    done = [number + 1 for number, call in enumerate(calls) if call.done]
    wanted = [1, 3, 5] if sends_singly(client, 5) else []
    expect.equal(done, wanted, "messages are confirmed by id, not by position")
    confirm(broker, [ids[1], ids[3]])
    all_acked(expect, [await call for call in calls], "each message is confirmed")
    no_second_completion(client, expect)


@scenario("RMQS-3.03", roles=PUBLISHER)
async def partial_confirm(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    broker.create_stream(STREAM)
    await client.connected()
    calls = await hold_confirms(broker, client, expect, 10)
    ids = [key for _, key in published(broker)]
    confirmed = (0, 1, 3, 5, 8, 9)
    confirm(broker, [ids[n] for n in confirmed])
    for number in confirmed if sends_singly(client, 10) else ():
        expect.outcome(await calls[number], "acked", f"message {number + 1}, which was confirmed, is acked")
    open_calls = [call for number, call in enumerate(calls) if number not in confirmed]
    await asyncio.sleep(0.2)
    early = [call for call in open_calls if call.done]
    for call in early:
        result = await call
        expect.outcome(result, "unknown", "the others are never acked or nacked")
    if client.can("ack_timeout"):
        for call in open_calls:
            expect.outcome(await call, "unknown", "the others end unknown at their time-out")
        return
    expect.tolerate(False, "the others end as timeout", "the library has no confirm time-out")
    closing = await client.close()
    expect.ended(closing, "close ends")
    for call in open_calls:
        expect.outcome(await call, "unknown", "the others end unknown with the close")


@scenario("RMQS-3.04", roles=PUBLISHER)
async def publish_error(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    broker.create_stream(STREAM)
    await client.connected()
    calls = await hold_confirms(broker, client, expect, 5)
    ids = [key for _, key in published(broker)]
    connection, publisher_id = publisher_of(broker)
    broker.say(connection, PublishError(publisher_id, ((ids[1], 17), (ids[2], 17))))
    confirm(broker, [ids[0], ids[3], ids[4]])
    for number in (1, 2):
        result = await calls[number]
        criterion = f"message {number + 1} is nacked with code 17"
        expect.outcome(result, "nacked", criterion)
        expect.equal(result.code, 17, criterion)
    for number in (0, 3, 4) if sends_singly(client, 5) else ():
        expect.outcome(await calls[number], "acked", f"message {number + 1} is acked")


@scenario("RMQS-3.05", roles=PUBLISHER)
async def unknown_error_code(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    broker.create_stream(STREAM)
    await client.connected()
    (call,) = await hold_confirms(broker, client, expect, 1)
    (_, key), (connection, publisher_id) = published(broker)[0], publisher_of(broker)
    broker.say(connection, PublishError(publisher_id, ((key, 999),)))
    expect.outcome(await call, "nacked", "the message is nacked")
    broker.faults.clear()
    expect.outcome(await client.publish(STREAM, b"next"), "acked", "the publisher goes on")


@scenario("RMQS-3.06", roles=PUBLISHER)
async def confirm_for_unknown_id(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    broker.create_stream(STREAM)
    await client.connected()
    expect.prepared(await client.publish(STREAM, b"first"))
    _, publisher_id = publisher_of(broker)
    stray = {"publisher_id": publisher_id, "publishing_ids": pack_ids([1 << 40])}
    broker.faults.add(inject(kind="PublishConfirm", fields=stray, place="before", role="confirm", nth=1))
    result = await client.publish(STREAM, b"second")
    expect.outcome(result, "acked", "a confirm for an id that was never sent is ignored")
    expect.outcome(await client.publish(STREAM, b"third"), "acked", "the publisher goes on")


@scenario("RMQS-3.07", roles=PUBLISHER)
async def confirm_for_unknown_publisher(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    broker.create_stream(STREAM)
    await client.connected()
    calls = await hold_confirms(broker, client, expect, 3)
    ids = [key for _, key in published(broker)]
    connection, publisher_id = publisher_of(broker)
    expect.exercised(publisher_id != 200, "the client's publisher has the id 200")
    broker.say(connection, PublishConfirm(200, pack_ids(ids)))
    await asyncio.sleep(1.0)
    expect.that(not any(call.done for call in calls), "no message ends by the first frame", "some ended")
    confirm(broker, ids)
    all_acked(expect, [await call for call in calls], "all end acked by the second frame")


@scenario("RMQS-3.08", roles=PUBLISHER)
async def duplicate_confirm(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    broker.create_stream(STREAM)
    await client.connected()
    broker.faults.add(duplicate(role="confirm"))
    first, second = client.begin_publish(STREAM, b"1"), client.begin_publish(STREAM, b"2")
    all_acked(expect, [await first, await second], "each message is reported acked")
    await expect.reached(broker, "a confirm did not go out twice", role="confirm", tap=Tap.SENT, count=2)
    await asyncio.sleep(0.2)
    no_second_completion(client, expect)
    expect.outcome(await client.publish(STREAM, b"3"), "acked", "the publisher goes on")


@scenario("RMQS-3.09", roles=PUBLISHER, timeout_s=90)
async def confirm_lost(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    broker.create_stream(STREAM)
    await client.connected()
    deadline = client.deadline_s("publish", 1.0)
    broker.faults.add(drop(role="confirm", name=LOST))
    calls = [client.begin_publish(STREAM, b"hello", timeout=1.0) for _ in range(50)]
    for call in calls:
        result = await call
        expect.outcome(result, "unknown", "each publish ends unknown")
        expect.that(not result.hang, "at its deadline, no hang", str(result))
        expect.within(result.elapsed_ms / 1000, deadline * 1.2 + 0.25, "at its deadline")
    broker.faults.remove(LOST)
    after = await client.publish(STREAM, b"again")
    expect.outcome(after, "acked", "the producer accepts new messages afterwards")


@scenario("RMQS-3.15", roles=PUBLISHER)
async def publisher_does_not_exist(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    broker.create_stream(STREAM)
    await client.connected()
    broker.faults.add(drop(role="confirm", first=1, name=LOST))
    call = client.begin_publish(STREAM, b"1", timeout=4.0)
    await came(broker, expect, 1)
    connection, publisher_id = publisher_of(broker)
    keys = [key for _, key in published(broker)]
    broker.say(connection, PublishError(publisher_id, tuple((key, 18) for key in keys)))
    result = await call
    expect.outcome(result, ("nacked", "acked"), "each message ends once: nacked with 18, or acked anew")
    if result.outcome == "nacked":
        expect.equal(result.code, 18, "nacked with code 18")
    else:
        again = [key for _, key in published(broker)][1:]
        expect.that(again, "acked only after it was published again", "it was not")


@scenario("RMQS-3.21", roles=PUBLISHER)
async def equal_publishing_ids(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    for name in (STREAM, "bills"):
        broker.create_stream(name)
    await client.connected()
    broker.faults.add(drop(role="confirm", name=LOST))
    calls = {
        name: begin_publishing(client, name, [b"0", b"1", b"2"], timeout=5.0) for name in (STREAM, "bills")
    }
    await came(broker, expect, 6)
    frames: dict[tuple[str, int], list[int]] = {}
    for record in received(broker, "Publish"):
        frame: Frame | None = record.frame
        assert isinstance(frame, Publish)
        frames.setdefault((record.connection, frame.publisher_id), []).extend(int(k) for k in record.keys)
    shared = len({connection for connection, _ in frames}) == 1 and len(frames) == 2
    expect.exercised(shared, "the client has one connection per publisher")
    declared = [r.frame for r in received(broker, "DeclarePublisher")]
    owner = {d.publisher_id: d.stream for d in declared}  # type: ignore[union-attr]
    (connection, first), (_, second) = sorted(frames, key=lambda key: owner[key[1]] != STREAM)
    expect.exercised(
        set(frames[connection, first]) & set(frames[connection, second]), "the ids are not equal"
    )
    broker.say(connection, PublishConfirm(first, pack_ids(frames[connection, first])))
    all_acked(expect, [await call for call in calls[STREAM]], "the first publisher's messages are acked")
    await asyncio.sleep(0.2)
    expect.that(not any(c.done for c in calls["bills"]), "none of the second's ends by it", "some ended")
    errors = tuple((key, 17) for key in frames[connection, second])
    broker.say(connection, PublishError(second, errors))
    for call in calls["bills"]:
        result = await call
        expect.outcome(result, "nacked", "the second publisher's messages are nacked with 17")
        expect.equal(result.code, 17, "the second publisher's messages are nacked with 17")
