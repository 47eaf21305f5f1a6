"""NET-4 Forward compatibility and content."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from conformance.clients.adapter.messages import same_body
from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from conformance.suite.scenario import demand
from fakebrokers.faults import latency, slice_
from scenarios._common import maybe_reconnecting, side_by_side
from scenarios._footprint import Footprint
from scenarios._reading import read_to_the_end
from scenarios.subjects import ROLES, Subject

SEEDS = 50


#: Their scripts are with the protocols.
demand(
    "NET-4.02",
    "MUST",
    "high",
    """Unknown enum value in a known message.

    Fault: Known messages with a number or a word that no list of the protocol has
    Pass: The op ends by its deadline as `refused` with a generic error that shows the number or word; never
    success; process alive; the session stays usable, or, where the server ended the connection, a new one is
    Seen: stream-java-client#1005
    """,
    basis=["X5"],
    module=__name__,
)

demand(
    "NET-4.05",
    "MUST",
    "medium",
    """Numbers at limits.

    Fault: Numbers at 2^53 + 1 and at the ends of their type
    Pass: Delivered and sent back exactly
    Seen: rstream#240; stream-dotnet-client#166
    """,
    basis=["X12"],
    module=__name__,
)


@scenario("NET-4.03", "MUST", "medium", basis=["X5"], roles=ROLES)
async def unknown_optional_fields(subject: Subject, client: Client, expect: Expect) -> None:
    """Unknown optional fields.

    Fault: Known messages with members, entries, headers or parts that no document names
    Pass: Same outcome as without them; they do not leak into the body
    Seen: mkoppanen/pzq ca31f83
    """
    await subject.rehearse()
    added = subject.unknown_fields()
    await subject.run("future")
    for name, (missing, id) in added.items():
        expect.exercised(subject.broker.faults.fired(name), missing, id=id)


CORPUS: dict[str, bytes] = {
    "1 B": b"x",
    "all byte values": bytes(range(256)),
    "UTF-8 of 1 to 4 bytes": "a\u00e4\u20ac\U0001f300".encode(),
    "invalid UTF-8": b"\xff\xfe\xc3\x28\xed\xa0\x80",
    "a run of NUL": bytes(4096),
    "empty": b"",
    "large": b"",
}


@scenario("NET-4.04", "MUST", "high", basis=["X12"], roles=ROLES, timeout_s=90)
async def payload_corpus(subject: Subject, client: Client, expect: Expect) -> None:
    """Payload corpus.

    Fault: 1 B, all 256 byte values, UTF-8 of 1 to 4 bytes, invalid UTF-8, NUL runs, empty, large. Large is
    what the protocol just allows
    Pass: Round trip equal by SHA-256; nothing truncated; a body beyond the limit fails locally or `refused`,
    and the session stays usable
    Seen: stream-dotnet-client#161; moleculer-go 2f1fc7cb
    """
    await subject.rehearse()
    subject.add_queue(subject.queue)
    await subject.connected()
    large = {"gen": "rand", "seed": 404, "len": subject.largest}
    for name, body in CORPUS.items():
        given: Any = large if name == "large" else body
        expect.outcome(
            await subject.publish(subject.queue, given, timeout=10.0),
            "acked",
            f"{name}: acked",
            id=slug("{}-acked", name),
        )
    expect.prepared(await subject.subscribe(subject.queue))
    got = await read_to_the_end(subject.broker, client, expect, len(CORPUS), within_s=10.0)
    expect.equal(len(got), len(CORPUS), "every body is delivered once", id="every-body-is-surfaced-once")
    for (name, body), message in zip(CORPUS.items(), got, strict=True):
        if name == "large":
            echoed = await client.op("echo", body=large)
            expect.equal(
                message.body,
                expect.prepared(echoed)["body"],
                "large: equal by SHA-256",
                id="large-equal-by-sha-n",
            )
            continue
        expect.that(
            same_body(message.body, body),
            f"{name}: equal, nothing truncated",
            message.body,
            id=slug("{}-equal-nothing-truncated", name),
        )
    beyond = await subject.publish(subject.queue, {"gen": "zero", "len": subject.beyond}, timeout=5.0)
    expect.failed(
        beyond,
        ("invalid", "refused"),
        "a body beyond the limit fails locally or is refused",
        id="a-body-beyond-the-limit-fails-locally-or-is-refused",
    )
    if beyond.word == "refused":
        await subject.go_on_refused()
    await subject.works_again(
        "the session stays usable after a body beyond the limit",
        within_s=10.0,
        id="the-session-stays-usable-after-a-body-beyond-the-limit",
    )


@scenario(
    "NET-4.06",
    "SHOULD",
    "medium",
    basis=["X9"],
    roles=ROLES,
    timeout_s=900,
    soak=True,
    alone=True,
    process=True,
)
async def long_run(subject: Subject, client: Client, expect: Expect) -> None:
    """Long run.

    Fault: 20 000 messages of 100 B; 1 % of the server's frames (seeded) get delay up to 50 ms, frag or a
    dropped confirm, legal and environment effects only; with `auto_reconnect` also 3 × rst; then heal and
    drain
    Pass: Checkers `lost-write`, `unseen` (total-queue `lost`) find nothing; every op has ended; duplicates
    only of messages whose confirm was dropped or cut; RSS at the end within 20 MiB of that at one quarter
    (process facts)
    """
    if subject.messages_wait:
        await subject.rehearse()
    await subject.ready(**maybe_reconnecting(client))
    if subject.messages_wait:
        expect.prepared(await subject.subscribe_and_settle(subject.queue))
    subject.broker.faults.add(
        latency(0.025, jitter=0.025, direction="out", probability=0.004, name="late"),
        slice_(7, gap_s=0.001, direction="out", probability=0.004, name="cut"),
        subject.losing_confirms(),
    )
    bodies = [b"%08d" % number + bytes(92) for number in range(20_000)]
    footprint = Footprint(client)
    acked: list[bytes] = []
    for start in range(0, len(bodies), 200):
        part = bodies[start : start + 200]
        calls = [subject.begin_publish(subject.queue, body, timeout=2.0) for body in part]
        results = [await call for call in calls]
        late = [str(result) for result in results if result.hang and subject.publishes_in_time]
        expect.that(not late, "every op has ended", late[:1], id="every-op-has-ended")
        acked += [body for body, result in zip(bodies[start:], results, strict=False) if result.ok]
        if client.reconnects("consumer") and start in (4000, 9000, 14_000):
            subject.broker.kill(how="rst")
        if start == len(bodies) // 4:
            footprint = Footprint(client)
    subject.broker.faults.clear()
    await subject.works_again(
        "after the heal a publish is acked", within_s=30.0, id="after-the-heal-a-publish-is-acked"
    )
    kept = {_number(body) for body in subject.stored(subject.queue)}
    missing = [body for body in acked if int(body[:8]) not in kept]
    expect.that(
        not missing,
        "no acked message is lost",
        f"{len(missing)} of {len(acked)}",
        id="no-acked-message-is-lost",
    )
    if not subject.messages_wait:
        footprint.judge(expect, rss_mib=20)
        return
    there = len(subject.stored(subject.queue))
    await subject.wait_messages(there, within_s=30.0)
    await subject.until(lambda: _delivered(subject) >= there, 30.0)  # some of those came more than once
    seen = _delivered(subject)
    expect.that(
        seen >= there,
        "every stored message is delivered",
        f"{seen} of {there}",
        id="every-stored-message-is-surfaced",
    )
    footprint.judge(expect, rss_mib=20)
    expect.note(f"{len(acked)} of {len(bodies)} acked, {there} stored")


def _delivered(subject: Subject) -> int:
    """How many messages the application got, without what came again after a reset."""
    return len({subject.identity(message) for message in subject.messages("c1")})


def _number(body: bytes) -> int:
    digits = body.lstrip(b"\x00Su\xa0d")[:8]
    return int(digits) if digits.isdigit() else -1


@scenario("NET-4.07", "SHOULD", "medium", basis=["X5"], roles=ROLES, timeout_s=120)
async def one_corrupted_byte(subject: Subject, client: Client, expect: Expect) -> None:
    """One corrupted byte.

    Fault: One byte after the length field of the n-th server frame is changed (seeded, 50 seeds, base script
    of NET-1.01, one connection each); length fields stay right
    Pass: For every seed: process alive, no hang past the deadlines, CPU under 50 % of a core when idle, RSS
    growth under 32 MiB; a closed connection is accepted; a clean connection works afterwards. Content is not
    judged
    Seen: measured: blazingmq wheel 1.2.2 ends with SIGSEGV on a PUSH for an unknown queue
    """
    await subject.rehearse()
    subject.wrong_bytes(SEEDS)
    fired = await _outlived(subject, SEEDS)
    expect.may_not_fire("seed *", "their places are drawn; half of them have to take place")
    expect.exercised(
        fired >= SEEDS // 2,
        f"only {fired} of {SEEDS} faults took place",
        id=slug("only-{}-of-n-faults-took-place", fired),
    )


async def _outlived(subject: Subject, runs: int) -> int:
    """So many runs against the armed faults, which the client has to outlive, then a clean one.

    Returns:
        How many of the faults took place.
    """
    faults = subject.broker.faults
    footprint = Footprint(subject.client)
    jobs = [partial(_survived, subject, number, subject.wrong_s) for number in range(runs)]
    await side_by_side(jobs, subject.wrong_width)
    await asyncio.sleep(1.0)
    footprint.judge(subject.expect, rss_mib=32, cpu_share=0.5)
    fired = sum(faults.fired(name) for name in faults.names)
    subject.expect.note(f"{fired} bytes were wrong")
    faults.clear()
    await subject.run("clean", case="clean connection afterwards")
    return fired


async def _survived(subject: Subject, number: int, timeout: float) -> None:
    """The base script, whose ops may fail but have to end."""
    client, expect = subject.client, subject.expect
    session = f"seed-{number}"
    queue = f"{subject.queue}-{session}"
    subject.add_queue(queue)
    patience = client.deadline_s("request", timeout)
    result = await subject.begin_connect(session, timeout=patience)
    expect.ended(
        result, f"seed {number}: connect ends by its deadline", id="seed-n-connect-ends-by-its-deadline"
    )
    if not result.ok:
        return

    def ends(result: Result, _: str, *, id: str) -> None:
        expect.ended(
            result,
            f"seed {number}: {result.op} ends by its deadline",
            id=slug("seed-n-{}-ends-by-its-deadline", result.op),
        )

    await subject.open(queue, session, ends, patience)
    for body in subject.bodies(3, session):
        result = await subject.begin_publish(queue, body, session=session, timeout=patience)
        if subject.publishes_in_time:
            expect.ended(
                result,
                f"seed {number}: publish ends by its deadline",
                id="seed-n-publish-ends-by-its-deadline",
            )
        if not result.ok:
            break
    else:
        result = await subject.subscribe(queue, f"{session}-sub", session, patience)
        expect.ended(
            result,
            f"seed {number}: subscribe ends by its deadline",
            id="seed-n-subscribe-ends-by-its-deadline",
        )
    for op in subject.further_ops(queue):
        result = await subject.begin(op, patience, session)
        expect.ended(
            result,
            f"seed {number}: {op.label} ends by its deadline",
            id=slug("seed-n-{}-ends-by-its-deadline", op.label),
        )
    result = await client.begin("close", patience, session=session)
    expect.ended(result, f"seed {number}: close ends by its deadline", id="seed-n-close-ends-by-its-deadline")
    expect.that(
        client.alive, f"seed {number}: the process goes on", "it ended", id="seed-n-the-process-lives-on"
    )
