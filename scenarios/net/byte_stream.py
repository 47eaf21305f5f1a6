"""NET-1 Byte-stream faults: how the bytes are cut and when they come must not matter."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from random import Random
from typing import Any

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import Inconclusive, Violated, slug
from fakebrokers.faults import coalesce, latency, slice_, throttle
from fakebrokers.journal import Tap
from scenarios._common import DIRECTIONS, side_by_side
from scenarios.subjects import ROLES, Subject


@scenario("NET-1.01", "MUST", "critical", basis=["X1"], roles=ROLES, timeout_s=90)
async def one_byte_at_a_time(subject: Subject, client: Client, expect: Expect) -> None:
    """One byte at a time.

    Fault: frag(1) from server to client for the whole session, 1 ms apart for the first 1000 bytes. Base
    script, used by all of NET-1: connect, open, publish 3 with confirm, consume 3 with ack, close, bodies of
    16 B
    Pass: Same op outcomes, bodies and order of delivery as the base script without the fault; no error event,
    no reconnect
    Seen: tchannel#771; pulsar-client-go#163
    """
    await subject.rehearse()
    subject.faults.add(slice_(1, gap_s=0.001, gap_bytes=1000, direction="out"))
    await subject.run("slow", timeout=subject.slow_s)


async def many_connections(
    subject: Subject, keys: Sequence[int], name: str, add: Callable[[int, int], None]
) -> None:
    """Run the base script in session after session, with a fault for each connection.

    A failure names the faults of the newest connections. It counts if one of them fails the client again:
    what fails once in so many connections may do so without any fault. Where a session without a fault fails
    then, too, the reason says so: the client may have run out of something that sessions use up.

    Args:
        keys: What differs from fault to fault.
        add: Adds the fault for the connection of a number, by its key.
    """
    journal = subject.wire.journal
    counted, seen = journal.last_seq, 0
    before = len(subject.accepted())
    suspects: list[int] = []
    for number, key in enumerate(keys, before + 1):
        add(number, key)

    async def once(number: int) -> None:
        nonlocal counted, seen
        seen += len(journal.select(kind="accepted", since=counted))
        counted = journal.last_seq
        if seen < len(keys):
            try:
                await subject.run(f"{name}-{number}", timeout=subject.slow_s, turns=subject.turns)
            except Violated as error:
                count, most = len(subject.accepted()) - before, subject.width * subject.ways
                suspects.extend(keys[max(0, count - most) : count])
                at_hand = " or ".join(subject.faults.names[:count][-most:])
                raise Violated(
                    f"{at_hand}: {error.criterion}",
                    error.actual,
                    late_s=error.late_s,
                    tags=error.tags,
                    id=slug("{}-{}", at_hand, error.id),
                ) from None

    try:
        await side_by_side([partial(once, number) for number in range(len(keys))], subject.width)
    except Violated as error:
        if not await fails_again(subject, suspects, name, add):
            text = f"{error}; the same faults again changed nothing"
            raise Inconclusive(text, id="not-by-the-cut") from None
        subject.faults.clear()
        if not await _fails(subject, f"{name}-whole"):
            raise
        text = f"{error.actual} (and so does a session without such a fault, after that)"
        raise Violated(error.criterion, text, late_s=error.late_s, tags=error.tags, id=error.id) from None


async def fails_again(
    subject: Subject, keys: Iterable[int], name: str, add: Callable[[int, int], None]
) -> bool:
    """Whether one of these faults makes a new session fail."""
    for key in dict.fromkeys(keys):
        subject.faults.clear()
        there = len(subject.accepted())
        for number in range(there + 1, there + 1 + subject.ways):
            add(number, key)
        if await _fails(subject, f"{name}-again-{there}"):
            return True
    return False


async def _fails(subject: Subject, session: str) -> bool:
    """Whether the base script fails in a new session."""
    try:
        await subject.run(session, timeout=subject.slow_s, turns=subject.turns)
    except Violated:
        return True
    return False


def excuse_unspoken(subject: Subject, expect: Expect, name: str) -> None:
    """No fault can act on a connection on which no side has said anything.

    Args:
        name: Of the faults of a connection, with ``{}`` for its number.
    """
    journal = subject.wire.journal
    spoken = {record.connection for record in journal.select(tap=Tap.RECEIVED)}
    for record in journal.select(kind="accepted") if spoken else ():
        if record.connection not in spoken:
            expect.may_not_fire(
                name.format(record.connection.removeprefix("c")),
                "no side sends anything on that connection: a browser opens some ahead",
            )


@scenario("NET-1.02", "MUST", "critical", basis=["X1"], roles=ROLES, timeout_s=150)
async def cuts_at_every_offset(subject: Subject, client: Client, expect: Expect) -> None:
    """Cuts at every offset.

    Fault: Base script of NET-1.01 with cut@k, 3 ms between the two parts. Handshake: one connection per k,
    for k = 1..32 and every 16th after. After the handshake, on one connection: the n-th frame of each kind
    is cut at byte n, until every offset of its first 128 bytes was used once
    Pass: For every k the same op outcomes and deliveries as without the cut; kind and k of the first failure
    are printed
    Seen: pulsar-client-go#163; mosquitto#3701
    """
    await subject.rehearse()
    said = Counter[str]()
    for record in subject.wire.journal.select(tap=Tap.SENT):
        said[record.connection] += record.size
    offsets = [at for at in subject.cuts(max(said.values(), default=0)) for _ in range(subject.ways)]

    def cut(number: int, at: int) -> None:
        subject.faults.add(
            slice_(at=at, of="stream", gap_s=0.003, connection=f"c{number}", name=f"c{number} cut at {at}")
        )

    await many_connections(subject, offsets, "cut", cut)
    excuse_unspoken(subject, expect, "c{} cut at *")
    subject.faults.clear()
    subject.add_queue("walk")
    await subject.connected("walk", "walk")
    expect.prepared(await subject.publish("walk", b"the first message", session="walk"))
    expect.prepared(await subject.subscribe("walk", "walking", "walk"))
    subject.faults.add(slice_(walk=True, gap_s=0.003, direction="out"))
    bodies = subject.bodies(128, "walk")
    for number, body in enumerate(bodies, 1):
        expect.ok(
            await subject.publish("walk", body * 4, session="walk"),
            f"publish {number} is acked, its confirm cut at byte {number}",
            id="publish-n-is-acked-its-confirm-cut-at-byte-n",
        )
        got = await subject.wait_messages(number + 1, "walking")
        expect.that(
            len(got) == number + 1,
            f"delivery {number}, cut at byte {number}, is handed to the application",
            len(got),
            id="delivery-n-cut-at-byte-n-is-surfaced",
        )
        await subject.other_ways(
            "walk", "walk", check=expect.ok, timeout=5.0, prefix=f"cut at byte {number}: "
        )
    expect.ok(await client.close("walk"), "close works", id="close-works")


@scenario("NET-1.03", "MUST", "high", basis=["X1"], roles=ROLES, timeout_s=90)
async def everything_in_one_segment(subject: Subject, client: Client, expect: Expect) -> None:
    """Everything in one segment.

    Fault: Base script of NET-1.01, 10 publishes in flight; all frames that the server has ready within 20 ms
    leave in one write, order kept
    Pass: Same op outcomes and deliveries as without the fault; no error event
    Seen: stream-js-client#112
    """
    await subject.rehearse()
    subject.faults.add(coalesce(within_s=0.02, direction="out"))
    await subject.run("glued", count=subject.in_flight, at_once=True)


@scenario("NET-1.04", "MUST", "high", basis=["X1"], roles=ROLES, timeout_s=150)
async def random_segmentation(subject: Subject, client: Client, expect: Expect) -> None:
    """Random segmentation, fixed seed.

    Fault: Base script of NET-1.01; segments of 1..1500 bytes with pauses of 0..3 ms drawn from the seed; 100
    seeds, one connection each
    Pass: Same op outcomes and deliveries for every seed; the seed is printed on failure
    """
    await subject.rehearse()
    dice = Random(subject.faults.plan.seed)

    def segment(number: int, longest: int) -> None:
        subject.faults.add(
            slice_(up_to=longest, gap_s=0.003, gap="random", connection=f"c{number}", name=f"seed {number}")
        )

    lengths = [int(1500 ** dice.random()) for _ in range(100)]  # most frames are short, all have their turn
    await many_connections(subject, lengths, "seed", segment)
    excuse_unspoken(subject, expect, "seed {}")


@scenario("NET-1.10", "MUST", "medium", basis=["X1"], roles=ROLES, timeout_s=90)
async def latency_and_jitter(subject: Subject, client: Client, expect: Expect) -> None:
    """Latency 300 ms and jitter.

    Fault: Base script of NET-1.01 with latency 300 ms ± 100 ms each way, order kept (not `delay`, which lets
    frames pass each other); op deadlines 10 s, liveness limit at least 10 s
    Pass: Same op outcomes and deliveries; no loss event, no reconnect, each message published once
    """
    await subject.rehearse()
    for direction in DIRECTIONS:
        subject.faults.add(latency(0.3, jitter=0.1, direction=direction))
    await subject.run("far", timeout=10.0)
    copies = [subject.holds(body, f"{subject.queue}-far") for body in subject.bodies(3, "far")]
    expect.equal(copies, [1, 1, 1], "each message was published once", id="each-message-was-published-once")


@scenario("NET-1.11", "SHOULD", "medium", basis=["X1"], roles=ROLES, liveness_s=12, timeout_s=120)
async def little_bandwidth(subject: Subject, client: Client, expect: Expect) -> None:
    """Bandwidth 8 KiB/s.

    Fault: throttle each way, one body of 48 KiB each way (6 s); liveness limit 12 s; op deadlines 30 s
    Pass: Both bodies equal by SHA-256; no loss event and no reconnect; after it the client's heartbeats, if
    it owes any, keep their period
    """
    await subject.ready(**subject.slow_options, **subject.waiting(30.0))
    large: dict[str, Any] = {"gen": "rand", "seed": 111, "len": subject.large}
    expect.prepared(await subject.subscribe(subject.queue))
    await subject.hears()
    mark, connections = len(client.events), subject.is_open()
    for direction in DIRECTIONS:
        subject.faults.add(throttle(8192, direction=direction, name=f"throttle {direction}"))
    begun = asyncio.get_running_loop().time()
    expect.outcome(
        await subject.publish(subject.queue, large, timeout=30.0),
        "acked",
        "the large message is acked",
        id="the-large-message-is-acked",
    )
    got = await subject.wait_messages(2, within_s=30.0)
    slow = asyncio.get_running_loop().time() - begun
    expect.exercised(
        slow > 2 / 3 * 2 * subject.large / 8192,
        f"it took {slow:.1f} s only",
        id=slug("it-took-{}-s-only", f"{slow:.1f}"),
    )
    expect.that(
        len(got) == 2,
        "the large message is delivered once",
        len(got),
        id="the-large-message-is-surfaced-once",
    )
    expect.that(subject.carries(got[1], large), "equal by SHA-256", got[1].body, id="equal-by-sha-n")
    trouble = client.events[mark:]
    expect.that(
        not subject.troubles(mark), "no loss event", [str(event) for event in trouble][:2], id="no-loss-event"
    )
    expect.equal(subject.is_open(), connections, "no reconnect", id="no-reconnect")
    await subject.heartbeats()
