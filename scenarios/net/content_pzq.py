"""NET-4.03, 4.04, 4.06 and 4.07 for PZQ: parts that nobody expects, any body, many messages, wrong bytes."""

from __future__ import annotations

from collections import Counter
from functools import partial
from random import Random
from typing import Any

from conformance.adapter.messages import Message, body_bytes
from conformance.suite import Client, Expect, scenario
from fakebrokers import PZQ
from fakebrokers.faults import drop, fault, latency, slice_
from fakebrokers.pzq.faults import CorruptPart, ExtraHeaders
from scenarios._footprint import Footprint
from scenarios.net._scripts import Script, pzq, script_for
from scenarios.net._scripts.helpers import maybe_reconnecting
from scenarios.net._scripts.rabbitmq_stream import ROLES
from scenarios.net.content import CORPUS, outlived
from scenarios.pzq._steps import parts_are

LARGE = {"gen": "rand", "seed": 404, "len": 1 << 20}
LONG = {**pzq.PROXIED, "journal_limit": 500_000}
COUNT = 20_000
SEEDS = 50
SAYINGS = 6 * SEEDS  #: what the fake says in so many runs of the base script: 3 answers and 3 deliveries


@scenario("NET-4.03", protocols=pzq.PZQ, roles=ROLES, server=pzq.PROXIED, sockets=False)
async def extra_parts(broker: PZQ, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.rehearse()
    headers = ExtraHeaders(headers=("future", "1"))
    for role in ("confirm", "deliver"):
        broker.faults.add(fault(headers, role=role, name=role))
    await script.run("future")
    for role in ("confirm", "deliver"):
        expect.exercised(broker.faults.fired(role), f"nothing came with more parts: {role}")


@scenario("NET-4.04", protocols=pzq.PZQ, roles=ROLES, server=pzq.PROXIED, sockets=False, timeout_s=60)
async def payload_corpus(broker: PZQ, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await client.connected()
    for name, body in CORPUS.items():
        given: Any = LARGE if name == "large" else body
        expect.outcome(await client.publish(script.queue, given, timeout=10.0), "acked", f"{name}: acked")
    expect.prepared(await script.subscribe(script.queue))
    got = list(await client.wait_messages(len(CORPUS), within_s=10.0))
    expect.equal(len(got), len(CORPUS), "every body is surfaced once")
    large = expect.prepared(await client.op("echo", body=LARGE))["body"]
    for name, body in CORPUS.items():
        fits = (lambda m: m.body == [large]) if name == "large" else partial(_has, body=body)
        found = next(filter(fits, got), None)
        expect.that(found, f"{name}: equal, nothing truncated", f"not among {[m.body for m in got][:8]}")
        got.remove(found)  # type: ignore[arg-type]
    expect.outcome(await client.publish(script.queue, b"afterwards"), "acked", "the session stays usable")


def _has(message: Message, body: bytes) -> bool:
    return parts_are(message, (body,))


@scenario(
    "NET-4.06",
    protocols=pzq.PZQ,
    roles=ROLES,
    server=LONG,
    timeout_s=900,
    soak=True,
    alone=True,
    process=True,
)
async def long_run(broker: PZQ, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.ready(**maybe_reconnecting(client))
    expect.prepared(await script.subscribe(script.queue))
    broker.faults.add(
        latency(0.025, jitter=0.025, direction="out", probability=0.004, name="late"),
        drop(kind=script.confirm, direction="out", probability=0.002, name="lost confirms"),
    )
    script.faults.add(slice_(7, gap_s=0.001, direction="out", probability=0.004, name="cut"))
    footprint, acked = Footprint(client), []
    for number in range(COUNT):
        body = b"%08d" % number + bytes(92)
        result = await client.begin_publish(script.queue, body, timeout=2.0)
        expect.ended(result, "every op has ended")
        acked += [body] if result.ok else []
        if client.reconnects("consumer") and number in (4000, 9000, 14_000):
            script.wire.kill(how="rst")
        if number == COUNT // 4:
            footprint = Footprint(client)
    broker.faults.clear()
    script.faults.clear()
    await script.works_again("after the heal a publish is acked", within_s=30.0)
    kept = set(script.stored(script.queue))
    missing = [body for body in acked if body not in kept]
    expect.that(not missing, "no acked message is lost", f"{len(missing)} of {len(acked)}")
    await script.until(lambda: not broker.statistics["messages"], 30.0)
    seen = Counter(body_bytes(part) for message in client.messages() for part in message.body)
    unseen = kept - seen.keys()
    expect.that(not unseen, "every stored message is surfaced", f"{len(unseen)} of {len(kept)} are not")
    footprint.judge(expect, rss_mib=20)
    copies = sum(count > 1 for count in seen.values())
    expect.note(f"{len(acked)} of {COUNT} acked, {len(kept)} stored, {copies} surfaced more than once")


@scenario("NET-4.07", protocols=pzq.PZQ, roles=ROLES, server=pzq.PROXIED, sockets=False, timeout_s=120)
async def one_wrong_byte(broker: PZQ, client: Client, expect: Expect) -> None:
    script: Script = script_for(broker, client, expect)
    await script.rehearse()
    dice = Random(broker.faults.plan.seed)
    for number, saying in enumerate(dice.sample(range(1, SAYINGS // 2), SEEDS)):
        name = f"seed {number}, message {saying}"
        broker.faults.add(fault(CorruptPart(), direction="out", nth=saying, scope="run", name=name))
    fired = await outlived(script, SEEDS)
    expect.may_not_fire("seed *", "their places are drawn; half of them have to take place")
    expect.exercised(fired >= SEEDS // 2, f"only {fired} of {SEEDS} faults took place")
