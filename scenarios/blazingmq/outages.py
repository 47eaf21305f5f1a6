"""BMQ-3 Publish and ACK: answers that never come, or come late, and lost connections."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.adapter.base import Call
from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect, scenario
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.frames import PutMessage
from fakebrokers.core.session import HangUp
from fakebrokers.faults import drop, hold
from scenarios.blazingmq._steps import (
    GRACE,
    GRACE_S,
    LOST,
    PUBLISHER,
    acked_on_the_wire,
    acknowledge,
    came,
    current,
    posts,
    ready,
    still_works,
    tellings,
)
from scenarios.blazingmq.publishing import acked_guid, body, has_guid, no_extra_completion

LONG_S = 30.0
FIRST = "no ACK on the first connection"


async def times_out(client: Client, expect: Expect, data: bytes) -> None:
    """A post ends by its time-out, or by the library's own, and says that it does not know."""
    result = await client.publish("q", data, timeout=1.0)
    timeout_s = client.deadline_s("publish", 1.0)
    expect.failed(result, ("timeout",), "the post fails as timeout", id="the-post-fails-as-timeout")
    expect.outcome(result, "unknown", "its outcome is unknown", id="its-outcome-is-unknown")
    expect.within(
        result.elapsed_ms / 1000, timeout_s * GRACE + GRACE_S, "at its deadline", id="at-its-deadline"
    )
    if timeout_s == 1.0:  # the library's own is how long it takes at most
        expect.not_before(result.elapsed_ms / 1000, 0.9, "not before", id="not-before")


@scenario(
    "BMQ-3.03",
    "MUST",
    "critical",
    basis=["B8", "B11"],
    needs=["ack_timeout"],
    roles=PUBLISHER,
    timeout_s=60,
    revision=2,
)
async def ack_never_arrives(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """ACK never arrives.

    Fault: Drop the ACK, keep the connection alive; post with timeout_ms 1000
    Pass: op ends with kind `timeout` (outcome unknown) at its deadline; `state.pending`, if given, is 0 after
    it; a following post is acked
    Seen: rstream#276; aio-pika#46; measured: C++ and Java SDKs have no ACK timer while connected
    """
    broker.faults.add(drop(kind="ACK", direction="out", nth=1))
    await ready(client, expect)
    await times_out(client, expect, b"lost")
    pending = (await client.state())["pending"]
    expect.that(pending in (0, None), "nothing is pending", pending, id="nothing-is-pending")
    await still_works(broker, client, expect, "a following post is acked", id="a-following-post-is-acked")


@scenario(
    "BMQ-3.04",
    "MUST",
    "high",
    basis=["B11", "B12"],
    needs=["ack_timeout"],
    roles=PUBLISHER,
    timeout_s=60,
    revision=2,
)
async def late_ack(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Late ACK after the timeout.

    Fault: delay(ACK of post 1, deadline+300 ms), status 0; post 2 is sent after post 1 has timed out and is
    acked before the late ACK
    Pass: Post 1 ends once, with `timeout`; the late ACK is ignored or shown only as an `outcome`, `late` or
    raw event; no crash; post 2 gets its own ACK (own GUID), and a third post works
    Seen: blazingmq-sdk-java#26
    """
    broker.faults.add(hold(kind="ACK", direction="out", nth=1, name="late"))
    await ready(client, expect)
    await times_out(client, expect, b"late")
    second = await client.publish("q", b"second")
    expect.outcome(second, "acked", "the second post is acked", id="the-second-post-is-acked")
    has_guid(expect, second, acked_guid(broker), "by its own ACK", id="by-its-own-ack")
    await asyncio.sleep(0.3)
    broker.faults.release("late")
    await broker.wait_for_async(kind="ACK", count=2, timeout=3.0)
    await still_works(broker, client, expect, "a third post is acked", id="a-third-post-is-acked")
    wrong = [e for e in client.events if e.event == "outcome" and e["outcome"] != "acked"]
    expect.that(
        not wrong,
        "the late ACK is ignored, or reported as what it is",
        wrong[:1],
        id="the-late-ack-is-ignored-or-told-as-what-it-is",
    )


def fits_the_wire(broker: BlazingMQ, expect: Expect, result: Result, data: bytes, since: int) -> None:
    """An acked post was sent and acknowledged since then."""
    if result.ok:
        seen = acked_on_the_wire(broker, data, since)
        expect.that(
            seen,
            "an acked post was acknowledged on a new connection",
            data,
            id="an-acked-post-was-acknowledged-on-a-new-connection",
        )


@scenario("BMQ-3.14", "MUST", "critical", basis=["B19"], roles=PUBLISHER)
async def post_while_disconnected(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Post while disconnected.

    Fault: fin, refuse connections for 2 s; post (timeout_ms 30000) 500 ms after the FIN; then accept again
    Pass: The post fails at once with kind `connection` or `closed`, definite, and its body never appears on
    the wire; or it is buffered and ends `acked` after its PUT was written and acknowledged on a new
    connection; or it ends `timeout`/`connection` (indefinite) by its deadline; never a success without an ACK
    on the wire, never a hang
    Seen: aio-pika#636; aio-pika#556; moleculer#715; measured: C++ buffers and sends later, Java raises
    NOT_CONNECTED
    """
    await ready(client, expect)
    broker.refuse(2.0)
    mark = broker.journal.last_seq
    broker.kill(how=HangUp.FIN)
    await asyncio.sleep(0.5)
    result = await client.publish("q", b"while it was down", timeout=LONG_S)
    expect.ended(result, "the post ends by its deadline", id="the-post-ends-by-its-deadline")
    fits_the_wire(broker, expect, result, b"while it was down", mark)
    if result.ok:
        return
    expect.failed(
        result,
        LOST,
        "else it fails as connection, closed or timeout",
        id="else-it-fails-as-connection-closed-or-timeout",
    )
    if result.outcome == "nacked":
        expect.within(
            result.elapsed_ms / 1000,
            1.0,
            "a definite failure comes at once",
            id="a-definite-failure-comes-at-once",
        )
        await asyncio.sleep(2.5)
        came_after = [m for _, m in posts(broker) if b"while it was down" in m.data]
        expect.that(not came_after, "and nothing is sent", id="and-nothing-is-sent")


async def unanswered(
    broker: BlazingMQ, client: Client, expect: Expect, count: int, **more: Any
) -> tuple[list[Call], list[PutMessage]]:
    """Posts that get no ACK on the first connection."""
    await ready(client, expect)
    broker.faults.add(drop(kind="ACK", direction="out", connection=current(broker, expect), name=FIRST))
    calls = [client.begin_publish("q", body(n), timeout=LONG_S, **more) for n in range(count)]
    return calls, await came(broker, expect, count)


@scenario("BMQ-3.15", "MUST", "critical", basis=["B18", "B19"], roles=PUBLISHER)
async def lost_with_posts(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Connection lost with un-ACKed posts.

    Fault: RST after 5 PUTs that asked for an ACK (timeout_ms 30000), no ACK; accept again at once and
    acknowledge everything from then on
    Pass: All five ops end once by their deadline: indefinite error (`connection`, `timeout`, `closed`), or
    `acked` after a retransmit that the journal shows; a client without reconnect ends them within 1 s of its
    loss event, or (with `ack_timeout`) at the deadline
    Seen: rstream#276; stream-dotnet-client#293; measured: C++ retransmits all in one event, Java reports
    UNKNOWN at once, Node SDK does not settle them at the loss
    """
    calls, _ = await unanswered(broker, client, expect, 5)
    mark = broker.journal.last_seq
    began = client.now
    broker.kill(how=HangUp.RST)
    results = [await call for call in calls]
    for number, result in enumerate(results):
        expect.ended(result, "each post ends by its deadline", id="each-post-ends-by-its-deadline")
        expect.outcome(
            result,
            ("acked", "unknown"),
            "acked, or with an indefinite error",
            id="acked-or-with-an-indefinite-error",
        )
        if not result.ok:
            expect.failed(
                result, LOST, "as connection, timeout or closed", id="as-connection-timeout-or-closed"
            )
        fits_the_wire(broker, expect, result, body(number), mark)
    if not client.can("auto_reconnect") and not client.can("ack_timeout"):
        expect.that(tellings(client), "the loss is reported", id="the-loss-is-told")
    if not client.can("auto_reconnect"):
        last_s = max(result.ended_ns for result in results) / 1e9
        limit_s = LONG_S * GRACE if client.can("ack_timeout") else 1.0
        expect.within(last_s - began, limit_s + GRACE_S, "in time", id="in-time")
    no_extra_completion(client, expect)


PROPERTY: dict[str, Any] = {"n": {"type": "int32", "value": "1"}}


@scenario("BMQ-3.16", "SHOULD", "high", basis=["B9", "B12"], needs=["auto_reconnect"], roles=PUBLISHER)
async def retransmit(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Retransmit after reconnect keeps identity.

    Fault: Post 3 messages; acknowledge the first, drop those of the second and third, RST; accept again
    Pass: The acknowledged PUT is not sent again; if the client retransmits, payload, properties and flags are
    the same and, for GUID clients, so is the MessageGUID; order is kept; each caller completes exactly once;
    if it does not retransmit, its caller gets an indefinite error
    Seen: blazingmq#1302; measured: C++ sends them in one PUT event with the same GUIDs; Java does not
    retransmit
    """
    more = {"properties": PROPERTY} if client.can("properties") else {}
    calls, messages = await unanswered(broker, client, expect, 3, **more)
    acknowledge(broker, expect, messages[0])
    expect.outcome(await calls[0], "acked", "the first post is acked", id="the-first-post-is-acked")
    mark = broker.journal.last_seq
    broker.kill(how=HangUp.RST)
    results = [await call for call in calls[1:]]
    again = [message for _, message in posts(broker, since=mark)]
    expect.that(
        messages[0].data not in [m.data for m in again],
        "what was acknowledged is not sent again",
        id="what-was-acknowledged-is-not-sent-again",
    )
    if not again:
        for result in results:
            expect.outcome(
                result,
                "unknown",
                "what is not sent again ends with an indefinite error",
                id="what-is-not-sent-again-ends-with-an-indefinite-error",
            )
        return
    for result in results:
        expect.outcome(result, "acked", "what is sent again is acked", id="what-is-sent-again-is-acked")
    seen = [(m.data, m.flags, m.schema_id) for m in again]
    wanted = [(m.data, m.flags, m.schema_id) for m in messages[1:]]
    expect.equal(
        seen,
        wanted,
        "payload, properties, flags and order are the same",
        id="payload-properties-flags-and-order-are-the-same",
    )
    if any(messages[1].guid[4:]):
        expect.equal(
            [m.guid for m in again],
            [m.guid for m in messages[1:]],
            "the GUIDs are the same",
            id="the-guids-are-the-same",
        )
    no_extra_completion(client, expect)


SHORT_MEMORY = {"domains": {"bmq.test.mem.priority": {"deduplication_time_ms": 2000}}}


@scenario(
    "BMQ-3.26",
    "SHOULD",
    "high",
    basis=["B11", "B18"],
    needs=["auto_reconnect"],
    roles=PUBLISHER,
    server=SHORT_MEMORY,
)
async def longer_than_the_memory(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Outage longer than the deduplication time.

    Fault: openQueueResponse with deduplicationTimeMs 2000; 5 PUTs un-ACKed, RST, refuse connections for 10 s,
    then accept; timeout_ms of the posts 30000
    Pass: All five end with an indefinite error within 2 s + 3 s of the cut, none `acked`; none of the five is
    sent again after its caller got the outcome, or if it is, its GUID is the same
    Seen: measured: C++ reports UNKNOWN after the deduplication time (0.70 s with 700 ms), Java at once
    """
    calls, messages = await unanswered(broker, client, expect, 5)
    broker.refuse(6.0)
    mark, began = broker.journal.last_seq, client.now
    broker.kill(how=HangUp.RST)
    for call in calls:
        result = await call
        expect.ended(result, "each post ends", id="each-post-ends")
        expect.outcome(
            result,
            "unknown",
            "none is acked; each has an indefinite error",
            id="none-is-acked-each-has-an-indefinite-error",
        )
        expect.within(
            result.ended_ns / 1e9 - began, 5.0, "within 2 s + 3 s of the cut", id="within-n-s-n-s-of-the-cut"
        )
    await asyncio.sleep(max(0.0, began + 8.0 - client.now))
    guids = {message.guid for message in messages}
    again = [m for _, m in posts(broker, since=mark) if m.guid not in guids or not any(m.guid[4:])]
    expect.that(
        not again, "none is sent again under another id", again[:1], id="none-is-sent-again-under-another-id"
    )
