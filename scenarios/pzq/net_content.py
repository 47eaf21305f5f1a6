"""NET-4.04 and 4.06 for PZQ: any body, many messages."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from conformance.clients.adapter.messages import Message, body_bytes
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers.faults import drop, latency, slice_
from scenarios._common import maybe_reconnecting
from scenarios._footprint import Footprint
from scenarios.net.content import CORPUS
from scenarios.pzq._steps import parts_are
from scenarios.pzq.subject import PzqSubject
from scenarios.subjects import ROLES

LARGE = {"gen": "rand", "seed": 404, "len": 1 << 20}
COUNT = 20_000


@scenario("NET-4.04", protocol="pzq", roles=ROLES, timeout_s=90)
async def payload_corpus(subject: PzqSubject, client: Client, expect: Expect) -> None:
    await subject.connected()
    for name, body in CORPUS.items():
        given: Any = LARGE if name == "large" else body
        expect.outcome(
            await subject.publish(subject.queue, given, timeout=10.0),
            "acked",
            f"{name}: acked",
            id=slug("{}-acked", name),
        )
    expect.prepared(await subject.subscribe(subject.queue))
    got = list(await subject.wait_messages(len(CORPUS), within_s=10.0))
    expect.equal(len(got), len(CORPUS), "every body is delivered once", id="every-body-is-surfaced-once")
    large = expect.prepared(await client.op("echo", body=LARGE))["body"]
    for name, body in CORPUS.items():
        fits = (lambda m: m.body in (large, [large])) if name == "large" else partial(_has, body=body)
        found = next(filter(fits, got), None)
        expect.that(
            found,
            f"{name}: equal, nothing truncated",
            f"not among {[m.body for m in got][:8]}",
            id=slug("{}-equal-nothing-truncated", name),
        )
        got.remove(found)  # type: ignore[arg-type]
    expect.outcome(
        await subject.publish(subject.queue, b"afterwards"),
        "acked",
        "the session stays usable",
        id="the-session-stays-usable",
    )


def _has(message: Message, body: bytes) -> bool:
    return parts_are(message, (body,))


@scenario("NET-4.06", protocol="pzq", roles=ROLES, timeout_s=900, soak=True, alone=True, process=True)
async def long_run(subject: PzqSubject, client: Client, expect: Expect) -> None:
    broker = subject.fake
    await subject.ready(**maybe_reconnecting(client))
    expect.prepared(await subject.subscribe(subject.queue))
    broker.faults.add(
        latency(0.025, jitter=0.025, direction="out", probability=0.004, name="late"),
        drop(kind=subject.confirm, direction="out", probability=0.002, name="lost confirms"),
    )
    subject.faults.add(slice_(7, gap_s=0.001, direction="out", probability=0.004, name="cut"))
    footprint, acked = Footprint(client), []
    for number in range(COUNT):
        body = b"%08d" % number + bytes(92)
        result = await subject.begin_publish(subject.queue, body, timeout=2.0)
        expect.ended(result, "every op has ended", id="every-op-has-ended")
        acked += [body] if result.ok else []
        if client.reconnects("consumer") and number in (4000, 9000, 14_000):
            subject.wire.kill(how="rst")
        if number == COUNT // 4:
            footprint = Footprint(client)
    broker.faults.clear()
    subject.faults.clear()
    await subject.works_again(
        "after the heal a publish is acked", within_s=30.0, id="after-the-heal-a-publish-is-acked"
    )
    kept = set(subject.stored(subject.queue))
    missing = [body for body in acked if body not in kept]
    expect.that(
        not missing,
        "no acked message is lost",
        f"{len(missing)} of {len(acked)}",
        id="no-acked-message-is-lost",
    )
    await subject.until(lambda: not broker.statistics["messages"], 30.0)
    seen = Counter(body_bytes(part) for message in subject.messages() for part in message.body)
    unseen = kept - seen.keys()
    expect.that(
        not unseen,
        "every stored message is delivered",
        f"{len(unseen)} of {len(kept)} are not",
        id="every-stored-message-is-surfaced",
    )
    footprint.judge(expect, rss_mib=20)
    copies = sum(count > 1 for count in seen.values())
    expect.note(f"{len(acked)} of {COUNT} acked, {len(kept)} stored, {copies} delivered more than once")
