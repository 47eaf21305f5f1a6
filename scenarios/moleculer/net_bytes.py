"""Moleculer's own scripts of NET-1.04 and 4.07, as a start takes long: one link has to bear all the seeds.

And of NET-4.04, as packets in JSON carry texts.
"""

from __future__ import annotations

import asyncio
import json
from random import Random

from conformance.clients.adapter.messages import request_body, same_body
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers.faults import corrupt, slice_
from scenarios._footprint import Footprint
from scenarios.moleculer._steps import call
from scenarios.moleculer.subject import ALL_ROLES, MoleculerSubject
from scenarios.subjects import ROLES

CALLS = 100
SEEDS = 50
#: Bytes at the end of a packet in which one is changed: members of each packet are there.
TAIL = 120
DEADLINE_S = 0.5


@scenario("NET-1.04", protocol="moleculer", roles=ALL_ROLES, timeout_s=150)
async def random_segmentation(subject: MoleculerSubject, client: Client, expect: Expect) -> None:
    await subject.rehearse()
    await subject.ready()
    expect.prepared(await subject.subscribe(subject.queue))
    there = await subject.hears()
    dice = Random(subject.faults.plan.seed)
    trouble = len(client.events)
    for number, body in enumerate(subject.bodies(CALLS, "seed"), 1):
        longest = int(1500 ** dice.random())  # most packets are short: every length up to 1500 has its turn
        name = f"seed {number}"
        subject.faults.add(slice_(up_to=longest, gap_s=0.003, gap="random", direction="out", name=name))
        result = await subject.publish(subject.queue, body, timeout=subject.slow_s)
        expect.equal(
            expect.ok(result, f"{name}: the call is answered", id="seed-n-the-call-is-answered")["data"],
            body.decode(),
            name,
            id="seed-n",
        )
        got = await subject.wait_messages(there + number, within_s=subject.slow_s)
        expect.that(
            len(got) == there + number,
            f"{name}: the event is delivered",
            f"{len(got)} came",
            id="seed-n-the-event-is-surfaced",
        )
        if number % 10 == 1:
            await subject.other_ways(
                subject.queue, "s1", check=expect.ok, timeout=subject.slow_s, prefix=f"{name}: "
            )
        subject.faults.remove(name)
    found = subject.troubles(trouble)
    expect.that(not found, "no error event, no reconnect", found[:2], id="no-error-event-no-reconnect")
    expect.ok(await client.close("s1"), "close works", id="close-works")


TEXTS = {
    "1 B": "x",
    "all characters up to 255": "".join(map(chr, range(256))),
    "UTF-8 of 1 to 4 bytes": "a\u00e4\u20ac\U0001f300",
    "a run of NUL": "\0" * 4096,
    "empty": "",
    "large": "0123456789abcdef" * (512 * 1024 // 16),
}
BYTES = {
    "all byte values": bytes(range(256)),
    "invalid UTF-8": b"\xff\xfe\xc3\x28\xed\xa0\x80",
    "a run of NUL": bytes(4096),
}


@scenario("NET-4.04", protocol="moleculer", roles=ROLES, timeout_s=90)
async def payload_corpus(subject: MoleculerSubject, client: Client, expect: Expect) -> None:
    await subject.ready()
    expect.prepared(await subject.subscribe(subject.queue))
    first = await subject.wait_messages(1)
    subject.demand(first, "an event is delivered", "none came", subject.prepares, id="an-event-is-surfaced")
    for number, (name, text) in enumerate(TEXTS.items(), 2):
        result = await subject.publish(subject.queue, text, timeout=10.0)
        value = expect.ok(result, f"{name}: the call is answered", id=slug("{}-the-call-is-answered", name))
        expect.that(
            value["data"] == text,
            f"{name}: the answer is equal, nothing truncated",
            str(value)[:80],
            id=slug("{}-the-answer-is-equal-nothing-truncated", name),
        )
        kept = subject.stored(subject.queue)[-1]
        expect.that(
            kept == text.encode(),
            f"{name}: what the peer got is equal",
            kept[:80],
            id=slug("{}-what-the-peer-got-is-equal", name),
        )
        got = await subject.wait_messages(number, within_s=10.0)
        expect.equal(
            len(got),
            number,
            f"{name}: the event is delivered once",
            id=slug("{}-the-event-is-surfaced-once", name),
        )
        body = got[-1].body
        whole = json.dumps(text) if "sha256" in body else text  # of a long one the adapter hashes the JSON
        same = same_body(body, whole.encode())
        expect.that(
            same,
            f"{name}: the event is equal, nothing truncated",
            str(got[-1].body)[:80],
            id=slug("{}-the-event-is-equal-nothing-truncated", name),
        )
    for name, data in BYTES.items() if client.can("streams") else ():
        body = request_body(data)
        sent = await call(client, "p.up", timeout_s=10.0, stream=body)
        same = same_body(
            expect.ok(sent, f"{name}: the stream is answered", id=slug("{}-the-stream-is-answered", name))[
                "data"
            ],
            data,
        )
        expect.that(
            same,
            f"{name}: what the peer got is equal by SHA-256",
            str(sent.value)[:80],
            id=slug("{}-what-the-peer-got-is-equal-by-sha-n", name),
        )
    beyond = await subject.publish(subject.queue, {"gen": "zero", "len": subject.beyond}, timeout=5.0)
    expect.failed(
        beyond,
        ("invalid", "refused"),
        "a body beyond the limit fails locally or is refused",
        id="a-body-beyond-the-limit-fails-locally-or-is-refused",
    )
    result = await subject.publish(subject.queue, b"afterwards")
    expect.outcome(
        result,
        "acked",
        "the session stays usable after a body beyond the limit",
        id="the-session-stays-usable-after-a-body-beyond-the-limit",
    )


@scenario("NET-4.07", protocol="moleculer", roles=ROLES, timeout_s=120)
async def one_corrupted_byte(subject: MoleculerSubject, client: Client, expect: Expect) -> None:
    await subject.rehearse()
    await subject.ready()
    expect.prepared(await subject.subscribe(subject.queue))
    await subject.hears()
    dice = Random(subject.faults.plan.seed)
    footprint = Footprint(client)
    fired = 0
    for number in range(1, SEEDS + 1):
        name = f"seed {number}"
        where, mask = -dice.randint(3, TAIL), dice.randint(1, 255)  # the last two bytes end the line
        kind = dice.choice((subject.confirm, subject.delivery))
        subject.faults.add(
            corrupt(at=where, xor=mask, kind=kind, direction="out", nth=1, scope="run", name=name)
        )
        body = b"body of seed %d" % number
        result = await subject.publish(subject.queue, body, timeout=DEADLINE_S)
        expect.ended(result, f"{name}: a call ends by its deadline", id="seed-n-a-call-ends-by-its-deadline")
        subject.put(subject.queue, [] if result.ok else [body])
        await subject.wait_messages(0)
        await asyncio.sleep(0.01)
        expect.that(
            client.alive, f"{name}: the process goes on", "it ended", id="seed-n-the-process-lives-on"
        )
        fired += subject.faults.fired(name)
        subject.faults.remove(name)
    expect.exercised(
        fired >= SEEDS // 2,
        f"only {fired} of {SEEDS} faults took place",
        id=slug("only-{}-of-n-faults-took-place", fired),
    )
    expect.note(f"{fired} bytes were wrong")
    await asyncio.sleep(1.0)
    footprint.judge(expect, rss_mib=32, cpu_share=0.5)
    await subject.run("clean", case="clean connection afterwards")
