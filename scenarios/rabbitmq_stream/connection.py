"""RMQS-1.01 to 1.11: handshake and authentication."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import RabbitMQStream
from fakebrokers.faults import coalesce, fault, fin, latency, reply, rewrite, silent, slice_
from fakebrokers.faults.effects import Fin, Rewrite
from fakebrokers.journal import Tap
from fakebrokers.rabbitmq_stream.codes import Code
from scenarios._common import limit_s, received
from scenarios.rabbitmq_stream._steps import NOT_LATE, connect_refused, connections, opened

STEPS = ("PeerProperties", "SaslHandshake", "SaslAuthenticate", "Tune", "Open")


ANSWERS = ("PeerPropertiesResponse", "SaslHandshakeResponse", "SaslAuthenticateResponse", "Tune")


@scenario("RMQS-1.01", "MUST", "high", basis=["R15"], target=True)
async def handshake_order(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Handshake order.

    Fault: Answer normally (profile 4.3)
    Pass: PeerProperties, SaslHandshake, SaslAuthenticate, Tune answer, Open in that order; the first three
    and the Tune answer each after the previous answer (Tune and Open may share a segment); correlation ids
    distinct; Tune answer with key 0x0014 (0x8014 is accepted); Heartbeats after the Tune answer and
    ExchangeCommandVersions after Open are allowed
    """
    expect.ok(await client.connect(), "connect succeeds", id="connect-succeeds")
    if not expect.wire_visible:
        return
    opened = await expect.reached(
        broker, "no connection was opened", kind="OpenResponse", id="no-connection-was-opened"
    )
    records = [r for r in broker.journal.records() if r.connection == opened[0].connection]
    asked = [r for r in records if r.tap & Tap.RECEIVED and r.kind != "Heartbeat"][:5]
    expect.equal(
        tuple(r.kind for r in asked),
        STEPS,
        "the steps come in the order of the document",
        id="the-steps-come-in-the-order-of-the-document",
    )
    for request, answer in zip(asked[1:4], ANSWERS, strict=False):
        answered = next(r for r in records if r.kind == answer and r.tap & Tap.SENT)
        expect.that(
            answered.seq < request.seq,
            f"{request.kind} waits for {answer}",
            "it came before",
            id=slug("{}-waits-for-{}", request.kind, answer),
        )
    ids = [key for r in asked for key in r.keys]
    expect.that(
        len(set(ids)) == len(ids), "correlation ids are distinct", ids, id="correlation-ids-are-distinct"
    )
    early = [r for r in records if r.kind == "Heartbeat" and r.tap & Tap.RECEIVED and r.seq < asked[3].seq]
    expect.that(
        not early, "no Heartbeat before the Tune answer", early, id="no-heartbeat-before-the-tune-answer"
    )


@scenario("RMQS-1.02", "MUST", "critical", basis=["R1"], revision=2)
async def byte_by_byte(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Handshake byte by byte.

    Fault: frag(1) for every server byte
    Pass: connect succeeds
    Seen: measured ok on rstream 1.1.1 (P-21); pulsar-client-go#163
    """
    broker.faults.add(slice_(1, gap_s=0.0005, direction="out", name="bytes"))
    expect.ok(await client.connect(timeout=10.0), "connect succeeds", id="connect-succeeds")
    opened(broker, expect, "connect succeeds", id="connect-succeeds")
    expect.exercised(
        broker.faults.fired("bytes"), "no answer was cut into bytes", id="no-answer-was-cut-into-bytes"
    )


@scenario("RMQS-1.03", "MUST", "high", basis=["R1", "R15"], revision=2)
async def tail_in_one_segment(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Whole handshake tail coalesced.

    Fault: SaslAuthenticate answer and Tune in one segment
    Pass: connect succeeds
    """
    broker.faults.add(coalesce(frames=2, kind="SaslAuthenticateResponse", name="one segment"))
    expect.ok(await client.connect(), "connect succeeds", id="connect-succeeds")
    opened(broker, expect, "connect succeeds", id="connect-succeeds")
    expect.exercised(
        broker.faults.fired("one segment"),
        "the answer and Tune left apart",
        id="the-answer-and-tune-left-apart",
    )


def _refuse_login(broker: RabbitMQStream, code: int, after_s: float = 0.0) -> None:
    """Answer SaslAuthenticate with a code, later if asked for, then FIN."""
    effects = [Rewrite(fields={"code": code}), Fin()]
    broker.faults.add(fault(*effects, kind="SaslAuthenticateResponse", name="refused login"))
    if after_s:
        broker.faults.add(latency(after_s, kind="SaslAuthenticate", direction="in", name="late"))


@scenario("RMQS-1.04", "MUST", "high", basis=["R5", "R15"])
async def mechanism_not_supported(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Unsupported SASL mechanism.

    Fault: (a) SaslHandshake answer lists only EXTERNAL; (b) PLAIN is listed, SaslAuthenticate is answered
    with code 7, then FIN
    Pass: connect fails within 2 s of the answer, definite, kind `auth`, `unsupported` or `refused`; no
    credentials on the wire in (a) (non-strict: a SaslAuthenticate that the server then refuses with 7);
    client socket closed; not a hang and not kind `timeout`
    """
    kinds = ("auth", "unsupported", "refused")
    expect.may_not_fire("refused login", "(a): a client that sends no credentials is not refused")
    broker.faults.add(rewrite(fields={"mechanisms": ["EXTERNAL"]}, kind="SaslHandshakeResponse", name="a"))
    _refuse_login(broker, Code.SASL_MECHANISM_NOT_SUPPORTED)
    result = await client.connect("a")
    leaked = received(broker, "SaslAuthenticate")
    deciding = "SaslAuthenticateResponse" if leaked else "SaslHandshakeResponse"
    await connect_refused(broker, expect, result, deciding, kinds, within_s=2.0, case="(a)")
    expect.tolerate(
        not leaked,
        "(a): no credentials on the wire",
        f"{len(leaked)} SaslAuthenticate",
        id="a-no-credentials-on-the-wire",
    )
    broker.faults.clear()
    mark = broker.journal.last_seq
    _refuse_login(broker, Code.SASL_MECHANISM_NOT_SUPPORTED)
    result = await client.connect("b")
    await connect_refused(
        broker, expect, result, "SaslAuthenticateResponse", kinds, within_s=2.0, case="(b)", since=mark
    )


@scenario("RMQS-1.05", "MUST", "critical", basis=["R5", "R15"], timeout_s=40, target=True)
async def wrong_credentials(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Wrong credentials.

    Fault: SaslAuthenticate code 8, then FIN; (a) answered at once (3.10), (b) after 3.0 s (4.x); connect
    timeout_ms 10000
    Pass: connect fails `auth` within 1 s of the answer frame (not of the request); exactly one
    SaslAuthenticate on the wire until 5 s after it, unless retries were configured; client socket closed
    within 1 s after the FIN
    Seen: stream-dotnet-client#140; measured: rstream 1.1.1 raises but leaves the socket open (P-28)
    """
    if not expect.wire_visible:
        expect.failed(
            await client.connect(password="wrong", timeout=10.0),
            ("auth",),
            "connect fails as auth",
            id="connect-fails-as-auth",
        )
        return
    marks = {}
    for case, after_s in (("(a)", 0.0), ("(b)", 3.0)):
        mark = marks[case] = broker.journal.last_seq
        broker.faults.clear()
        _refuse_login(broker, Code.AUTHENTICATION_FAILURE, after_s)
        result = await client.connect(case, timeout=10.0)
        await connect_refused(
            broker, expect, result, "SaslAuthenticateResponse", ("auth",), within_s=1.0, case=case, since=mark
        )
    await asyncio.sleep(5.0)
    seen = [r.seq for r in received(broker, "SaslAuthenticate")]
    late = [seq for seq in seen if seq > marks["(b)"]]
    expect.equal(
        len(seen) - len(late), 1, "(a): exactly one SaslAuthenticate", id="a-exactly-one-saslauthenticate"
    )
    expect.equal(
        len(late),
        1,
        "(b): exactly one SaslAuthenticate until 5 s after it",
        id="b-exactly-one-saslauthenticate-until-n-s-after-it",
    )


@scenario("RMQS-1.06", "MUST", "high", basis=["R5"])
async def error_code_early(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Error code in PeerProperties or SaslHandshake.

    Fault: Code 15 in either answer, followed by an empty array (count 0)
    Pass: connect fails within 1 s of the answer (any kind but `timeout`), not after the RPC timeout; socket
    closed
    Seen: stream-java-client#1005
    """
    for kind, empty in (
        ("PeerPropertiesResponse", {"properties": {}}),
        ("SaslHandshakeResponse", {"mechanisms": []}),
    ):
        mark = broker.journal.last_seq
        broker.faults.clear()
        broker.faults.add(rewrite(fields={"code": Code.INTERNAL_ERROR, **empty}, kind=kind))
        result = await client.connect(kind)
        await connect_refused(broker, expect, result, kind, NOT_LATE, within_s=1.0, case=kind, since=mark)


@scenario("RMQS-1.07", "MAY", "low", basis=["R15"], needs=["sasl.challenge"])
async def challenge_round(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """SASL challenge round.

    Fault: SaslAuthenticate answered with code 10 and a challenge, the next one with code 1; challenge encoded
    (a) as the server does: string with u16 length, (b) as the document says: bytes with u32 length
    Pass: a second SaslAuthenticate with the same mechanism follows and connect succeeds, or connect fails
    `auth`/`protocol` within 2 s; no hang
    """
    asked: dict[str, Any] = {
        "code": Code.SASL_CHALLENGE,
        "kind": "SaslAuthenticate",
        "scope": "run",
        "nth": 1,
    }
    as_string = reply(fields={"challenge": b"prove"}, **asked)
    as_bytes = reply(tail_hex="00000005" + b"prove".hex(), **asked)
    for case, challenge in (("(a) a string", as_string), ("(b) bytes", as_bytes)):
        broker.faults.clear()
        broker.faults.add(challenge)
        mark = broker.journal.last_seq
        result = await client.connect(case, timeout=2.0)
        if not result.ok:
            expect.failed(
                result,
                ("auth", "protocol"),
                f"{case}: or connect fails as auth or protocol",
                id=slug("{}-or-connect-fails-as-auth-or-protocol", case),
            )
            continue
        rounds = received(broker, "SaslAuthenticate", since=mark)
        expect.equal(
            len(rounds),
            2,
            f"{case}: a second SaslAuthenticate follows",
            id=slug("{}-a-second-saslauthenticate-follows", case),
        )
        mechanisms = {r.frame.mechanism for r in rounds if r.frame is not None}  # type: ignore[attr-defined]
        expect.equal(
            len(mechanisms),
            1,
            f"{case}: with the same mechanism",
            id=slug("{}-with-the-same-mechanism", case),
        )


@scenario("RMQS-1.08", "SHOULD", "medium", basis=["R5"])
async def loopback_only_user(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Loopback-only user.

    Fault: SaslAuthenticate code 11, then FIN
    Pass: connect fails `auth` within 1 s of the answer, error.code 11 (non-strict: another way to report it
    from code 8, e.g. the text); socket closed
    Seen: stream-go-client#114
    """
    code = Code.SASL_AUTHENTICATION_FAILURE_LOOPBACK
    _refuse_login(broker, code)
    result = await client.connect()
    await connect_refused(broker, expect, result, "SaslAuthenticateResponse", ("auth",), within_s=1.0)
    expect.tolerate(
        result.code == code, "error.code is 11", f"code {result.code}: {result.error}", id="error-code-is-n"
    )


@scenario("RMQS-1.09", "MUST", "high", basis=["R5", "R15"], timeout_s=40, target=True)
async def virtual_host_refused(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Virtual host refused.

    Fault: Open answered with code 12, frame ends after the code (no properties), then FIN; (a) at once
    (3.10), (b) after 3.0 s (4.x); connect timeout_ms 10000
    Pass: connect fails `refused` or `auth` with code 12 within 1 s of the answer; client socket closed
    """
    code = Code.VIRTUAL_HOST_ACCESS_FAILURE
    if not expect.wire_visible:
        result = await client.connect(vhost="nowhere", timeout=10.0)
        expect.failed(
            result,
            ("refused", "auth"),
            "connect fails as refused or auth",
            code=code,
            id="connect-fails-as-refused-or-auth",
        )
        return
    for case, after_s in (("(a)", 0.0), ("(b)", 3.0)):
        mark = broker.journal.last_seq
        broker.faults.clear()
        answer = {"code": code, "properties": None}
        broker.faults.add(fault(Rewrite(fields=answer), Fin(), kind="OpenResponse"))
        if after_s:
            broker.faults.add(latency(after_s, kind="Open", direction="in"))
        result = await client.connect(case, timeout=10.0)
        await connect_refused(
            broker,
            expect,
            result,
            "OpenResponse",
            ("refused", "auth"),
            within_s=1.0,
            case=case,
            since=mark,
            code=code,
        )


@scenario(
    "RMQS-1.10",
    "MUST",
    "critical",
    basis=["R15"],
    server={"switches": {"step_timeout_s": 600.0}},
    timeout_s=40,
)
async def tune_never_arrives(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Tune never arrives.

    Fault: Answer SaslAuthenticate OK, then silence for 30 s without FIN (the server's own 10 s step limit is
    switched off)
    Pass: connect fails `timeout` (or `connection`) at timeout_ms if the library takes one, else at its
    documented fixed time-out (adapter `limits.request_timeout_ms`, at most 15 s); socket closed
    Seen: iggy#4262
    """
    broker.faults.add(silent(kind="Tune", direction="out", name="no Tune"))
    deadline = client.deadline_s("connect", client.deadline_s("request", 3.0))
    result = await client.connect(timeout=3.0)
    expect.exercised(
        broker.faults.fired("no Tune"),
        "the client did not come as far as Tune",
        id="the-client-did-not-come-as-far-as-tune",
    )
    expect.failed(
        result, ("timeout", "connection"), "connect fails as timeout", id="connect-fails-as-timeout"
    )
    expect.within(
        result.elapsed_ms / 1000, limit_s(min(deadline, 15.0)), "at its deadline", id="at-its-deadline"
    )
    await _all_closed(broker, expect, "the client's socket is closed", id="the-client-s-socket-is-closed")


async def _all_closed(broker: RabbitMQStream, expect: Expect, criterion: str, *, id: str) -> None:
    for record in connections(broker):
        await expect.socket_closed(broker, record.connection, criterion, within_s=1.5, id=id)


@scenario("RMQS-1.11", "MUST", "critical", basis=["R15"])
async def fin_inside_the_handshake(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """FIN inside the handshake.

    Fault: FIN after the SaslHandshake answer
    Pass: connect fails `connection` (or `closed`) within 1 s of the FIN
    Seen: measured: rabbitmq-stream-js-client 1.0.0 connect never settles (P-31)
    """
    broker.faults.add(fin(kind="SaslHandshakeResponse"))
    result = await client.connect()
    await connect_refused(
        broker, expect, result, "SaslHandshakeResponse", ("connection", "closed"), within_s=1.0
    )
