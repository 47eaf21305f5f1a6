"""NET-1.12 to 1.15: what a client meets before the first frame."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers.core.tls import Certificate
from fakebrokers.faults import fault
from fakebrokers.faults.effects import Fin, Inject, Silent
from fakebrokers.journal import Tap
from scenarios._common import limit_s
from scenarios._footprint import Footprint
from scenarios.subjects import ROLES, Subject

TLS_ALERT = "15030300020228"


@scenario("NET-1.12", "MUST", "high", basis=["X5"], roles=ROLES, timeout_s=60, allows=("garbage-ends",))
async def garbage_first(subject: Subject, client: Client, expect: Expect) -> None:
    """Garbage before the first frame.

    Fault: The first connection gets 64 bytes (fixed seed, first byte 0x7F: a huge length field) and stays
    open; later connections are clean
    Pass: connect ends by its deadline with `protocol`, `connection` or `timeout`; or, for clients that retry
    by themselves, the clean connection works within 30 s. Until then CPU under 50 % of a core, RSS growth
    under 32 MiB, nothing delivered, process alive
    Seen: amqplib#151
    """
    await subject.rehearse()
    mark = subject.wire.journal.last_seq
    garbage = b"\x7f" + Random(112).randbytes(63)
    subject.broker.faults.add(
        fault(Inject(hex=garbage.hex()), Silent(), on="accept", nth=1, scope="run", name="garbage")
    )
    footprint = Footprint(client)
    begun = asyncio.get_running_loop().time()
    deadline = subject.opening_s(5.0)
    result = await (await subject.begin_opening("s1", timeout=5.0))
    expect.exercised(subject.broker.faults.fired("garbage"), "no client connected", id="nobody-connected")
    expect.ended(result, "connect ends by its deadline", id="connect-ends-by-its-deadline")
    if len(subject.accepted(mark)) == 1 or not result.ok:
        expect.failed(
            result,
            ("protocol", "connection", "timeout"),
            "connect ends as protocol, connection or timeout",
            id="connect-ends-as-protocol-connection-or-timeout",
        )
        expect.within(
            result.elapsed_ms / 1000,
            limit_s(deadline),
            "connect ends by its deadline",
            id="connect-ends-by-its-deadline",
        )
    await asyncio.sleep(max(0.0, begun + 1.5 - asyncio.get_running_loop().time()))
    footprint.judge(expect, rss_mib=32, cpu_share=0.5)
    await subject.run("clean", case="clean connection afterwards")


@scenario("NET-1.13", "SHOULD", "low", basis=["X5"], timeout_s=60)
async def tls_on_a_plain_port(subject: Subject, client: Client, expect: Expect) -> None:
    """TLS bytes on a plain port.

    Fault: A client without TLS gets a TLS alert (15 03 03 00 02 02 28), then fin, on every connection
    Pass: connect ends within 5 s or by its deadline, if that is later, with `protocol` or `connection`, or,
    where clients connect in the background, there are at most 20 attempts/s and close works; RSS growth under
    32 MiB
    Seen: py-amqp#398
    """
    await subject.rehearse_opening()
    subject.broker.faults.add(fault(Inject(hex=TLS_ALERT), Fin(), on="accept", name="alert"))
    footprint = Footprint(client)
    deadline = max(5.0, subject.opening_s(5.0))
    result = await (await subject.begin_opening("s1", timeout=5.0))
    expect.exercised(subject.broker.faults.fired("alert"), "no client connected", id="nobody-connected")
    if subject.connect_retries and result.word == "timeout":
        expect.tolerate(
            False,
            "connect ends as protocol or connection",
            str(result),
            id="connect-ends-as-protocol-or-connection",
        )
    else:
        expect.failed(
            result,
            ("protocol", "connection"),
            "connect ends as protocol or connection",
            id="connect-ends-as-protocol-or-connection",
        )
    expect.within(
        result.elapsed_ms / 1000,
        limit_s(deadline),
        "connect ends by its deadline",
        id="connect-ends-by-its-deadline",
    )
    footprint.judge(expect, rss_mib=32)


@scenario("NET-1.14", "SHOULD", "medium", basis=["X5"], needs=["tls"], server={"tls": True}, timeout_s=60)
async def tls_client_on_a_plain_port(subject: Subject, client: Client, expect: Expect) -> None:
    """TLS client on a plain port.

    Fault: The fake listens without TLS and treats the ClientHello as the real server treats garbage (FIN)
    Pass: connect ends within 5 s with `connection` or `protocol`; never a fall-back to plain: no frame and no
    credentials in clear on any connection
    Seen: py-amqp#398
    """
    broker: Any = subject.broker
    options: dict[str, Any] = {"tls": {"ca_file": str(broker.tls.ca_file), "server_name": "localhost"}}
    await subject.rehearse_opening(endpoints=[f"{broker.host}:{broker.tls_port}"], **options)
    mark = broker.journal.last_seq
    result = await (await subject.begin_opening("s1", timeout=5.0, **options))
    expect.exercised(subject.accepted(mark), "no client connected", id="nobody-connected")
    expect.failed(
        result,
        ("connection", "protocol"),
        "connect ends as connection or protocol",
        id="connect-ends-as-connection-or-protocol",
    )
    expect.within(result.elapsed_ms / 1000, limit_s(5.0), "within 5 s", id="within-n-s")
    await asyncio.sleep(0.3)
    plain = [str(r) for r in broker.journal.select(tap=Tap.RECEIVED, since=mark) if r.kind != "Malformed"]
    expect.that(
        not plain,
        "no frame and no credentials in clear on any connection",
        plain[:3],
        id="no-frame-and-no-credentials-in-clear-on-any-connection",
    )


@scenario("NET-1.15", "SHOULD", "high", basis=["X5"], needs=["tls"], server={"tls": True}, timeout_s=90)
async def bad_certificates(subject: Subject, client: Client, expect: Expect) -> None:
    """Certificate that must be refused.

    Fault: With `tls.ca_file` given: certificate (a) expired, (b) for another host name, (c) of an unknown
    authority; then a good one
    Pass: (a) to (c): connect fails with `connection` or `auth`, no protocol frame and no credentials were
    sent inside or outside of TLS; the good one connects
    """
    broker: Any = subject.broker
    options: dict[str, Any] = {"tls": {"ca_file": str(broker.tls.ca_file), "server_name": "localhost"}}
    where = [f"{broker.host}:{broker.tls_port}"]
    await subject.rehearse_opening(endpoints=where, **options)
    for kind in (Certificate.EXPIRED, Certificate.WRONG_HOST, Certificate.UNKNOWN_AUTHORITY):
        broker.tls.show(kind)
        mark = broker.journal.last_seq
        result = await (await subject.begin_opening(str(kind), timeout=5.0, endpoints=where, **options))
        frames = [str(r) for r in broker.journal.select(tap=Tap.RECEIVED, since=mark)]
        expect.that(
            not frames,
            f"{kind}: nothing was sent inside or outside of TLS",
            frames[:3],
            id=slug("{}-nothing-was-sent-inside-or-outside-of-tls", kind),
        )
        expect.failed(
            result,
            ("connection", "auth"),
            f"{kind}: connect fails as connection or auth",
            id=slug("{}-connect-fails-as-connection-or-auth", kind),
        )
    broker.tls.show(Certificate.GOOD)
    result = await (await subject.begin_opening("good", timeout=5.0, endpoints=where, **options))
    expect.ok(result, "the good certificate connects", id="the-good-certificate-connects")
