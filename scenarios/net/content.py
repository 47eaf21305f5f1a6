"""NET-4 Forward compatibility and content."""

from __future__ import annotations

import asyncio
from functools import partial
from random import Random
from typing import Any

from conformance.adapter.messages import same_body
from conformance.adapter.result import Result
from conformance.suite import Client, Expect, scenario
from fakebrokers import RabbitMQStream
from fakebrokers.faults import corrupt, hold, latency, rewrite, slice_
from fakebrokers.rabbitmq_stream.codes import NO_LEADER
from fakebrokers.rabbitmq_stream.frames import StoreOffset, Subscribe
from fakebrokers.rabbitmq_stream.wiretypes import StreamMetadata
from fakebrokers.server import FakeServer
from scenarios._footprint import Footprint
from scenarios._reading import read_to_the_end
from scenarios.net._scripts import Script, script_for
from scenarios.net._scripts.helpers import maybe_reconnecting, side_by_side
from scenarios.net._scripts.narconi import LONG, NARC, SETTINGS
from scenarios.net._scripts.rabbitmq_stream import ROLES
from scenarios.rabbitmq_stream._deliveries import begin_at

RMQS = ("rabbitmq-stream",)
LIMITS = (2**53 + 1, 2**63 - 1)
UNKNOWN_CODE = 777
CLOSE_CODE = 999


@scenario("NET-4.02", protocols=RMQS, roles=("publisher",), timeout_s=60, revision=2)
async def unknown_enum_value(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.ready()
    await client.connected("fresh")
    script.add_queue("future")
    unknown = (StreamMetadata("future", UNKNOWN_CODE, NO_LEADER, ()),)
    broker.faults.add(rewrite(fields={"streams": unknown}, kind="MetadataResponse", name="code 777"))
    patience = client.deadline_s("request", 4.0)
    calls = {"publish": client.begin_publish("future", b"x", session="fresh", timeout=patience)}
    if client.has("rmqs.metadata"):
        calls["metadata"] = client.begin("rmqs.metadata", 4.0, session="fresh", targets=["future"])
    results = {name: await call for name, call in calls.items()}
    expect.exercised(broker.faults.fired("code 777"), "the client asks for no Metadata")
    for name, result in results.items():
        _refused_with_777(expect, name, result)
    broker.faults.remove("code 777")
    result = await client.publish("future", b"after", session="fresh")
    expect.outcome(result, "acked", "the session stays usable")
    broker.faults.add(hold(kind=script.confirm, direction="out", name="pending"))
    mark, seen = broker.journal.last_seq, len(client.events)
    call = client.begin_publish(script.queue, b"pending", timeout=4.0)
    asked = await expect.reached(broker, "nothing was published", kind=script.publishing, since=mark)
    script.ask_to_close(asked[0].connection, CLOSE_CODE, "from the future")
    await asyncio.sleep(0.5)
    if asked[0].connection in script.is_open():
        broker.kill(asked[0].connection)
    result = await call
    expect.ended(result, "the op ends by its deadline after a Close with an unknown code")
    expect.outcome(result, "unknown", "never success")
    text = f"{result.code} {result.error.text if result.error else ''}"
    text += "".join(f" {event['code']} {event['text']}" for event in client.events[seen:])
    expect.tolerate(str(CLOSE_CODE) in text, "the code of the Close is shown, by the op or an event", text)
    broker.faults.clear()
    expect.ok(await client.begin_connect("new"), "a new session works")
    expect.outcome(await client.publish("future", b"new", session="new"), "acked", "a new session works")


def _refused_with_777(expect: Expect, name: str, result: Result) -> None:
    if name == "metadata" and result.ok:
        entry = result.value["streams"][0]
        expect.that(not entry["exists"], "metadata: never success", entry)
        expect.tolerate(entry.get("code") == UNKNOWN_CODE, "metadata: the number is shown", entry)
        return
    expect.failed(result, ("refused",), f"{name} ends by its deadline as refused")
    text = f"{result.code} {result.error.text if result.error else ''}"
    expect.that(str(UNKNOWN_CODE) in text, f"{name}: a generic error that shows the number", text)


@scenario("NET-4.03", protocols=RMQS, roles=ROLES)
async def unknown_optional_fields(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.rehearse()
    more = {f"properties.future-{number}": f"value {number}" for number in range(20)}
    broker.faults.add(rewrite(fields=more, kind="OpenResponse", name="20 more entries"))
    await script.run("future")
    expect.exercised(broker.faults.fired("20 more entries"), "no connection was opened")


CORPUS: dict[str, bytes] = {
    "1 B": b"x",
    "all byte values": bytes(range(256)),
    "UTF-8 of 1 to 4 bytes": "a\u00e4\u20ac\U0001f300".encode(),
    "invalid UTF-8": b"\xff\xfe\xc3\x28\xed\xa0\x80",
    "a run of NUL": bytes(4096),
    "empty": b"",
    "large": b"",
}


@scenario("NET-4.04", protocols=NARC, roles=ROLES, server=SETTINGS, timeout_s=90)
@scenario("NET-4.04", protocols=RMQS, roles=ROLES, timeout_s=90)
async def payload_corpus(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    script.add_queue(script.queue)
    await client.connected()
    large = {"gen": "rand", "seed": 404, "len": script.largest}
    for name, body in CORPUS.items():
        given: Any = large if name == "large" else body
        expect.outcome(await client.publish(script.queue, given, timeout=10.0), "acked", f"{name}: acked")
    expect.prepared(await script.subscribe(script.queue))
    got = await read_to_the_end(broker, client, expect, len(CORPUS), within_s=10.0)
    expect.equal(len(got), len(CORPUS), "every body is surfaced once")
    for (name, body), message in zip(CORPUS.items(), got, strict=True):
        if name == "large":
            echoed = await client.op("echo", body=large)
            expect.equal(message.body, expect.prepared(echoed)["body"], "large: equal by SHA-256")
            continue
        expect.that(same_body(message.body, body), f"{name}: equal, nothing truncated", message.body)
    beyond = await client.publish(script.queue, {"gen": "zero", "len": script.beyond}, timeout=5.0)
    expect.failed(beyond, ("invalid", "refused"), "a body beyond the limit fails locally or is refused")
    result = await client.publish(script.queue, b"afterwards")
    expect.outcome(result, "acked", "the session stays usable after a body beyond the limit")


@scenario("NET-4.05", protocols=RMQS, timeout_s=60)
async def numbers_at_limits(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    tried = 0
    await client.connected()
    for value in LIMITS:
        stream = f"at-{value}"
        broker.create_stream(stream)
        broker.store_offset(stream, "a", value)
        broker.store_sequence(stream, "a", value)
        args: dict[str, Any] = {"session": "s1", "target": stream, "name": "a"}
        for op, field in (("rmqs.query_offset", "offset"), ("rmqs.query_sequence", "sequence")):
            if client.has(op):
                tried += 1
                found = expect.ok(await client.op(op, **args), f"{op} of {value} is answered")[field]
                expect.equal(str(found), str(value), f"{op}: {value} is surfaced exactly")
        await _consumed_at(broker, client, expect, stream, value)
        if client.has("rmqs.store_offset") and client.has_role("consumer"):
            tried += 1
            if not client.can("offset_without_consumer"):
                await client.subscribed(stream, f"{stream}-named", name="a")
            mark = broker.journal.last_seq
            expect.ok(await client.op("rmqs.store_offset", offset=str(value), **args), f"{value} is stored")
            stored = await expect.reached(broker, "no StoreOffset came", kind="StoreOffset", since=mark)
            assert isinstance(stored[-1].frame, StoreOffset)
            expect.equal(stored[-1].frame.offset, value, f"StoreOffset: {value} is sent back exactly")
        if client.can("named_publisher") and client.has_role("publisher"):
            tried += 1
            mark = broker.journal.last_seq
            await client.publish(stream, b"next", name="a", key=str(value + 1))
            came = await expect.reached(broker, "no Publish came", kind="Publish", since=mark)
            expect.equal(came[0].keys, (value + 1,), f"publishing id behind {value} is exact on the wire")
    expect.exercised(tried or client.has_role("consumer"), "the client has no op with such a number")


async def _consumed_at(
    broker: RabbitMQStream, client: Client, expect: Expect, stream: str, value: int
) -> None:
    """Offsets and times of chunks, and the offset of the Subscribe."""
    if not client.has_role("consumer"):
        return
    script = script_for(broker, client, expect)
    begin_at(broker, value, stream)
    script.put(stream, [b"at the limit"])
    for time_ms in (-1, 2**53 + 1):
        stamp = {"chunk.timestamp_ms": time_ms}
        broker.faults.add(rewrite(fields=stamp, kind="Deliver", nth=1, scope="run", name=f"{time_ms}"))
        sub, mark = f"{stream}-{time_ms}", broker.journal.last_seq
        start = {"type": "offset", "value": str(value)}
        expect.ok(await script.subscribe(stream, sub, offset=start), f"subscribe at {value} works")
        got = await client.wait_messages(1, sub)
        expect.that(got, f"the message at {value} is surfaced", "it is not")
        expect.equal(str(got[0].position), str(value), f"offset {value} is surfaced exactly")
        shown = got[0].ts
        expect.tolerate(
            shown is None or str(shown).removesuffix(".0") == str(time_ms),
            f"the time {time_ms} of a chunk is surfaced exactly",
            shown,
        )
        frames = [r.frame for r in broker.journal.select(kind="Subscribe", since=mark)]
        asked = [frame.offset for frame in frames if isinstance(frame, Subscribe)]
        expect.equal(asked[:1], [value], f"Subscribe: {value} is sent exactly")
        broker.faults.clear()
        await client.unsubscribe(sub)


@scenario(
    "NET-4.06", protocols=NARC, roles=ROLES, server=LONG, timeout_s=600, soak=True, alone=True, process=True
)
@scenario("NET-4.06", protocols=RMQS, roles=ROLES, timeout_s=600, soak=True, alone=True, process=True)
async def long_run(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.ready(**maybe_reconnecting(client))
    expect.prepared(await script.subscribe_and_settle(script.queue))
    broker.faults.add(
        latency(0.025, jitter=0.025, direction="out", probability=0.004, name="late"),
        slice_(7, gap_s=0.001, direction="out", probability=0.004, name="cut"),
        script.losing_confirms(),
    )
    bodies = [b"%08d" % number + bytes(92) for number in range(20_000)]
    footprint = Footprint(client)
    acked: list[bytes] = []
    for start in range(0, len(bodies), 200):
        part = bodies[start : start + 200]
        calls = [client.begin_publish(script.queue, body, timeout=2.0) for body in part]
        results = [await call for call in calls]
        late = [str(result) for result in results if result.hang and client.can("ack_timeout")]
        expect.that(not late, "every op has ended", late[:1])
        acked += [body for body, result in zip(bodies[start:], results, strict=False) if result.ok]
        if client.reconnects("consumer") and start in (4000, 9000, 14_000):
            broker.kill(how="rst")
        if start == len(bodies) // 4:
            footprint = Footprint(client)
    broker.faults.clear()
    await script.works_again("after the heal a publish is acked", within_s=30.0)
    kept = {_number(body) for body in script.stored(script.queue)}
    missing = [body for body in acked if int(body[:8]) not in kept]
    expect.that(not missing, "no acked message is lost", f"{len(missing)} of {len(acked)}")
    there = len(script.stored(script.queue))
    await client.wait_messages(there, within_s=30.0)
    seen = len({script.identity(message) for message in client.messages("c1")})
    expect.that(seen >= there, "every stored message is surfaced", f"{seen} of {there}")
    footprint.judge(expect, rss_mib=20)
    expect.note(f"{len(acked)} of {len(bodies)} acked, {there} stored")


def _number(body: bytes) -> int:
    digits = body.lstrip(b"\x00Su\xa0d")[:8]
    return int(digits) if digits.isdigit() else -1


@scenario("NET-4.07", protocols=RMQS, roles=ROLES, timeout_s=120)
async def one_corrupted_byte(broker: FakeServer, client: Client, expect: Expect) -> None:
    script = script_for(broker, client, expect)
    await script.rehearse()
    dice = Random(broker.faults.plan.seed)
    first = len(script.accepted()) + 1
    for number in range(first, first + 50):
        frame = dice.randint(1, 12)
        broker.faults.add(
            corrupt(connection=f"c{number}", direction="out", nth=frame, name=f"seed {number}, frame {frame}")
        )
    fired = await outlived(script, 50)
    expect.may_not_fire("seed *", "their places are drawn; half of them have to take place")
    expect.exercised(fired >= 25, f"only {fired} of 50 faults took place")


async def outlived(script: Script, runs: int, *, width: int = 50, timeout: float = 2.0) -> int:
    """So many runs against the armed faults, which the client has to outlive, then a clean one.

    Returns:
        How many of the faults took place.
    """
    faults = script.broker.faults
    footprint = Footprint(script.client)
    await side_by_side([partial(_survived, script, number, timeout) for number in range(runs)], width)
    await asyncio.sleep(1.0)
    footprint.judge(script.expect, rss_mib=32, cpu_share=0.5)
    fired = sum(faults.fired(name) for name in faults.names)
    script.expect.note(f"{fired} bytes were wrong")
    faults.clear()
    await script.run("clean", case="clean connection afterwards")
    return fired


async def _survived(script: Script, number: int, timeout: float) -> None:
    """The base script, whose ops may fail but have to end."""
    client, expect = script.client, script.expect
    session = f"seed-{number}"
    queue = f"{script.queue}-{session}"
    script.add_queue(queue)
    patience = client.deadline_s("request", timeout)
    result = await client.begin_connect(session, timeout=patience)
    expect.ended(result, f"seed {number}: connect ends by its deadline")
    if not result.ok:
        return
    for body in script.bodies(3, session):
        result = await client.begin_publish(queue, body, session=session, timeout=patience)
        if client.can("ack_timeout"):
            expect.ended(result, f"seed {number}: publish ends by its deadline")
        if not result.ok:
            break
    else:
        result = await script.subscribe(queue, f"{session}-sub", session, patience)
        expect.ended(result, f"seed {number}: subscribe ends by its deadline")
    for op in script.further_ops(queue):
        result = await script.begin(op, patience, session)
        expect.ended(result, f"seed {number}: {op.label} ends by its deadline")
    result = await client.begin("close", patience, session=session)
    expect.ended(result, f"seed {number}: close ends by its deadline")
    expect.that(client.alive, f"seed {number}: the process lives on", "it ended")
