"""RMQS-2.01 to 2.09: requests and correlation."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import RabbitMQStream
from fakebrokers.faults import drop, duplicate, hold, inject, reorder, rewrite, rst
from fakebrokers.journal import Tap
from fakebrokers.rabbitmq_stream.codes import Code
from scenarios._common import limit_s, received, sent
from scenarios.rabbitmq_stream._questions import Questions, askable
from scenarios.rabbitmq_stream._steps import STREAM, close_if_open, say_raw, stores

CREATE = ("rmqs.create",)


UNUSED_ID = 0x7FFFFF00


@scenario("RMQS-2.01", "MUST", "critical", basis=["R3"])
async def responses_out_of_order(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Responses out of order.

    Fault: Two concurrent QueryOffset (references a and b, stored 11 and 22) on one connection, answered in
    reverse; if the second request has not come 500 ms after the first, answer singly
    Pass: a gets 11, b gets 22; a client that sends one at a time: `inconclusive`
    Seen: kafka-python#1748; redis-py#413
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
            questions.answered(
                expect,
                await call,
                name,
                f"{name} gets its own answer",
                id=slug("{}-gets-its-own-answer", name),
            )
        asked, answers = (
            received(broker, questions.kind, since=mark),
            sent(broker, questions.answer, since=mark),
        )
        same = len({r.connection for r in asked}) == 1
        together = len(asked) == 2 and same and asked[1].seq < answers[0].seq
        if together:
            break
    expect.exercised(
        together, "the client sends one request at a time", id="the-client-sends-one-request-at-a-time"
    )


@scenario("RMQS-2.02", "MUST", "high", basis=["R3"])
async def unknown_correlation_id(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Response with unknown correlation id.

    Fault: Inject a Delete answer with id 0x7FFFFF00 (not in use) between two good answers
    Pass: Ignored; next request on the same connection is answered; no op ends by it
    Seen: stream-go-client#396
    """
    questions = Questions(broker, client)
    await client.connected()
    stray = {"correlation_id": UNUSED_ID, "code": Code.OK}
    broker.faults.add(
        inject(kind="DeleteResponse", fields=stray, place="before", role="response", direction="out", nth=1),
    )
    first, second = await questions.ask("a"), await questions.ask("b")
    questions.answered(
        expect,
        first,
        "a",
        "the request is answered, no op ends by the stray answer",
        id="the-request-is-answered-no-op-ends-by-the-stray-answer",
    )
    questions.answered(expect, second, "b", "the next request is answered", id="the-next-request-is-answered")


@scenario("RMQS-2.03", "MUST", "high", basis=["R3"], ops=CREATE, revision=2)
async def duplicate_response(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Duplicate response.

    Fault: dup(Create answer)
    Pass: Second ignored; no panic
    Seen: stream-go-client#396
    """
    broker.create_stream("other arguments", max_length_bytes=1000)
    await client.connected()
    broker.faults.add(duplicate(kind="CreateResponse", name="twice"))
    expect.ok(
        await client.op("rmqs.create", session="s1", target="one"),
        "the first answer counts",
        id="the-first-answer-counts",
    )
    expect.that(
        "one" in broker.streams,
        "the first answer counts",
        "the broker has no such stream",
        id="the-first-answer-counts",
    )
    expect.exercised(broker.faults.fired("twice"), "no answer was sent twice", id="no-answer-was-sent-twice")
    refused = await client.op("rmqs.create", session="s1", target="other arguments")
    criterion = "the second is ignored: the next request gets its own answer"
    expect.failed(
        refused,
        ("refused",),
        criterion,
        code=Code.PRECONDITION_FAILED,
        id="the-second-is-ignored-the-next-request-gets-its-own-answer",
    )
    expect.ok(
        await client.op("rmqs.create", session="s1", target="two"),
        criterion,
        id="the-second-is-ignored-the-next-request-gets-its-own-answer",
    )
    expect.that(
        "two" in broker.streams,
        criterion,
        "the broker has no such stream",
        id="the-second-is-ignored-the-next-request-gets-its-own-answer",
    )
    expect.that(client.alive, "no panic", "the process ended", id="no-panic")


@scenario("RMQS-2.04", "MUST", "critical", basis=["R3"], timeout_s=60)
async def late_response(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Late response after timeout.

    Fault: Delay the answer to 1 s beyond the client's RPC timeout (timeout_ms, or adapter
    `limits.request_timeout_ms`); then a new request of the same kind with another result
    Pass: First op `timeout`; the late answer is dropped (a `late` event is allowed); the new request gets its
    own answer
    Seen: stream-go-client#396; redis-py#2624
    """
    questions = Questions(broker, client)
    await client.connected()
    deadline = client.deadline_s("request", 1.0)
    broker.faults.add(hold(kind=questions.answer, nth=1, scope="run", name="late answer"))
    broker.faults.add(hold(kind=questions.answer, nth=2, scope="run", name="own answer"))
    first = await questions.ask("a", 1.0)
    expect.failed(first, ("timeout",), "the first op ends as timeout", id="the-first-op-ends-as-timeout")
    expect.within(first.elapsed_ms / 1000, limit_s(deadline), "at its deadline", id="at-its-deadline")
    second = questions.ask("b")
    await asyncio.sleep(max(0.0, deadline + 1.0 - first.elapsed_ms / 1000) if deadline < 2 else 0.1)
    broker.faults.release("late answer")
    await asyncio.sleep(0.1)
    broker.faults.release("own answer")
    questions.answered(
        expect,
        await second,
        "b",
        "the new request gets its own answer",
        id="the-new-request-gets-its-own-answer",
    )


@scenario(
    "RMQS-2.05",
    "MUST",
    "high",
    basis=["R2", "R3"],
    ops=CREATE,
    timeout_s=60,
    revision=2,
    allows=("ok-needs-answer",),
)
async def top_bit(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Request and response are told apart by the top bit.

    Fault: (a) With a Create pending under correlation id C: a frame with key 0x000d (top bit not set; no
    server sends that), id C, code 1; 300 ms later the true answer 0x800d, id C, code 17; (b) with a Create
    pending under id C of another session: the server's Close (0x0016, code 13) under the same id C
    Pass: (a) Create ends refused 17; non-strict: the frame is taken for the answer, or the connection is
    closed with an error within 2 s and Create ends not ok; fail: hang, silent reader. (b) Create ends, not
    ok, or with an answer to a Create on a new connection. Over the whole session the client sets the top bit
    only in CloseResponse, ConsumerUpdate response and (tolerated) the Tune answer
    """
    await client.connected()
    broker.faults.add(rewrite(fields={"code": Code.PRECONDITION_FAILED}, kind="CreateResponse", name="17"))
    broker.faults.add(hold(kind="CreateResponse", name="true answer"))
    call = client.begin("rmqs.create", 3.0, session="s1", target="one")
    asked = await expect.reached(broker, "no Create came", kind="Create", id="no-create-came")
    number = asked[0].keys[0]
    request = bytes.fromhex("0000000a 000d 0001") + number.to_bytes(4, "big") + b"\0\1"
    say_raw(broker, expect, asked[0].connection, request)
    said_s = asyncio.get_running_loop().time()
    await asyncio.sleep(0.3)
    broker.faults.release("true answer")
    result = await call
    if result.error is not None and result.error.kind.value == "refused":
        expect.equal(result.code, 17, "Create ends refused 17", id="create-ends-refused-n")
    else:
        if not result.ok:
            expect.failed(
                result,
                ("closed", "connection", "protocol"),
                "Create ends refused 17",
                id="create-ends-refused-n",
            )
            expect.within(
                result.ended_ns / 1e9 - said_s,
                2.3,
                "or the connection is closed with an error within 2 s",
                id="or-the-connection-is-closed-with-an-error-within-n-s",
            )
        # no server sends that frame: who takes it for the answer misses no request that there is
        expect.tolerate(False, "Create ends refused 17", str(result), id="create-ends-refused-n")
    await _close_under_its_id(broker, client, expect)
    wrong = [
        str(r)
        for r in broker.journal.select(tap=Tap.RECEIVED)
        if r.kind.endswith("Response") and r.kind not in ("CloseResponse", "ConsumerUpdateResponse")
    ]
    expect.that(
        not wrong,
        "the client sets the top bit only in answers",
        wrong,
        id="the-client-sets-the-top-bit-only-in-answers",
    )


async def _close_under_its_id(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """(b): the server's Close has the id of the pending Create; both sides count by themselves."""
    await client.connected("s2")
    broker.faults.remove("true answer")
    broker.faults.add(hold(kind="CreateResponse", nth=1, scope="run", name="answer after the Close"))
    mark = broker.journal.last_seq
    call = client.begin("rmqs.create", 3.0, session="s2", target="two")
    asked = await expect.reached(broker, "no Create came", kind="Create", since=mark, id="no-create-came")
    connection, number = asked[0].connection, asked[0].keys[0]
    same = {"correlation_id": number}
    broker.faults.add(rewrite(fields=same, kind="Close", direction="out", connection=connection))
    said = close_if_open(broker, connection, Code.UNKNOWN_FRAME, "unknown frame")
    expect.exercised(
        said, "the client ended its connection early", id="the-client-ended-its-connection-early"
    )
    result = await call
    criterion = "(b) a Close is not taken for the answer to the request that has its id"
    again = [r for r in received(broker, "Create", since=mark) if r.connection != connection]
    answered = result.error is not None and result.error.kind.value == "refused"
    expect.ended(result, criterion, id="b-a-close-is-not-taken-for-the-answer")
    expect.that(
        not result.ok and (not answered or (again and result.code == Code.PRECONDITION_FAILED)),
        criterion,
        str(result),
        id="b-a-close-is-not-taken-for-the-answer",
    )


@scenario("RMQS-2.06", "MUST", "critical", basis=["R3"], timeout_s=90, revision=2)
async def request_timeout(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Request timeout.

    Fault: Drop the answer of each of: DeclarePublisher, Subscribe, QueryOffset, QueryPublisherSequence,
    Metadata, Create, Delete, Close; one sub-case per declared op, each on its own session, all at the same
    time
    Pass: Every op ends `timeout` (or `connection` if the client gives the connection up) at its deadline
    (timeout_ms or `limits.request_timeout_ms`); `state.pending` 0 afterwards where it is reported; high-level
    retries end at that deadline too
    Seen: stream-go-client#274; stream-rust-client#213
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
            expect.that(
                not pending,
                f"{kind} lost: state.pending is 0 afterwards",
                pending,
                id=slug("{}-lost-state-pending-is-n-afterwards", kind),
            )


def _timed_out(expect: Expect, result: Result, kind: str, deadline: float, *, closing: bool) -> None:
    expect.ended(result, f"{kind} lost: {result.op} ends", id=slug("{}-lost-{}-ends", kind, result.op))
    if not closing:
        expect.failed(
            result,
            ("timeout", "connection"),
            f"{kind} lost: {result.op} ends as timeout",
            id=slug("{}-lost-{}-ends-as-timeout", kind, result.op),
        )
    expect.within(
        result.elapsed_ms / 1000,
        limit_s(deadline),
        f"{kind} lost: {result.op} ends at its deadline",
        id=slug("{}-lost-{}-ends-at-its-deadline", kind, result.op),
    )


@scenario("RMQS-2.07", "MUST", "high", basis=["R3"], revision=2)
async def write_failure(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Write failure ends the request.

    Fault: RST; the request is issued 0–5 ms later
    Pass: Op ends `connection` or `closed` within 1 s, no wait for the RPC timeout; with auto_reconnect: or it
    is sent on a new connection and ends ok there
    Seen: stream-go-client#486
    """
    questions = Questions(broker, client)
    for session, later_s in (("at once", 0.0), ("3 ms later", 0.003)):
        await client.connected(session)
        works = await questions.ask("b", session=session)
        questions.answered(expect, works, "b", "the connection works", id="the-connection-works")
        mark = broker.journal.last_seq
        broker.kill(how="rst")
        if later_s:
            await asyncio.sleep(later_s)
        asked_s = asyncio.get_running_loop().time()
        call = questions.ask("c", 8.0, session)
        await expect.reached(
            broker,
            "no connection was there to be reset",
            kind="closed",
            since=mark,
            id="no-connection-was-there-to-be-reset",
        )
        what = f"a request, {session},"
        questions.ended_by_loss(expect, await call, "c", what, since=mark, lost_s=asked_s)
    if client.has_role("publisher") and client.can("named_publisher"):
        await _loss_after_an_answer(broker, client, expect)


async def _loss_after_an_answer(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """The RST follows the answer to DeclarePublisher: what is asked next (the sequence) has no connection."""
    broker.create_stream("lost")
    await client.connected("publisher")
    next_position = rst(kind="DeclarePublisherResponse", nth=1, scope="run", name="RST after the answer")
    broker.faults.add(next_position)
    result = await client.publish("lost", b"x", session="publisher", name="ref", timeout=8.0)
    expect.exercised(
        broker.faults.fired("RST after the answer"),
        "no publisher was declared",
        id="no-publisher-was-declared",
    )
    if result.ok:
        expect.that(
            stores(broker, b"x", "lost"),
            "a publish that was acked is stored",
            "it is not",
            id="a-publish-that-was-acked-is-stored",
        )
        return
    lost = broker.journal.select(kind="rst")[-1]
    late_s = result.ended_ns / 1e9 - (lost.at + broker.journal.started_at)
    expect.failed(
        result,
        ("connection", "closed"),
        "the publish after it ends as connection or closed",
        id="the-publish-behind-it-ends-as-connection-or-closed",
    )
    expect.within(
        late_s,
        1.0,
        "the publish after it ends within 1 s of the loss",
        id="the-publish-behind-it-ends-within-n-s-of-the-loss",
    )


@scenario("RMQS-2.08", "MUST", "critical", basis=["R3"], revision=2)
async def loss_ends_all_requests(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Connection loss ends all requests.

    Fault: 3 requests issued and not answered (at least one on the wire), then fin
    Pass: All end `connection`/`closed` within 1 s of the FIN, none ok; with auto_reconnect: or repeated on a
    new connection and answered there
    Seen: measured: rabbitmq-stream-js-client 1.0.0 pending for > 12 s (P-30); stream-java-client#812
    """
    questions = Questions(broker, client)
    await client.connected()
    mark = broker.journal.last_seq
    broker.faults.add(drop(kind=questions.kind, direction="in", name="no answers"))
    calls = {name: questions.ask(name, 8.0) for name in "abc"}
    asked = await expect.reached(
        broker, "no request came", kind=questions.kind, since=mark, id="no-request-came"
    )
    await asyncio.sleep(0.1)
    held = broker.client_holds(asked[0].connection)
    expect.exercised(
        held is not False, "the client did not wait for an answer", id="the-client-did-not-wait-for-an-answer"
    )
    broker.faults.remove("no answers")
    mark, lost_s = broker.journal.last_seq, asyncio.get_running_loop().time()
    broker.kill()
    for name, call in calls.items():
        what = f"request {name}"
        questions.ended_by_loss(expect, await call, name, what, since=mark, lost_s=lost_s)


@scenario("RMQS-2.09", "MUST", "high", basis=["R3"], needs=["counter_seed"], ops=("set_counter",))
async def correlation_id_wraps(broker: RabbitMQStream, client: Client, expect: Expect) -> None:
    """Correlation id uint32 wrap.

    Fault: Start at 0xFFFFFFFE, 4 requests
    Pass: Ids wrap inside uint32; all complete; encoder does not throw
    Seen: kafkajs#1180; platformatic/kafka#302; stream-java-client#689
    """
    questions = Questions(broker, client)
    await client.connected()
    await client.prepare("set_counter", session="s1", which="correlation", value=0xFFFFFFFE)
    for name in "abcb":
        questions.answered(
            expect, await questions.ask(name), name, "each request is answered", id="each-request-is-answered"
        )
    ids = [r.keys[0] for r in received(broker, questions.kind)]
    expect.exercised(
        any(number > 0xFFFFFF00 for number in ids),
        "the counter did not start where it was set",
        id="the-counter-did-not-start-where-it-was-set",
    )
    expect.that(
        len(set(ids)) == 4 and min(ids) < 16, "ids wrap inside uint32", ids, id="ids-wrap-inside-uint32"
    )
