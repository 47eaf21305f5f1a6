"""RMQS-4 Consuming: single active consumers."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import RabbitMQStream
from fakebrokers.journal import Record, Tap
from fakebrokers.rabbitmq_stream.frames import ConsumerUpdate, ConsumerUpdateResponse
from fakebrokers.rabbitmq_stream.groups import Group, GroupKey
from scenarios._common import limit_s, received
from scenarios.rabbitmq_stream._deliveries import (
    FIRST,
    asked,
    attached,
    delivered_messages,
    numbered,
    positions,
    start_of,
    write,
)
from scenarios.rabbitmq_stream._steps import CONSUMER, STREAM, say

GROUP = "app"
PROPERTIES = {"single-active-consumer": "true", "name": GROUP}
ANSWER_S = 5.0


class _Rival:
    """Another consumer of the group, somewhere else."""

    def activate(self, now: float) -> None:
        """It would begin to read."""

    def step_down(self, now: float) -> None:
        """Do nothing, where the coordinator would give up its turn."""


async def _answered(broker: RabbitMQStream, expect: Expect, update: int, within_s: float) -> Record:
    """The one answer to the ConsumerUpdate of that number."""
    found = await expect.wire(
        broker,
        f"ConsumerUpdate {update} is answered with its correlation id",
        within_s=limit_s(within_s),
        kind="ConsumerUpdateResponse",
        tap=Tap.RECEIVED,
        where=lambda r: r.keys == (update,),
        id=slug("consumerupdate-{}-is-answered-with-its-correlation-id", update),
    )
    return found[0]


def _position(broker: RabbitMQStream, expect: Expect, answer: Record) -> int:
    """Where the stream goes on for this answer, as it is now."""
    frame = answer.frame
    assert isinstance(frame, ConsumerUpdateResponse)
    expect.equal(frame.code, 1, "the answer has code 1", id="the-answer-has-code-n")
    expect.that(
        0 <= frame.offset_type <= 5,
        "the answer has an offset type from 0 to 5",
        frame.offset_type,
        id="the-answer-has-an-offset-type-from-n-to-n",
    )
    kind, value = frame.offset_type, frame.offset
    if kind == 0:
        subscribe = asked(received(broker, "Subscribe")[-1])
        kind, value = subscribe.offset_type, subscribe.offset
    return start_of(broker, kind, value)


@scenario("RMQS-4.35", "SHOULD", "high", basis=["R9", "R20"], needs=["sac"], roles=CONSUMER)
async def single_active_consumer(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Single active consumer is activated.

    Fault: Subscribe with `single-active-consumer` and `name`; answer 1, then ConsumerUpdate (0x001a,
    correlation id 0, active 1); nothing is delivered before it is answered, then from the answered spec
    Pass: Property value is the string `true`; exactly one answer 0x801a with id 0, code 1, offset type 0..5
    (8 value bytes tolerated for 1..3); messages delivered from that position; a second ConsumerUpdate with
    the next id is answered too
    Seen: rstream#228
    """
    broker.create_stream(STREAM)
    write(broker, client, numbered(0, 5))
    write(broker, client, numbered(5, 5))
    await client.connected()
    await client.subscribed(STREAM, offset=FIRST, name=GROUP, properties=PROPERTIES)
    found = await attached(broker, expect)
    properties: Any = asked(found).properties or {}
    expect.equal(
        properties.get("single-active-consumer"),
        "true",
        "the property's value is the string true",
        id="the-property-s-value-is-the-string-true",
    )
    answer = await _answered(broker, expect, 0, ANSWER_S)
    start = _position(broker, expect, answer)
    await asyncio.sleep(0.1)
    write(broker, client, numbered(10, 2))
    got = positions(await delivered_messages(client, 12 - start))
    expect.equal(
        got,
        [*range(start, 12)],
        "messages are delivered from the answered position",
        id="messages-are-surfaced-from-the-answered-position",
    )
    say(broker, expect, found.connection, ConsumerUpdate(1, asked(found).subscription_id, 1))
    await _answered(broker, expect, 1, ANSWER_S)
    answers = [r.keys[0] for r in received(broker, "ConsumerUpdateResponse")]
    expect.equal(
        answers,
        [0, 1],
        "exactly one answer to each ConsumerUpdate",
        id="exactly-one-answer-to-each-consumerupdate",
    )


@scenario(
    "RMQS-4.36",
    "SHOULD",
    "critical",
    basis=["R9", "R20"],
    needs=["sac", "callback_sleep"],
    roles=CONSUMER,
    timeout_s=60,
)
async def hand_over_while_busy(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Hand-over while the handler is busy.

    Fault: Active consumer of a super stream partition, callback sleeps 3 s; ConsumerUpdate active 0 meanwhile
    (real server: connection dropped after 60 s without an answer); 5 s later active 1 again
    Pass: Both answered with their correlation ids, each within 5 s; the connection stays; the messages after
    the second answer start at the answered position
    Seen: stream-dotnet-client#246
    """
    broker.create_stream(STREAM)
    for number in range(5):
        write(broker, client, numbered(number, 1))
    await client.connected()
    slow = {"mode": "event", "sleep_ms": 3000}
    await client.subscribed(STREAM, offset=FIRST, name=GROUP, properties=PROPERTIES, on_message=slow)
    found = await attached(broker, expect)
    await _answered(broker, expect, 0, ANSWER_S)
    await asyncio.sleep(0.1)
    write(broker, client, numbered(5, 1))
    await client.wait_messages(1)
    expect.exercised(client.messages(), "no handler is busy", id="no-handler-is-busy")
    rival, key = _Rival(), GroupKey("/", STREAM, GROUP)
    group: Group = broker.broker.coordinator.groups[key]
    group.partition = 1  # the second partition of a super stream: the second of two consumers reads it
    broker.call(lambda: broker.broker.coordinator.join(key, rival, 1, broker.engine.now))
    await _answered(broker, expect, 1, ANSWER_S)
    await asyncio.sleep(5.0)
    broker.call(lambda: broker.broker.coordinator.leave(key, rival, broker.engine.now))
    answer = await _answered(broker, expect, 2, ANSWER_S)
    before, start = len(client.messages()), _position(broker, expect, answer)
    expect.that(
        broker.client_holds(found.connection),
        "the connection stays",
        "it is closed",
        id="the-connection-stays",
    )
    await asyncio.sleep(0.1)
    write(broker, client, numbered(6, 1))
    after = positions(await client.wait_messages(before + 1, within_s=8.0))[before:]
    expect.equal(
        after[:1],
        [start],
        "the messages after the second answer start at the answered position",
        id="the-messages-after-the-second-answer-start-at-the-answered",
    )
