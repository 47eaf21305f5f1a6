"""RMQS-4 Consuming: where a subscription starts, goes on after a loss, and what is stored of it."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import RabbitMQStream
from fakebrokers.faults import drop, reply
from fakebrokers.journal import Record
from fakebrokers.rabbitmq_stream.batches import batch_entry
from fakebrokers.rabbitmq_stream.codes import Code, OffsetType
from fakebrokers.rabbitmq_stream.entries import simple_entries
from scenarios._common import received
from scenarios.rabbitmq_stream._deliveries import (
    FIRST,
    NEXT,
    QUIET_S,
    asked,
    attached,
    begin_at,
    bodies_of,
    delivered_messages,
    numbered,
    positions,
    record,
    store,
    write,
    write_entries,
)
from scenarios.rabbitmq_stream._steps import CONSUMER, STREAM, stream_exists

STORE = ("rmqs.store_offset",)
QUERY = ("rmqs.query_offset",)
TIME_MS = 1_700_000_000_123
#: how long a library may take to reconnect
RECOVERY_S = 15.0


@scenario("RMQS-4.11", "MUST", "high", basis=["R9"], roles=CONSUMER)
async def offset_specification(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Offset spec on the wire.

    Fault: Subscribe with first, last, next, offset 42, timestamp T; the server parses as the real one: a
    frame with value bytes after types 1–3, or a type outside 1–5, ends in FIN without any frame
    Pass: OffsetType 1..5; 8 value bytes only for types 4 (unsigned) and 5 (ms since epoch, equal to T);
    credit follows; property map may be absent
    Seen: stream-dotnet-client#303; stream-go-client#392; measured on 4.3.6: type 1 with 8 value bytes is
    closed by FIN
    """
    await client.connected()
    for number, (kind, value) in enumerate(
        (("first", None), ("last", None), ("next", None), ("offset", 42), ("timestamp", TIME_MS)), start=1
    ):
        stream = f"orders from {kind}"
        broker.create_stream(stream)
        mark = broker.journal.last_seq
        start = {"type": kind} if value is None else {"type": kind, "value": value}
        expect.ok(
            await client.subscribe(stream, kind, offset=start),
            f"{kind}: subscribe succeeds",
            id=slug("{}-subscribe-succeeds", kind),
        )
        await asyncio.sleep(0.1)
        refused = broker.journal.select(kind="Malformed", since=mark)
        expect.that(
            not refused,
            f"{kind}: 8 value bytes for types 4 and 5 only",
            refused,
            id=slug("{}-n-value-bytes-for-types-n-and-n-only", kind),
        )
        found = await expect.reached(
            broker,
            f"{kind}: no Subscribe came",
            kind="Subscribe",
            since=mark,
            id=slug("{}-no-subscribe-came", kind),
        )
        frame = asked(found[0])
        expect.equal(
            frame.offset_type, number, f"{kind}: OffsetType {number}", id=slug("{}-offsettype-n", kind)
        )
        expect.equal(frame.offset, value, f"{kind}: the value", id=slug("{}-the-value", kind))
        expect.that(
            frame.credit > 0, f"{kind}: credit follows", frame.credit, id=slug("{}-credit-follows", kind)
        )
        expect.prepared(await client.unsubscribe(kind))


@scenario("RMQS-4.12", "MUST", "critical", basis=["R9", "R10"], roles=CONSUMER, target=True)
async def chunk_before_the_asked_offset(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """First chunk starts before the asked offset.

    Fault: Ask 45, deliver chunk starting at 32
    Pass: First message delivered is 45
    Seen: stream-rust-client#222; rstream#118; rstream#25
    """
    await client.connected()
    await stream_exists(broker, client)
    for first in (0, 32):
        await store(broker, client, numbered(first, 32))
    await client.subscribed(STREAM, offset={"type": "offset", "value": 45})
    messages = await delivered_messages(client, 19)
    expect.exercised(messages, "nothing was delivered", id="nothing-was-surfaced")
    expect.equal(
        positions(messages)[0], 45, "the first message delivered is 45", id="the-first-message-surfaced-is-n"
    )
    expect.equal(bodies_of(messages), numbered(45, 19), "all others follow", id="all-others-follow")


async def _lost_and_back(broker: RabbitMQStream, client: Client, expect: Expect, connection: str) -> Record:
    """Reset the connection; the Subscribe that follows."""
    mark = broker.journal.last_seq
    broker.kill(connection, "rst")
    found = await expect.wire(
        broker,
        "a new Subscribe comes",
        within_s=RECOVERY_S,
        kind="Subscribe",
        since=mark,
        id="a-new-subscribe-comes",
    )
    await attached(broker, expect, since=mark)
    return found[0]


def _resumes(expect: Expect, found: Record, lowest: int, highest: int) -> None:
    """The new Subscribe asks for an offset between these."""
    frame = asked(found)
    fits = frame.offset_type == OffsetType.OFFSET and lowest <= (frame.offset or 0) <= highest
    what = f"type 4 and a value from {lowest} to {highest}"
    expect.that(
        fits,
        f"the new Subscribe has {what}",
        f"type {frame.offset_type}, value {frame.offset}",
        id=slug("the-new-subscribe-has-type-n-and-a-value-from-{}-to-{}", lowest, highest),
    )


async def _consumed(broker: RabbitMQStream, client: Client, expect: Expect, count: int) -> str:
    """Subscribe from the first message until `count` are delivered; returns the connection."""
    await client.connected(auto_reconnect=True)
    await client.subscribed(STREAM, offset=FIRST)
    messages = await delivered_messages(client, count)
    expect.exercised(
        len(messages) == count,
        f"{len(messages)} of {count} messages were delivered",
        id="n-of-n-messages-were-surfaced",
    )
    return (await attached(broker, expect)).connection


@scenario(
    "RMQS-4.13",
    "MUST",
    "critical",
    basis=["R9"],
    needs=["auto_reconnect.consumer"],
    roles=CONSUMER,
    timeout_s=60,
)
async def resume_after_reconnect(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Resume position after reconnect.

    Fault: Consume to 57, the last record of its chunk (50..57), RST, accept
    Pass: New Subscribe has type 4 and a value from 50 to 58; delivered positions go on at 58 without a gap;
    non-strict: some of 50..57 delivered again; fail: type 1, 2, 3 or a value > 58, or older messages again
    Seen: rstream#144; stream-go-client#336
    """
    broker.create_stream(STREAM)
    write(broker, client, numbered(0, 50))
    write(broker, client, numbered(50, 8))
    connection = await _consumed(broker, client, expect, 58)
    found = await _lost_and_back(broker, client, expect, connection)
    _resumes(expect, found, 50, 58)
    write(broker, client, numbered(58, 3))
    await client.wait_messages(58 + 3, within_s=5.0)
    deadline = asyncio.get_running_loop().time() + 3.0
    while 60 not in (got := positions(client.messages())[58:]):
        expect.that(
            asyncio.get_running_loop().time() < deadline,
            "delivered positions go on at 58",
            got,
            id="surfaced-positions-go-on-at-n",
        )
        await asyncio.sleep(0.05)
    expect.that(
        min(got) >= 50, "no older message is delivered again", got, id="no-older-message-is-surfaced-again"
    )
    again = [position for position in got if position < 58]
    expect.equal(
        got[len(again) :],
        [58, 59, 60],
        "delivered positions go on at 58 without a gap",
        id="surfaced-positions-go-on-at-n-without-a-gap",
    )
    expect.tolerate(not again, "none of 50..57 is delivered again", again, id="none-of-n-n-is-surfaced-again")


@scenario(
    "RMQS-4.33",
    "SHOULD",
    "critical",
    basis=["R9"],
    needs=["auto_reconnect.consumer"],
    roles=CONSUMER,
    timeout_s=60,
)
async def loss_before_the_first_message(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Loss before the first message at next.

    Fault: Stream holds 0..99; subscribe `next`; RST before anything is delivered; accept; then write 100..102
    Pass: New Subscribe has type 3, or type 4 with a value ≥ 100; 100..102 delivered at most once each,
    nothing below 100; never type 1 or offset 0
    Seen: stream-java-client#26
    """
    broker.create_stream(STREAM)
    write(broker, client, numbered(0, 100))
    await client.connected(auto_reconnect=True)
    await client.subscribed(STREAM, offset=NEXT)
    first = await attached(broker, expect)
    found = asked(await _lost_and_back(broker, client, expect, first.connection))
    at_end = found.offset_type == OffsetType.OFFSET and (found.offset or 0) >= 100
    expect.that(
        at_end or found.offset_type == OffsetType.NEXT,
        "the new Subscribe has type 3, or type 4 and a value of 100 or more",
        f"type {found.offset_type}, value {found.offset}",
        id="the-new-subscribe-has-type-n-or-type-n-and-a-value-of-n-or",
    )
    write(broker, client, numbered(100, 3))
    got = positions(await delivered_messages(client, 3, within_s=2.0))
    expect.that(
        not got or min(got) >= 100, "nothing below 100 is delivered", got, id="nothing-below-n-is-surfaced"
    )
    expect.that(
        len(got) == len(set(got)),
        "100..102 are delivered at most once each",
        got,
        id="n-n-are-surfaced-at-most-once-each",
    )


@scenario(
    "RMQS-4.34",
    "SHOULD",
    "critical",
    basis=["R9", "R10"],
    needs=["auto_reconnect.consumer", "subentry"],
    roles=CONSUMER,
    timeout_s=60,
)
async def resume_counts_records(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Resume counts records, not entries.

    Fault: One chunk with first offset 10: a simple entry and a batch of 9 (NumEntries 2, NumRecords 10); all
    consumed; RST; accept; the server attaches at the chunk that contains the asked offset
    Pass: New Subscribe asks 19 or 20; none of 10..18 is delivered again; 20 and later follow without gap
    Seen: source: rstream 1.1.1 adds the number of entries
    """
    broker.create_stream(STREAM)
    begin_at(broker, 10)
    one = [record(client, body) for body in numbered(10, 10)]
    write_entries(broker, simple_entries(one[:1]) + batch_entry(one[1:]), 2, 10)
    connection = await _consumed(broker, client, expect, 10)
    found = await _lost_and_back(broker, client, expect, connection)
    _resumes(expect, found, 19, 20)
    write(broker, client, numbered(20, 2))
    got = positions(await delivered_messages(client, 12, within_s=3.0))[10:]
    again = [position for position in got if position < 19]
    expect.that(not again, "none of 10..18 is delivered again", again, id="none-of-n-n-is-surfaced-again")
    expect.equal(
        [p for p in got if p >= 20],
        [20, 21],
        "20 and later follow without a gap",
        id="n-and-later-follow-without-a-gap",
    )


@scenario("RMQS-4.14", "MUST", "critical", basis=["R12"], roles=CONSUMER, allows=("asks-what-was-ordered",))
async def offset_never_reset(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Offset never reset to 0.

    Fault: QueryOffset answers 900; subscribe by name with the library's own tracking; close before any
    message was delivered
    Pass: No StoreOffset below 900 on the wire (the real server takes the last write, also a lower one);
    clients that never store by themselves pass
    Seen: stream-go-client#336
    """
    broker.create_stream(STREAM)
    write(broker, client, numbered(0, 1000))
    broker.store_offset(STREAM, "app", 900)
    await client.connected()
    broker.faults.add(drop(kind="Deliver", name="no message"))
    expect.may_not_fire("no message", "there is none after the end of the stream")
    await client.subscribed(STREAM, offset=NEXT, name="app")
    await attached(broker, expect)
    expect.prepared(await client.unsubscribe())
    expect.prepared(await client.close(timeout=12.0))
    await asyncio.sleep(0.2)
    low = [str(r.frame) for r in received(broker, "StoreOffset") if r.frame.offset < 900]  # type: ignore[union-attr]
    expect.that(not low, "no StoreOffset below 900 on the wire", low, id="no-storeoffset-below-n-on-the-wire")


def _offset_in(result: Result) -> int | None:
    value: dict[str, Any] = result.value or {}
    return None if value.get("offset") is None else int(value["offset"])


@scenario("RMQS-4.15", "MUST", "high", basis=["R5", "R12"], roles=CONSUMER, ops=QUERY, target=True)
async def query_offset_not_found(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """QueryOffset not found.

    Fault: QueryOffset answered with code 19 and offset 0 (the field is always present), then with code 2 and
    offset 0
    Pass: op reports not found (error with the code, or null), never position 0 as a stored offset; a consumer
    with a start given uses that start; no crash
    Seen: stream-dotnet-client#73; stream-go-client#122
    """
    await client.connected()
    await stream_exists(broker, client)
    await store(broker, client, numbered(0, 10))
    for code in (Code.NO_OFFSET, Code.STREAM_DOES_NOT_EXIST):
        target = STREAM
        if expect.wire_visible:
            broker.faults.clear()
            broker.faults.add(reply(code=code, kind="QueryOffset", name="not found"))
        elif code == Code.STREAM_DOES_NOT_EXIST:
            target = "no such stream"
        result = await client.op("rmqs.query_offset", session="s1", target=target, name="app")
        if expect.wire_visible:
            expect.exercised(
                broker.faults.fired("not found"), "no QueryOffset came", id="no-queryoffset-came"
            )
        expect.ended(result, f"code {code}: the op ends", id=slug("code-{}-the-op-ends", code))
        if result.ok:
            expect.equal(
                _offset_in(result),
                None,
                f"code {code}: never position 0 as a stored offset",
                id=slug("code-{}-never-position-n-as-a-stored-offset", code),
            )
        else:
            expect.failed(
                result,
                ("refused",),
                f"code {code}: the op reports not found",
                code=int(code),
                id=slug("code-{}-the-op-reports-not-found", code),
            )
    if expect.wire_visible:
        broker.faults.clear()
        broker.faults.add(reply(code=Code.NO_OFFSET, kind="QueryOffset", name="no offset"))
        expect.may_not_fire("no offset", "a consumer with a start given need not ask")
    await client.subscribed(STREAM, offset={"type": "offset", "value": 3}, name="app")
    got = positions(await delivered_messages(client, 7))
    expect.equal(
        got,
        [*range(3, 10)],
        "a consumer with a start given uses that start",
        id="a-consumer-with-a-start-given-uses-that-start",
    )


@scenario("RMQS-4.16", "SHOULD", "medium", basis=["R12"], roles=CONSUMER, ops=STORE, target=True)
async def reference_of_stored_offset(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Reference of stored offset.

    Fault: Store for two references
    Pass: Not mixed
    """
    await client.connected()
    await stream_exists(broker, client)
    await store(broker, client, numbered(0, 30))
    if not client.can("offset_without_consumer"):
        for name in ("a", "b"):
            await client.subscribed(STREAM, name, name=name, offset=NEXT)
    wanted = {"a": 11, "b": 22}
    for name, offset in wanted.items():
        await client.prepare("rmqs.store_offset", session="s1", target=STREAM, name=name, offset=offset)
    if expect.wire_visible:
        found = await expect.wire(
            broker,
            "each StoreOffset is on the wire",
            within_s=2.0,
            kind="StoreOffset",
            count=2,
            id="each-storeoffset-is-on-the-wire",
        )
        stored = {r.frame.reference: r.frame.offset for r in found}  # type: ignore[union-attr]
        expect.equal(
            stored, wanted, "each reference has its own offset", id="each-reference-has-its-own-offset"
        )
    elif client.has("rmqs.query_offset"):
        await asyncio.sleep(QUIET_S)  # some libraries ask on another connection than they store on
    else:
        expect.exercised(
            False,
            "neither the wire nor the client shows what is stored",
            id="neither-the-wire-nor-the-client-shows-what-is-stored",
        )
    if not client.has("rmqs.query_offset"):
        return
    calls = {
        name: client.begin("rmqs.query_offset", session="s1", target=STREAM, name=name) for name in wanted
    }
    for name, call in calls.items():
        expect.ok(
            result := await call, f"the offset of {name} is found", id=slug("the-offset-of-{}-is-found", name)
        )
        expect.equal(
            _offset_in(result),
            wanted[name],
            f"the offset of {name} is its own",
            id=slug("the-offset-of-{}-is-its-own", name),
        )
