"""NET-1 Byte-stream faults: how the bytes are cut and when they come must not matter."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from random import Random
from typing import Any

from conformance.adapter.messages import body_bytes, same_body
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import Violated
from fakebrokers.faults import coalesce, latency, slice_, throttle
from fakebrokers.journal import Tap
from fakebrokers.server import FakeServer
from scenarios.net._scripts import Script, script_for
from scenarios.net._scripts.helpers import DIRECTIONS, side_by_side
from scenarios.net._scripts.narconi import NARC, SETTINGS
from scenarios.net._scripts.pzq import PROXIED, PZQ
from scenarios.net._scripts.rabbitmq_stream import ROLES

RMQS = ("rabbitmq-stream",)


@scenario("NET-1.01", protocols=NARC, roles=ROLES, server=SETTINGS, timeout_s=60)
@scenario("NET-1.01", protocols=PZQ, roles=ROLES, server=PROXIED, timeout_s=90)
@scenario("NET-1.01", protocols=RMQS, roles=ROLES, timeout_s=60)
async def one_byte_at_a_time(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.rehearse()
    script.faults.add(slice_(1, gap_s=0.001, gap_bytes=1000, direction="out"))
    await script.run("slow", timeout=script.slow_s)


async def many_connections(script: Script, wanted: int, name: str) -> None:
    """Run the base script in session after session until the fake has seen so many connections.

    There is a fault for each of them; a failure names those of the newest ones.
    """
    journal = script.wire.journal
    counted, seen = journal.last_seq, 0
    before = len(script.accepted())

    async def once(number: int) -> None:
        nonlocal counted, seen
        seen += len(journal.select(kind="accepted", since=counted))
        counted = journal.last_seq
        if seen < wanted:
            try:
                await script.run(f"{name}-{number}", timeout=script.slow_s, turns=script.turns)
            except Violated as error:
                newest = script.faults.names[: len(script.accepted()) - before]
                at_hand = " or ".join(newest[-script.width * script.ways :])
                raise Violated(
                    f"{at_hand}: {error.criterion}", error.actual, late_s=error.late_s, tags=error.tags
                ) from None

    await side_by_side([partial(once, number) for number in range(wanted)], script.width)


@scenario("NET-1.02", protocols=NARC, roles=ROLES, server=SETTINGS, timeout_s=150)
@scenario("NET-1.02", protocols=PZQ, roles=ROLES, server=PROXIED, timeout_s=150)
@scenario("NET-1.02", protocols=RMQS, roles=ROLES, timeout_s=90)
async def cuts_at_every_offset(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.rehearse()
    seen = len(script.accepted())
    said = Counter[str]()
    for record in script.wire.journal.select(tap=Tap.SENT):
        said[record.connection] += record.size
    longest = max(said.values(), default=0)
    offsets = [at for at in [*range(1, 33), *range(48, max(longest, 400), 16)] for _ in range(script.ways)]
    for number, at in enumerate(offsets, seen + 1):
        script.faults.add(
            slice_(at=at, of="stream", gap_s=0.003, connection=f"c{number}", name=f"c{number} cut at {at}")
        )
    await many_connections(script, len(offsets), "cut")
    script.faults.clear()
    script.add_queue("walk")
    await client.connected("walk")
    expect.prepared(await client.publish("walk", b"the first message", session="walk"))
    expect.prepared(await script.subscribe("walk", "walking", "walk"))
    script.faults.add(slice_(walk=True, gap_s=0.003, direction="out"))
    bodies = script.bodies(128, "walk")
    for number, body in enumerate(bodies, 1):
        expect.ok(
            await client.publish("walk", body * 4, session="walk"),
            f"publish {number} is acked, its confirm cut at byte {number}",
        )
        got = await client.wait_messages(number + 1, "walking")
        expect.that(len(got) == number + 1, f"delivery {number}, cut at byte {number}, is surfaced", len(got))
        await script.other_ways(
            "walk", "walk", check=expect.ok, timeout=5.0, prefix=f"cut at byte {number}: "
        )
    expect.ok(await client.close("walk"), "close works")


@scenario("NET-1.03", protocols=NARC, roles=ROLES, server=SETTINGS)
@scenario("NET-1.03", protocols=PZQ, roles=ROLES, server=PROXIED, timeout_s=90)
@scenario("NET-1.03", protocols=RMQS, roles=ROLES)
async def everything_in_one_segment(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.rehearse()
    script.faults.add(coalesce(within_s=0.02, direction="out"))
    await script.run("glued", count=script.in_flight, at_once=True)


@scenario("NET-1.04", protocols=NARC, roles=ROLES, server=SETTINGS, timeout_s=90)
@scenario("NET-1.04", protocols=PZQ, roles=ROLES, server=PROXIED, timeout_s=150)
@scenario("NET-1.04", protocols=RMQS, roles=ROLES, timeout_s=90)
async def random_segmentation(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.rehearse()
    seen = len(script.accepted())
    dice = Random(script.faults.plan.seed)
    for number in range(seen + 1, seen + 101):
        longest = int(1500 ** dice.random())  # most frames are short: every length up to 1500 has its turn
        script.faults.add(
            slice_(up_to=longest, gap_s=0.003, gap="random", connection=f"c{number}", name=f"seed {number}")
        )
    await many_connections(script, 100, "seed")


@scenario("NET-1.10", protocols=NARC, roles=ROLES, server=SETTINGS, timeout_s=90)
@scenario("NET-1.10", protocols=PZQ, roles=ROLES, server=PROXIED, timeout_s=90)
@scenario("NET-1.10", protocols=RMQS, roles=ROLES, timeout_s=90)
async def latency_and_jitter(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.rehearse()
    for direction in DIRECTIONS:
        script.faults.add(latency(0.3, jitter=0.1, direction=direction))
    await script.run("far", timeout=10.0)
    copies = [script.holds(body, f"{script.queue}-far") for body in script.bodies(3, "far")]
    expect.equal(copies, [1, 1, 1], "each message was published once")


@scenario("NET-1.11", protocols=NARC, roles=ROLES, server=SETTINGS, timeout_s=120)
@scenario("NET-1.11", protocols=PZQ, roles=ROLES, server=PROXIED, timeout_s=90)
@scenario("NET-1.11", protocols=RMQS, roles=ROLES, server={"heartbeat_s": 6}, timeout_s=120)
async def little_bandwidth(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.ready()
    large: dict[str, Any] = {"gen": "rand", "seed": 111, "len": script.large}
    expect.prepared(await script.subscribe(script.queue))
    await client.wait_messages(1)
    mark, connections = len(client.events), script.is_open()
    for direction in DIRECTIONS:
        script.faults.add(throttle(8192, direction=direction, name=f"throttle {direction}"))
    begun = asyncio.get_running_loop().time()
    expect.outcome(
        await client.publish(script.queue, large, timeout=30.0), "acked", "the large message is acked"
    )
    got = await client.wait_messages(2, within_s=30.0)
    slow = asyncio.get_running_loop().time() - begun
    expect.exercised(slow > 2 / 3 * 2 * script.large / 8192, f"it took {slow:.1f} s only")
    expect.that(len(got) == 2, "the large message is surfaced once", len(got))
    expect.that(same_body(got[1].body, body_bytes(large)), "equal by SHA-256", got[1].body)
    trouble = client.events[mark:]
    expect.that(not script.troubles(mark), "no loss event", [str(event) for event in trouble][:2])
    expect.equal(script.is_open(), connections, "no reconnect")
    await script.heartbeats()
