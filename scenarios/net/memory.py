"""NET-3 What a client keeps: unsent messages, answers to nobody, what reconnects leave behind."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.adapter.base import Call
from conformance.suite import Client, Expect, scenario
from fakebrokers.journal import Tap
from fakebrokers.server import FakeServer
from scenarios._footprint import MIB, Footprint
from scenarios._reading import read_up
from scenarios.net._scripts import Script, script_for
from scenarios.net._scripts.helpers import maybe_reconnecting, outcomes
from scenarios.net._scripts.narconi import NARC, SETTINGS
from scenarios.net._scripts.pzq import PROXIED, PZQ, ROOMY

RMQS = ("rabbitmq-stream",)
OFFERED = 50 * MIB


@scenario(
    "NET-3.04", protocols=PZQ, roles=("publisher",), server=PROXIED, sockets=False, timeout_s=90, revision=2
)
@scenario("NET-3.04", protocols=NARC, roles=("publisher",), server=SETTINGS, timeout_s=90, revision=2)
@scenario("NET-3.04", protocols=RMQS, roles=("publisher",), timeout_s=90, revision=2)
async def unbounded_buffering(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.ready(**maybe_reconnecting(client))
    footprint = Footprint(client)
    mark = len(client.events)
    expect.exercised(script.is_open(), "the client keeps no connection that could be lost")
    script.shut()
    size = script.bulk
    count = OFFERED // size
    calls: list[Call] = []
    for number in range(count):
        body = {"gen": "zero", "len": size - number % 7}
        calls.append(client.begin_publish(script.queue, body, timeout=5.0, wait=False))
        await asyncio.sleep(0.003)
    kept = await _buffered(client) // MIB
    expect.that(kept < 64, "growth under 64 MiB (stats.buffered_bytes)", f"{kept} MiB")
    await asyncio.sleep(7.0)
    footprint.judge(expect, rss_mib=64)
    script.reopen()
    results = [await call for call in calls]
    expect.that(not any(r.hang for r in results), "every op ends by its deadline", _first_hang(results))
    taken = {result.id for result in results if result.ok}
    await script.until(lambda: taken <= outcomes(client, mark).keys(), 15.0)
    ends = outcomes(client, mark)
    missing = len(taken - ends.keys())
    if client.can("ack_timeout"):
        expect.that(not missing, "every message that was taken gets an outcome", f"{missing} did not")
    acked = sum(word == "acked" for word in ends.values())
    there = sum(len(body) >= size - 7 for body in script.stored(script.queue))
    expect.that(acked <= there, "nothing is acked that is not at the broker", f"{acked} acked, {there} there")
    kept = acked * size // MIB
    expect.tolerate(
        acked < count, "ops fail or wait, or are buffered up to a limit", f"all {kept} MiB were kept"
    )
    expect.note(f"{acked} of {count} messages were kept and acked later, {count - len(taken)} failed at once")
    if not client.reconnects("producer"):
        await client.connected()
    await script.works_again("a publish works afterwards", within_s=30.0)


def _first_hang(results: list[Any]) -> str:
    return next((str(result) for result in results if result.hang), "")


@scenario("NET-3.05", protocols=PZQ, roles=("publisher",), server=ROOMY, process=True, timeout_s=120)
@scenario("NET-3.05", protocols=RMQS, process=True, timeout_s=120, revision=2)
async def orphan_answers(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.ready()
    expect.prepared(await script.begin(script.ops(script.queue, "-before")[-1], 10.0))
    kept_before, rss_before = 0, 0
    for number in range(4):
        for _ in range(100):
            script.answer_nobody(100)
            await asyncio.sleep(0.002)
        await read_up(script.wire, expect)
        op = script.ops(script.queue, f"-{number}")[-1]
        mark, criterion = script.broker.journal.last_seq, f"a request after round {number + 1} works"
        expect.ok(await script.begin(op, 10.0), criterion)
        asked = script.broker.journal.select(kind=op.asks, tap=Tap.RECEIVED, since=mark)
        expect.that(asked, criterion, f"no {op.asks} came")
        facts = client.facts()
        kept, rss = await _buffered(client), (facts.rss_bytes or 0) if facts is not None else 0
        if number == 0:
            kept_before, rss_before = kept, rss
    if client.can("stats"):
        _grew_little(expect, kept - kept_before, "stats.buffered_bytes")
    _grew_little(expect, rss - rss_before, "RSS")


def _grew_little(expect: Expect, grown: int, what: str) -> None:
    expect.that(grown < 15 * MIB, f"growth over rounds 2 to 4 under 15 MiB ({what})", f"{grown // MIB} MiB")


async def _buffered(client: Client) -> int:
    if not client.can("stats"):
        return 0
    return int((await client.prepare("stats")).get("buffered_bytes") or 0)


@scenario("NET-3.09", protocols=PZQ, roles=("publisher",), server=PROXIED, sockets=False, timeout_s=120)
@scenario("NET-3.09", protocols=NARC, roles=("publisher",), server=SETTINGS, timeout_s=120)
@scenario("NET-3.09", protocols=RMQS, roles=("publisher",), timeout_s=120)
async def what_reconnects_leave_behind(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.ready(auto_reconnect=True)
    await asyncio.sleep(0.5)
    connections = len(script.is_open())
    base = await _account(client)
    begun = asyncio.get_running_loop().time()
    done = 0
    while done < 10 and (done < 3 or asyncio.get_running_loop().time() - begun < 60.0):
        script.wire.kill(how="rst")
        await script.works_again(f"loss {done + 1}: a publish is acked", within_s=30.0)
        done += 1
    await _settled(script, connections)
    after = len(script.is_open())
    expect.that(after <= connections, "open connections as before", f"{connections} and then {after}")
    for what, amount in (await _account(client)).items():
        expect.that(
            amount - base[what] <= 3, f"{what} within 3 of the base", f"{base[what]} and then {amount}"
        )
    expect.note(f"{done} reconnects")


async def _settled(script: Script, connections: int) -> None:
    await script.until(lambda: len(script.is_open()) <= connections, 5.0)
    await asyncio.sleep(1.0)


async def _account(client: Client) -> dict[str, int]:
    facts = client.facts()
    found = {} if facts is None else {"threads": facts.threads, "fds": facts.fds}
    if client.can("stats"):
        found["tasks"] = (await client.prepare("stats")).get("tasks")
    return {what: amount for what, amount in found.items() if amount is not None}
