"""NET-4.02 and 4.05 for RabbitMQ Stream: unexpected codes and numbers."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers.faults import hold, rewrite
from fakebrokers.rabbitmq_stream.codes import NO_LEADER
from fakebrokers.rabbitmq_stream.frames import StoreOffset, Subscribe
from fakebrokers.rabbitmq_stream.wiretypes import StreamMetadata
from scenarios.rabbitmq_stream._deliveries import begin_at
from scenarios.rabbitmq_stream.subject import StreamSubject
from scenarios.subjects import PUBLISHER

LIMITS = (2**53 + 1, 2**63 - 1)
UNKNOWN_CODE = 777
CLOSE_CODE = 999


@scenario("NET-4.02", protocol="rabbitmq-stream", roles=PUBLISHER, timeout_s=60, revision=3)
async def unknown_enum_value(subject: StreamSubject, client: Client, expect: Expect) -> None:
    broker = subject.fake
    await subject.ready()
    await client.connected("fresh")
    subject.add_queue("future")
    unknown = (StreamMetadata("future", UNKNOWN_CODE, NO_LEADER, ()),)
    broker.faults.add(rewrite(fields={"streams": unknown}, kind="MetadataResponse", name="code 777"))
    patience = client.deadline_s("request", 4.0)
    result = await client.publish("future", b"x", session="fresh", timeout=patience)
    # a client that asks for no Metadata before it publishes does right to publish
    results = {"publish": result} if broker.faults.fired("code 777") else {}
    if client.has("rmqs.metadata"):
        results["metadata"] = await client.begin("rmqs.metadata", 4.0, session="fresh", targets=["future"])
    expect.exercised(
        broker.faults.fired("code 777"),
        "the client asks for no Metadata",
        id="the-client-asks-for-no-metadata",
    )
    for name, result in results.items():
        _refused_with_777(expect, name, result)
    broker.faults.remove("code 777")
    result = await client.publish("future", b"after", session="fresh")
    expect.outcome(result, "acked", "the session stays usable", id="the-session-stays-usable")
    broker.faults.add(hold(kind=subject.confirm, direction="out", name="pending"))
    mark, seen = broker.journal.last_seq, len(client.events)
    call = client.begin_publish(subject.queue, b"pending", timeout=4.0)
    asked = await expect.reached(
        broker, "nothing was published", kind=subject.publishing, since=mark, id="nothing-was-published"
    )
    subject.ask_to_close(asked[0].connection, CLOSE_CODE, "from the future")
    await asyncio.sleep(0.5)
    if asked[0].connection in subject.is_open():
        broker.kill(asked[0].connection)
    result = await call
    expect.ended(
        result,
        "the op ends by its deadline after a Close with an unknown code",
        id="the-op-ends-by-its-deadline-after-a-close-with-an-unknown",
    )
    expect.outcome(result, "unknown", "never success", id="never-success")
    text = f"{result.code} {result.error.text if result.error else ''}"
    text += "".join(f" {event['code']} {event['text']}" for event in client.events[seen:])
    expect.tolerate(
        str(CLOSE_CODE) in text,
        "the code of the Close is shown, by the op or an event",
        text,
        id="the-code-of-the-close-is-shown-by-the-op-or-an-event",
    )
    broker.faults.clear()
    expect.ok(await client.begin_connect("new"), "a new session works", id="a-new-session-works")
    expect.outcome(
        await client.publish("future", b"new", session="new"),
        "acked",
        "a new session works",
        id="a-new-session-works",
    )


def _refused_with_777(expect: Expect, name: str, result: Result) -> None:
    if name == "metadata" and result.ok:
        entry = result.value["streams"][0]
        expect.that(not entry["exists"], "metadata: never success", entry, id="metadata-never-success")
        expect.tolerate(
            entry.get("code") == UNKNOWN_CODE,
            "metadata: the number is shown",
            entry,
            id="metadata-the-number-is-shown",
        )
        return
    expect.failed(
        result,
        ("refused",),
        f"{name} ends by its deadline as refused",
        id=slug("{}-ends-by-its-deadline-as-refused", name),
    )
    text = f"{result.code} {result.error.text if result.error else ''}"
    expect.that(
        str(UNKNOWN_CODE) in text,
        f"{name}: a generic error that shows the number",
        text,
        id=slug("{}-a-generic-error-that-shows-the-number", name),
    )


@scenario("NET-4.05", protocol="rabbitmq-stream", timeout_s=60)
async def numbers_at_limits(subject: StreamSubject, client: Client, expect: Expect) -> None:
    broker, tried = subject.fake, 0
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
                found = expect.ok(
                    await client.op(op, **args),
                    f"{op} of {value} is answered",
                    id=slug("{}-of-{}-is-answered", op, value),
                )[field]
                expect.equal(
                    str(found),
                    str(value),
                    f"{op}: {value} is delivered exactly",
                    id=slug("{}-{}-is-surfaced-exactly", op, value),
                )
        await _consumed_at(subject, client, expect, stream, value)
        if client.has("rmqs.store_offset") and client.has_role("consumer"):
            tried += 1
            if not client.can("offset_without_consumer"):
                await client.subscribed(stream, f"{stream}-named", name="a")
            mark = broker.journal.last_seq
            expect.ok(
                await client.op("rmqs.store_offset", offset=str(value), **args),
                f"{value} is stored",
                id=slug("{}-is-stored", value),
            )
            stored = await expect.reached(
                broker, "no StoreOffset came", kind="StoreOffset", since=mark, id="no-storeoffset-came"
            )
            assert isinstance(stored[-1].frame, StoreOffset)
            expect.equal(
                stored[-1].frame.offset,
                value,
                f"StoreOffset: {value} is sent back exactly",
                id=slug("storeoffset-{}-is-sent-back-exactly", value),
            )
        if client.can("named_publisher") and client.has_role("publisher"):
            tried += 1
            mark = broker.journal.last_seq
            await client.publish(stream, b"next", name="a", key=str(value + 1))
            came = await expect.reached(
                broker, "no Publish came", kind="Publish", since=mark, id="no-publish-came"
            )
            expect.equal(
                came[0].keys,
                (value + 1,),
                f"publishing id after {value} is exact on the wire",
                id=slug("publishing-id-behind-{}-is-exact-on-the-wire", value),
            )
    expect.exercised(
        tried or client.has_role("consumer"),
        "the client has no op with such a number",
        id="the-client-has-no-op-with-such-a-number",
    )


async def _consumed_at(
    subject: StreamSubject, client: Client, expect: Expect, stream: str, value: int
) -> None:
    """Offsets and times of chunks, and the offset of the Subscribe."""
    if not client.has_role("consumer"):
        return
    broker = subject.fake
    begin_at(broker, value, stream)
    subject.put(stream, [b"at the limit"])
    for time_ms in (-1, 2**53 + 1):
        stamp = {"chunk.timestamp_ms": time_ms}
        broker.faults.add(rewrite(fields=stamp, kind="Deliver", nth=1, scope="run", name=f"{time_ms}"))
        sub, mark = f"{stream}-{time_ms}", broker.journal.last_seq
        start = {"type": "offset", "value": str(value)}
        expect.ok(
            await subject.subscribe(stream, sub, offset=start),
            f"subscribe at {value} works",
            id=slug("subscribe-at-{}-works", value),
        )
        got = await client.wait_messages(1, sub)
        expect.that(
            got,
            f"the message at {value} is delivered",
            "it is not",
            id=slug("the-message-at-{}-is-surfaced", value),
        )
        expect.equal(
            str(got[0].position),
            str(value),
            f"offset {value} is delivered exactly",
            id=slug("offset-{}-is-surfaced-exactly", value),
        )
        shown = got[0].ts
        expect.tolerate(
            shown is None or str(shown).removesuffix(".0") == str(time_ms),
            f"the time {time_ms} of a chunk is delivered exactly",
            shown,
            id=slug("the-time-{}-of-a-chunk-is-surfaced-exactly", time_ms),
        )
        frames = [r.frame for r in broker.journal.select(kind="Subscribe", since=mark)]
        asked = [frame.offset for frame in frames if isinstance(frame, Subscribe)]
        expect.equal(
            asked[:1],
            [value],
            f"Subscribe: {value} is sent exactly",
            id=slug("subscribe-{}-is-sent-exactly", value),
        )
        broker.faults.clear()
        await client.unsubscribe(sub)
