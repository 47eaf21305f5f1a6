"""NET-1.07, 1.16 and 3.11 for Moleculer: a peer lives while it beats, and a loss is a peer that is gone."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers.faults import half_open, hold
from fakebrokers.journal import Tap
from fakebrokers.moleculer.calls import RemoteError
from fakebrokers.moleculer.node import Node
from scenarios._common import limit_s
from scenarios.moleculer.subject import MoleculerSubject
from scenarios.moleculer.subject.keeper import PEER
from scenarios.subjects import PUBLISHER, ROLES

BACK_S = 30.0
PAUSED_LIMIT_S = 2.0  #: after which a peer gives up a node that is stopped


async def _is_available(client: Client) -> bool:
    """Whether the node that is judged takes its peer for alive."""
    nodes = (await client.prepare("mol.registry", session="s1"))["nodes"]
    return any(each["id"] == PEER and each["available"] for each in nodes)


@scenario("NET-1.07", protocol="moleculer", roles=PUBLISHER, timeout_s=75)
async def server_vanishes(subject: MoleculerSubject, client: Client, expect: Expect) -> None:
    timeout_s = 3.0
    await subject.ready(**subject.keeping_alive(timeout_s))
    op = subject.ops(subject.queue)[0]
    for connection in subject.is_open():
        subject.wire.kill(connection, how="half-open")
    subject.faults.add(half_open(on="accept", name="so is every new connection"))
    expect.may_not_fire("so is every new connection", "a node need not connect again by itself")
    limit = subject.found_within_s(timeout_s)
    call = subject.begin(op, limit + 4.6)
    end = client.now + limit
    while is_there := await _is_available(client):
        if client.now > end:
            break
        await asyncio.sleep(0.05)
    result = await call
    expect.ended(
        result,
        f"the pending {op.label} ends by its deadline",
        id=slug("the-pending-{}-ends-by-its-deadline", op.label),
    )
    expect.that(
        not result.ok,
        f"the pending {op.label} gets no answer",
        str(result),
        id=slug("the-pending-{}-gets-no-answer", op.label),
    )
    expect.ended(
        await client.begin("close", 5.0, session="s1"),
        "close ends by its deadline",
        id="close-ends-by-its-deadline",
    )
    expect.tolerate(
        not is_there,
        f"the peer is unavailable within {limit:.1f} s",
        "it is not",
        id=slug("the-peer-is-unavailable-within-{}-s", f"{limit:.1f}"),
    )


@scenario("NET-1.16", protocol="moleculer", roles=ROLES, timeout_s=60)
async def freeze_below_the_limit(subject: MoleculerSubject, client: Client, expect: Expect) -> None:
    limit = 5.0
    await subject.ready(heartbeat_s=limit / 2, heartbeat_timeout_s=limit)
    expect.prepared(await subject.subscribe(subject.queue))
    there = await subject.hears()
    mark, connections = len(client.events), subject.is_open()
    for number in range(1, 4):
        case = f"freeze {number}"
        what, seen = "the peer does not beat", subject.broker.journal.last_seq
        beats = await expect.reached(
            subject.broker, what, kind="Heartbeat", tap=Tap.SENT, since=seen, id="the-peer-does-not-beat"
        )
        subject.broker.faults.add(hold(behind=True, direction="out", name="frozen"))
        end = beats[-1].at + subject.broker.journal.started_at + 0.8 * limit
        op = subject.ops(subject.queue, f"-{number}")[0]
        call = subject.begin(op, 8.0)
        await asyncio.sleep(end - subject.broker.now)
        subject.broker.faults.remove("frozen")
        expect.that(
            await _is_available(client),
            f"{case}: no peer is marked unavailable",
            "it is",
            id="freeze-n-no-peer-is-marked-unavailable",
        )
        expect.ok(
            await call,
            f"{case}: the pending {op.label} ends with its answer",
            id=slug("freeze-n-the-pending-{}-ends-with-its-answer", op.label),
        )
        there += 1
        got = await subject.wait_messages(there)
        expect.equal(
            len(got),
            there,
            f"{case}: what was sent is delivered once",
            id="freeze-n-what-was-sent-is-surfaced-once",
        )
        await asyncio.sleep(limit / 2)
        expect.that(
            await _is_available(client),
            f"{case}: no peer is marked unavailable after it",
            "it is",
            id="freeze-n-no-peer-is-marked-unavailable-after-it",
        )
    expect.equal(len(subject.messages()), there, "nothing delivered twice", id="nothing-surfaced-twice")
    expect.that(not subject.troubles(mark), "no loss event", subject.troubles(mark)[:2], id="no-loss-event")
    expect.equal(subject.is_open(), connections, "no reconnect", id="no-reconnect")


@scenario("NET-3.11", protocol="moleculer", roles=("caller", "service"), timeout_s=90, process=True)
async def stopped_process(subject: MoleculerSubject, client: Client, expect: Expect) -> None:
    await subject.ready(**subject.keeping_alive(PAUSED_LIMIT_S))
    watcher = subject.fake.node("watcher", heartbeat_s=0.5, heartbeat_timeout_s=PAUSED_LIMIT_S)
    await client.prepare("mol.serve", session="s1", service="s", actions={"echo": "echo"})
    expect.exercised(
        await _callable_within(subject, watcher, 5.0),
        "the node could not be called before",
        id="the-node-could-not-be-called-before",
    )
    op = subject.ops(subject.queue)[0]
    subject.broker.faults.add(hold(kind=op.answer, direction="out", name="answer"))
    seen = subject.broker.journal.last_seq
    call = subject.begin(op, 20.0)
    await expect.reached(
        subject.broker, f"no {op.asks} came", kind=op.asks, since=seen, id=slug("no-{}-came", op.asks)
    )
    client.adapter.pause()
    try:
        await asyncio.sleep(3 * PAUSED_LIMIT_S)
        given_up = not _available(watcher)
    finally:
        client.adapter.resume()
    subject.broker.faults.remove("answer")
    expect.exercised(given_up, "the peer has not given the node up", id="the-peer-has-not-given-the-node-up")
    await subject.works_again(
        "a new op ends acked within 30 s of the resume",
        within_s=BACK_S,
        id="a-new-op-ends-acked-within-n-s-of-the-resume",
    )
    again = await _callable_within(subject, watcher, BACK_S)
    expect.that(
        again,
        "the node is callable again within 30 s of the resume",
        "it is not",
        id="the-node-is-callable-again-within-n-s-of-the-resume",
    )
    expect.ended(await call, "the pending op has ended", id="the-pending-op-has-ended")


def _available(watcher: Node) -> bool:
    found = watcher.peers.get("node-s1")
    return found is not None and found.available


async def _callable_within(subject: MoleculerSubject, watcher: Node, within_s: float) -> bool:
    """Whether the watcher knows the node's action in time, and is answered when it calls it."""

    def known() -> Any:
        return _available(watcher) and "s.echo" in watcher.peers["node-s1"].actions()

    if not await subject.until(known, within_s):
        return False
    try:
        return bool(await watcher.call_async("s.echo", {"n": 1}, timeout=limit_s(1.0)) == {"n": 1})
    except RemoteError:
        return False
