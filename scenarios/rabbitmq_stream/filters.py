"""RMQS-8 Filters: values with messages, and subscriptions that want some of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conformance.suite import Client, Expect, scenario
from fakebrokers import RabbitMQStream
from fakebrokers.core.frames import Malformed
from fakebrokers.journal import Record
from fakebrokers.rabbitmq_stream.frames import Publish
from scenarios._common import received, until
from scenarios.rabbitmq_stream._deliveries import (
    CHUNK_PER_CREDIT,
    FIRST,
    QUIET_S,
    asked,
    attached,
    bodies_of,
    model,
    record,
    subscribes,
)
from scenarios.rabbitmq_stream._lifecycle import positions, reconnecting
from scenarios.rabbitmq_stream._steps import CONSUMER, NOT_LATE, PUBLISHER, STREAM, stores

RED = {"values": ["red"]}
PUBLISH_2 = "Publish (key 0x0002, version 2)"  #: how a fake names the frame that it does not know


def _write(broker: RabbitMQStream, client: Client, *bodies: str) -> None:
    """Append a chunk of messages with their filter values, as publishers with filters do."""
    values = [body.partition(":")[0] if ":" in body else None for body in bodies]
    stored = [record(client, body.encode()) for body in bodies]
    broker.call(lambda: model(broker).publish(stored, broker.engine.now, values))


def _wanted_by(found: Record) -> tuple[list[str], bool]:
    """What a Subscribe asks for: the filter values, and whether messages without one are wanted."""
    properties: Any = asked(found).properties or {}
    values = sorted(value for key, value in properties.items() if key.startswith("filter."))
    return values, properties.get("match-unfiltered", "false") == "true"


async def _delivered(client: Client, expect: Expect, wanted: Sequence[str], sub: str = "c1") -> None:
    """These messages are delivered, and nothing else."""
    await client.wait_messages(len(wanted), sub)
    await client.wait_messages(len(wanted) + 1, sub, QUIET_S)
    got = [body.decode() for body in bodies_of(client.messages(sub))]
    criterion = "the wanted messages are delivered, and no other"
    expect.equal(got, list(wanted), criterion, id="the-wanted-messages-are-surfaced-and-no-other")


async def _sent_with(
    broker: RabbitMQStream, client: Client, expect: Expect, values: dict[str, str | None]
) -> None:
    """Each of these bodies is sent with its value."""
    broker.create_stream(STREAM)
    await client.connected()
    for body in values:
        result = await client.publish(STREAM, body, filtered=True)
        expect.outcome(result, "acked", f"{body}: the message is acked", id="each-message-is-acked")
        found = stores(broker, body.encode())
        expect.equal(found, 1, f"{body}: it is stored once", id="each-message-is-stored-once")
    there: list[str | None] = []
    for found_record in received(broker, "Publish"):
        frame = found_record.frame
        assert isinstance(frame, Publish)
        there += [value or None for value in frame.filter_values] or ["version 1"] * frame.count
    criterion = "each message has its filter value"
    expect.equal(there, list(values.values()), criterion, id="each-message-has-its-filter-value")


@scenario("RMQS-8.01", "SHOULD", "high", basis=["R7", "R21"], needs=["filters"], roles=PUBLISHER)
async def filter_values(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Filter values with messages.

    Fault: Messages with filter values, one of them outside ASCII
    Pass: Publish version 2 with the value of each message; all `acked` and stored
    """
    await _sent_with(broker, client, expect, {"red:1": "red", "blue:2": "blue", "größe:3": "größe"})


@scenario("RMQS-8.07", "SHOULD", "high", basis=["R4", "R7", "R21"], needs=["filters"], roles=PUBLISHER)
async def message_without_a_value(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Message without a value among others.

    Fault: A publisher with filter values sends messages with a value, without one, and with one again
    Pass: The value of the second is null or empty; all are `acked` and stored
    """
    await _sent_with(broker, client, expect, {"red:1": "red", "plain": None, "red:3": "red"})


@scenario("RMQS-8.02", "SHOULD", "high", basis=["R9", "R21"], needs=["filters"], roles=CONSUMER)
async def filter_of_subscribe(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Filter in Subscribe.

    Fault: Chunks of messages with the values red, green and blue; a subscription that wants red and blue
    Pass: Subscribe has a property `filter.<anything>` for each value and no `match-unfiltered` but `false`;
    the messages with red and blue are delivered, nothing else
    """
    broker.create_stream(STREAM)
    for body in ("red:1", "green:2", "blue:3", "green:4"):
        _write(broker, client, body)
    await client.connected()
    await client.subscribed(STREAM, offset=FIRST, filter={"values": ["red", "blue"]})
    wanted = _wanted_by(await attached(broker, expect))
    expect.equal(
        wanted, (["blue", "red"], False), "Subscribe names the filter's values", id="subscribe-has-the-filter"
    )
    await _delivered(client, expect, ["red:1", "blue:3"])


@scenario("RMQS-8.03", "SHOULD", "high", basis=["R9", "R21"], needs=["filters"], roles=CONSUMER)
async def messages_without_a_value(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Messages without a filter value.

    Fault: Chunks of messages with red, with green and without a value; one subscription wants red, another
    red and what has no value
    Pass: `match-unfiltered` is `true` for the second one only, and only that one delivers the messages
    without a value
    """
    broker.create_stream(STREAM)
    for body in ("red:1", "plain 2", "green:3", "red:4"):
        _write(broker, client, body)
    wishes = {"c1": (False, ["red:1", "red:4"]), "c2": (True, ["red:1", "plain 2", "red:4"])}
    for sub, (unfiltered, wanted) in wishes.items():
        mark = broker.journal.last_seq
        await client.connected(sub)  # some libraries read a stream once only in a session
        wish = {**RED, "unfiltered": unfiltered}
        await client.subscribed(STREAM, sub, session=sub, offset=FIRST, filter=wish)
        found = _wanted_by(await attached(broker, expect, since=mark))
        criterion = "Subscribe says whether messages without a value are wanted"
        expect.equal(
            found, (["red"], unfiltered), criterion, id="subscribe-says-whether-unfiltered-are-wanted"
        )
        await _delivered(client, expect, wanted, sub)


@scenario(
    "RMQS-8.04",
    "SHOULD",
    "critical",
    basis=["R10", "R21"],
    needs=["filters"],
    roles=CONSUMER,
    server=CHUNK_PER_CREDIT,
)
async def filter_again(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Filter again what the server lets through.

    Fault: A chunk with wanted and other messages, as filters choose whole chunks; then more chunks without a
    wanted message than the credit allows (false positives), then one with a wanted message
    Pass: Only the wanted messages are delivered, with their offsets; the last one too: chunks without any
    give their credit back
    """
    broker.create_stream(STREAM)
    model(broker).false_positives = True
    _write(broker, client, "red:0", "green:1", "plain 2", "red:3")
    await client.connected()
    await client.subscribed(STREAM, offset=FIRST, credit=2, filter=RED)
    await _delivered(client, expect, ["red:0", "red:3"])
    given = asked(await attached(broker, expect)).credit
    for number in range(2 * given + 2):
        _write(broker, client, f"green:{number}")
    _write(broker, client, "red:last")
    await _delivered(client, expect, ["red:0", "red:3", "red:last"])
    expect.equal(
        positions(client, "c1"),
        [0, 3, 2 * given + 6],
        "with their offsets in the stream",
        id="with-their-offsets-in-the-stream",
    )


@scenario(
    "RMQS-8.05",
    "SHOULD",
    "high",
    basis=["R9", "R21"],
    needs=["filters", "auto_reconnect"],
    roles=CONSUMER,
    timeout_s=60,
)
async def filter_after_a_loss(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Filter after a loss.

    Fault: RST after wanted messages were delivered; then other and wanted messages are written
    Pass: The new Subscribe has the same filter; the wanted messages are delivered, no other one
    """
    broker.create_stream(STREAM)
    for body in ("red:0", "green:1"):
        _write(broker, client, body)
    await reconnecting(client)
    await client.subscribed(STREAM, offset=FIRST, filter=RED)
    await _delivered(client, expect, ["red:0"])
    mark = broker.journal.last_seq
    broker.kill(how="rst")
    for body in ("green:2", "red:3"):
        _write(broker, client, body)
    await until(lambda: subscribes(broker, since=mark), 30.0)
    found = subscribes(broker, since=mark)
    expect.that(found, "there is a new Subscribe", "none came in 30 s", id="there-is-a-new-subscribe")
    wanted = _wanted_by(found[-1])
    expect.equal(
        wanted, (["red"], False), "it has the same filter", id="the-new-subscribe-has-the-same-filter"
    )
    await until(lambda: b"red:3" in bodies_of(client.messages()), 5.0)
    got = set(bodies_of(client.messages()))
    expect.equal(
        got, {b"red:0", b"red:3"}, "the wanted messages, and no other", id="the-wanted-messages-and-no-other"
    )


@scenario(
    "RMQS-8.06",
    "SHOULD",
    "high",
    basis=["R20", "R21"],
    needs=["filters"],
    roles=PUBLISHER,
    server={"profile": "3.10"},
)
async def filter_values_for_an_older_broker(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Filter values for an older broker.

    Fault: Profile 3.10, which answers Publish version 2 with Close 13; a message with a filter value, then
    one without
    Pass: No Publish version 2 is sent; the first message fails (any kind but `timeout`), or is `acked` and
    stored without its value; the second is `acked`
    """
    broker.create_stream(STREAM)
    await client.connected()
    result = await client.publish(STREAM, "red:1", filtered=True)
    unread = [r.frame for r in broker.journal.select(kind="Malformed")]
    second = [
        frame for frame in unread if isinstance(frame, Malformed) and frame.problem.startswith(PUBLISH_2)
    ]
    expect.that(not second, "no Publish version 2 is sent", second[:1], id="no-publish-version-n-is-sent")
    if result.ok:
        expect.equal(stores(broker, b"red:1"), 1, "what was acked is stored", id="what-was-acked-is-stored")
    else:
        expect.failed(result, NOT_LATE, "the message fails", id="the-message-fails")
    result = await client.publish(STREAM, b"plain")
    expect.outcome(result, "acked", "the next message is acked", id="the-next-message-is-acked")
