"""NET-3 What a client keeps: unsent messages, answers to no request, what reconnects leave."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.adapter.base import Call
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers.journal import Tap
from scenarios._common import maybe_reconnecting
from scenarios._footprint import MIB, Footprint
from scenarios._reading import read_up
from scenarios.subjects import PUBLISHER, Subject

OFFERED = 50 * MIB


@scenario("NET-3.04", "SHOULD", "high", basis=["X9"], roles=PUBLISHER, timeout_s=90, revision=3)
async def unbounded_buffering(subject: Subject, client: Client, expect: Expect) -> None:
    """Unbounded buffering.

    Fault: rst, refuse for 10 s while 50 MiB are published in 64 KiB bodies, `wait` false, deadlines 5 s; then
    accept
    Pass: Ops fail, wait up to their deadline, or are buffered up to a limit below 50 MiB; RSS growth
    under 64 MiB; nothing is `acked` that is not at the fake. Non-strict: all is buffered and every op
    still ends (figure reported), in RSS growth under 150 MiB, as the application has a copy besides.
    Clients without `auto_reconnect` are connected anew by the script
    Seen: nats.py#289; paho.mqtt.python#24
    """
    await subject.ready(**maybe_reconnecting(client))
    footprint = Footprint(client)
    mark = len(client.events)
    expect.exercised(
        subject.is_open(),
        "the client keeps no connection that could be lost",
        id="the-client-keeps-no-connection-that-could-be-lost",
    )
    subject.shut()
    size = subject.bulk
    count = OFFERED // size
    calls: list[Call] = []
    for number in range(count):
        body = {"gen": "zero", "len": size - number % 7}
        calls.append(subject.begin_publish(subject.queue, body, timeout=5.0, wait=False))
        await asyncio.sleep(0.003)
    kept = await _buffered(client) // MIB
    expect.that(
        kept < 64,
        "growth under 64 MiB (stats.buffered_bytes)",
        f"{kept} MiB",
        id="growth-under-n-mib-stats-buffered-bytes",
    )
    await asyncio.sleep(7.0)
    footprint.judge(expect, rss_mib=64, worst_mib=3 * OFFERED // MIB)
    subject.reopen()
    results = [await call for call in calls]
    expect.that(
        not any(r.hang for r in results),
        "every op ends by its deadline",
        _first_hang(results),
        id="every-op-ends-by-its-deadline",
    )
    taken = {result.id for result in results if result.ok}
    await subject.until(lambda: taken <= subject.outcomes(results, mark).keys(), 15.0)
    ends = subject.outcomes(results, mark)
    missing = len(taken - ends.keys())
    if subject.publishes_in_time:
        expect.that(
            not missing,
            "every message that was taken gets an outcome",
            f"{missing} did not",
            id="every-message-that-was-taken-gets-an-outcome",
        )
    acked = sum(word == "acked" for word in ends.values())
    there = sum(len(body) >= size - 7 for body in subject.stored(subject.queue))
    expect.that(
        acked <= there,
        "nothing is acked that is not at the broker",
        f"{acked} acked, {there} there",
        id="nothing-is-acked-that-is-not-at-the-broker",
    )
    kept = acked * size // MIB
    expect.tolerate(
        acked < count,
        "ops fail or wait, or are buffered up to a limit",
        f"all {kept} MiB were kept",
        id="ops-fail-or-wait-or-are-buffered-up-to-a-limit",
    )
    expect.note(f"{acked} of {count} messages were kept and acked later, {count - len(taken)} failed at once")
    if not client.reconnects("producer"):
        await subject.connected()
    await subject.works_again("a publish works afterwards", within_s=30.0, id="a-publish-works-afterwards")


def _first_hang(results: list[Any]) -> str:
    return next((str(result) for result in results if result.hang), "")


@scenario("NET-3.05", "SHOULD", "medium", basis=["X9"], timeout_s=120, process=True, revision=2)
async def orphan_answers(subject: Subject, client: Client, expect: Expect) -> None:
    """Orphan answers do not pile up.

    Fault: 4 rounds of 10 000 answers to no request, 1 KiB each
    Pass: Growth over rounds 2 to 4 (30 MiB sent) under 15 MiB, by `stats.buffered_bytes` where the adapter
    has it, else by RSS; a request after each round works
    Seen: rabbitmq-stream-js-client keeps unmatched answers in a list (source)
    """
    await subject.ready()
    expect.prepared(await subject.begin(subject.ops(subject.queue, "-before")[-1], 10.0))
    kept_before, rss_before = 0, 0
    for number in range(4):
        for _ in range(100):
            subject.answer_nobody(100)
            await asyncio.sleep(0.002)
        await read_up(subject.wire, expect)
        op = subject.ops(subject.queue, f"-{number}")[-1]
        mark, criterion = subject.broker.journal.last_seq, f"a request after round {number + 1} works"
        expect.ok(await subject.begin(op, 10.0), criterion, id="a-request-after-round-n-works")
        asked = subject.broker.journal.select(kind=op.asks, tap=Tap.RECEIVED, since=mark)
        expect.that(asked, criterion, f"no {op.asks} came", id="a-request-after-round-n-works")
        facts = client.facts()
        kept, rss = await _buffered(client), (facts.rss_bytes or 0) if facts is not None else 0
        if number == 0:
            kept_before, rss_before = kept, rss
    if client.can("stats"):
        _grew_little(expect, kept - kept_before, "stats.buffered_bytes")
    _grew_little(expect, rss - rss_before, "RSS")


def _grew_little(expect: Expect, grown: int, what: str) -> None:
    expect.that(
        grown < 15 * MIB,
        f"growth over rounds 2 to 4 under 15 MiB ({what})",
        f"{grown // MIB} MiB",
        id=slug("growth-over-rounds-n-to-n-under-n-mib-{}", what),
    )


async def _buffered(client: Client) -> int:
    if not client.can("stats"):
        return 0
    return int((await client.prepare("stats")).get("buffered_bytes") or 0)


@scenario(
    "NET-3.09", "SHOULD", "medium", basis=["X9"], needs=["auto_reconnect"], roles=PUBLISHER, timeout_s=120
)
async def what_reconnects_leave_behind(subject: Subject, client: Client, expect: Expect) -> None:
    """Thread and task count.

    Fault: rst of every connection, 10 times, each after the client is back (stop after 60 s, at least 3)
    Pass: Open connections as seen by the fake as before the first; threads and fds (process facts) within 3
    of the base; tasks within 3 where the adapter has `stats`
    Seen: stream-rust-client#292; measured: moleculer 0.14.36 over Redis keeps one more connection open per
    reconnect
    """
    await subject.ready(auto_reconnect=True)
    await asyncio.sleep(0.5)
    connections = len(subject.is_open())
    base = await _account(client)
    begun = asyncio.get_running_loop().time()
    done = 0
    while done < 10 and (done < 3 or asyncio.get_running_loop().time() - begun < 60.0):
        subject.wire.kill(how="rst")
        await subject.works_again(
            f"loss {done + 1}: a publish is acked", within_s=30.0, id="loss-n-a-publish-is-acked"
        )
        done += 1
    await _settled(subject, connections)
    after = len(subject.is_open())
    expect.that(
        after <= connections,
        "open connections as before",
        f"{connections} and then {after}",
        id="open-connections-as-before",
    )
    for what, amount in (await _account(client)).items():
        expect.that(
            amount - base[what] <= 3,
            f"{what} within 3 of the base",
            f"{base[what]} and then {amount}",
            id=slug("{}-within-n-of-the-base", what),
        )
    expect.note(f"{done} reconnects")


async def _settled(subject: Subject, connections: int) -> None:
    await subject.until(lambda: len(subject.is_open()) <= connections, 5.0)
    await asyncio.sleep(1.0)


async def _account(client: Client) -> dict[str, int]:
    facts = client.facts()
    found = {} if facts is None else {"threads": facts.threads, "fds": facts.fds}
    if client.can("stats"):
        found["tasks"] = (await client.prepare("stats")).get("tasks")
    return {what: amount for what, amount in found.items() if amount is not None}
