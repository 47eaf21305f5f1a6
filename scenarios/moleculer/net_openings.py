"""NET-1.12 to 1.14 and 2.05 for Moleculer, whose nodes connect in the background and do not give up."""

from __future__ import annotations

import asyncio
from contextlib import closing
from random import Random

from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers.core.tls import Tls
from fakebrokers.faults import fault
from fakebrokers.faults.effects import Fin, Inject, Silent
from fakebrokers.journal import Tap
from scenarios._common import address, second_fake
from scenarios._footprint import Footprint
from scenarios.moleculer.subject import MoleculerSubject
from scenarios.net.life_cycle import looks_at_nothing, through_the_second
from scenarios.net.openings import TLS_ALERT
from scenarios.subjects import ROLES

BACK_S = 30.0
COUNTED_S = 4.0  #: how long attempts are counted
ATTEMPTS_PER_S = 20
WATCHED_S = 15.0
GARBAGE = ("Malformed", "Command")  #: what plain servers take a ClientHello for


@scenario("NET-1.12", protocol="moleculer", timeout_s=90)
async def garbage_first(subject: MoleculerSubject, client: Client, expect: Expect) -> None:
    await subject.rehearse()
    garbage = b"\x7f" + Random(112).randbytes(63)
    acts = (Inject(hex=garbage.hex()), Silent(), Fin(after_s=1.0))
    subject.faults.add(fault(*acts, on="accept", nth=1, scope="run", name="garbage"))
    footprint = Footprint(client)
    mark = len(client.events)
    result = await subject.begin_connect("s1", timeout=BACK_S)
    expect.exercised(subject.faults.fired("garbage"), "no client connected", id="nobody-connected")
    expect.ended(result, "connect ends by its deadline", id="connect-ends-by-its-deadline")
    footprint.judge(expect, rss_mib=32, cpu_share=0.5)
    if result.ok:
        subject.add_queue(subject.queue)
        await subject.open(subject.queue, "s1", expect.ok, 5.0)
        again = await subject.publish(subject.queue, b"on a clean connection")
        expect.outcome(
            again,
            "acked",
            "the clean connection works within 30 s",
            id="the-clean-connection-works-within-n-s",
        )
    else:
        expect.failed(
            result,
            ("protocol", "connection"),
            "connect ends as protocol or connection, or works",
            id="connect-ends-as-protocol-or-connection-or-works",
        )
    delivered = [event for event in client.events[mark:] if event.event == "message"]
    expect.that(not delivered, "nothing is delivered", delivered[:1], id="nothing-is-surfaced")
    await subject.run("clean", case="clean connection afterwards")


@scenario("NET-1.13", protocol="moleculer", timeout_s=60)
async def tls_on_a_plain_port(subject: MoleculerSubject, client: Client, expect: Expect) -> None:
    await subject.rehearse_opening()
    mark = subject.wire.journal.last_seq
    subject.faults.add(fault(Inject(hex=TLS_ALERT), Fin(), on="accept", name="alert"))
    footprint = Footprint(client)
    connecting = subject.begin_connect("s1", timeout=5.0)
    await asyncio.sleep(COUNTED_S)
    attempts = len(subject.accepted(mark))
    expect.exercised(attempts, "no client connected", id="nobody-connected")
    most = ATTEMPTS_PER_S * COUNTED_S
    expect.that(
        attempts <= most,
        f"at most {ATTEMPTS_PER_S} attempts/s",
        f"{attempts} in {COUNTED_S:g} s",
        id="at-most-n-attempts-s",
    )
    footprint.judge(expect, rss_mib=32)
    expect.ended(await client.begin("close", 5.0, session="s1"), "close works", id="close-works")
    result = await connecting
    _says_so(client, expect, result, "no connection is opened", id="no-connection-is-opened")
    expect.note(f"{attempts} attempts in {COUNTED_S:g} s")


def _says_so(client: Client, expect: Expect, result: Result, criterion: str, *, id: str) -> None:
    """A connect does not end well without a server, but for one that tells of none."""
    demand = expect.tolerate if looks_at_nothing(client, result) else expect.that
    demand(not result.ok, criterion, str(result), id=id)


@scenario("NET-1.14", protocol="moleculer", timeout_s=60)
async def tls_client_on_a_plain_port(subject: MoleculerSubject, client: Client, expect: Expect) -> None:
    await subject.rehearse_opening()
    mark = subject.wire.journal.last_seq
    if subject.fake.transporter == "redis":  # a Redis server waits for the end of such a line
        subject.faults.add(fault(Fin(after_s=0.5), on="accept", name="no answer to a ClientHello"))
    with closing(Tls("localhost")) as authority:
        trust = {"ca_file": str(authority.ca_file), "server_name": "localhost"}
        connecting = subject.begin_connect("s1", timeout=WATCHED_S, tls=trust)
        await asyncio.sleep(WATCHED_S)
        attempts = len(subject.accepted(mark))
        expect.exercised(attempts, "no client connected", id="nobody-connected")
        plain = [
            str(r)
            for r in subject.broker.journal.select(tap=Tap.RECEIVED, since=mark)
            if r.kind not in GARBAGE
        ]
        expect.that(
            not plain,
            "no frame and no credentials in clear on any connection",
            plain[:3],
            id="no-frame-and-no-credentials-in-clear-on-any-connection",
        )
        most = subject.attempts_in_15_s
        expect.that(
            attempts <= most,
            f"at most {most} attempts in {WATCHED_S:g} s",
            attempts,
            id=slug("at-most-{}-attempts-in-{}-s", most, f"{WATCHED_S:g}"),
        )
        expect.ended(
            await client.begin("close", 5.0, session="s1"),
            "close ends by its deadline",
            id="close-ends-by-its-deadline",
        )
    result = await connecting
    _says_so(client, expect, result, "the node stays unconnected", id="the-node-stays-unconnected")
    expect.note(f"{attempts} attempts in {WATCHED_S:g} s")


@scenario("NET-2.05", protocol="moleculer", roles=ROLES, timeout_s=60)
async def endpoint_list(subject: MoleculerSubject, client: Client, expect: Expect) -> None:
    await subject.ready("rehearsal")
    await subject.consume(
        subject.queue,
        [b"the first message of rehearsal"],
        session="rehearsal",
        check=subject.prepares,
        timeout=5.0,
    )
    expect.prepared(await client.close("rehearsal"))
    with second_fake(subject.broker, **subject.settings(BACK_S)) as first:
        first.refuse()
        both = [address(first), address(subject.broker)]
        await through_the_second(subject, "(a) the first refuses", both, 10.0)
