"""NET-1.12 and 1.13 for PZQ, whose clients connect in the background and never give up."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import cast

from conformance.suite import Client, Expect, scenario
from fakebrokers.faults import fault
from fakebrokers.faults.effects import Fin, Inject, Silent
from fakebrokers.server import FakeServer
from scenarios._footprint import Footprint
from scenarios.net._scripts import script_for
from scenarios.net._scripts.pzq import PROXIED, PZQ, PzqScript
from scenarios.net._scripts.rabbitmq_stream import ROLES
from scenarios.net.openings import TLS_ALERT
from scenarios.pzq._steps import with_body

BACK_S = 30.0
COUNTED_S = 4.0  #: how long attempts are counted
ATTEMPTS_PER_S = 20


@scenario("NET-1.12", protocols=PZQ, roles=ROLES, server=PROXIED, timeout_s=90)
async def garbage_instead_of_the_greeting(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = cast(PzqScript, script_for(broker, client, expect))
    footprint = Footprint(client)
    _garble(script, "garbage to a producer")
    expect.ended(await client.begin_connect("s1", timeout=5.0), "connect ends by its deadline")
    body = b"into the garbage"
    pending = client.begin_publish(script.queue, body, timeout=3.0)
    await _garbled(script, "garbage to a producer")
    result = await pending
    expect.ended(result, "publish ends by its deadline")
    expect.that(not result.ok or script.holds(body), "acked only if the broker has the message", str(result))
    await script.works_again("producer: the clean connection works within 30 s", within_s=BACK_S)
    _garble(script, "garbage to a consumer")
    expect.prepared(await script.subscribe(script.queue))
    await _garbled(script, "garbage to a consumer")
    script.put(script.queue, [b"behind the garbage"])
    came = await script.until(lambda: with_body(client, b"behind the garbage"), BACK_S)
    expect.that(came, "consumer: the clean connection works within 30 s", client.messages())
    expect.that(not script.made_up(), "nothing of the garbage is surfaced", script.made_up())
    footprint.judge(expect, rss_mib=32, cpu_share=0.5)
    expect.ended(await client.close(), "close ends by its deadline")
    await script.until(lambda: not script.is_open(), 5.0)
    await asyncio.sleep(0.2)  # libzmq deals messages out to the closed consumer until it notices
    await script.run("clean", case="clean connections afterwards")


def _garble(script: PzqScript, name: str) -> None:
    """The next connection gets 64 bytes and, a second later, an end."""
    garbage = b"\x7f" + Random(112).randbytes(63)
    acts = (Inject(hex=garbage.hex()), Silent(), Fin(after_s=1.0))
    script.faults.add(fault(*acts, on="accept", nth=1, scope="run", name=name))


async def _garbled(script: PzqScript, name: str) -> None:
    """Wait until that is over."""
    fired = await script.until(lambda: script.faults.fired(name), 5.0)
    script.expect.exercised(fired, f"{name}: nobody connected")

    def is_over() -> bool:
        return any(name in record.fault for record in script.wire.journal.select(kind="fin"))

    await script.until(is_over, 5.0)
    await asyncio.sleep(0.2)  # what the broker says to that connection until it is gone nobody gets


@scenario("NET-1.13", protocols=PZQ, roles=ROLES, server=PROXIED, timeout_s=60)
async def tls_instead_of_the_greeting(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = cast(PzqScript, script_for(broker, client, expect))
    script.faults.add(fault(Inject(hex=TLS_ALERT), Silent(), Fin(after_s=0.01), on="accept", name="alert"))
    footprint = Footprint(client)
    expect.ended(await client.begin_connect("s1", timeout=5.0), "connect ends by its deadline")
    pending = client.begin_publish(script.queue, b"into the alert", timeout=3.0)
    expect.prepared(await script.subscribe(script.queue))
    await asyncio.sleep(COUNTED_S)
    attempts = Counter(record.note for record in script.wire.journal.select(kind="upstream"))
    expect.exercised(attempts, "nobody connected")
    limit = ATTEMPTS_PER_S * COUNTED_S
    for role, count in attempts.items():
        expect.that(
            count <= limit, f"{role}: at most {ATTEMPTS_PER_S} attempts/s", f"{count} in {COUNTED_S} s"
        )
    expect.note(f"attempts in {COUNTED_S} s: {dict(attempts)}")
    result = await pending
    expect.ended(result, "publish ends by its deadline")
    expect.that(not result.ok, "nothing is acked", str(result))
    expect.that(not client.messages(), "nothing is surfaced", client.messages())
    footprint.judge(expect, rss_mib=32)
    expect.ended(await client.close(), "close works")
    await asyncio.sleep(0.2)  # an attempt that was under way may still arrive
    mark = script.wire.journal.last_seq
    await asyncio.sleep(0.5)
    late = script.accepted(mark)
    expect.that(not late, "close works: no attempts after it", f"{len(late)} in 0.5 s")
