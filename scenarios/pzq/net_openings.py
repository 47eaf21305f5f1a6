"""NET-1.12 and 1.13 for PZQ, whose clients connect in the background forever, or wait and report."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers.faults import fault
from fakebrokers.faults.effects import Fin, Inject, Silent
from scenarios._footprint import Footprint
from scenarios.net.openings import TLS_ALERT
from scenarios.pzq._steps import begun, connected_again, with_body
from scenarios.pzq.subject import PzqSubject
from scenarios.subjects import ROLES

BACK_S = 30.0
COUNTED_S = 4.0  #: how long attempts are counted
ATTEMPTS_PER_S = 20
TOLD = ("protocol", "connection")  #: how a client says that a peer speaks something else


@scenario("NET-1.12", protocol="pzq", roles=ROLES, timeout_s=90, revision=2)
async def garbage_instead_of_the_greeting(subject: PzqSubject, client: Client, expect: Expect) -> None:
    footprint = Footprint(client)
    _garble(subject, "garbage to a producer")
    waits = begun(client, expect, await client.connect())
    if waits:
        body = b"into the garbage"
        pending = subject.begin_publish(subject.queue, body, timeout=3.0)
        await _garbled(subject, "garbage to a producer")
        result = await pending
        expect.ended(result, "publish ends by its deadline", id="publish-ends-by-its-deadline")
        expect.that(
            not result.ok or subject.holds(body),
            "acked only if the broker has the message",
            str(result),
            id="acked-only-if-the-broker-has-the-message",
        )
    else:
        await _garbled(subject, "garbage to a producer")
    if not (waits and client.reconnects("producer")):
        await connected_again(client, expect)
    await subject.works_again(
        "producer: the clean connection works within 30 s",
        within_s=BACK_S,
        id="producer-the-clean-connection-works-within-n-s",
    )
    _garble(subject, "garbage to a consumer")
    waits = begun(client, expect, await subject.subscribe(subject.queue))
    await _garbled(subject, "garbage to a consumer")
    if not (waits and client.reconnects("consumer")):
        await connected_again(client, expect)
        expect.prepared(await subject.subscribe(subject.queue))
    subject.put(subject.queue, [b"behind the garbage"])
    came = await subject.until(lambda: with_body(client, b"behind the garbage"), BACK_S)
    expect.that(
        came,
        "consumer: the clean connection works within 30 s",
        subject.messages(),
        id="consumer-the-clean-connection-works-within-n-s",
    )
    expect.that(
        not subject.made_up(),
        "nothing of the garbage is delivered",
        subject.made_up(),
        id="nothing-of-the-garbage-is-surfaced",
    )
    footprint.judge(expect, rss_mib=32, cpu_share=0.5)
    expect.ended(await client.close(), "close ends by its deadline", id="close-ends-by-its-deadline")
    await subject.until(lambda: not subject.is_open(), 5.0)
    await asyncio.sleep(0.2)  # libzmq deals messages out to the closed consumer until it notices
    await subject.run("clean", case="clean connections afterwards")


def _garble(subject: PzqSubject, name: str) -> None:
    """The next connection gets 64 bytes and, a second later, an end."""
    garbage = b"\x7f" + Random(112).randbytes(63)
    acts = (Inject(hex=garbage.hex()), Silent(), Fin(after_s=1.0))
    subject.faults.add(fault(*acts, on="accept", nth=1, scope="run", name=name))


async def _garbled(subject: PzqSubject, name: str) -> None:
    """Wait until that is over."""
    fired = await subject.until(lambda: subject.faults.fired(name), 5.0)
    subject.expect.exercised(fired, f"{name}: no client connected", id=slug("{}-nobody-connected", name))

    def is_over() -> bool:
        return any(name in record.fault for record in subject.wire.journal.select(kind="fin"))

    await subject.until(is_over, 5.0)
    await asyncio.sleep(0.2)  # no client gets what the broker says to that connection until it is gone


@scenario("NET-1.13", protocol="pzq", roles=ROLES, timeout_s=60, revision=2)
async def tls_instead_of_the_greeting(subject: PzqSubject, client: Client, expect: Expect) -> None:
    subject.faults.add(fault(Inject(hex=TLS_ALERT), Silent(), Fin(after_s=0.01), on="accept", name="alert"))
    footprint = Footprint(client)
    pending = None
    if begun(client, expect, await client.connect(), TOLD):
        pending = subject.begin_publish(subject.queue, b"into the alert", timeout=3.0)
        begun(client, expect, await subject.subscribe(subject.queue), TOLD)
    await asyncio.sleep(COUNTED_S)
    attempts = Counter(record.note for record in subject.wire.journal.select(kind="upstream"))
    expect.exercised(attempts, "no client connected", id="nobody-connected")
    limit = ATTEMPTS_PER_S * COUNTED_S
    for role, count in attempts.items():
        expect.that(
            count <= limit,
            f"{role}: at most {ATTEMPTS_PER_S} attempts/s",
            f"{count} in {COUNTED_S} s",
            id=slug("{}-at-most-n-attempts-s", role),
        )
    expect.note(f"attempts in {COUNTED_S} s: {dict(attempts)}")
    if pending is not None:
        result = await pending
        expect.ended(result, "publish ends by its deadline", id="publish-ends-by-its-deadline")
        expect.that(not result.ok, "nothing is acked", str(result), id="nothing-is-acked")
    expect.that(not subject.messages(), "nothing is delivered", subject.messages(), id="nothing-is-surfaced")
    footprint.judge(expect, rss_mib=32)
    expect.ended(await client.close(), "close works", id="close-works")
    await asyncio.sleep(0.2)  # an attempt that was under way may still arrive
    mark = subject.wire.journal.last_seq
    await asyncio.sleep(0.5)
    late = subject.accepted(mark)
    expect.that(
        not late,
        "close works: no attempts after it",
        f"{len(late)} in 0.5 s",
        id="close-works-no-attempts-after-it",
    )
