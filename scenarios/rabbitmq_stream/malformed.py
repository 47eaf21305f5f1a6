"""RMQS-6 Malformed frames: what the server may never send, and a client has to survive."""

from __future__ import annotations

import asyncio

from conformance.clients.adapter.base import Call
from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import RabbitMQStream
from fakebrokers.faults import fault, hold
from fakebrokers.faults.effects import Fin, Inject, Rst, Silent, Truncate
from fakebrokers.journal import Tap
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.frames import Close, MetadataUpdate
from scenarios._common import limit_s, received, until
from scenarios._footprint import MIB, Footprint
from scenarios.rabbitmq_stream._deliveries import attached, numbered, write
from scenarios.rabbitmq_stream._lifecycle import at_work, kept, losses, reconnecting, users
from scenarios.rabbitmq_stream._steps import ADMIN, CONSUMER, STREAM, answered, connections, say, say_raw

CREATE = ("rmqs.create",)
#: how long a library may take to reconnect
RECOVERY_S = 20.0


async def _pending_create(
    broker: RabbitMQStream, client: Client, expect: Expect, name: str
) -> tuple[Call, str]:
    """A Create whose answer is held back; returns the call and its connection."""
    mark = broker.journal.last_seq
    broker.faults.add(hold(kind="CreateResponse", nth=1, scope="run", name=f"answer to {name}"))
    call = client.begin("rmqs.create", 5.0, session="s1", target=name)
    asked = await expect.reached(broker, "no Create came", kind="Create", since=mark, id="no-create-came")
    return call, asked[0].connection


def _release(broker: RabbitMQStream, name: str) -> None:
    broker.faults.remove(f"answer to {name}")


async def _answered_or_closed(
    expect: Expect, broker: RabbitMQStream, call: Call, connection: str, what: str, *, within_s: float = 2.0
) -> None:
    """The pending request gets its answer, or ends because the client gave the connection up in time."""
    begun_ns = asyncio.get_running_loop().time() * 1e9
    result = await call
    if result.ok or (result.code == Code.STREAM_ALREADY_EXISTS and _asked_anew(broker, connection)):
        expect.that(True, f"{what}: the answer is matched", id=slug("{}-the-answer-is-matched", what))
        return
    criterion = f"{what}: the answer is matched, or the connection is closed with an error"
    expect.failed(
        result,
        ("protocol", "connection", "closed"),
        criterion,
        id=slug("{}-the-answer-is-matched-or-the-connection-is-closed-with-an-error", what),
    )
    expect.within(
        (result.ended_ns - begun_ns) / 1e9,
        within_s,
        f"{what}: the request ends in time",
        id=slug("{}-the-request-ends-in-time", what),
    )
    await expect.socket_closed(
        broker,
        connection,
        f"{what}: the connection is closed",
        within_s=within_s,
        id=slug("{}-the-connection-is-closed", what),
    )


def _asked_anew(broker: RabbitMQStream, connection: str) -> bool:
    """Whether the last Create of that connection was repeated on another one: then the stream is there."""
    asked = received(broker, "Create")
    names = {r.connection: getattr(r.frame, "stream", "") for r in asked}
    return names.get(connection, "") in {name for other, name in names.items() if other != connection}


@scenario("RMQS-6.01", "SHOULD", "low", basis=["R1"], ops=CREATE, revision=2)
async def tiny_sizes(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Size 0 and size 3.

    Fault: With a request pending: a frame of size 0, later one of size 3 (no server sends either), then the
    good answer
    Pass: Either the answer is matched (also that to the request asked anew on a new connection), or the
    connection is closed with an error within 2 s and the request ends; CPU of the process < 50 % over 2 s; no
    silent reader
    Seen: stream-java-client#1028
    """
    for size, frame in ((0, "00000000"), (3, "00000003 000017")):
        name = f"size-{size}"
        await client.connected(name)
        footprint = Footprint(client)
        mark = broker.journal.last_seq
        broker.faults.add(hold(kind="CreateResponse", nth=1, scope="run", name=name))
        call = client.begin("rmqs.create", 5.0, session=name, target=name)
        asked = await expect.reached(broker, "no Create came", kind="Create", since=mark, id="no-create-came")
        say_raw(broker, expect, asked[0].connection, bytes.fromhex(frame))
        await asyncio.sleep(0.2)
        broker.faults.remove(name)
        await _answered_or_closed(expect, broker, call, asked[0].connection, f"a frame of size {size}")
        await asyncio.sleep(1.0)
        footprint.judge(expect, rss_mib=64, cpu_share=0.5)


@scenario("RMQS-6.02", "SHOULD", "high", basis=["R1", "R16"], ops=CREATE, timeout_s=60)
async def absurd_size(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Absurd frame size.

    Fault: After Open (Tune 1 MiB) with a request pending: size field 0x7FFFFFF0, then 0xFFFFFFF0 on a second
    connection, followed by 1 MiB of zeros and silence
    Pass: Connection closed with an error within 10 s; non-strict: kept, but the request and the next op end
    at their deadlines; RSS growth < 64 MiB in all cases
    Seen: stream-java-client#1030; measured: rstream 1.1.1 waits for ever, later requests time out (P-27)
    """
    sizes = ("7ffffff0", "fffffff0")
    for size in sizes:
        await client.connected(size)
    footprint = Footprint(client)
    deadline = client.deadline_s("request", 5.0)
    broker.faults.add(hold(kind="CreateResponse", name="true answers"))
    calls, asked = {}, []
    for size in sizes:
        calls[size] = client.begin("rmqs.create", 5.0, session=size, target=size)
        asked = await expect.reached(
            broker, "no Create came", kind="Create", count=len(calls), id="no-create-came"
        )
        say_raw(broker, expect, asked[-1].connection, bytes.fromhex(size) + bytes(MIB))
    results = {size: await call for size, call in calls.items()}
    again = {size: client.begin("rmqs.create", 5.0, session=size, target=f"{size}-2") for size in sizes}
    for record, (size, result) in zip(asked, results.items(), strict=True):
        expect.ended(result, f"size 0x{size}: the request ends", id=slug("size-0x{}-the-request-ends", size))
        expect.that(
            not result.ok,
            f"size 0x{size}: the request fails",
            "it ended ok",
            id=slug("size-0x{}-the-request-fails", size),
        )
        expect.ended(
            await again[size],
            f"size 0x{size}: the next op ends at its deadline",
            id=slug("size-0x{}-the-next-op-ends-at-its-deadline", size),
        )
        gone = not broker.client_holds(record.connection)
        in_time = (result.elapsed_ms / 1000 <= 10.0 and deadline <= 10.0) or gone
        expect.tolerate(
            gone and in_time,
            f"size 0x{size}: closed with an error within 10 s",
            str(result),
            id=slug("size-0x{}-closed-with-an-error-within-n-s", size),
        )
    footprint.judge(expect, rss_mib=64)


@scenario("RMQS-6.03", "SHOULD", "medium", basis=["R1"], process=True, timeout_s=40, revision=2)
async def size_before_authentication(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Size limit before authentication.

    Fault: 1 GiB size field as first bytes, then silence
    Pass: connect fails by its deadline and the socket is closed; RSS growth < 64 MiB; non-strict if only the
    connect time-out ended it
    Seen: stream-java-client#1041; stream-java-client#1044
    """
    footprint = Footprint(client)
    giant = Inject(hex="40000000", place="before")
    broker.faults.add(fault(giant, Silent(), kind="PeerPropertiesResponse", name="1 GiB"))
    deadline = client.deadline_s("connect", client.deadline_s("request", 3.0))
    result = await client.connect(timeout=3.0)
    expect.exercised(broker.faults.fired("1 GiB"), "no PeerProperties came", id="no-peerproperties-came")
    expect.that(
        not result.ok and not result.hang,
        "connect fails by its deadline",
        str(result),
        id="connect-fails-by-its-deadline",
    )
    expect.within(
        result.elapsed_ms / 1000,
        limit_s(deadline),
        "connect fails by its deadline",
        id="connect-fails-by-its-deadline",
    )
    for accepted in connections(broker):
        await expect.socket_closed(
            broker, accepted.connection, "the socket is closed", within_s=1.5, id="the-socket-is-closed"
        )
    footprint.judge(expect, rss_mib=64)
    early = result.elapsed_ms / 1000 < deadline * 0.9
    expect.tolerate(
        early,
        "the size limit ends it, not the connect time-out",
        str(result),
        id="the-size-limit-ends-it-not-the-connect-time-out",
    )


@scenario("RMQS-6.04", "MUST", "high", basis=["R1"], roles=CONSUMER, revision=2)
async def truncated_delivery(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Truncated frame then FIN.

    Fault: 50 % of a Deliver with 10 entries, fin
    Pass: No message of that chunk delivered; a close/loss event within 2 s, or with auto_reconnect a new
    Subscribe, after which the chunk is delivered once
    """
    broker.create_stream(STREAM)
    await client.connected(auto_reconnect=True)
    await client.subscribed(STREAM, offset={"type": "first"})
    await attached(broker, expect)
    broker.faults.add(
        fault(Truncate(share=0.5), Fin(), kind="Deliver", nth=1, scope="run", name="half a chunk")
    )
    mark, seen = len(client.events), broker.journal.last_seq
    write(broker, client, numbered(0, 10))
    await expect.reached(broker, "nothing was delivered", kind="fin", since=seen, id="nothing-was-delivered")
    if client.reconnects("consumer"):
        messages = await client.wait_messages(10, within_s=RECOVERY_S)
        bodies = [message.body for message in messages]
        expect.equal(
            len(bodies),
            10,
            "after a new Subscribe the chunk is delivered once",
            id="after-a-new-subscribe-the-chunk-is-surfaced-once",
        )
        return
    await asyncio.sleep(2.0)
    expect.equal(
        len(client.messages()),
        0,
        "no message of that chunk is delivered",
        id="no-message-of-that-chunk-is-surfaced",
    )
    lost = [e for e in client.events[mark:] if e.event in ("session", "error")]
    closed = not (await client.state())["open"]
    expect.that(
        lost or closed,
        "a close or loss event within 2 s",
        "nothing was reported",
        id="a-close-or-loss-event-within-n-s",
    )


@scenario("RMQS-6.05", "MUST", "high", basis=["R1"], ops=CREATE, revision=2)
async def rst_inside_a_response(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """RST in the middle of a response.

    Fault: Two bytes of the length field of an answer, then rst
    Pass: Request ends `connection`/`closed` within 1 s (or ok over a new connection with auto_reconnect)
    """
    await client.connected()
    broker.faults.add(
        fault(Truncate(keep=2), Rst(), kind="CreateResponse", nth=1, scope="run", name="two bytes")
    )
    mark = broker.journal.last_seq
    result = await client.op("rmqs.create", 8.0, session="s1", target="one")
    expect.exercised(broker.faults.fired("two bytes"), "no answer was cut", id="no-answer-was-cut")
    repeated = result.code == Code.STREAM_ALREADY_EXISTS  # the first Create has reached the broker
    if result.ok or repeated:
        [cut] = {record.connection for record in broker.journal.select(kind="rst", since=mark)}
        anew = [record for record in answered(broker, "Create", mark) if record.connection != cut]
        criterion = "the request ends as connection or closed, or with an answer from a new connection"
        expect.that(
            anew,
            criterion,
            f"{result}, but nothing was answered",
            id="the-request-ends-as-connection-or-closed-or-with-an-answer",
        )
        return
    expect.failed(
        result,
        ("connection", "closed"),
        "the request ends as connection or closed",
        id="the-request-ends-as-connection-or-closed",
    )
    lost = broker.journal.select(kind="rst", since=mark)[0]
    late_s = result.ended_ns / 1e9 - (lost.at + broker.journal.started_at)
    expect.within(
        late_s, 1.0, "the request ends within 1 s of the RST", id="the-request-ends-within-n-s-of-the-rst"
    )


@scenario("RMQS-6.06", "MUST", "critical", basis=["R1", "R20"], ops=CREATE)
async def unknown_key(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Unknown command key.

    Fault: Key 99 (10 bytes of content) between two good answers
    Pass: Skipped by Size; the next answer is matched; reader alive; non-strict: connection closed with an
    error/loss event within 2 s and the pending op ends; fail: silent reader, hang, crash
    Seen: stream-dotnet-client#130; measured: rstream 1.1.1 reader ends without an error (P-24),
    stream-js-client 1.0.0 throws uncaught (P-32)
    """
    await client.connected()
    expect.prepared(await client.op("rmqs.create", session="s1", target="one"))
    call, connection = await _pending_create(broker, client, expect, "two")
    say_raw(broker, expect, connection, bytes.fromhex("0000000e 0063 0001") + bytes(10))
    await asyncio.sleep(0.2)
    _release(broker, "two")
    result = await call
    expect.ended(
        result,
        "the next answer is matched: no hang, no crash",
        id="the-next-answer-is-matched-no-hang-no-crash",
    )
    if result.ok:
        third = await client.op("rmqs.create", session="s1", target="three")
        expect.ok(third, "the reader is alive", id="the-reader-is-alive")
        return
    expect.failed(
        result,
        ("protocol", "connection", "closed"),
        "the next answer is matched",
        id="the-next-answer-is-matched",
    )
    expect.within(
        result.elapsed_ms / 1000,
        2.5,
        "or the pending op ends within 2 s",
        id="or-the-pending-op-ends-within-n-s",
    )
    expect.tolerate(
        False, "the frame is skipped by its size", str(result), id="the-frame-is-skipped-by-its-size"
    )


@scenario("RMQS-6.07", "MUST", "high", basis=["R4"], timeout_s=40)
async def array_counts(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Array count negative or huge.

    Fault: PeerProperties answer of 40 bytes with count 0xFFFFFFFF (null), then 0x7FFFFFFF on a new connection
    Pass: Null: as empty, or clean error; huge: connect fails `protocol`/`connection` within 2 s (or goes on
    with what was in the frame); RSS growth < 64 MiB, CPU < 50 % after 2 s, socket closed if failed
    Seen: stream-java-client#1028; source: rstream 1.1.1 loops over the count
    """
    for case, count in (("null", b"\xff\xff\xff\xff"), ("huge", b"\x7f\xff\xff\xff")):
        footprint = Footprint(client)
        mark = broker.journal.last_seq
        broker.faults.clear()
        broker.faults.add(hold(kind="PeerPropertiesResponse", name="true answer"))
        call = client.begin_connect(case, timeout=6.0)
        asked = await expect.reached(
            broker, "no PeerProperties came", kind="PeerProperties", since=mark, id="no-peerproperties-came"
        )
        head = bytes.fromhex("8011 0001") + asked[0].keys[0].to_bytes(4, "big") + b"\x00\x01" + count
        body = head + bytes(40 - len(head)) if case == "huge" else head
        say_raw(broker, expect, asked[0].connection, len(body).to_bytes(4, "big") + body)
        begun = asyncio.get_running_loop().time()
        result: Result = await call
        expect.ended(result, f"{case}: connect ends", id=slug("{}-connect-ends", case))
        if not result.ok:
            expect.failed(
                result,
                ("protocol", "connection"),
                f"{case}: a clean error",
                id=slug("{}-a-clean-error", case),
            )
            expect.within(
                result.ended_ns / 1e9 - begun, 2.0, f"{case}: within 2 s", id=slug("{}-within-n-s", case)
            )
            await expect.socket_closed(
                broker,
                asked[0].connection,
                f"{case}: socket closed",
                within_s=1.5,
                id=slug("{}-socket-closed", case),
            )
        footprint.judge(expect, rss_mib=64)


@scenario(
    "RMQS-6.08", "MUST", "high", basis=["R4"], roles=ADMIN, ops=("rmqs.metadata", "rmqs.create"), revision=2
)
async def string_beyond_the_frame(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """String length beyond the frame.

    Fault: Metadata answer of 40 bytes whose host has length 30000, a good Create answer after it
    Pass: The Metadata op fails (never ok with bytes of the next frame or a cut host); then the Create answer
    is matched, or the connection is closed with an error within 2 s
    Seen: stream-java-client#1028
    """
    broker.create_stream(STREAM)
    await client.connected()
    broker.faults.add(hold(kind="MetadataResponse", name="true answer"))
    broker.faults.add(hold(kind="CreateResponse", nth=1, scope="run", name="answer to Create"))
    asking = client.begin("rmqs.metadata", 5.0, session="s1", targets=[STREAM])
    asked = (await expect.reached(broker, "no Metadata came", kind="Metadata", id="no-metadata-came"))[0]
    creating = client.begin("rmqs.create", 5.0, session="s1", target="next")
    next_position = await until(lambda: received(broker, "Create", connection=asked.connection), 1.0)
    say_raw(broker, expect, asked.connection, _host_beyond_the_frame(asked.keys[0]))
    begun_s = asyncio.get_running_loop().time()
    if next_position:  # the good answer comes right after it: its bytes may not become those of the host
        broker.faults.release("answer to Create")
    result = await asking
    expect.that(
        not result.ok and not result.hang, "the Metadata op fails", str(result), id="the-metadata-op-fails"
    )
    broker.faults.remove("answer to Create")
    if not next_position:
        expect.note("the library asks for one thing at a time, or on several connections")
    created = await creating
    if created.ok:
        expect.that(
            "next" in broker.streams,
            "the Create answer is matched",
            "there is no such stream",
            id="the-create-answer-is-matched",
        )
        return
    kinds = ("protocol", "connection", "closed")
    expect.failed(
        created,
        kinds,
        "the Create answer is matched, or a clean end",
        id="the-create-answer-is-matched-or-a-clean-end",
    )
    late_s = created.ended_ns / 1e9 - begun_s
    expect.within(
        late_s,
        2.0,
        "the connection is closed with an error within 2 s",
        id="the-connection-is-closed-with-an-error-within-n-s",
    )
    await expect.socket_closed(
        broker, asked.connection, "the connection is closed", within_s=2.0, id="the-connection-is-closed"
    )


def _host_beyond_the_frame(correlation_id: int) -> bytes:
    """A Metadata answer of 40 bytes with one broker, whose host claims to have 30000 bytes."""
    head = (
        bytes.fromhex("800f 0001") + correlation_id.to_bytes(4, "big") + bytes.fromhex("00000001 0000 7530")
    )
    return (40).to_bytes(4, "big") + head + bytes(40 - len(head))


async def _end_is_known(broker: RabbitMQStream, client: Client, expect: Expect, session: str) -> None:
    """A connection that was closed without a loss event: the next op has to fail, or to work on a new one."""
    if not client.has_role("publisher"):
        expect.tolerate(
            False,
            "the connection is closed with a loss event",
            "there is none",
            id="the-connection-is-closed-with-a-loss-event",
        )
        return
    broker.create_stream("after the end")
    mark = broker.journal.last_seq
    result = await client.publish("after the end", b"x", session=session)
    anew = result.ok and received(broker, "Open", since=mark)
    criterion = "the connection is closed with a loss event"
    expect.that(
        anew or not (result.ok or result.hang),
        criterion,
        f"none, and then {result}",
        id="the-connection-is-closed-with-a-loss-event",
    )
    expect.tolerate(
        False, criterion, "only the next op shows it", id="the-connection-is-closed-with-a-loss-event"
    )


@scenario("RMQS-6.09", "SHOULD", "medium", basis=["R4"], revision=3)
async def invalid_utf8(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Invalid UTF-8 in strings.

    Fault: Server Close whose reason has the bytes C3 28; MetadataUpdate with such a stream name
    Pass: No crash; CloseResponse sent or connection closed within 2 s with a loss event; the MetadataUpdate
    is ignored or closes the connection with an error
    Seen: stream-dotnet-client#217
    """
    bad = b"\xc3\x28".decode(errors="surrogateescape")
    places = {}
    for session in ("close", "update"):
        mark = broker.journal.last_seq
        await reconnecting(client, session)
        await at_work(broker, client, expect, session, session=session)
        own = kept(broker, mark)
        expect.exercised(
            own,
            "the sessions share a connection, or keep none",
            id="the-sessions-share-a-connection-or-keep-none",
        )
        at_hand = [name for name in users(broker, session) if name in own]
        places[session] = (at_hand or own)[0]
    events, seen = len(client.events), broker.journal.last_seq
    say(broker, expect, places["close"], Close(1, Code.UNKNOWN_FRAME, bad))
    say(broker, expect, places["update"], MetadataUpdate(Code.STREAM_NOT_AVAILABLE, bad))
    await asyncio.sleep(2.0)
    expect.that(client.alive, "no crash", "the process ended", id="no-crash")
    answers = broker.journal.select(kind="CloseResponse", tap=Tap.RECEIVED, since=seen)
    closed = broker.client_holds(places["close"]) is False
    expect.that(
        answers or closed,
        "CloseResponse sent, or connection closed within 2 s",
        "neither",
        id="closeresponse-sent-or-connection-closed-within-n-s",
    )

    def followed() -> bool:
        return bool(losses(client, events, "close") or received(broker, "Open", since=seen))

    if not await until(followed, 10.0 if client.can("auto_reconnect") else 0.0):
        await _end_is_known(broker, client, expect, "close")
    state = await client.state("update")
    loud = losses(client, events, "update")
    expect.that(
        state["open"] or loud,
        "the MetadataUpdate is ignored, or closes with an error",
        "closed without an error",
        id="the-metadataupdate-is-ignored-or-closes-loudly",
    )
