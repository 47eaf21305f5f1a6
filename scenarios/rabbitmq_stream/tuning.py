"""RMQS-1.12 to 1.21: what client and broker agree on, and what the broker says of itself."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from math import inf
from typing import Any

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import RabbitMQStream
from fakebrokers.faults import extend, latency, rewrite, rst
from fakebrokers.journal import Record, Tap
from fakebrokers.rabbitmq_stream.codes import Code
from scenarios._common import received, second_fake, sent
from scenarios.rabbitmq_stream._lifecycle import clock, kept, lasting
from scenarios.rabbitmq_stream._steps import (
    BOTH,
    NOT_LATE,
    PUBLISHER,
    STREAM,
    asked_heartbeat,
    connections,
    heartbeat_of,
    opened,
    publish_batch,
    stores,
    stream_exists,
    tunes,
    widest_gap_s,
)
from scenarios.rabbitmq_stream.connection import STEPS, _all_closed

SMALL_FRAME = 8192


OPEN_ANSWER = "the answer to Open"


def _size_field(size_on_wire: int) -> int:
    return size_on_wire - 4


@scenario(
    "RMQS-1.12", "MUST", "high", basis=["R16"], roles=PUBLISHER, server={"frame_max": SMALL_FRAME}, revision=2
)
async def frame_max_minimum(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Frame max negotiated to the minimum.

    Fault: Server offers 8192, client asks 1 MiB; then publish 200 × 100 B in one call
    Pass: Tune answer is 1..8192, or 0 (= no limit from this side: the server's value then holds); no later
    frame of the client has a size field above 8192; non-strict: answer above 8192 but all frames obey it
    Seen: stream-go-client#499
    """
    broker.create_stream(STREAM)
    await client.connected(frame_max=1 << 20)
    answered = [r.frame.frame_max for r in received(broker, "Tune")]  # type: ignore[union-attr]
    expect.exercised(answered, "no Tune answer came", id="no-tune-answer-came")
    outcomes = await publish_batch(client, expect, 200, 100)
    above = [str(r) for r in broker.journal.select(tap=Tap.RECEIVED) if _size_field(r.size) > SMALL_FRAME]
    expect.that(
        not above,
        "no frame of the client has a size field above 8192",
        above[:3],
        id="no-frame-of-the-client-has-a-size-field-above-n",
    )
    expect.equal(outcomes.count("acked"), 200, "all messages are confirmed", id="all-messages-are-confirmed")
    expect.equal(
        stores(broker, b"x" * 100),
        200,
        "all messages are confirmed: the stream holds them",
        id="all-messages-are-confirmed-the-stream-holds-them",
    )
    expect.tolerate(
        all(value <= SMALL_FRAME for value in answered),
        "the Tune answer is 1..8192, or 0",
        answered,
        id="the-tune-answer-is-n-n-or-n",
    )


@scenario("RMQS-1.13", "MUST", "high", basis=["R16"], roles=PUBLISHER, server={"frame_max": 0}, revision=2)
async def frame_max_unlimited(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Frame max 0 means no limit.

    Fault: Server offers 0
    Pass: connect succeeds (Tune answer 0 or the client's own limit); a publish of 100 kB and a batch of 100 ×
    1 kB are confirmed, nothing is refused locally
    Seen: stream-go-client#505
    """
    broker.create_stream(STREAM)
    expect.ok(await client.connect(), "connect succeeds", id="connect-succeeds")
    opened(broker, expect, "connect succeeds", id="connect-succeeds")
    expect.outcome(
        await client.publish(STREAM, b"x" * 100_000),
        "acked",
        "a message of 100 kB is confirmed",
        id="a-message-of-n-kb-is-confirmed",
    )
    criterion = "what was confirmed is in the stream"
    expect.equal(stores(broker, b"x" * 100_000), 1, criterion, id="what-was-confirmed-is-in-the-stream")
    outcomes = await publish_batch(client, expect, 100, 1000, b"y")
    failed = [word for word in outcomes if word != "acked"]
    expect.that(
        not failed,
        "a batch of 100 x 1 kB is confirmed, nothing is refused locally",
        failed[:1],
        id="a-batch-of-n-x-n-kb-is-confirmed-nothing-is-refused-locally",
    )
    expect.equal(stores(broker, b"y" * 1000), 100, criterion, id="what-was-confirmed-is-in-the-stream")


@scenario("RMQS-1.14", "MUST", "high", basis=["R16"], timeout_s=60, revision=2)
async def heartbeat_negotiated(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Heartbeat negotiated.

    Fault: (a) server 2 s, client 60 s; (b) server 60 s, client 2 s (option heartbeat_s); the server adopts
    whatever the client answers
    Pass: with T = the value of the client's Tune answer, the client's bytes are never more than 1.5 T + 250
    ms apart over 4 T (only judged if T ≤ 5); T ≤ both values (non-strict: T is the client's own larger value,
    and it keeps to it)
    Seen: stream-go-client#503; pika#1093
    """
    judged: list[tuple[str, Record, int]] = []
    for case, theirs, own in (("(a)", 2, 60), ("(b)", 60, heartbeat_of(client, 2))):
        mark = broker.journal.last_seq
        broker.faults.clear()
        broker.faults.add(rewrite(fields={"heartbeat": theirs}, kind="Tune", direction="out"))
        await client.connected(case, heartbeat_s=own)
        names = await lasting(broker, client, expect, f"orders {case}", session=case, since=mark)
        tuned = tunes(broker, expect, since=mark)
        judged += [
            (case, tuned[name], heartbeat)
            for name in names
            if 1 <= (heartbeat := asked_heartbeat(tuned[name])) <= 5
        ]
        for period in {asked_heartbeat(answer) for answer in tuned.values()}:
            wanted = 0 < period <= min(theirs, own)
            expect.tolerate(
                wanted or period == own,
                f"{case}: T is at most both values",
                f"T = {period}",
                id=slug("{}-t-is-at-most-both-values", case),
            )
            expect.that(
                period in (theirs, own) or wanted,
                f"{case}: T is one of the two values",
                period,
                id=slug("{}-t-is-one-of-the-two-values", case),
            )
    expect.exercised(
        judged,
        "the client's heartbeat is not between 1 and 5 s",
        id="the-client-s-heartbeat-is-not-between-n-and-n-s",
    )
    await asyncio.sleep(4 * max(period for _, _, period in judged) + 0.5)
    closed = {record.connection: record.at for record in received(broker, "Close")}
    stayed = [one for one in judged if one[1].at + 4 * one[2] < closed.get(one[1].connection, inf)]
    expect.exercised(
        stayed, "the client has closed its connections", id="the-client-has-closed-its-connections"
    )
    for case, answer, period in stayed:
        gap = widest_gap_s(broker, answer.connection, answer.at, answer.at + 4 * period)
        expect.within(
            gap,
            1.5 * period + 0.25,
            f"{case}: the client's bytes are at most 1.5 T apart",
            id=slug("{}-the-client-s-bytes-are-at-most-n-n-t-apart", case),
        )


@scenario("RMQS-1.15", "MUST", "high", basis=["R16", "R18"], server={"heartbeat_s": 0}, revision=2)
async def heartbeat_zero(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Heartbeat 0.

    Fault: Server offers 0, client option heartbeat_s 0 where it exists, then idle 5 s
    Pass: T = value of the Tune answer. T = 0: at most one Heartbeat in 5 s and the connection stays; T > 0
    (clients for which 0 means 'no wish of this side' answer their own value): the period follows T as in
    RMQS-1.14; no timer storm (≤ 10 frames in 5 s) in both
    Seen: lapin#106; measured ok on rstream 1.1.1 (P-22)
    """
    # a library that has a smallest heartbeat has no 0 to be given
    options: dict[str, Any] = {} if client.hello.limits.get("heartbeat_min_s") else {"heartbeat_s": 0}
    await client.connected(**options)
    names = await lasting(broker, client, expect)
    tuned = tunes(broker, expect)
    begin, mark = clock(broker), broker.journal.last_seq
    await asyncio.sleep(5.0)
    for name in names:
        beats = received(broker, "Heartbeat", connection=name, since=mark)
        expect.that(
            len(beats) <= 10,
            "no timer storm: at most 10 frames in 5 s",
            len(beats),
            id="no-timer-storm-at-most-n-frames-in-n-s",
        )
        period = asked_heartbeat(tuned[name])
        if period == 0:
            expect.that(
                len(beats) <= 1,
                "T = 0: at most one Heartbeat in 5 s",
                len(beats),
                id="t-n-at-most-one-heartbeat-in-n-s",
            )
        elif period <= 5:
            gap = widest_gap_s(broker, name, begin, begin + 5.0)
            expect.within(
                gap, 1.5 * period + 0.25, "T > 0: the period follows T", id="t-n-the-period-follows-t"
            )
    await _stay(broker, client, expect, names, "the connection stays", id="the-connection-stays")


async def _stay(
    broker: RabbitMQStream, client: Client, expect: Expect, names: Sequence[str], criterion: str, *, id: str
) -> None:
    gone = sorted(set(names) - set(kept(broker)))
    expect.that(not gone, criterion, f"{', '.join(gone)} ended", id=id)
    expect.that((await client.state())["open"], criterion, "state.open is false", id=id)


@scenario("RMQS-1.16", "MUST", "medium", basis=["R15", "R20"], revision=2)
async def peer_properties(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Unknown and missing peer properties.

    Fault: (a) empty property map, (b) the usual six and 300 unknown ones
    Pass: connect succeeds in both; (a) non-strict: fails with a clear error within 2 s; never a hang or an
    unhandled error
    Seen: measured: rabbitmq-stream-js-client 1.0.0 hangs with an unhandled rejection when `version` is absent
    (P-33)
    """
    usual = {"product": "RabbitMQ", "version": "4.3.6", "platform": "Erlang/OTP", "cluster_name": "fake"}
    many = usual | {f"unknown-{number}": "x" * 10 for number in range(300)}
    for case, properties in (("(b) 300 unknown ones", many), ("(a) none", {})):
        broker.faults.clear()
        broker.faults.add(
            rewrite(fields={"properties": properties}, kind="PeerPropertiesResponse", name="properties")
        )
        mark = broker.journal.last_seq
        result = await client.connect(case)
        expect.exercised(
            broker.faults.fired("properties"),
            f"{case}: no PeerProperties came",
            id=slug("{}-no-peerproperties-came", case),
        )
        if properties or result.ok:
            expect.ok(result, f"{case}: connect succeeds", id=slug("{}-connect-succeeds", case))
            opened(
                broker, expect, f"{case}: connect succeeds", since=mark, id=slug("{}-connect-succeeds", case)
            )
            continue
        expect.failed(
            result,
            NOT_LATE,
            f"{case}: connect succeeds, or fails with a clear error",
            id=slug("{}-connect-succeeds-or-fails-with-a-clear-error", case),
        )
        expect.within(result.elapsed_ms / 1000, 2.0, f"{case}: within 2 s", id=slug("{}-within-n-s", case))
        expect.tolerate(False, f"{case}: connect succeeds", str(result), id=slug("{}-connect-succeeds", case))


@scenario("RMQS-1.17", "SHOULD", "medium", basis=["R1", "R20"], allows=("answer-counts",), revision=3)
async def trailing_bytes(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Extra trailing bytes in a response.

    Fault: Open answer with 12 more bytes after the property map, inside Size
    Pass: Ignored by length, connect succeeds; non-strict: connect fails `protocol` (or `connection`,
    `closed`) within 2 s and the socket is closed; fail: hang, silent death of the reader, crash
    Seen: stream-java-client#1028; source: Java only logs it, rstream raises in the reader
    """
    broker.faults.add(extend("00" * 12, kind="OpenResponse", name=OPEN_ANSWER))
    await _succeeds_or_protocol_error(broker, client, expect)


@scenario("RMQS-1.18", "SHOULD", "low", basis=["R15"], allows=("answer-counts",), revision=3)
async def open_without_properties(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """OpenResponse without connection properties.

    Fault: Open answered with code 1, frame ends after the code
    Pass: connect succeeds; non-strict: fails `protocol` (or `connection`, `closed`) within 2 s; fail: hang or
    crash
    """
    broker.faults.add(rewrite(fields={"properties": None}, kind="OpenResponse", name=OPEN_ANSWER))
    await _succeeds_or_protocol_error(broker, client, expect)


async def _succeeds_or_protocol_error(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    result = await client.connect()
    expect.exercised(broker.faults.fired(OPEN_ANSWER), "no Open was answered", id="no-open-was-answered")
    if result.ok:
        expect.that(
            (await client.state())["open"],
            "connect succeeds",
            "but the session is not open",
            id="connect-succeeds",
        )
        return
    expect.failed(
        result,
        ("protocol", "connection", "closed"),
        "connect succeeds, or fails as protocol, or as the connection that is given up for it",
        id="connect-succeeds-or-fails-as-protocol",
    )
    expect.within(result.elapsed_ms / 1000, 2.0, "within 2 s", id="within-n-s")
    await _all_closed(broker, expect, "and the socket is closed", id="and-the-socket-is-closed")
    expect.tolerate(False, "connect succeeds", str(result), id="connect-succeeds")


@scenario("RMQS-1.19", "SHOULD", "medium", basis=["R13"], roles=PUBLISHER, revision=3)
async def another_address_in_metadata(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Metadata host advertised differently.

    Fault: Metadata names another host:port of the simulator, which accepts and resets every connection at
    once (so that tries are journalled); Open's advertised address stays the old one
    Pass: publish/subscribe ends with an error, or works in load-balancer mode through the first address; ≤ 10
    connections to either address in 5 s, no more after the op has ended (retries of a declared auto_reconnect
    with growing delay excepted)
    Seen: stream-dotnet-client#121; stream-go-client#317; stream-js-client#139
    """
    broker.create_stream(STREAM)
    await client.connected()
    mark = broker.journal.last_seq
    with second_fake(broker) as elsewhere:
        elsewhere.faults.add(rst(on="accept", name="resets all"))
        leader = {
            "brokers": [[0, elsewhere.host, elsewhere.port]],
            "streams": [[STREAM, Code.OK, 0, [0]]],
        }
        broker.faults.add(rewrite(fields=leader, kind="MetadataResponse", name="another address"))
        result = await client.publish(STREAM, timeout=5.0)
        expect.ended(
            result,
            "publish ends, with an error or through the first address",
            id="publish-ends-with-an-error-or-through-the-first-address",
        )
        if result.ok:
            stored = stores(broker, b"hello")
            expect.that(
                stored,
                "acked through the first address: the stream holds it",
                "it does not",
                id="acked-through-the-first-address-the-stream-holds-it",
            )
        expect.exercised(
            connections(elsewhere),
            "the client never went to the advertised address",
            id="the-client-never-went-to-the-advertised-address",
        )
        first, other = connections(broker, since=mark), connections(elsewhere)
        for tries in (first, other):
            most = _most_in(5.0, [record.at for record in tries])
            expect.that(
                most <= 10,
                "at most 10 connections to either address in 5 s",
                most,
                id="at-most-n-connections-to-either-address-in-n-s",
            )
        if not client.can("auto_reconnect"):
            await asyncio.sleep(1.0)
            late = (
                len(connections(broker, since=mark)) + len(connections(elsewhere)) - len(first) - len(other)
            )
            expect.equal(late, 0, "none after the op has ended", id="none-after-the-op-has-ended")


def _most_in(seconds: float, times: Sequence[float]) -> int:
    """How many of these moments lie at most within so long."""
    return max((sum(begin <= at <= begin + seconds for at in times) for begin in times), default=0)


@scenario(
    "RMQS-1.20",
    "SHOULD",
    "high",
    basis=["R15", "R18"],
    server={"heartbeat_s": 1, "profile": "4.0"},
    timeout_s=75,
    revision=2,
)
async def slow_handshake(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Slow handshake with a short heartbeat.

    Fault: Server offers heartbeat 1 s and answers every step of the handshake 1.5 s late (its own limit is 10
    s per step); profile 4.0: a Heartbeat before the SaslAuthenticate answer ends in FIN at once
    Pass: connect succeeds with timeout_ms 20000; no Heartbeat before the server's Tune; after Open the
    connection stays 5 s
    Seen: stream-rust-client#212
    """
    for kind in STEPS:
        broker.faults.add(latency(1.5, kind=kind, direction="in", name=f"late {kind}"))
    result = await client.connect(timeout=20.0)
    expect.ok(result, "connect succeeds", id="connect-succeeds")
    opened(broker, expect, "connect succeeds", id="connect-succeeds")
    await asyncio.sleep(0.3)
    if not kept(broker):  # only an op makes a connection that lasts, or two, one after the other
        broker.create_stream(STREAM)
        if client.has_role("publisher"):
            expect.ok(
                await client.publish(STREAM, timeout=30.0),
                "connect succeeds: a publish works",
                id="connect-succeeds-a-publish-works",
            )
        else:
            expect.ok(
                await client.subscribe(STREAM, timeout=30.0),
                "connect succeeds: a subscribe works",
                id="connect-succeeds-a-subscribe-works",
            )
    names = kept(broker)
    expect.exercised(names, "the client keeps no connection", id="the-client-keeps-no-connection")
    await asyncio.sleep(5.0)
    for accepted in connections(broker):
        beats = received(broker, "Heartbeat", connection=accepted.connection)
        tuned = sent(broker, "Tune", connection=accepted.connection)
        early = [str(beat) for beat in beats if not tuned or beat.seq < tuned[0].seq]
        expect.that(
            not early,
            "no Heartbeat before the server's Tune",
            early,
            id="no-heartbeat-before-the-server-s-tune",
        )
    await _stay(
        broker,
        client,
        expect,
        names,
        "after Open the connection stays 5 s",
        id="after-open-the-connection-stays-n-s",
    )


@scenario(
    "RMQS-1.21", "SHOULD", "medium", basis=["R15", "R20"], roles=BOTH, server={"profile": "3.10"}, target=True
)
async def older_broker(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Older broker.

    Fault: Profile 3.10: `version` 3.10.8; keys 26–31 and Publish version 2 are answered with Close 13; Route
    and Partitions answers come without the top bit
    Pass: connect, publish with confirm and subscribe work and no key above 25 is sent; non-strict: connect
    fails with a clear error within 5 s; fail: hang, endless reconnect, crash
    Seen: source: Java, Go and .NET skip the version exchange below 3.11, stream-js-client 1.0.0 always sends
    it
    """
    result = await client.connect()
    if expect.wire_visible:
        expect.exercised(connections(broker), "the client did not connect", id="the-client-did-not-connect")
    if not result.ok:
        expect.failed(
            result,
            NOT_LATE,
            "connect works, or fails with a clear error",
            id="connect-works-or-fails-with-a-clear-error",
        )
        expect.within(result.elapsed_ms / 1000, 5.0, "within 5 s", id="within-n-s")
        expect.tolerate(False, "connect works", str(result), id="connect-works")
        return
    await stream_exists(broker, client)
    expect.outcome(
        await client.publish(STREAM, b"hello"),
        "acked",
        "publish with confirm works",
        id="publish-with-confirm-works",
    )
    expect.ok(
        await client.subscribe(STREAM, offset={"type": "first"}), "subscribe works", id="subscribe-works"
    )
    messages = await client.wait_messages(1)
    expect.equal(len(messages), 1, "the message is delivered", id="the-message-is-delivered")
    if expect.wire_visible:
        newer = [str(r) for r in broker.journal.select(kind="Close", tap=Tap.SENT)]
        expect.that(not newer, "no key above 25 is sent", newer, id="no-key-above-n-is-sent")
