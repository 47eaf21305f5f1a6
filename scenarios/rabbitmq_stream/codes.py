"""RMQS-2.10 to 2.14: codes, names and empty values in requests and their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import msgspec

from conformance.clients.adapter.messages import Error, Kind
from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import RabbitMQStream
from fakebrokers.faults import fault, hold, reply, rewrite
from fakebrokers.faults.effects import Extend, Rewrite
from fakebrokers.rabbitmq_stream.codes import Code
from scenarios._common import received, sent, until
from scenarios.rabbitmq_stream._deliveries import subscribe_error
from scenarios.rabbitmq_stream._steps import (
    ADMIN,
    NOT_LATE,
    STREAM,
    connections,
    opened,
    say_raw,
    stream_exists,
)
from scenarios.rabbitmq_stream.requests import CREATE

NULL_ARRAY = b"\xff" * 4


#: Codes that a request can be refused with.
REFUSALS = (*range(2, 10), *range(11, 20))


EXOTIC = "str\u00f6m-\u6d41-\U0001f300"


#: Looks at what was sent, once it is known whether it was used.
Wire: TypeAlias = Callable[..., Awaitable[None]]

REFERENCES = (("a" * 255, STREAM), ("a" * 256, STREAM), ("\u00fc" * 200, STREAM), ("plain", EXOTIC))


@scenario("RMQS-2.10", "MUST", "high", basis=["R5"], timeout_s=60)
async def each_code(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Each response code maps to a distinct error.

    Fault: Answer Create, Subscribe and DeclarePublisher with codes 2..9 and 11..19 in turn; the connection
    stays open
    Pass: op fails, error.code = the number; the next request is answered (same or new connection). Tolerated:
    Create with 5 ends ok (idempotent create); Subscribe/DeclarePublisher with 6 or 2 are retried at most 20
    times per second until the deadline
    Seen: stream-go-client#486
    """
    consume = {"options": {}, "on_message": {"mode": "event"}}
    kinds: dict[str, tuple[str, Mapping[str, Any]]] = {}
    if client.has("rmqs.create"):
        kinds["Create"] = ("rmqs.create", {})
    if client.has_role("consumer"):
        kinds["Subscribe"] = ("subscribe", consume)
    if client.has("rmqs.declare_publisher"):
        kinds["DeclarePublisher"] = ("rmqs.declare_publisher", {})
    expect.exercised(kinds, "no request can be made", id="no-request-can-be-made")
    for code in (*REFUSALS, 0):
        broker.create_stream(f"{STREAM}-{code}")
    await client.connected()
    for kind, (op, args) in kinds.items():
        for code in (*REFUSALS, 0):
            broker.faults.clear()
            target = f"new-{code}" if kind == "Create" else f"{STREAM}-{code}"
            more = {"sub": target} if op == "subscribe" else {}
            if code:
                broker.faults.add(reply(code=code, kind=kind))
            mark = broker.journal.last_seq
            result = await client.op(op, 1.5, session="s1", target=target, **args, **more)
            if code == 0:
                expect.ok(
                    result,
                    f"{kind}: the next request is answered",
                    id=slug("{}-the-next-request-is-answered", kind),
                )
                continue
            if op == "subscribe":
                result = await _settled_subscribe(client, result, target)
            expect.exercised(
                received(broker, kind, since=mark), f"no {kind} was sent", id=slug("no-{}-was-sent", kind)
            )
            _refused_with(expect, result, kind, code)
            tries = received(broker, kind, since=mark)
            expect.that(
                len(tries) <= 40,
                f"{kind} with {code}: at most 20 tries per second",
                len(tries),
                id=slug("{}-with-{}-at-most-n-tries-per-second", kind, code),
            )


async def _settled_subscribe(client: Client, result: Result, sub: str) -> Result:
    """The end of a subscribe whose refusal the library reports later; no news in 1.5 s is a time-out."""
    if not (result.ok and client.can("lazy_subscribe")):
        return result
    error = await subscribe_error(client, result, sub, 1.5)
    late = Error(kind=Kind.TIMEOUT, definite=False, text="no news in 1.5 s")
    return msgspec.structs.replace(result, ok=False, error=error or late)


def _refused_with(expect: Expect, result: Result, kind: str, code: int) -> None:
    if kind == "Create" and code == Code.STREAM_ALREADY_EXISTS and result.ok:
        return  # idempotent create
    retried = kind != "Create" and code in (Code.STREAM_NOT_AVAILABLE, Code.STREAM_DOES_NOT_EXIST)
    if retried and result.error is not None and result.error.kind.value == "timeout":
        return
    criterion = f"{kind} answered with {code}: the op fails with error.code {code}"
    expect.that(
        not result.ok and result.code == code,
        criterion,
        str(result),
        id=slug("{}-answered-with-{}-the-op-fails-with-error-code-{}", kind, code, code),
    )


@scenario("RMQS-2.11", "MUST", "high", basis=["R5", "R20"], ops=CREATE)
async def unknown_code(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Unknown response code.

    Fault: Code 777
    Pass: Op fails with generic refused + number; no crash
    Seen: stream-java-client#1005
    """
    await client.connected()
    broker.faults.add(reply(code=777, kind="Create", nth=1))
    result = await client.op("rmqs.create", session="s1", target="one")
    expect.failed(
        result,
        ("refused",),
        "the op fails with generic refused and the number",
        code=777,
        id="the-op-fails-with-generic-refused-and-the-number",
    )
    expect.ok(
        await client.op("rmqs.create", session="s1", target="two"),
        "the session goes on",
        id="the-session-goes-on",
    )


@scenario("RMQS-2.12", "SHOULD", "low", basis=["R5", "R13"], roles=ADMIN, target=True, revision=2)
async def stream_exists_already(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Create of an existing stream.

    Fault: (a) code 5 (same arguments), (b) code 17 (other arguments), as the real server does
    Pass: (a) reported as already exists (code 5) or, as documented idempotence, ok; (b) an error with code
    17, never ok
    """
    await client.connected()
    if not expect.wire_visible:
        await client.op("rmqs.delete", session="s1", target=STREAM)
    # by the client itself: some libraries add arguments of their own to each Create
    await client.prepare("rmqs.create", session="s1", target=STREAM)
    same = await client.op("rmqs.create", session="s1", target=STREAM)
    if not same.ok:
        expect.equal(
            same.code,
            Code.STREAM_ALREADY_EXISTS,
            "(a) reported as already exists, or ok",
            id="a-reported-as-already-exists-or-ok",
        )
    other = await client.op(
        "rmqs.create", session="s1", target=STREAM, arguments={"max-length-bytes": "1000"}
    )
    if expect.wire_visible:
        created = [r.frame.arguments for r in received(broker, "Create")]  # type: ignore[union-attr]
        expect.exercised(
            created[-1] != created[0],
            "the adapter passes no arguments on",
            id="the-adapter-passes-no-arguments-on",
        )
    expect.that(
        not other.ok and other.code == 17,
        "(b) an error with code 17, never ok",
        str(other),
        id="b-an-error-with-code-n-never-ok",
    )


@scenario("RMQS-2.13", "MUST", "medium", basis=["R4", "R6"], target=True, revision=3)
async def names_at_limits(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Names at limits.

    Fault: References of 255 and 256 bytes ASCII, and of 200 characters in 400 bytes UTF-8; stream name with
    multi-byte characters; server limit 255 bytes (256 and more: code 17)
    Pass: Every string on the wire has its length in bytes and the frame decodes; 255 works; above 255 bytes:
    refused locally (`invalid`, no frame) or sent whole and reported as refused 17; never truncated
    Seen: stream-java-client#627; stream-java-client#628; stream-java-client#629; stream-java-client#1004;
    source: rstream 1.1.1 counts characters
    """
    await client.connected()
    for name in (STREAM, EXOTIC):
        await stream_exists(broker, client, name)
    ways = []
    if client.has("rmqs.query_offset") and client.can("offset_without_consumer"):
        ways.append(_stored_offset)
    if client.has_role("publisher") and client.can("named_publisher"):
        ways.append(_named_publisher)
    expect.exercised(ways, "the client takes no references", id="the-client-takes-no-references")
    for way in ways:
        for number, (reference, target) in enumerate(REFERENCES):
            session = f"{way.__name__} {number}"
            await client.connected(session)
            shown = f"{reference[:3]}... of {len(reference.encode())} bytes" if target == STREAM else target
            mark = broker.journal.last_seq if expect.wire_visible else 0
            wire = partial(_whole_on_the_wire, broker, expect, reference, shown, mark)
            result = await way(client, expect, shown, wire, session=session, target=target, name=reference)
            if expect.wire_visible:
                refused = [
                    r for r in sent(broker, "DeclarePublisherResponse", since=mark) if r.status != Code.OK
                ]
                expect.that(
                    not (refused and result.ok),
                    f"{shown}: the refusal is reported",
                    str(result),
                    id=slug("{}-the-refusal-is-reported", shown),
                )
            if not result.ok:
                criterion = f"{shown}: it works, or is refused locally or by the server"
                expect.failed(
                    result,
                    ("invalid", "refused"),
                    criterion,
                    id=slug("{}-it-works-or-is-refused-locally-or-by-the-server", shown),
                )


def _fits(reference: str) -> bool:
    return len(reference.encode()) <= 255


async def _stored_offset(client: Client, expect: Expect, shown: str, wire: Wire, **place: str) -> Result:
    stored = await client.op("rmqs.store_offset", 3.0, offset=7, **place)
    asked = await client.op("rmqs.query_offset", 3.0, **place) if stored.ok and _fits(place["name"]) else None
    await wire(used=stored.ok)
    if _fits(place["name"]):
        expect.ok(stored, f"{shown}: an offset can be stored", id=slug("{}-an-offset-can-be-stored", shown))
        assert asked is not None
        value = expect.ok(
            asked, f"{shown}: the offset can be asked for", id=slug("{}-the-offset-can-be-asked-for", shown)
        )
        expect.equal(
            int(value["offset"]),
            7,
            f"{shown}: the offset reads back",
            id=slug("{}-the-offset-reads-back", shown),
        )
    return stored


async def _named_publisher(client: Client, expect: Expect, shown: str, wire: Wire, **place: str) -> Result:
    result = await client.op("publish", 3.0, body={"text": "hello"}, wait=True, **place)
    await wire(used=result.ok)
    if _fits(place["name"]):
        expect.outcome(
            result,
            "acked",
            f"{shown}: a publisher of that name works",
            id=slug("{}-a-publisher-of-that-name-works", shown),
        )
    return result


async def _whole_on_the_wire(
    broker: RabbitMQStream, expect: Expect, reference: str, shown: str, since: int, *, used: bool
) -> None:
    """What was sent with the reference; if it was `used`, it has to come (StoreOffset has no answer).

    Looked at before what came of it: a broken frame is the cause of a request that is never answered.
    """
    if not expect.wire_visible:
        return

    def names() -> list[str]:
        frames = [*received(broker, "StoreOffset", since=since)]
        frames += received(broker, "DeclarePublisher", since=since)
        return [str(getattr(record.frame, "reference", "")) for record in frames]

    def malformed() -> list[str]:
        return [str(record) for record in broker.journal.select(kind="Malformed", since=since)]

    came = not used or await until(lambda: names() or malformed(), 1.0)
    expect.that(
        not malformed(),
        f"{shown}: the frame decodes, its length counts bytes",
        malformed(),
        id=slug("{}-the-frame-decodes-its-length-counts-bytes", shown),
    )
    expect.that(
        came,
        f"{shown}: the reference is on the wire",
        "no frame came that has one",
        id=slug("{}-the-reference-is-on-the-wire", shown),
    )
    for name in names():
        expect.equal(
            name,
            reference,
            f"{shown}: sent whole, never truncated",
            id=slug("{}-sent-whole-never-truncated", shown),
        )


@scenario("RMQS-2.14", "SHOULD", "medium", basis=["R4"], process=True, revision=3)
async def null_and_empty(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Null and empty strings.

    Fault: PeerProperties answer with a null (0xFFFF) and an empty value; Open answer with a null map
    (0xFFFFFFFF); Metadata answer for an unknown stream with null broker and replica arrays
    Pass: Decoded as null/empty and the session works; non-strict: clean error within 2 s; no read past the
    frame, no loop of 2^32, RSS growth < 64 MiB
    Seen: stream-js-client#112
    """
    before = client.facts()
    cases = {
        "null and empty value": rewrite(
            fields={"properties": {"product": None, "version": "4.3.6", "platform": ""}},
            kind="PeerPropertiesResponse",
        ),
        "null map": fault(Rewrite(fields={"properties": None}), Extend(hex="ffffffff"), kind="OpenResponse"),
    }
    for case, broken in cases.items():
        broker.faults.clear()
        broker.faults.add(broken)
        mark = broker.journal.last_seq
        result = await client.connect(case, timeout=5.0)
        expect.exercised(
            connections(broker, since=mark),
            f"{case}: the client did not connect",
            id=slug("{}-the-client-did-not-connect", case),
        )
        if not result.ok:
            expect.failed(
                result,
                NOT_LATE,
                f"{case}: decoded, or a clean error",
                id=slug("{}-decoded-or-a-clean-error", case),
            )
            expect.within(
                result.elapsed_ms / 1000, 2.0, f"{case}: within 2 s", id=slug("{}-within-n-s", case)
            )
            expect.tolerate(
                False,
                f"{case}: decoded as null and empty",
                str(result),
                id=slug("{}-decoded-as-null-and-empty", case),
            )
            continue
        opened(
            broker, expect, f"{case}: the session works", since=mark, id=slug("{}-the-session-works", case)
        )
        expect.that(
            (await client.state(case))["open"],
            f"{case}: the session works",
            "it is not open",
            id=slug("{}-the-session-works", case),
        )
    broker.faults.clear()
    await _null_arrays(broker, client, expect)
    after = client.facts()
    if before is not None and after is not None and before.rss_bytes and after.rss_bytes:
        expect.that(
            after.rss_bytes - before.rss_bytes < 64 << 20,
            "RSS growth < 64 MiB",
            after.rss_bytes,
            id="rss-growth-n-mib",
        )


async def _null_arrays(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Metadata of an unknown stream, answered with null in place of the brokers and of the replicas."""
    case, unknown = "null arrays", "nowhere"
    if client.has("rmqs.metadata"):
        ask = partial(client.begin, "rmqs.metadata", 3.0, session=case, targets=[unknown])
    elif client.has_role("publisher"):
        ask = partial(client.begin_publish, unknown, b"x", session=case, timeout=3.0)
    else:
        return
    await client.connected(case)
    mark = broker.journal.last_seq
    broker.faults.add(hold(kind="MetadataResponse", nth=1, scope="run", name="true answer"))
    call = ask()
    if not await until(lambda: received(broker, "Metadata", since=mark), 2.0):
        expect.exercised(
            not client.has("rmqs.metadata"),
            f"{case}: the op sends no Metadata",
            id=slug("{}-the-op-sends-no-metadata", case),
        )
        expect.note(f"{case}: the library asks for no metadata")
        return
    asked = received(broker, "Metadata", since=mark)[0]
    name = len(unknown).to_bytes(2, "big") + unknown.encode()
    head = bytes.fromhex("800f 0001") + asked.keys[0].to_bytes(4, "big") + NULL_ARRAY
    body = head + bytes.fromhex("00000001") + name + bytes.fromhex("0002 ffff") + NULL_ARRAY
    begun_s = asyncio.get_running_loop().time()
    say_raw(broker, expect, asked.connection, len(body).to_bytes(4, "big") + body)
    result = await call
    expect.ended(result, f"{case}: decoded, or a clean error", id=slug("{}-decoded-or-a-clean-error", case))
    expect.within(
        result.ended_ns / 1e9 - begun_s,
        2.0,
        f"{case}: decoded, or a clean error within 2 s",
        id=slug("{}-decoded-or-a-clean-error-within-n-s", case),
    )
    expect.that(
        result.word != "internal",
        f"{case}: no read past the frame",
        str(result),
        id=slug("{}-no-read-past-the-frame", case),
    )
    if not result.ok and result.word != "refused":
        expect.tolerate(False, f"{case}: decoded as empty", str(result), id=slug("{}-decoded-as-empty", case))
        return
    broker.faults.clear()
    expect.that(
        (await ask()).word == result.word,
        f"{case}: the session works",
        "the next one ends otherwise",
        id=slug("{}-the-session-works", case),
    )
