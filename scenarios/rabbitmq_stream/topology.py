"""RMQS-5 Streams that move or go."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import RabbitMQStream
from fakebrokers.faults import drop, fault, reply, rewrite
from fakebrokers.faults.effects import Inject
from fakebrokers.rabbitmq_stream.codes import NO_LEADER, Code
from fakebrokers.rabbitmq_stream.frames import MetadataUpdate
from scenarios._common import received, sent, until
from scenarios.rabbitmq_stream._deliveries import FIRST, attached, subscribes
from scenarios.rabbitmq_stream._lifecycle import (
    OTHER,
    asks_from,
    at_work,
    declares,
    goes_on,
    idle_for,
    losses,
    no_unhandled_error,
    node_port,
    positions,
    reconnecting,
    standing,
    tries,
    users,
    without_gap,
)
from scenarios.rabbitmq_stream._steps import BOTH, PUBLISHER, STREAM, say, say_if_open, stores

MANY = ("a", "b", "c", "missing")


async def _reported_or_refused(client: Client, expect: Expect, events: int, role: str) -> None:
    """The end of a stream is reported, or its producer's or consumer's next op fails."""
    if any(STREAM in str(event.fields) or event.event == "error" for event in losses(client, events)):
        return
    criterion = f"the {role} of the stream reports it closed, or fails the next op"
    if role == "publisher":
        result = await client.publish(STREAM, b"next", timeout=5.0)
    else:
        result = await client.subscribe(STREAM, "again", offset=FIRST, timeout=5.0)
        if result.ok and client.can("lazy_subscribe"):
            found = await client.event("error", 5.0, sub="again")
            expect.that(
                found,
                criterion,
                "no error event came",
                id=slug("the-{}-of-the-stream-reports-it-closed-or-fails-the-next-op", role),
            )
            return
    expect.that(
        not result.ok and not result.hang,
        criterion,
        str(result),
        id=slug("the-{}-of-the-stream-reports-it-closed-or-fails-the-next-op", role),
    )


@scenario("RMQS-5.11", "MUST", "critical", basis=["R14"], roles=BOTH, timeout_s=60)
async def stream_deleted(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """MetadataUpdate, stream deleted.

    Fault: MetadataUpdate(code 6); from then on Metadata says code 2, DeclarePublisher/Subscribe 2, Publish on
    the old id PublishError 18, Credit CreditResponse 4
    Pass: within 10 s producer and consumer of that stream report closed or an error (or fail the next op with
    2), tries ≤ 10 per second; a stream of the same connection goes on; pending publishes end unknown or
    `nacked`
    Seen: stream-js-client#195; stream-js-client#245; stream-dotnet-client#335
    """
    await reconnecting(client)
    await at_work(broker, client, expect)
    await at_work(broker, client, expect, OTHER)
    mark, events = broker.journal.last_seq, len(client.events)
    broker.faults.add(drop(role="confirm", name="confirms are lost"))
    pending = client.begin_publish(STREAM, b"pending", timeout=8.0)
    await expect.reached(broker, "no Publish came", kind="Publish", since=mark, id="no-publish-came")
    broker.faults.clear()
    mark, begun = broker.journal.last_seq, broker.now
    broker.delete_stream(STREAM)
    await until(lambda: losses(client, events), 5.0)
    for role in ("publisher", "consumer"):
        await _reported_or_refused(client, expect, events, role)
    await asyncio.sleep(max(0.0, 2.0 - (broker.now - begun)))
    elapsed = broker.now - begun
    again = len(tries(broker, since=mark)) + len(received(broker, "Metadata", since=mark))
    expect.that(
        again <= 10 * elapsed,
        "at most 10 tries per second",
        f"{again} in {elapsed:.1f} s",
        id="at-most-n-tries-per-second",
    )
    await goes_on(
        broker,
        client,
        expect,
        "another stream of the connection goes on",
        id="another-stream-of-the-connection-goes-on",
    )
    expect.outcome(
        await pending,
        ("unknown", "nacked"),
        "pending publishes end unknown or nacked",
        id="pending-publishes-end-unknown-or-nacked",
    )


@scenario(
    "RMQS-5.12",
    "SHOULD",
    "critical",
    basis=["R13", "R14"],
    needs=["auto_reconnect"],
    roles=BOTH,
    server={"nodes": 2},
    timeout_s=90,
    revision=2,
)
async def leader_moved(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """MetadataUpdate, leader moved.

    Fault: MetadataUpdate(6) on the old node; Metadata now names a second endpoint of the simulator as leader
    and both as replicas; the old node answers DeclarePublisher with 6
    Pass: within 30 s the producer publishes on the new leader and the consumer is subscribed at any listed
    node from its position; ≤ 2 tries at the old leader per second
    Seen: stream-java-client#565; stream-dotnet-client#163
    """
    await reconnecting(client)
    await at_work(broker, client, expect)
    before = len(client.messages(STREAM))
    old, new = (node.port for node in broker.nodes)
    mark, begun = broker.journal.last_seq, broker.now
    code = Code.STREAM_NOT_AVAILABLE
    for name in standing(broker):
        if node_port(broker, name) == old:
            broker.faults.add(reply(code=code, kind="DeclarePublisher", connection=name, name=f"old {name}"))
    expect.may_not_fire("old *", "a client that knows the new leader does not ask the old one")
    broker.move_leader(STREAM, 2)

    def at_new() -> list[Any]:
        frames = received(broker, "Publish", since=mark)
        return [r for r in frames if node_port(broker, r.connection) == new]

    acked = False
    while not (acked and at_new()) and broker.now - begun < 30.0:
        acked = (await client.begin_publish(STREAM, b"moved", timeout=5.0)).ok
        await asyncio.sleep(0.1)
    elapsed = broker.now - begun
    expect.that(
        acked and at_new(),
        "within 30 s the producer publishes on the new leader",
        f"{acked=}",
        id="within-n-s-the-producer-publishes-on-the-new-leader",
    )
    back = await until(lambda: subscribes(broker, since=mark), 30.0 - elapsed)
    expect.that(
        back,
        "within 30 s the consumer is subscribed again",
        "no Subscribe came",
        id="within-n-s-the-consumer-is-subscribed-again",
    )
    found = await attached(broker, expect, since=mark)
    asks_from(expect, found, before)
    await until(lambda: len(positions(client)) >= len(broker.messages(STREAM)), 5.0)
    without_gap(
        expect, positions(client), "the consumer goes on without gap", id="the-consumer-goes-on-without-gap"
    )
    last = len(broker.messages(STREAM)) - 1
    expect.that(
        last in positions(client), "the consumer goes on", f"{last} did not come", id="the-consumer-goes-on"
    )
    hammered = [r for r in declares(broker, since=mark) if node_port(broker, r.connection) == old]
    limit = 2 * max(1.0, elapsed)
    expect.that(
        len(hammered) <= limit,
        "at most 2 tries at the old leader per second",
        len(hammered),
        id="at-most-n-tries-at-the-old-leader-per-second",
    )


@scenario(
    "RMQS-5.13",
    "SHOULD",
    "high",
    basis=["R13", "R14"],
    needs=["auto_reconnect"],
    roles=PUBLISHER,
    timeout_s=90,
    revision=2,
)
async def stream_not_available(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Stream not available for a while.

    Fault: MetadataUpdate(6); Metadata answers code 6 with leader 0xFFFF five times, then OK
    Pass: ≥ 50 ms between queries on average; ends connected within 60 s, a publisher perhaps with the next
    messages only; no crash
    Seen: stream-dotnet-client#343; stream-go-client#98
    """
    await reconnecting(client)
    await at_work(broker, client, expect)
    mark = broker.journal.last_seq
    code = Code.STREAM_NOT_AVAILABLE
    broker.faults.add(reply(code=code, kind="Metadata", first=5, scope="run", name="not available"))
    broker.move_leader(STREAM, 1)

    def works() -> bool:
        return bool(declares(broker, since=mark)) and bool(
            not client.has_role("consumer") or subscribes(broker, since=mark)
        )

    await until(lambda: works() or idle_for(broker) > 25.0, 60.0)
    for number in range(0 if works() else 20):  # some declare with the next message only
        await client.publish(STREAM, b"try %d" % number, timeout=1.0)
        if await until(works, 0.5):
            break
    done = works()
    asked = [r.at for r in received(broker, "Metadata", since=mark)]
    expect.exercised(
        len(asked) > 5 or not done,
        "the client did not ask for the stream's metadata",
        id="the-client-did-not-ask-for-the-stream-s-metadata",
    )
    expect.that(
        done,
        "ends connected within 60 s",
        f"{len(asked)} queries, then nothing",
        id="ends-connected-within-n-s",
    )
    pace = (asked[5] - asked[0]) / 5
    expect.that(
        pace >= 0.05,
        "at least 50 ms between queries on average",
        f"{pace * 1000:.0f} ms",
        id="at-least-n-ms-between-queries-on-average",
    )
    await goes_on(
        broker, client, expect, "the stream works again", STREAM, within_s=10.0, id="the-stream-works-again"
    )


@scenario("RMQS-5.14", "MUST", "medium", basis=["R14"], roles=BOTH)
async def update_for_unknown_stream(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """MetadataUpdate for unknown stream.

    Fault: MetadataUpdate(6) for a stream without publisher or subscription here (the real server sends it
    also for streams that were only used in QueryOffset or StoreOffset)
    Pass: No producer or consumer is closed; next request answered; no unhandled error
    """
    stderr = client.adapter.stderr_mark
    await client.connected()
    await at_work(broker, client, expect)
    names, mark = list(standing(broker)), broker.journal.last_seq
    for name in names:
        say(broker, expect, name, MetadataUpdate(Code.STREAM_NOT_AVAILABLE, "nobody"))
    await asyncio.sleep(0.5)
    gone = [name for name in names if name not in standing(broker)]
    expect.that(not gone, "no connection is closed", gone, id="no-connection-is-closed")
    await goes_on(
        broker,
        client,
        expect,
        "no producer or consumer is closed",
        STREAM,
        id="no-producer-or-consumer-is-closed",
    )
    again = [str(record) for record in tries(broker, since=mark)]
    expect.that(not again, "none is made anew", again, id="none-is-made-anew")
    if client.has("rmqs.create"):
        created = await client.op("rmqs.create", session="s1", target="next")
        expect.ok(created, "the next request is answered", id="the-next-request-is-answered")
    no_unhandled_error(client, expect, stderr)


@scenario("RMQS-5.15", "MUST", "high", basis=["R14", "R20"], roles=("admin", "publisher"), timeout_s=60)
async def unknown_update_code(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Unknown MetadataUpdate code.

    Fault: MetadataUpdate with code 99 for a used stream, a Create answer in the same segment
    Pass: Create answered; no crash; the stream goes on, or is re-queried as for code 6
    Seen: stream-java-client#1005
    """
    await reconnecting(client)
    await at_work(broker, client, expect)
    news = {"code": 99, "stream": STREAM}
    update = Inject(kind="MetadataUpdate", fields=news, place="before")
    broker.faults.add(fault(update, kind="CreateResponse", nth=1, scope="run", name="code 99"))
    users_before, events = users(broker), len(client.events)
    created = await client.op("rmqs.create", session="s1", target="new")
    expect.ok(created, "Create is answered", id="create-is-answered")
    expect.exercised(broker.faults.fired("code 99"), "no Create came", id="no-create-came")
    reported = {record.connection for record in received(broker, "Create")}
    for name in users_before:
        if name not in reported:
            say_if_open(broker, name, MetadataUpdate(99, STREAM))
    await asyncio.sleep(0.2)
    expect.that(client.alive, "no crash", "the process ended", id="no-crash")
    if not client.reconnects("consumer") and await until(lambda: losses(client, events), 2.0):
        expect.tolerate(
            False,
            "the stream goes on, or is queried again",
            "its users are reported closed",
            id="the-stream-goes-on-or-is-queried-again",
        )
        return
    await goes_on(
        broker,
        client,
        expect,
        "the stream goes on, or is queried again",
        STREAM,
        within_s=15.0,
        id="the-stream-goes-on-or-is-queried-again",
    )


@scenario(
    "RMQS-5.16", "MUST", "high", basis=["R13"], roles=PUBLISHER, server={"nodes": 2}, timeout_s=60, revision=2
)
async def metadata_without_leader(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Metadata without leader.

    Fault: (a) code 1, leader 0xFFFF (real: no leader yet), three times, then right; (b) leader reference 7
    with brokers 0 only (illegal); (c) query for several streams: answered in another order (real), one of
    them code 2 with 0xFFFF
    Pass: (a) fails with an error, or retries (≥ 50 ms apart) and works; (b) an error within the deadline, or
    the message is stored by way of another node; (c) every stream gets its own entry by name; never a crash
    or a hang; in (a) and (c) no `internal` index error, in (b), which no server sends, one is non-strict
    Seen: stream-go-client#98; measured on 4.3.6: answer for four streams came in reverse order
    """
    await client.connected()
    for name in MANY[:3]:
        broker.create_stream(name)
    none_yet = {"streams": [["a", Code.OK, NO_LEADER, []]]}
    mark = broker.journal.last_seq
    broker.faults.add(rewrite(fields=none_yet, kind="MetadataResponse", first=3, scope="run", name="none"))
    result = await client.publish("a", b"x", timeout=6.0)
    asked = [r.at for r in received(broker, "Metadata", since=mark)]
    expect.exercised(asked, "the client asks for no metadata", id="the-client-asks-for-no-metadata")
    if result.ok:
        pace = min((later - sooner for sooner, later in pairwise(asked[:4])), default=1.0)
        expect.that(
            pace >= 0.05,
            "(a) tries are at least 50 ms apart",
            f"{pace * 1000:.0f} ms",
            id="a-tries-are-at-least-n-ms-apart",
        )
    else:
        expect.that(
            not result.hang,
            "(a) fails with an error, or retries and works",
            str(result),
            id="a-fails-with-an-error-or-retries-and-works",
        )
        expect.that(result.word != "internal", "(a) no internal error", str(result), id="a-no-internal-error")
    broker.faults.clear()
    beyond = {"streams": [["b", Code.OK, 7, []]]}
    broker.faults.add(rewrite(fields=beyond, kind="MetadataResponse", name="reference 7"))
    result = await client.publish("b", b"x", timeout=3.0)
    if not (result.ok and stores(broker, b"x", "b")):  # any node takes messages for the leader
        expect.that(
            not result.ok and not result.hang,
            "(b) an error within the deadline",
            str(result),
            id="b-an-error-within-the-deadline",
        )
        expect.tolerate(  # no server gives such a reference
            result.word != "internal",
            "(b) no internal index error",
            str(result),
            id="b-no-internal-index-error",
        )
    broker.faults.clear()
    if client.has("rmqs.metadata"):
        await _named_entries(broker, client, expect)


async def _named_entries(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """(c): each stream gets its own entry, in any order of the answer."""
    nodes = [[number, node.host, node.port] for number, node in enumerate(broker.nodes)]
    leaders = {"a": 0, "b": 1, "c": 0}
    rows = [["missing", Code.STREAM_DOES_NOT_EXIST, NO_LEADER, []]]
    rows += [[name, Code.OK, leaders[name], []] for name in ("c", "b", "a")]
    shuffled = {"brokers": nodes, "streams": rows}
    mark = broker.journal.last_seq
    broker.faults.add(
        rewrite(fields=shuffled, kind="MetadataResponse", first=1, scope="run", name="another order")
    )
    result = await client.op("rmqs.metadata", session="s1", targets=list(MANY))
    asked = [list(getattr(r.frame, "streams", ())) for r in received(broker, "Metadata", since=mark)]
    if list(MANY) not in asked:
        expect.note("(c) was not tried: the library asks for one stream at a time")
        return
    expect.that(
        not result.hang and result.word != "internal",
        "(c) never a crash or an index error",
        result,
        id="c-never-a-crash-or-an-index-error",
    )
    if not result.ok:
        expect.tolerate(
            False, "(c) every stream gets its own entry", str(result), id="c-every-stream-gets-its-own-entry"
        )
        return
    for entry in result.value["streams"]:
        name, exists = entry["name"], entry["name"] != "missing"
        criterion = f"(c) {name} gets its own entry by name"
        expect.equal(
            entry.get("exists", exists), exists, criterion, id=slug("c-{}-gets-its-own-entry-by-name", name)
        )
        expect.equal(
            entry.get("code", exists) in (True, Code.OK),
            exists,
            criterion,
            id=slug("c-{}-gets-its-own-entry-by-name", name),
        )
        if exists and entry.get("leader"):
            expect.equal(
                int(entry["leader"].rpartition(":")[2]),
                nodes[leaders[name]][2],
                criterion,
                id=slug("c-{}-gets-its-own-entry-by-name", name),
            )


@scenario(
    "RMQS-5.23", "MUST", "high", basis=["R13", "R14"], roles=("publisher", "consumer", "admin"), timeout_s=60
)
async def own_delete(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Own delete, then MetadataUpdate.

    Fault: Delete of a stream by a client whose connection has a publisher and a subscription on it: Delete
    answer 1, then MetadataUpdate(6), one segment; afterwards the stream does not exist (2)
    Pass: delete ends ok; producer and consumer of it end or report closed; ≤ 10 tries to re-create them in 5
    s; another stream on the connection goes on; no unhandled error
    Seen: measured on all three brokers; stream-js-client#242
    """
    stderr = client.adapter.stderr_mark
    await reconnecting(client)
    await at_work(broker, client, expect)
    await at_work(broker, client, expect, OTHER)
    mark, events = broker.journal.last_seq, len(client.events)
    deleted = await client.op("rmqs.delete", session="s1", target=STREAM)
    expect.ok(deleted, "delete ends ok", id="delete-ends-ok")
    expect.exercised(
        sent(broker, "MetadataUpdate", since=mark),
        "no MetadataUpdate was sent",
        id="no-metadataupdate-was-sent",
    )
    await asyncio.sleep(5.0)
    again = tries(broker, since=mark)
    expect.that(
        len(again) <= 10,
        "at most 10 tries to create them again in 5 s",
        len(again),
        id="at-most-n-tries-to-create-them-again-in-n-s",
    )
    for role in ("publisher", "consumer"):
        await _reported_or_refused(client, expect, events, role)
    await goes_on(
        broker,
        client,
        expect,
        "another stream of the connection goes on",
        id="another-stream-of-the-connection-goes-on",
    )
    no_unhandled_error(client, expect, stderr)
