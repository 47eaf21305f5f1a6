"""NET-1.07 to 1.09 and 1.16: the server is gone, busy, or quiet."""

from __future__ import annotations

import asyncio

from conformance.adapter.base import Call
from conformance.suite import Client, Expect, scenario
from fakebrokers.faults import drop, half_open, hold, stall
from fakebrokers.journal import Tap
from fakebrokers.server import FakeServer
from scenarios._footprint import Footprint
from scenarios.net._scripts import Script, script_for
from scenarios.net._scripts.helpers import outcomes
from scenarios.net._scripts.narconi import NARC, SETTINGS
from scenarios.net._scripts.pzq import PROXIED, PZQ
from scenarios.net._scripts.rabbitmq_stream import liveness
from scenarios.pzq._steps import ROOMY

RMQS = ("rabbitmq-stream",)
KEEPALIVE = ("keepalive",)
OFFERED = 20 << 20  #: bytes


@scenario("NET-1.07", protocols=NARC, needs=KEEPALIVE, server=SETTINGS, timeout_s=75)
@scenario("NET-1.07", protocols=PZQ, server=PROXIED, timeout_s=75)
@scenario("NET-1.07", protocols=RMQS, server=liveness(2), timeout_s=75)
async def server_vanishes(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.ready(**script.keeping_alive(2))
    ops = script.ops(script.queue)
    mark, loop = len(client.events), asyncio.get_running_loop()
    for connection in script.is_open():
        script.wire.kill(connection, how="half-open")
    script.faults.add(half_open(on="accept", name="so is every new connection"))
    expect.may_not_fire("so is every new connection", "a client need not connect again by itself")
    calls = [script.begin(op, 8.0 if script.finds_losses else 3.0) for op in ops]
    begun = loop.time()
    heard = None
    limit = 2 * 1.2 + 1.0
    while script.finds_losses and heard is None and loop.time() - begun < limit:
        await asyncio.sleep(0.05)
        heard = next((e for e in script.troubles(mark) if e.event == "session"), None)
    for op, call in zip(ops, calls, strict=True):
        result = await call
        if op.timed or heard is not None:
            expect.ended(result, f"the pending {op.label} ends by its deadline")
        expect.that(not result.ok, f"the pending {op.label} gets no answer", str(result))
    expect.ended(await client.begin("close", 5.0, session="s1"), "close ends by its deadline")
    if script.finds_losses:
        expect.tolerate(heard, f"the loss is found within {limit:.1f} s", "no loss event")


@scenario("NET-1.08", protocols=NARC, roles=("publisher",), server=SETTINGS, timeout_s=75)
@scenario("NET-1.08", protocols=PZQ, roles=("publisher",), server={**PROXIED, **ROOMY}, timeout_s=75)
@scenario("NET-1.08", protocols=RMQS, roles=("publisher",), server=liveness(30), timeout_s=75)
async def server_stops_reading(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.ready(**script.keeping_alive(30))
    await asyncio.sleep(0.3)
    footprint = Footprint(client)
    mark = len(client.events)
    script.faults.add(stall(for_s=5.0, direction="in", nth=1, name="busy", **script.next_publish()))
    size = script.bulk
    bodies = [{"gen": "rand", "seed": number, "len": size} for number in range(OFFERED // size)]
    calls: list[Call] = []
    for body in bodies:
        calls.append(client.begin_publish(script.queue, body, timeout=20.0, wait=False))
        await asyncio.sleep(0.005)
    results = [await call for call in calls]
    for number, result in enumerate(results):
        expect.ended(result, f"publish {number + 1} ends by its deadline")
    expect.exercised(script.faults.fired("busy"), "nothing was published")
    footprint.judge(expect, rss_mib=64)
    sent = {result.id for result in results if result.ok}
    await script.until(lambda: sent <= outcomes(client, mark).keys(), 25.0)
    ends = outcomes(client, mark)
    missing = sent - ends.keys()
    expect.that(not missing, "after the stall every op ends", f"{len(missing)} of {len(sent)} did not")
    acked = sum(word == "acked" for word in ends.values())
    there = [body for body in script.stored(script.queue) if len(body) >= size]
    expect.that(len(there) >= acked, "every acked message is at the broker", f"{acked} and {len(there)}")
    whole = len(set(there))
    expect.that(whole == len(there), "each of them once and intact", f"{whole} different of {len(there)}")
    expect.that(not script.troubles(mark), "no loss event", script.troubles(mark)[:1])
    expect.note(f"{acked} of {len(bodies)} messages were acked, {len(results) - len(sent)} refused at once")


@scenario("NET-1.09", protocols=NARC, server=SETTINGS, timeout_s=75, revision=2)
@scenario("NET-1.09", protocols=RMQS, timeout_s=75, revision=2)
async def alive_but_mute(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.ready()
    broker.faults.add(hold(spare=("heartbeat",), direction="out", name="mute"))
    ops = script.ops(script.queue)
    calls = [script.begin(op, 1.0) for op in ops]
    endless = []
    for op, call in zip(ops, calls, strict=True):
        result = await call
        if result.hang and not op.timed:
            endless.append(call)
            continue
        expect.ended(result, f"{op.label} ends by its deadline")
        if op.publishes:
            expect.outcome(result, "unknown", f"{op.label} ends as unknown")
        else:
            expect.failed(result, ("timeout", "connection", "closed"), f"{op.label} ends as timeout")
    asked = {op.label: len(broker.journal.select(kind=op.asks)) for op in ops}
    expect.exercised(all(asked.values()), f"not all requests came: {asked}")
    waiting = await _waiting_publish(script) if client.can("ack_timeout") else None
    mute = {record.connection for record in broker.journal.select(kind=script.publishing)}
    mark = len(client.events)
    broker.faults.remove("mute")
    await asyncio.sleep(0.3)
    late = [e for e in client.events[mark:] if e.event in ("outcome", "error")]
    expect.that(not late or endless, "late answers complete nothing", late[:2])
    if waiting is not None:
        result = await waiting
        expect.that(not result.ok, "late answers complete no publish that waits for its own", str(result))
        broker.faults.remove("unheard")
    if await _is_gone(client):
        expect.prepared(await client.begin_connect("s1"))
    mark = broker.journal.last_seq
    for op in script.ops(script.queue, "-again"):
        result = await script.begin(op, 5.0)
        if not result.ok and await _is_gone(client):
            expect.prepared(await client.begin_connect("s1"))
            result = await script.begin(op, 5.0)
        expect.ok(result, f"a new {op.label} works")
    if script.confirms_by_order:
        again = {r.connection for r in broker.journal.select(kind=script.publishing, since=mark)}
        expect.that(
            again.isdisjoint(mute),
            "a connection on which a confirm is overdue is given up: a late one looks like the next one",
            sorted(again & mute),
        )


async def _waiting_publish(script: Script) -> Call | None:
    """A publish that the broker never gets, so that no confirm is its own; None where confirms go by order.

    Those clients give the connection up, which is looked at apart.
    """
    if script.confirms_by_order or not script.client.has_role("publisher"):
        return None
    script.broker.faults.add(drop(kind=script.publishing, direction="in", name="unheard"))
    mark = script.broker.journal.last_seq
    call = script.client.begin_publish(script.queue, b"unheard", timeout=2.0)
    await script.until(lambda: script.broker.journal.select(kind=script.publishing, since=mark), 0.5)
    return call


async def _is_gone(client: Client) -> bool:
    return not client.can("auto_reconnect") and not (await client.state())["open"]


@scenario("NET-1.16", protocols=NARC, needs=KEEPALIVE, server=SETTINGS, timeout_s=60)
@scenario("NET-1.16", protocols=RMQS, server=liveness(4), timeout_s=60)
async def freeze_below_the_limit(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    limit = 4.0
    await script.ready(**script.keeping_alive(2 * limit))  # at the earliest after half of it
    mark, connections = len(client.events), script.is_open()
    expect.exercised(connections, "the client keeps no connection")
    for number in range(3):
        broker.faults.add(hold(behind=True, direction="out", name="frozen"))
        frozen_at = _last_word(script)
        op = script.ops(script.queue, f"-{number}")[0]
        call = script.begin(op, 8.0)
        await asyncio.sleep(frozen_at + 0.8 * limit - broker.now)
        broker.faults.remove("frozen")
        expect.ok(await call, f"freeze {number + 1}: the pending {op.label} ends with its answer")
    expect.that(not script.troubles(mark), "no loss event", script.troubles(mark)[:2])
    expect.equal(script.is_open(), connections, "no reconnect")


def _last_word(script: Script) -> float:
    """When the fake last said something on each of its connections: the earliest of these moments."""
    journal = script.broker.journal
    last = {record.connection: record.at for record in journal.select(tap=Tap.SENT)}
    return min(last[name] for name in script.is_open()) + journal.started_at
