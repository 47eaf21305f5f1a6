"""NET-1 Byte-stream faults: how the bytes are cut and when they come must not matter."""

from __future__ import annotations

import asyncio
from functools import partial
from random import Random
from typing import Any

from conformance.suite import Client, Expect, scenario
from fakebrokers.faults import coalesce, latency, slice_, throttle
from fakebrokers.journal import Tap
from fakebrokers.server import FakeServer
from scenarios.net._scripts import Script, script_for
from scenarios.net._scripts.helpers import DIRECTIONS, side_by_side
from scenarios.net._scripts.rabbitmq_stream import ROLES

RMQS = ("rabbitmq-stream",)
AT_ONCE = 6  #: sessions beside each other where a fault needs many connections


@scenario("NET-1.01", protocols=RMQS, roles=ROLES, timeout_s=60)
async def one_byte_at_a_time(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.rehearse()
    broker.faults.add(slice_(1, gap_s=0.001, gap_bytes=1000, direction="out"))
    await script.run("slow", timeout=10.0)


async def many_connections(script: Script, wanted: int, name: str) -> None:
    """Run the base script in session after session until the fake has seen so many connections."""
    journal = script.broker.journal
    counted, seen = journal.last_seq, 0

    async def once(number: int) -> None:
        nonlocal counted, seen
        seen += len(journal.select(kind="accepted", since=counted))
        counted = journal.last_seq
        if seen < wanted:
            faults = " or ".join(script.broker.faults.names[seen : seen + AT_ONCE])
            await script.run(f"{name}-{number}", timeout=10.0, case=f"session {number} ({faults})")

    await side_by_side([partial(once, number) for number in range(wanted)], AT_ONCE)


@scenario("NET-1.02", protocols=RMQS, roles=ROLES, timeout_s=90)
async def cuts_at_every_offset(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.rehearse()
    seen = len(script.accepted())
    longest = sum(r.size for r in broker.journal.select(connection="c1", tap=Tap.SENT))
    offsets = [*range(1, 33), *range(48, max(longest, 400), 16)]
    for number, at in enumerate(offsets, seen + 1):
        broker.faults.add(
            slice_(at=at, of="stream", gap_s=0.003, connection=f"c{number}", name=f"c{number} cut at {at}")
        )
    await many_connections(script, len(offsets), "cut")
    broker.faults.clear()
    script.add_queue("walk")
    await client.connected("walk")
    expect.prepared(await client.publish("walk", b"the first message", session="walk"))
    expect.prepared(await script.subscribe("walk", "walking", "walk"))
    broker.faults.add(slice_(walk=True, gap_s=0.003, direction="out"))
    bodies = script.bodies(128, "walk")
    for number, body in enumerate(bodies, 1):
        expect.ok(
            await client.publish("walk", body * 4, session="walk"),
            f"publish {number} is acked, its confirm cut at byte {number}",
        )
        got = await client.wait_messages(number + 1, "walking")
        expect.that(len(got) == number + 1, f"delivery {number}, cut at byte {number}, is surfaced", len(got))
    expect.ok(await client.close("walk"), "close works")


@scenario("NET-1.03", protocols=RMQS, roles=ROLES)
async def everything_in_one_segment(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.rehearse()
    broker.faults.add(coalesce(within_s=0.02, direction="out"))
    await script.run("glued", count=10, at_once=True)


@scenario("NET-1.04", protocols=RMQS, roles=ROLES, timeout_s=90)
async def random_segmentation(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.rehearse()
    seen = len(script.accepted())
    dice = Random(broker.faults.plan.seed)
    for number in range(seen + 1, seen + 101):
        longest = int(1500 ** dice.random())  # most frames are short: every length up to 1500 has its turn
        broker.faults.add(
            slice_(up_to=longest, gap_s=0.003, gap="random", connection=f"c{number}", name=f"seed {number}")
        )
    await many_connections(script, 100, "seed")


@scenario("NET-1.10", protocols=RMQS, roles=ROLES, timeout_s=90)
async def latency_and_jitter(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.rehearse()
    for direction in DIRECTIONS:
        broker.faults.add(latency(0.3, jitter=0.1, direction=direction))
    await script.run("far", timeout=10.0)
    copies = [script.holds(body, f"{script.queue}-far") for body in script.bodies(3, "far")]
    expect.equal(copies, [1, 1, 1], "each message was published once")


@scenario("NET-1.11", protocols=RMQS, roles=ROLES, server={"heartbeat_s": 6}, timeout_s=120)
async def little_bandwidth(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.ready()
    large: dict[str, Any] = {"gen": "rand", "seed": 111, "len": 48 * 1024}
    expect.prepared(await script.subscribe(script.queue))
    await client.wait_messages(1)
    mark, connections = len(client.events), script.is_open()
    for direction in DIRECTIONS:
        broker.faults.add(throttle(8192, direction=direction, name=f"throttle {direction}"))
    begun = asyncio.get_running_loop().time()
    expect.outcome(
        await client.publish(script.queue, large, timeout=30.0), "acked", "the large message is acked"
    )
    got = await client.wait_messages(2, within_s=30.0)
    slow = asyncio.get_running_loop().time() - begun
    expect.exercised(slow > 8.0, f"it took {slow:.1f} s only")
    expect.that(len(got) == 2, "the large message is surfaced once", len(got))
    echoed = await client.op("echo", body=large)
    expect.equal(got[1].body, expect.prepared(echoed)["body"], "equal by SHA-256")
    trouble = client.events[mark:]
    expect.that(not script.troubles(mark), "no loss event", [str(event) for event in trouble][:2])
    expect.equal(script.is_open(), connections, "no reconnect")
    await script.heartbeats()
