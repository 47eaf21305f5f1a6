"""NET-4.02, 4.04 and 4.05 for BlazingMQ: unknown categories, any body, numbers at limits."""

from __future__ import annotations

from typing import Any

from conformance.clients.adapter.base import Call
from conformance.clients.adapter.messages import body_bytes, same_body
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers.blazingmq.codes import AckStatus
from fakebrokers.blazingmq.faults import refuse_put
from fakebrokers.faults import drop
from fakebrokers.journal import Record
from scenarios._reading import read_to_the_end
from scenarios.blazingmq._steps import (
    READ,
    WRITE,
    encoding,
    eventually,
    opened,
    posts,
    received,
    say_raw,
    still_works,
)
from scenarios.blazingmq.contents import as_property, content_of
from scenarios.blazingmq.queue_answers import future_status
from scenarios.blazingmq.subject import CONFIGURED, DOMAIN, TAKES_ALL, TAKES_NOTHING, BlazingSubject
from scenarios.net.content import CORPUS
from scenarios.subjects import ROLES

MIB = 1 << 20
LARGE = {"gen": "rand", "seed": 404, "len": MIB}
BEYOND = {"gen": "zero", "len": 64 * MIB + 1}
FUTURE = -99
LIMITS = {"min": -(2**63), "max": 2**63 - 1, "odd": 2**53 + 1}


@scenario("NET-4.02", protocol="blazingmq", roles=ROLES, timeout_s=60)
async def unknown_categories(subject: BlazingSubject, client: Client, expect: Expect) -> None:
    await client.connected()
    await opened(client, expect, "r", DOMAIN + "r", flags=READ, **TAKES_NOTHING)
    await opened(client, expect, "w", DOMAIN + "w", flags=WRITE)
    kinds = tuple(kind.removesuffix("Response") for kind in CONFIGURED)
    subject.broker.faults.add(*[drop(kind=kind, name=kind) for kind in (*kinds, "closeQueue")])
    expect.may_not_fire("configure*", "a client configures its readers in one of two ways")
    asked: dict[str, Any] = {"session": "s1", "target": "r", "options": TAKES_ALL}
    mark = subject.broker.journal.last_seq
    call = client.begin("bmq.configure_queue", 3.0, **asked)
    await _refused(subject, call, "a configure", kinds, mark)
    call = client.begin("bmq.close_queue", 3.0, session="s1", target="w")
    await _refused(subject, call, "a closeQueue", ("closeQueue",), mark)
    subject.broker.faults.clear()
    await opened(client, expect, "q", DOMAIN + "orders", flags=WRITE)
    await still_works(subject.fake, client, expect, "the session stays usable", id="the-session-stays-usable")
    expect.that(client.alive, "the process is alive", "it ended", id="the-process-is-alive")


async def _refused(subject: BlazingSubject, call: Call, what: str, kinds: tuple[str, ...], mark: int) -> None:
    """The request is answered by a status of the future; its op ends as refused, and says by what."""
    broker, expect = subject.fake, subject.expect

    def came() -> list[Record]:
        return [record for kind in kinds for record in received(broker, kind, since=mark)]

    expect.exercised(
        await eventually(came, 2.0),
        f"the client sent none of {kinds}",
        id=slug("the-client-sent-none-of-{}", kinds),
    )
    frame: Any = came()[-1].frame
    say_raw(broker, expect, future_status(frame, encoding(broker, expect), FUTURE))
    result = await call
    expect.failed(
        result,
        ("refused",),
        f"{what} ends by its deadline as refused, never success",
        id=slug("{}-ends-by-its-deadline-as-refused-never-success", what),
    )
    text = f"{result.code} {result.error.text if result.error else ''}"
    shown = any(word in text for word in (str(FUTURE), "E_FUTURE"))
    expect.that(
        shown,
        f"{what}: the error shows the number or the word",
        text,
        id=slug("{}-the-error-shows-the-number-or-the-word", what),
    )


@scenario("NET-4.04", protocol="blazingmq", roles=ROLES, timeout_s=90)
async def payload_corpus(subject: BlazingSubject, client: Client, expect: Expect) -> None:
    await subject.rehearse()
    subject.add_queue(subject.queue)
    await subject.connected()
    sent: dict[str, bytes] = {}
    for name, body in CORPUS.items():
        given: Any = LARGE if name == "large" else body
        result = await subject.publish(subject.queue, given, timeout=10.0)
        if name == "empty" and not result.ok:
            expect.failed(
                result, ("invalid", "refused"), "empty: acked, or refused", id="empty-acked-or-refused"
            )
            continue
        expect.outcome(result, "acked", f"{name}: acked", id=slug("{}-acked", name))
        sent[name] = body_bytes(given) if name == "large" else body
    stored = subject.stored(subject.queue)
    expect.equal(
        len(stored),
        len(sent),
        "each acked body is at the broker once",
        id="each-acked-body-is-at-the-broker-once",
    )
    expect.that(
        stored == list(sent.values()),
        "each body is at the broker as it was",
        [s[:32] for s in stored],
        id="each-body-is-at-the-broker-as-it-was",
    )
    expect.prepared(await subject.subscribe(subject.queue))
    got = await read_to_the_end(subject.broker, client, expect, len(sent), within_s=10.0)
    expect.equal(len(got), len(sent), "every body is delivered once", id="every-body-is-surfaced-once")
    for (name, body), message in zip(sent.items(), got, strict=True):
        expect.that(
            same_body(message.body, body),
            f"{name}: equal, nothing truncated",
            message.body,
            id=slug("{}-equal-nothing-truncated", name),
        )
    subject.broker.faults.add(refuse_put(AckStatus.UNKNOWN, name="beyond"))
    expect.may_not_fire("beyond", "a client may refuse such a body by itself")
    beyond = await subject.publish(subject.queue, BEYOND, timeout=10.0)
    expect.failed(
        beyond,
        ("invalid", "refused"),
        "a body beyond the limit fails locally or is refused",
        id="a-body-beyond-the-limit-fails-locally-or-is-refused",
    )
    subject.broker.faults.clear()
    result = await subject.publish(subject.queue, b"afterwards")
    expect.outcome(
        result,
        "acked",
        "the session stays usable after a body beyond the limit",
        id="the-session-stays-usable-after-a-body-beyond-the-limit",
    )


@scenario("NET-4.05", protocol="blazingmq", roles=ROLES)
async def numbers_at_limits(subject: BlazingSubject, client: Client, expect: Expect) -> None:
    broker = subject.fake
    subject.add_queue(subject.queue)
    await subject.connected()
    given: dict[str, Any] = {name: {"type": "int64", "value": str(value)} for name, value in LIMITS.items()}
    expect.prepared(await subject.subscribe(subject.queue))
    for number, turn in enumerate(("posted", "sent back"), 1):
        result = await client.publish(subject.queue, turn.encode(), properties=given)
        expect.outcome(result, "acked", f"{turn}: the post is acked", id=slug("{}-the-post-is-acked", turn))
        found = content_of(expect, posts(broker)[-1][1])
        there = {name: one.value for name, one in found.properties.items()}
        expect.equal(
            there,
            LIMITS,
            f"{turn}: the numbers on the wire are those that were given",
            id=slug("{}-the-numbers-on-the-wire-are-those-that-were-given", turn),
        )
        wanted = {name: as_property(one) for name, one in given.items()}
        expect.equal(dict(found.properties), wanted, f"{turn}: as INT64", id=slug("{}-as-int64", turn))
        got = await subject.wait_messages(number)
        expect.equal(
            len(got),
            number,
            f"{turn}: the message is delivered once",
            id=slug("{}-the-message-is-surfaced-once", turn),
        )
        given = got[-1].meta.get("properties") or {}
        shown = {name: int(one["value"]) for name, one in given.items()}
        expect.equal(
            shown,
            LIMITS,
            f"{turn}: the numbers are delivered exactly",
            id=slug("{}-the-numbers-are-surfaced-exactly", turn),
        )
