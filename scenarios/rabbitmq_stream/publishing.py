"""RMQS-3 Publishing."""

from __future__ import annotations

import asyncio

from conformance.suite import Client, Expect, scenario
from fakebrokers import RabbitMQStream
from fakebrokers.faults import drop, duplicate, inject
from fakebrokers.journal import Tap
from fakebrokers.rabbitmq_stream.publishing import pack_ids
from scenarios.rabbitmq_stream._steps import PUBLISHER, STREAM


@scenario("RMQS-3.06", roles=PUBLISHER)
async def confirm_for_unknown_id(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    broker.create_stream(STREAM)
    await client.connected()
    expect.prepared(await client.publish(STREAM, b"first"))
    declared = broker.journal.select(kind="Publish")[0]
    stray = {"publisher_id": declared.frame.publisher_id, "publishing_ids": pack_ids([1 << 40])}
    broker.faults.add(inject(kind="PublishConfirm", fields=stray, place="before", role="confirm", nth=1))
    result = await client.publish(STREAM, b"second")
    expect.outcome(result, "acked", "a confirm for an id that was never sent is ignored")
    expect.outcome(await client.publish(STREAM, b"third"), "acked", "the publisher goes on")


@scenario("RMQS-3.08", roles=PUBLISHER)
async def duplicate_confirm(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    broker.create_stream(STREAM)
    await client.connected()
    broker.faults.add(duplicate(role="confirm"))
    first, second = client.begin_publish(STREAM, b"1"), client.begin_publish(STREAM, b"2")
    for result in (await first, await second):
        expect.outcome(result, "acked", "each message is reported acked")
    await expect.reached(broker, "both confirms went out twice", role="confirm", tap=Tap.SENT, count=2)
    await asyncio.sleep(0.2)
    late = [e for e in client.events if e.event in ("outcome", "error")]
    expect.that(not late, "one completion for each message", late)
    expect.outcome(await client.publish(STREAM, b"3"), "acked", "the publisher goes on")


@scenario("RMQS-3.09", roles=PUBLISHER, timeout_s=90)
async def confirm_never_comes(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    broker.create_stream(STREAM)
    await client.connected()
    deadline = client.deadline_s("publish", 1.0)
    broker.faults.add(drop(role="confirm", name="lost confirms"))
    result = await client.publish(STREAM, b"hello", timeout=1.0)
    expect.outcome(result, "unknown", "a publish whose confirm is lost ends unknown at its deadline")
    expect.within(result.elapsed_ms / 1000, deadline * 1.2 + 0.25, "it ends at the deadline")
    broker.faults.remove("lost confirms")
    expect.outcome(
        await client.publish(STREAM, b"again"), "acked", "the producer accepts new messages afterwards"
    )
