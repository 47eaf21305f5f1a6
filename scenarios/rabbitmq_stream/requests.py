"""RMQS-2 Requests and correlation."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from conformance.adapter.messages import Error, Kind
from conformance.adapter.result import Result
from conformance.suite import Client, Expect, scenario
from fakebrokers import RabbitMQStream
from fakebrokers.faults import drop, duplicate, fault, hold, inject, reorder, reply, rewrite, rst
from fakebrokers.faults.effects import Extend, Rewrite
from fakebrokers.journal import Tap
from fakebrokers.rabbitmq_stream.codes import Code
from scenarios._common import limit_s, received, sent, until
from scenarios.rabbitmq_stream._deliveries import subscribe_error
from scenarios.rabbitmq_stream._questions import Questions, askable
from scenarios.rabbitmq_stream._steps import (
    ADMIN,
    NOT_LATE,
    STREAM,
    connections,
    opened,
    say_raw,
    stores,
    stream_exists,
)

CREATE = ("rmqs.create",)

UNUSED_ID = 0x7FFFFF00
NULL_ARRAY = b"\xff" * 4
#: Codes that a request can be refused with.
REFUSALS = (*range(2, 10), *range(11, 20))
EXOTIC = "str\u00f6m-\u6d41-\U0001f300"
REFERENCES = (("a" * 255, STREAM), ("a" * 256, STREAM), ("\u00fc" * 200, STREAM), ("plain", EXOTIC))


@scenario("RMQS-2.01")
async def responses_out_of_order(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Responses out of order.

    Fault: Two concurrent QueryOffset (references a and b, stored 11 and 22) on one connection, answered in
    reverse; if the second request has not come 500 ms after the first, answer singly
    Pass: a gets 11, b gets 22; a client that sends one at a time: `inconclusive`
    """
    await client.connected()
    together = False
    for op in askable(client):
        mark = broker.journal.last_seq
        broker.faults.clear()
        questions = Questions(broker, client, op)
        broker.faults.add(reorder(window=2, within_s=0.5, kind=questions.answer))
        calls = {name: questions.ask(name) for name in ("a", "b")}
        for name, call in calls.items():
            questions.answered(expect, await call, name, f"{name} gets its own answer")
        asked, answers = (
            received(broker, questions.kind, since=mark),
            sent(broker, questions.answer, since=mark),
        )
        same = len({r.connection for r in asked}) == 1
        together = len(asked) == 2 and same and asked[1].seq < answers[0].seq
        if together:
            break
    expect.exercised(together, "the client sends one request at a time")


@scenario("RMQS-2.02")
async def unknown_correlation_id(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Response with unknown correlation id.

    Fault: Inject a Delete answer with id 0x7FFFFF00 (not in use) between two good answers
    Pass: Ignored; next request on the same connection is answered; no op ends by it
    """
    questions = Questions(broker, client)
    await client.connected()
    stray = {"correlation_id": UNUSED_ID, "code": Code.OK}
    broker.faults.add(
        inject(kind="DeleteResponse", fields=stray, place="before", role="response", direction="out", nth=1),
    )
    first, second = await questions.ask("a"), await questions.ask("b")
    questions.answered(expect, first, "a", "the request is answered, no op ends by the stray answer")
    questions.answered(expect, second, "b", "the next request is answered")


@scenario("RMQS-2.03", ops=CREATE, revision=2)
async def duplicate_response(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Duplicate response.

    Fault: dup(Create answer)
    Pass: Second ignored; no panic
    """
    broker.create_stream("other arguments", max_length_bytes=1000)
    await client.connected()
    broker.faults.add(duplicate(kind="CreateResponse", name="twice"))
    expect.ok(await client.op("rmqs.create", session="s1", target="one"), "the first answer counts")
    expect.that("one" in broker.stream_names, "the first answer counts", "the broker has no such stream")
    expect.exercised(broker.faults.fired("twice"), "no answer was sent twice")
    refused = await client.op("rmqs.create", session="s1", target="other arguments")
    criterion = "the second is ignored: the next request gets its own answer"
    expect.failed(refused, ("refused",), criterion, code=Code.PRECONDITION_FAILED)
    expect.ok(await client.op("rmqs.create", session="s1", target="two"), criterion)
    expect.that("two" in broker.stream_names, criterion, "the broker has no such stream")
    expect.that(client.alive, "no panic", "the process ended")


@scenario("RMQS-2.04", timeout_s=60)
async def late_response(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Late response after timeout.

    Fault: Delay the answer to 1 s beyond the client's RPC timeout (timeout_ms, or adapter
    `limits.request_timeout_ms`); then a new request of the same kind with another result
    Pass: First op `timeout`; the late answer is dropped (a `late` event is allowed); the new request gets its
    own answer
    """
    questions = Questions(broker, client)
    await client.connected()
    deadline = client.deadline_s("request", 1.0)
    broker.faults.add(hold(kind=questions.answer, nth=1, scope="run", name="late answer"))
    broker.faults.add(hold(kind=questions.answer, nth=2, scope="run", name="own answer"))
    first = await questions.ask("a", 1.0)
    expect.failed(first, ("timeout",), "the first op ends as timeout")
    expect.within(first.elapsed_ms / 1000, limit_s(deadline), "at its deadline")
    second = questions.ask("b")
    await asyncio.sleep(max(0.0, deadline + 1.0 - first.elapsed_ms / 1000) if deadline < 2 else 0.1)
    broker.faults.release("late answer")
    await asyncio.sleep(0.1)
    broker.faults.release("own answer")
    questions.answered(expect, await second, "b", "the new request gets its own answer")


@scenario("RMQS-2.05", ops=CREATE)
async def top_bit(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Request and response are told apart by the top bit.

    Fault: With a Create pending under correlation id C: a frame with key 0x000d (top bit not set), id C, code
    1; 300 ms later the true answer 0x800d, id C, code 17
    Pass: Create ends refused 17; non-strict: the connection is closed with an error within 2 s and Create
    ends not ok; fail: ok, hang, silent reader. Over the whole session the client sets the top bit only in
    CloseResponse, ConsumerUpdate response and (tolerated) the Tune answer
    """
    await client.connected()
    broker.faults.add(rewrite(fields={"code": Code.PRECONDITION_FAILED}, kind="CreateResponse", name="17"))
    broker.faults.add(hold(kind="CreateResponse", name="true answer"))
    call = client.begin("rmqs.create", 3.0, session="s1", target="one")
    asked = await expect.reached(broker, "no Create came", kind="Create")
    number = asked[0].keys[0]
    request = bytes.fromhex("0000000a 000d 0001") + number.to_bytes(4, "big") + b"\0\1"
    say_raw(broker, expect, asked[0].connection, request)
    await asyncio.sleep(0.3)
    broker.faults.release("true answer")
    result = await call
    if result.error is not None and result.error.kind.value == "refused":
        expect.equal(result.code, 17, "Create ends refused 17")
    else:
        expect.failed(result, ("closed", "connection", "protocol"), "Create ends refused 17")
        expect.within(result.elapsed_ms / 1000, 2.3, "or the connection is closed with an error within 2 s")
        expect.tolerate(False, "Create ends refused 17", str(result))
    wrong = [
        str(r)
        for r in broker.journal.select(tap=Tap.RECEIVED)
        if r.kind.endswith("Response") and r.kind not in ("CloseResponse", "ConsumerUpdateResponse")
    ]
    expect.that(not wrong, "the client sets the top bit only in answers", wrong)


@scenario("RMQS-2.06", timeout_s=90, revision=2)
async def request_timeout(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Request timeout.

    Fault: Drop the answer of each of: DeclarePublisher, Subscribe, QueryOffset, QueryPublisherSequence,
    Metadata, Create, Delete, Close; one sub-case per declared op, each on its own session, all at the same
    time
    Pass: Every op ends `timeout` (or `connection` if the client gives the connection up) at its deadline
    (timeout_ms or `limits.request_timeout_ms`); `state.pending` 0 afterwards where it is reported; high-level
    retries end at that deadline too
    """
    broker.create_stream(STREAM)
    broker.store_offset(STREAM, "a", 1)
    cases: dict[str, tuple[str, Mapping[str, Any]]] = {}
    if client.has_role("publisher"):
        cases["DeclarePublisherResponse"] = (
            "publish",
            {"target": STREAM, "body": {"text": "x"}, "wait": True},
        )
    if client.has_role("consumer"):
        subscribe = {"sub": "c", "target": STREAM, "options": {}, "on_message": {"mode": "event"}}
        cases["SubscribeResponse"] = ("subscribe", subscribe)
    optional: dict[str, tuple[str, Mapping[str, Any]]] = {
        "QueryOffsetResponse": ("rmqs.query_offset", {"target": STREAM, "name": "a"}),
        "QueryPublisherSequenceResponse": ("rmqs.query_sequence", {"target": STREAM, "name": "a"}),
        "MetadataResponse": ("rmqs.metadata", {"targets": [STREAM]}),
        "CreateResponse": ("rmqs.create", {"target": "new"}),
        "DeleteResponse": ("rmqs.delete", {"target": STREAM}),
    }
    cases |= {kind: case for kind, case in optional.items() if client.has(case[0])}
    cases["CloseResponse"] = ("close", {})
    for kind in cases:
        await client.connected(kind)
    for kind in cases:
        broker.faults.add(drop(kind=kind, direction="out", name=f"lost {kind}"))
    expect.may_not_fire("lost *", "a request is not made while the answer to one before it is missing")
    patience = client.deadline_s("request", 2.0)
    calls = {kind: client.begin(op, patience, session=kind, **args) for kind, (op, args) in cases.items()}
    for kind, call in calls.items():
        op = cases[kind][0]
        result = await call
        deadline = client.deadline_s("close" if op == "close" else "request", 2.0)
        _timed_out(expect, result, kind, deadline, closing=op == "close")
        if op != "close":
            pending = (await client.state(kind))["pending"]
            expect.that(not pending, f"{kind} lost: state.pending is 0 afterwards", pending)


def _timed_out(expect: Expect, result: Result, kind: str, deadline: float, *, closing: bool) -> None:
    expect.ended(result, f"{kind} lost: {result.op} ends")
    if not closing:
        expect.failed(result, ("timeout", "connection"), f"{kind} lost: {result.op} ends as timeout")
    expect.within(
        result.elapsed_ms / 1000, limit_s(deadline), f"{kind} lost: {result.op} ends at its deadline"
    )


@scenario("RMQS-2.07", revision=2)
async def write_failure(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Write failure ends the request.

    Fault: RST; the request is issued 0–5 ms later
    Pass: Op ends `connection` or `closed` within 1 s, no wait for the RPC timeout; with auto_reconnect: or it
    is sent on a new connection and ends ok there
    """
    questions = Questions(broker, client)
    for session, later_s in (("at once", 0.0), ("3 ms later", 0.003)):
        await client.connected(session)
        works = await questions.ask("b", session=session)
        questions.answered(expect, works, "b", "the connection works")
        mark = broker.journal.last_seq
        broker.kill(how="rst")
        if later_s:
            await asyncio.sleep(later_s)
        asked_s = asyncio.get_running_loop().time()
        call = questions.ask("c", 8.0, session)
        await expect.reached(broker, "no connection was there to be reset", kind="closed", since=mark)
        what = f"a request, {session},"
        questions.ended_by_loss(expect, await call, "c", what, since=mark, lost_s=asked_s)
    if client.has_role("publisher") and client.can("named_publisher"):
        await _loss_behind_an_answer(broker, client, expect)


async def _loss_behind_an_answer(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """The RST follows the answer to DeclarePublisher: what is asked next (the sequence) has no connection."""
    broker.create_stream("lost")
    await client.connected("publisher")
    behind = rst(kind="DeclarePublisherResponse", nth=1, scope="run", name="RST behind the answer")
    broker.faults.add(behind)
    result = await client.publish("lost", b"x", session="publisher", name="ref", timeout=8.0)
    expect.exercised(broker.faults.fired("RST behind the answer"), "no publisher was declared")
    if result.ok:
        expect.that(stores(broker, b"x", "lost"), "a publish that was acked is stored", "it is not")
        return
    lost = broker.journal.select(kind="rst")[-1]
    late_s = result.ended_ns / 1e9 - (lost.at + broker.journal.started_at)
    expect.failed(result, ("connection", "closed"), "the publish behind it ends as connection or closed")
    expect.within(late_s, 1.0, "the publish behind it ends within 1 s of the loss")


@scenario("RMQS-2.08", revision=2)
async def loss_ends_all_requests(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Connection loss ends all requests.

    Fault: 3 requests issued and not answered (at least one on the wire), then fin
    Pass: All end `connection`/`closed` within 1 s of the FIN, none ok; with auto_reconnect: or repeated on a
    new connection and answered there
    """
    questions = Questions(broker, client)
    await client.connected()
    mark = broker.journal.last_seq
    broker.faults.add(drop(kind=questions.kind, direction="in", name="no answers"))
    calls = {name: questions.ask(name, 8.0) for name in "abc"}
    asked = await expect.reached(broker, "no request came", kind=questions.kind, since=mark)
    await asyncio.sleep(0.1)
    held = broker.client_holds(asked[0].connection)
    expect.exercised(held is not False, "the client did not wait for an answer")
    broker.faults.remove("no answers")
    mark, lost_s = broker.journal.last_seq, asyncio.get_running_loop().time()
    broker.kill()
    for name, call in calls.items():
        what = f"request {name}"
        questions.ended_by_loss(expect, await call, name, what, since=mark, lost_s=lost_s)


@scenario("RMQS-2.09", ops=("set_counter",))
async def correlation_id_wraps(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Correlation id uint32 wrap.

    Fault: Start at 0xFFFFFFFE, 4 requests
    Pass: Ids wrap inside uint32; all complete; encoder does not throw
    """
    questions = Questions(broker, client)
    await client.connected()
    await client.prepare("set_counter", session="s1", which="correlation", value=0xFFFFFFFE)
    for name in "abcb":
        questions.answered(expect, await questions.ask(name), name, "each request is answered")
    ids = [r.keys[0] for r in received(broker, questions.kind)]
    expect.exercised(any(number > 0xFFFFFF00 for number in ids), "the counter did not start where it was set")
    expect.that(len(set(ids)) == 4 and min(ids) < 16, "ids wrap inside uint32", ids)


@scenario("RMQS-2.10", timeout_s=60)
async def each_code(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Each response code maps to a distinct error.

    Fault: Answer Create, Subscribe and DeclarePublisher with codes 2..9 and 11..19 in turn; the connection
    stays open
    Pass: op fails, error.code = the number; the next request is answered (same or new connection). Tolerated:
    Create with 5 ends ok (idempotent create); Subscribe/DeclarePublisher with 6 or 2 are retried at most 20
    times per second until the deadline
    """
    consume = {"options": {}, "on_message": {"mode": "event"}}
    kinds: dict[str, tuple[str, Mapping[str, Any]]] = {}
    if client.has("rmqs.create"):
        kinds["Create"] = ("rmqs.create", {})
    if client.has_role("consumer"):
        kinds["Subscribe"] = ("subscribe", consume)
    if client.has("rmqs.declare_publisher"):
        kinds["DeclarePublisher"] = ("rmqs.declare_publisher", {})
    expect.exercised(kinds, "no request can be made")
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
                expect.ok(result, f"{kind}: the next request is answered")
                continue
            if op == "subscribe":
                result = await _settled_subscribe(client, result, target)
            expect.exercised(received(broker, kind, since=mark), f"no {kind} was sent")
            _refused_with(expect, result, kind, code)
            tries = received(broker, kind, since=mark)
            expect.that(len(tries) <= 40, f"{kind} with {code}: at most 20 tries per second", len(tries))


async def _settled_subscribe(client: Client, result: Result, sub: str) -> Result:
    """The end of a subscribe whose refusal the library tells later; no news in 1.5 s is a time-out."""
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
    expect.that(not result.ok and result.code == code, criterion, str(result))


@scenario("RMQS-2.11", ops=CREATE)
async def unknown_code(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Unknown response code.

    Fault: Code 777
    Pass: Op fails with generic refused + number; no crash
    """
    await client.connected()
    broker.faults.add(reply(code=777, kind="Create", nth=1))
    result = await client.op("rmqs.create", session="s1", target="one")
    expect.failed(result, ("refused",), "the op fails with generic refused and the number", code=777)
    expect.ok(await client.op("rmqs.create", session="s1", target="two"), "the session goes on")


@scenario("RMQS-2.12", roles=ADMIN, target=True, revision=2)
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
        expect.equal(same.code, Code.STREAM_ALREADY_EXISTS, "(a) reported as already exists, or ok")
    other = await client.op(
        "rmqs.create", session="s1", target=STREAM, arguments={"max-length-bytes": "1000"}
    )
    if expect.wire_visible:
        created = [r.frame.arguments for r in received(broker, "Create")]  # type: ignore[union-attr]
        expect.exercised(created[-1] != created[0], "the adapter passes no arguments on")
    expect.that(not other.ok and other.code == 17, "(b) an error with code 17, never ok", str(other))


@scenario("RMQS-2.13", target=True, revision=2)
async def names_at_limits(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Names at limits.

    Fault: References of 255 and 256 bytes ASCII, and of 200 characters in 400 bytes UTF-8; stream name with
    multi-byte characters; server limit 255 bytes (256 and more: code 17)
    Pass: Every string on the wire has its length in bytes and the frame decodes; 255 works; above 255 bytes:
    refused locally (`invalid`, no frame) or sent whole and reported as refused 17; never truncated
    """
    await client.connected()
    for name in (STREAM, EXOTIC):
        await stream_exists(broker, client, name)
    ways = []
    if client.has("rmqs.query_offset") and client.can("offset_without_consumer"):
        ways.append(_stored_offset)
    if client.has_role("publisher") and client.can("named_publisher"):
        ways.append(_named_publisher)
    expect.exercised(ways, "the client takes no references")
    for way in ways:
        for number, (reference, target) in enumerate(REFERENCES):
            session = f"{way.__name__} {number}"
            await client.connected(session)
            shown = f"{reference[:3]}... of {len(reference.encode())} bytes" if target == STREAM else target
            mark = broker.journal.last_seq if expect.wire_visible else 0
            result = await way(client, expect, shown, session=session, target=target, name=reference)
            if expect.wire_visible:
                await _whole_on_the_wire(broker, expect, reference, shown, mark, used=result.ok)
                refused = [
                    r for r in sent(broker, "DeclarePublisherResponse", since=mark) if r.status != Code.OK
                ]
                expect.that(not (refused and result.ok), f"{shown}: the refusal is reported", str(result))
            if not result.ok:
                criterion = f"{shown}: it works, or is refused locally or by the server"
                expect.failed(result, ("invalid", "refused"), criterion)


def _fits(reference: str) -> bool:
    return len(reference.encode()) <= 255


async def _stored_offset(client: Client, expect: Expect, shown: str, **place: str) -> Result:
    stored = await client.op("rmqs.store_offset", 3.0, offset=7, **place)
    if _fits(place["name"]):
        expect.ok(stored, f"{shown}: an offset can be stored")
        asked = await client.op("rmqs.query_offset", 3.0, **place)
        value = expect.ok(asked, f"{shown}: the offset can be asked for")
        expect.equal(int(value["offset"]), 7, f"{shown}: the offset reads back")
    return stored


async def _named_publisher(client: Client, expect: Expect, shown: str, **place: str) -> Result:
    result = await client.op("publish", 3.0, body={"text": "hello"}, wait=True, **place)
    if _fits(place["name"]):
        expect.outcome(result, "acked", f"{shown}: a publisher of that name works")
    return result


async def _whole_on_the_wire(
    broker: RabbitMQStream, expect: Expect, reference: str, shown: str, since: int, *, used: bool
) -> None:
    """What was sent with the reference; if it was `used`, it has to come (StoreOffset has no answer)."""

    def names() -> list[str]:
        frames = [*received(broker, "StoreOffset", since=since)]
        frames += received(broker, "DeclarePublisher", since=since)
        return [str(getattr(record.frame, "reference", "")) for record in frames]

    if used:
        came = await until(names, 1.0)
        expect.that(came, f"{shown}: the reference is on the wire", "no frame came that has one")
    malformed = [str(r) for r in broker.journal.select(kind="Malformed", since=since)]
    expect.that(not malformed, f"{shown}: the frame decodes, its length counts bytes", malformed)
    for name in names():
        expect.equal(name, reference, f"{shown}: sent whole, never truncated")


@scenario("RMQS-2.14", process=True, revision=2)
async def null_and_empty(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Null and empty strings.

    Fault: PeerProperties answer with a null (0xFFFF) and an empty value; Open answer with a null map
    (0xFFFFFFFF); Metadata answer for an unknown stream with null broker and replica arrays
    Pass: Decoded as null/empty and the session works; non-strict: clean error within 2 s; no read past the
    frame, no loop of 2^32, RSS growth < 64 MiB
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
        expect.exercised(connections(broker, since=mark), f"{case}: the client did not connect")
        if not result.ok:
            expect.failed(result, NOT_LATE, f"{case}: decoded, or a clean error")
            expect.within(result.elapsed_ms / 1000, 2.0, f"{case}: within 2 s")
            expect.tolerate(False, f"{case}: decoded as null and empty", str(result))
            continue
        opened(broker, expect, f"{case}: the session works", since=mark)
        expect.that((await client.state(case))["open"], f"{case}: the session works", "it is not open")
    broker.faults.clear()
    await _null_arrays(broker, client, expect)
    after = client.facts()
    if before is not None and after is not None and before.rss_bytes and after.rss_bytes:
        expect.that(after.rss_bytes - before.rss_bytes < 64 << 20, "RSS growth < 64 MiB", after.rss_bytes)


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
        expect.note(f"{case}: the library asks for no metadata")
        return
    asked = received(broker, "Metadata", since=mark)[0]
    name = len(unknown).to_bytes(2, "big") + unknown.encode()
    head = bytes.fromhex("800f 0001") + asked.keys[0].to_bytes(4, "big") + NULL_ARRAY
    body = head + bytes.fromhex("00000001") + name + bytes.fromhex("0002 ffff") + NULL_ARRAY
    begun_s = asyncio.get_running_loop().time()
    say_raw(broker, expect, asked.connection, len(body).to_bytes(4, "big") + body)
    result = await call
    expect.ended(result, f"{case}: decoded, or a clean error")
    expect.within(result.ended_ns / 1e9 - begun_s, 2.0, f"{case}: decoded, or a clean error within 2 s")
    expect.that(result.word != "internal", f"{case}: no read past the frame", str(result))
    if not result.ok and result.word != "refused":
        expect.tolerate(False, f"{case}: decoded as empty", str(result))
        return
    broker.faults.clear()
    expect.that(
        (await ask()).word == result.word, f"{case}: the session works", "the next one ends otherwise"
    )
