"""BMQ-1 Connect and negotiation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from conformance.clients.adapter.messages import body_bytes
from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import Unsupported
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq import ber, json_control
from fakebrokers.blazingmq.codes import Category, ClientType, Encoding, Language
from fakebrokers.blazingmq.control import write
from fakebrokers.blazingmq.faults_control import OtherEncoding, WithoutElement
from fakebrokers.blazingmq.frames import (
    BrokerResponse,
    ClientIdentity,
    ControlFrame,
    OpenQueueResponse,
)
from fakebrokers.blazingmq.schema import HandleParameters, OpenQueueRequest, RoutingConfiguration, Status
from fakebrokers.faults import drop, fault, latency, rst, slice_
from fakebrokers.faults.effects import Inject, Rewrite
from fakebrokers.journal import Tap
from scenarios._footprint import Footprint
from scenarios.blazingmq._steps import (
    BOTH,
    GRACE,
    GRACE_S,
    PUBLISHER,
    READ_WRITE,
    Q,
    accepted,
    as_texts,
    broken_control,
    close_queue,
    configures,
    current,
    encoding,
    eventually,
    features,
    from_client,
    gone,
    losses,
    no_stderr,
    open_queue,
    opened,
    posts,
    reached_confirms,
    ready,
    received,
    sent,
    settle,
    still_works,
)

Json = dict[str, Any]
ANSWER: Mapping[str, Any] = {"kind": "brokerResponse", "direction": "out"}
TRY_S = 2.0
AGAIN_S = 12.0  #: within which a client that tries again has done so; the slowest known waits 5 s


async def unanswered(broker: BlazingMQ, count: int = 1) -> bool:
    """Whether so many clients said who they are."""
    return await eventually(lambda: len(received(broker, "clientIdentity")) >= count, 5.0)


def ends_in_time(
    expect: Expect, client: Client, seconds: float, timeout_s: float, criterion: str, *, id: str
) -> None:
    """An op ended by its deadline."""
    limit_s = client.deadline_s("connect", timeout_s) * GRACE + GRACE_S
    expect.within(seconds, limit_s, criterion, id=id)


@scenario("BMQ-1.01", "MUST", "high", basis=["B2", "B5"])
async def happy_negotiation(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Happy negotiation.

    Fault: Accept; answer clientIdentity with a full brokerResponse E_SUCCESS (brokerIdentity with features,
    heartbeat fields), BER or JSON as the client's PROTOCOL_ENCODING asks
    Pass: The first CONTROL on the wire is one clientIdentity with protocolVersion, clientType E_TCPCLIENT and
    a feature string; nothing but an AUTHENTICATION event (type 15) may precede it and nothing follows it
    before brokerResponse; connect op succeeds; `state` says open
    """
    broker.faults.add(latency(0.2, **ANSWER))
    expect.ok(await client.connect(), "connect succeeds", id="connect-succeeds")
    first = current(broker, expect)
    answered = sent(broker, "brokerResponse", connection=first)[0]
    early = [r for r in from_client(broker, connection=first) if r.seq < answered.seq]
    kinds = [r.kind for r in early if r.kind != "authenticationRequest"]
    expect.equal(
        kinds,
        ["clientIdentity"],
        "one clientIdentity, and nothing else before brokerResponse",
        id="one-clientidentity-and-nothing-else-before-brokerresponse",
    )
    frame = received(broker, "clientIdentity")[0].frame
    assert isinstance(frame, ClientIdentity)
    expect.equal(
        frame.client_type,
        ClientType.E_TCPCLIENT,
        "the client type is E_TCPCLIENT",
        id="the-client-type-is-e-tcpclient",
    )
    expect.that(
        frame.protocol_version >= 1,
        "it has a protocol version",
        frame.protocol_version,
        id="it-has-a-protocol-version",
    )
    expect.that(
        "PROTOCOL_ENCODING" in frame.features,
        "it has a feature string",
        frame.features,
        id="it-has-a-feature-string",
    )
    expect.that((await client.state())["open"], "state says open", id="state-says-open")


@scenario("BMQ-1.02", "MUST", "high", basis=["B2", "B19"])
async def negotiation_refused(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Broker refuses negotiation.

    Fault: Answer brokerResponse with result E_REFUSED code -1 (second run: E_NOT_SUPPORTED, isDeprecatedSdk
    true), no brokerIdentity, as the real broker does; leave the socket open
    Pass: connect never succeeds and ends by its deadline with kind `refused` (or `auth`) carrying category
    and code; no queue frame is sent on any connection; the client closes the socket within 1 s after the op
    has ended; non-strict: kind `timeout` at the deadline (C++ SDK reports every failed start so), or the
    right kind without the code
    Seen: measured: wheel 1.2.2 reports only TIMEOUT after its connect timeout and closes then; Node SDK 1.4.0
    reports the error but leaves the socket open (P-06)
    """
    cases = [(Category.E_REFUSED, False), (Category.E_NOT_SUPPORTED, True)]
    for number, (category, deprecated) in enumerate(cases):
        broker.faults.clear()
        mark = broker.journal.last_seq
        changed = {
            "result": Status(category, -1, "refused"),
            "is_deprecated_sdk": deprecated,
        }
        broker.faults.add(fault(Rewrite(changed), **ANSWER, name=f"refusal {number}"))
        broker.faults.add(fault(WithoutElement("brokerIdentity"), **ANSWER, name=f"no identity {number}"))
        result = await client.connect(f"s{number}", timeout=TRY_S)
        expect.ended(result, "connect ends by its deadline", id="connect-ends-by-its-deadline")
        expect.that(not result.ok, "connect never succeeds", str(result), id="connect-never-succeeds")
        if expect.tolerate(
            result.word != "timeout",
            "the refusal is reported as one",
            str(result),
            id="the-refusal-is-told-as-one",
        ):
            expect.failed(
                result, ("refused", "auth"), "connect fails as refused", id="connect-fails-as-refused"
            )
            code = result.code
            expect.tolerate(
                code in (category, category.name, -1),
                "with category or code",
                code,
                id="with-category-or-code",
            )
        others = [r.kind for r in from_client(broker, since=mark) if r.role != "handshake"]
        expect.that(not others, "no frame about queues is sent", others, id="no-frame-about-queues-is-sent")
        await gone(
            broker,
            expect,
            "the socket is closed within 1 s after the op has ended",
            id="the-socket-is-closed-within-n-s-after-the-op-has-ended",
        )


@scenario("BMQ-1.03", "MUST", "critical", basis=["B2", "B8"])
async def no_broker_response(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """brokerResponse never arrives.

    Fault: Accept TCP, read clientIdentity, stay silent
    Pass: connect fails with kind `timeout` at its deadline (+20 % or 500 ms); socket closed; a second connect
    op can succeed
    Seen: iggy#4262; autobahn-python#50; nv-websocket-client#64
    """
    broker.faults.add(drop(**ANSWER))
    result = await client.connect(timeout=TRY_S)
    expect.exercised(
        received(broker, "clientIdentity"), "no clientIdentity came", id="no-clientidentity-came"
    )
    expect.failed(result, ("timeout",), "connect fails as timeout", id="connect-fails-as-timeout")
    expect.within(
        result.elapsed_ms / 1000,
        client.deadline_s("connect", TRY_S) * GRACE + 0.5,
        "at its deadline",
        id="at-its-deadline",
    )
    await gone(broker, expect, "the socket is closed", id="the-socket-is-closed")
    broker.faults.clear()
    expect.ok(await client.connect("s2"), "a second connect succeeds", id="a-second-connect-succeeds")


@scenario("BMQ-1.04", "MUST", "medium", basis=["B2"])
async def another_control_message(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Negotiation answered by a non-negotiation CONTROL.

    Fault: Answer clientIdentity with a ControlMessage openQueueResponse (rId 1) in the client's encoding,
    then stay silent
    Pass: connect ends by its deadline with an error and the socket is closed within 1 s after it; kind
    `protocol` is expected; non-strict: kind `connection` or `timeout`
    Seen: measured: wheel 1.2.2 gives up the attempt and reports TIMEOUT at the deadline
    """
    broker.faults.add(drop(**ANSWER))
    call = client.begin_connect(timeout=TRY_S)
    expect.exercised(await unanswered(broker), "no clientIdentity came", id="no-clientidentity-came")
    handle = HandleParameters(Q, 0, flags=4, write_count=1)
    answer = OpenQueueResponse(1, OpenQueueRequest(handle), RoutingConfiguration(2))
    broker.say(current(broker, expect), answer)
    result = await call
    expect.ended(result, "connect ends by its deadline", id="connect-ends-by-its-deadline")
    expect.failed(
        result,
        ("protocol", "connection", "timeout"),
        "connect ends with an error",
        id="connect-ends-with-an-error",
    )
    expect.tolerate(result.word == "protocol", "the kind is protocol", str(result), id="the-kind-is-protocol")
    await gone(broker, expect, "the socket is closed within 1 s", id="the-socket-is-closed-within-n-s")


@scenario("BMQ-1.05", "SHOULD", "medium", basis=["B2"])
async def heartbeat_before_the_answer(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Event of another type arrives before brokerResponse.

    Fault: Send HEARTBEAT_REQ, then brokerResponse, in one write (a real broker never does this)
    Pass: Heartbeat is answered or ignored and negotiation completes; non-strict: the attempt ends cleanly
    (kind `protocol`, `connection` or `timeout` by the deadline, socket closed, process alive)
    Seen: measured: wheel 1.2.2 gives up the attempt; Node SDK waits for the next CONTROL
    """
    broker.faults.add(fault(Inject(kind="HEARTBEAT_REQ", place="before"), **ANSWER))
    result = await client.connect(timeout=TRY_S)
    if expect.tolerate(result.ok, "negotiation completes", str(result), id="negotiation-completes"):
        expect.that((await client.state())["open"], "state says open", id="state-says-open")
        return
    expect.failed(
        result,
        ("protocol", "connection", "timeout"),
        "else the attempt ends cleanly",
        id="else-the-attempt-ends-cleanly",
    )
    await gone(broker, expect, "and the socket is closed", id="and-the-socket-is-closed")


Nodes = tuple[ber.Node, ...]
HEARTBEAT_FIELDS = {5: "heartbeatIntervalMs", 6: "maxMissedHeartbeats"}


def edited(
    frame: ControlFrame, encoded: Encoding, in_ber: Callable[[Nodes], Nodes], in_json: Callable[[Json], Json]
) -> bytes:
    """The event of a control message with its chosen element changed."""
    if encoded is Encoding.JSON:
        table = dict(json_control.parse(write(frame, encoded)))
        table[frame.kind] = in_json(dict(table[frame.kind]))
        return broken_control(json_control.write(table), encoded)
    message = ber.parse(write(frame, encoded))
    *head, choice = message.parts
    (chosen,) = choice.parts
    changed = chosen._replace(content=in_ber(chosen.parts))
    whole = message._replace(content=(*head, choice._replace(content=(changed,))))
    return broken_control(ber.write(whole), encoded)


def unknown_in_json(table: Json) -> Json:
    """Unknown members, before the known ones and after them."""
    new = {"nested": {"a": [1, {"b": None}]}, "ünïcode": "✓", "long": "x" * 65536}
    return {**new, **table, "last": True}


def unknown_in_ber(known: Nodes) -> Nodes:
    """Unknown elements, before and between the known ones."""
    primitive = ber.Node(ber.CONTEXT | 24, 0, b"new")
    constructed = ber.Node(ber.CONTEXT | ber.CONSTRUCTED | 25, 0, (ber.Node(ber.CONTEXT, 0, b"\1"),))
    large = ber.Node(ber.CONTEXT | 26, 0, bytes(16384))
    return (primitive, known[0], constructed, large, *known[1:])


async def connect_with(
    broker: BlazingMQ,
    client: Client,
    expect: Expect,
    in_ber: Callable[[Nodes], Nodes],
    in_json: Callable[[Json], Json],
) -> Result:
    """Connect; brokerResponse is changed on its way."""
    broker.faults.add(drop(**ANSWER))
    call = client.begin_connect()
    expect.exercised(await unanswered(broker), "no clientIdentity came", id="no-clientidentity-came")
    meant = broker.journal.select(kind="brokerResponse", tap=Tap.SAID)[0].frame
    assert isinstance(meant, BrokerResponse)
    broker.faults.clear()
    broker.say_raw(current(broker, expect), edited(meant, encoding(broker, expect), in_ber, in_json))
    return await call


async def stays(client: Client, expect: Expect, seconds: float) -> None:
    """For some time nothing is lost, and the processor has little to do."""
    cost = Footprint(client)
    await asyncio.sleep(seconds)
    expect.that(not losses(client), "no connection_lost", losses(client)[:1], id="no-connection-lost")
    cost.judge(expect, rss_mib=64, cpu_share=0.2)


@scenario("BMQ-1.06", "SHOULD", "medium", basis=["B2", "B16"])
async def no_heartbeat_fields(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """brokerResponse without heartbeat fields.

    Fault: Omit heartbeatIntervalMs and maxMissedHeartbeats
    Pass: connect succeeds with defaults (or monitor off); no instant CONNECTION_LOST, no division by zero,
    CPU under 20 %
    Seen: lapin#106; bluechi#395
    """

    def in_ber(known: Nodes) -> Nodes:
        return tuple([node for node in known if node.number not in HEARTBEAT_FIELDS])

    def in_json(table: Json) -> Json:
        return {key: value for key, value in table.items() if key not in HEARTBEAT_FIELDS.values()}

    expect.ok(
        await connect_with(broker, client, expect, in_ber, in_json), "connect succeeds", id="connect-succeeds"
    )
    await stays(client, expect, 1.5)
    expect.that((await client.state())["open"], "state says open", id="state-says-open")


@scenario("BMQ-1.07", "SHOULD", "high", basis=["B2", "B16"], roles=PUBLISHER, server={"heartbeat_s": 0.0})
async def heartbeat_interval_zero(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """heartbeatIntervalMs = 0.

    Fault: Send 0 in brokerResponse
    Pass: Monitor disabled or default used; no busy loop; session stays usable for 5 s
    Seen: zerorpc-node#85; lapin#106; bluechi#395
    """
    expect.ok(await client.connect(), "connect succeeds", id="connect-succeeds")
    await stays(client, expect, 5.0)
    await opened(client, expect)
    await still_works(broker, client, expect, "the session stays usable", id="the-session-stays-usable")


@scenario("BMQ-1.08", "SHOULD", "medium", basis=["B2"])
async def unknown_fields(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Unknown extra fields in brokerResponse.

    Fault: Add unknown members in the encoding of the session: JSON: nested objects, unicode, 64 KiB string;
    BER: unknown context tags 24 (primitive), 25 (constructed, indefinite length), 26 (16 KiB primitive)
    before and between the known ones
    Pass: connect succeeds; unknown members are ignored
    Seen: stream-java-client#1005; measured: wheel 1.2.2 skips such BER elements
    """
    result = await connect_with(broker, client, expect, unknown_in_ber, unknown_in_json)
    expect.ok(
        result,
        "connect succeeds, unknown members are ignored",
        id="connect-succeeds-unknown-members-are-ignored",
    )
    expect.that((await client.state())["open"], "state says open", id="state-says-open")


@scenario("BMQ-1.09", "MUST", "critical", basis=["B2", "W1"])
async def byte_by_byte(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """brokerResponse split byte by byte.

    Fault: frag(1) with 1 ms between bytes
    Pass: connect succeeds as in the happy case
    Seen: pulsar-client-go#163; tchannel#771
    """
    broker.faults.add(slice_(size=1, gap_s=0.001, **ANSWER))
    expect.ok(
        await client.connect(),
        "connect succeeds as in the happy case",
        id="connect-succeeds-as-in-the-happy-case",
    )
    expect.that((await client.state())["open"], "state says open", id="state-says-open")


@scenario(
    "BMQ-1.10", "MUST", "medium", basis=["B19"], unconnected="nobody listens: there is nothing to connect to"
)
async def refused_connect(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Refused TCP connect.

    Fault: Port closed
    Pass: connect ends with kind `connection` by its deadline; a client that keeps retrying the first connect
    by design may end with `timeout` at the deadline (within the timing rule); process stays alive; no
    unhandled exception on stderr; state not open
    Seen: blazingmq-sdk-java#13; measured: wheel 1.2.2 retries until its connect timeout, then TIMEOUT
    """
    broker.refuse()
    result = await client.connect(timeout=TRY_S)
    expect.ended(result, "connect ends by its deadline", id="connect-ends-by-its-deadline")
    expect.failed(
        result,
        ("connection", "timeout"),
        "connect fails as connection, or after its retries",
        id="connect-fails-as-connection-or-after-its-retries",
    )
    if result.word == "timeout":
        late = result.elapsed_ms / 1000 >= 0.9 * TRY_S
        expect.that(
            late,
            "a client that retries goes on until its deadline",
            str(result),
            id="a-client-that-retries-goes-on-until-its-deadline",
        )
    expect.that(not (await client.state())["open"], "state says not open", id="state-says-not-open")
    no_stderr(client, expect, "no unhandled error on stderr", id="no-unhandled-error-on-stderr")


@scenario("BMQ-1.11", "MUST", "high", basis=["B19"], revision=2)
async def reset_after_accept(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Reset directly after accept.

    Fault: Accept and RST before any byte, for every connection
    Pass: connect ends with kind `connection` by its deadline; a client that retries (more than one accept in
    the journal) may end with `timeout` at the deadline, its attempts not closer than 100 ms; never a hang
    past the deadline, never success
    Seen: aio-pika#202; measured: wheel 1.2.2 tries at 0, 0.6 and 1.8 s and reports TIMEOUT at 3 s
    """
    broker.faults.add(rst(on="accept"))
    result = await client.connect(timeout=AGAIN_S)
    expect.ended(result, "connect ends by its deadline", id="connect-ends-by-its-deadline")
    expect.failed(
        result,
        ("connection", "timeout"),
        "connect fails as connection, or after its retries",
        id="connect-fails-as-connection-or-after-its-retries",
    )
    times = [record.at for record in accepted(broker)]
    if result.word == "timeout":
        expect.that(
            len(times) > 1,
            "only a client that tries again may end as timeout",
            len(times),
            id="only-a-client-that-tries-again-may-end-as-timeout",
        )
    gaps = [later - earlier for earlier, later in pairwise(times)]
    expect.that(
        all(gap >= 0.1 for gap in gaps), "attempts are 100 ms apart", gaps, id="attempts-are-n-ms-apart"
    )


def joined(expect: Expect, result: Result, criterion: str, *, id: str) -> None:
    """A second connect joins the first, or is refused."""
    if not result.ok:
        expect.failed(result, ("invalid", "unsupported"), criterion, id=id)


@scenario("BMQ-1.12", "SHOULD", "low", basis=["B1"])
async def second_connect(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Second connect on a started session.

    Fault: Issue connect twice for one session name
    Pass: Second call fails with kind `invalid` or `unsupported`, or returns ok without any wire traffic; only
    one TCP connection and one clientIdentity exist
    """
    await client.connected()
    joined(
        expect,
        await client.connect(),
        "the second connect fails as invalid, or joins",
        id="the-second-connect-fails-as-invalid-or-joins",
    )
    await asyncio.sleep(0.2)
    expect.equal(len(accepted(broker)), 1, "there is one connection", id="there-is-one-connection")
    expect.equal(
        len(received(broker, "clientIdentity")),
        1,
        "there is one clientIdentity",
        id="there-is-one-clientidentity",
    )


@scenario("BMQ-1.13", "SHOULD", "medium", basis=["B1"])
async def concurrent_connects(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Concurrent connects.

    Fault: Issue two connect ops for one session name at the same time; hold brokerResponse for 300 ms
    Pass: Exactly one clientIdentity on the wire; the other op joins (ok) or ends with `invalid` or
    `unsupported`; both ops end
    Seen: blazingmq-sdk-java BrokerSessionTest.multipleStartAsync
    """
    broker.faults.add(latency(0.3, **ANSWER))
    calls = [client.begin_connect(), client.begin_connect()]
    first, second = [await call for call in calls]
    for result in (first, second):
        expect.ended(result, "both ops end", id="both-ops-end")
    expect.that(
        first.ok or second.ok, "one of them connects", f"{first}; {second}", id="one-of-them-connects"
    )
    joined(
        expect,
        second if first.ok else first,
        "the other joins, or fails as invalid",
        id="the-other-joins-or-fails-as-invalid",
    )
    expect.equal(
        len(received(broker, "clientIdentity")),
        1,
        "there is one clientIdentity",
        id="there-is-one-clientidentity",
    )


PROPERTIES: Json = {
    "name": {"type": "string", "value": "v1"},
    "count": {"type": "int64", "value": "7"},
}


@scenario("BMQ-1.14", "SHOULD", "high", basis=["B2", "B4"], roles=BOTH, server={"profile": "plain"})
async def no_optional_features(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Broker without optional features.

    Fault: brokerIdentity.features is only `PROTOCOL_ENCODING:BER,JSON` (a legal production setting); open a
    reader-writer, post with two properties, deliver it back; answer configureStream and configureQueueStream
    each with its own response type
    Pass: connect, open, post, delivery, confirm and close work; the reader configures with
    configureQueueStream or configureStream; a PUT with properties has SchemaId 0 and value lengths;
    non-strict: SchemaId not 0 although the broker did not offer it
    Seen: measured: C++ switches to configureQueueStream and old properties; Java to old properties (source)
    """
    await ready(client, expect, READ_WRITE)
    expect.that(configures(broker), "the reader is configured", id="the-reader-is-configured")
    more = {"properties": PROPERTIES} if client.can("properties") else {}
    expect.outcome(
        await client.publish("q", b"body", **more), "acked", "the post is acked", id="the-post-is-acked"
    )
    messages = await client.wait_messages(1)
    expect.that(
        [body_bytes(m.body) for m in messages] == [b"body"], "it is delivered", messages, id="it-is-delivered"
    )
    if more:
        shown = as_texts(messages[0].meta.get("properties"))
        expect.equal(shown, PROPERTIES, "with its properties", id="with-its-properties")
        for _, message in posts(broker):
            plain = message.schema_id == 0
            expect.tolerate(
                plain,
                "a PUT with properties has schema id 0",
                message.schema_id,
                id="a-put-with-properties-has-schema-id-n",
            )
    expect.ok(await settle(client, messages[0]), "it can be confirmed", id="it-can-be-confirmed")
    expect.equal(len(await reached_confirms(broker, 1)), 1, "the confirm comes", id="the-confirm-comes")
    expect.ok(await close_queue(client), "close works", id="close-works")


@scenario("BMQ-1.15", "SHOULD", "medium", basis=["B2", "W2"], roles=BOTH, revision=2)
async def other_encoding(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Answers in the other advertised encoding.

    Fault: For a client that lists BER and JSON: send every CONTROL event in JSON (CODEC bits 001), whatever
    the client sends
    Pass: connect, open, configure, close and stop all succeed: each event is decoded by its own CODEC bits;
    clients that list one encoding: `skipped: profile`
    Seen: measured: wheel 1.2.2 passes and goes on sending BER
    """
    broker.faults.add(fault(OtherEncoding(encoding="JSON"), direction="out"))
    result = await client.connect()
    listed = features(broker, expect)
    if "BER" not in listed or "JSON" not in listed:
        raise Unsupported("the client lists one encoding only")
    expect.ok(result, "connect succeeds", id="connect-succeeds")
    expect.ok(
        await open_queue(client, flags=READ_WRITE),
        "open and configure succeed",
        id="open-and-configure-succeed",
    )
    expect.that(
        received(broker, "openQueue"),
        "open and configure succeed",
        "no openQueue came",
        id="open-and-configure-succeed",
    )
    expect.ok(await close_queue(client), "close succeeds", id="close-succeeds")
    expect.that(received(broker, "closeQueue"), "close succeeds", "no closeQueue came", id="close-succeeds")
    expect.ok(await client.close(), "stop succeeds", id="stop-succeeds")


@scenario("BMQ-1.16", "MUST", "high", basis=["B2"])
async def known_language(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """The SDK names a language that the broker knows.

    Fault: None; two sessions, one after the other
    Pass: sdkLanguage of clientIdentity is a member of the schema's enumeration (E_CPP, E_JAVA; in JSON by its
    name), whatever the client is written in: a broker cannot read the message otherwise, and answers nothing;
    both sessions name the same one and connect; non-strict: E_UNKNOWN
    """
    for session in ("s1", "s2"):
        mark = broker.journal.last_seq
        result = await client.connect(session)
        came = [record.frame for record in received(broker, "clientIdentity", since=mark)]
        unread = [record.frame for record in received(broker, "Malformed", since=mark)]
        expect.that(
            came and not unread,
            "sdkLanguage is a member of the enumeration, so that clientIdentity can be read",
            unread[:1] or "no clientIdentity came",
            id="sdklanguage-is-a-member-of-the-enumeration",
        )
        expect.ok(result, "connect succeeds", id="connect-succeeds")
        expect.prepared(await client.close(session))
    identities = [record.frame for record in received(broker, "clientIdentity")]
    languages = {frame.sdk_language for frame in identities if isinstance(frame, ClientIdentity)}
    expect.that(
        len(languages) == 1,
        "both sessions name the same language",
        sorted(languages),
        id="both-sessions-name-the-same-language",
    )
    expect.tolerate(
        Language.E_UNKNOWN not in languages,
        "the language is E_CPP or E_JAVA",
        "E_UNKNOWN",
        id="the-language-is-e-cpp-or-e-java",
    )
