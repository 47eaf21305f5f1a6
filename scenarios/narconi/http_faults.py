"""NARC-1 HTTP API: answers that are cut, slow or lost, gateways and outages."""

from __future__ import annotations

import asyncio

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import Narconi
from fakebrokers.core.session import HangUp
from fakebrokers.faults import effects, fault
from fakebrokers.narconi.faults import CutBody, HttpAnswer, SlowBody, WithLength, lose_consume_response
from fakebrokers.narconi.frames import HttpRequest
from scenarios._common import limit_s, received, sent
from scenarios.narconi._steps import (
    ADMIN,
    CONSUMER,
    HTTP,
    LOST,
    PROJECT,
    PUBLISHER,
    QUEUE,
    end,
    ensure,
    exists,
    post,
    publish,
    ready,
    refused,
    stored,
    subscription_refused,
    take,
)


@scenario("NARC-1.13", "MUST", "critical", basis=["N17"], roles=HTTP)
async def response_cut_in_body(broker: Narconi, client: Client, expect: Expect) -> None:
    """Response cut in the body.

    Fault: (a) chunked: first chunk of 40 bytes, then fin without the last chunk (real framing); (b)
    Content-Length 100, 40 bytes, fin; (c) as b with rst
    Pass: take ends with an error (`connection`, `protocol` or `internal`) that is not definite; message not
    delivered as complete; no second DELETE within the op
    Profile: both
    Seen: libzmq#160
    """
    await ready(broker, client)
    cut = CutBody(keep=40)
    cases = {
        "chunked, fin": fault(cut, effects.Fin(), kind="HttpDeliver", direction="out"),
        "with a length, fin": fault(WithLength(), cut, effects.Fin(), kind="HttpDeliver", direction="out"),
        "with a length, rst": fault(WithLength(), cut, effects.Rst(), kind="HttpDeliver", direction="out"),
    }
    for case, broken in cases.items():
        broker.publish(PROJECT, QUEUE, b"x" * 100)
        broker.publish(PROJECT, QUEUE, b"the next one")
        broker.faults.clear()
        broker.faults.add(broken)
        mark = broker.journal.last_seq
        result = await take(client)
        expect.failed(
            result,
            (*LOST, "protocol", "internal"),
            f"{case}: take ends with an error that is not definite, and delivers no message",
            definite=False,
            id=slug("{}-take-ends-with-an-error-that-is-not-definite-and-surfaces-no-message", case),
        )
        asked = len(received(broker, "HttpConsume", since=mark))
        expect.equal(
            asked,
            1,
            f"{case}: no second DELETE within the op",
            id=slug("{}-no-second-delete-within-the-op", case),
        )
        broker.faults.clear()
        expect.prepared(await take(client))


@scenario("NARC-1.14", "SHOULD", "high", basis=["N4"], roles=HTTP, revision=2)
async def slow_body(broker: Narconi, client: Client, expect: Expect) -> None:
    """Slow body.

    Fault: 100 bytes at 1 byte/s; deadline of the op 2 s
    Pass: Ends `timeout` (not definite) at the total deadline. Non-strict: a library whose time-outs are of
    silence (`times_silence`), as its documentation says, waits on
    Profile: both
    Seen: clickhouse-cpp#486
    """
    await ready(broker, client)
    broker.publish(PROJECT, QUEUE, b"x" * 100)
    broker.faults.add(fault(SlowBody(bytes_per_s=1.0), kind="HttpDeliver", direction="out"))
    result = await take(client, timeout=2.0)
    criterion = "take ends as a timeout, not definite"
    if result.hang and client.may("times_silence"):
        expect.tolerate_hang(result, criterion, id="take-ends-as-a-timeout-not-definite")
        return
    expect.failed(
        result,
        ("timeout",),
        criterion,
        definite=False,
        id="take-ends-as-a-timeout-not-definite",
    )
    limit = client.deadline_s("request", 2.0)
    expect.within(
        result.elapsed_ms / 1000,
        limit_s(limit),
        "at its deadline as a whole",
        id="at-its-deadline-as-a-whole",
    )


@scenario("NARC-1.15", "SHOULD", "high", basis=["N3"], roles=(*ADMIN, *HTTP))
async def kept_connection_closed(broker: Narconi, client: Client, expect: Expect) -> None:
    """Keep-alive connection closed by the server.

    Fault: (a) fin on the idle connection, POST 500 ms later; (b) fin at the moment when the first byte of the
    POST arrives, nothing processed
    Pass: Publish ends `acked` (on a new connection, exactly one message stored) or with
    `connection`/`timeout`, not definite once a byte was written; never `acked` without a 201 in the journal;
    no hang
    Profile: both (node 20 closes idle connections after 5 s)
    """
    await client.connected(project=PROJECT)
    for case in ("fin on the idle connection", "fin as the request comes"):
        expect.prepared(await ensure(client))
        expect.exercised(exists(broker), "the queue was not made", id="the-queue-was-not-made")
        before, mark = len(stored(broker)), broker.journal.last_seq
        if case == "fin on the idle connection":
            for connection in broker.connections:
                end(broker, connection["name"], HangUp.FIN)
            await asyncio.sleep(0.5)
        else:
            cut = effects.Fin(pass_frame=False)
            broker.faults.add(fault(cut, kind="HttpPublish", direction="in", nth=1, scope="run"))
        result = await post(client)
        expect.outcome(
            result,
            ("acked", "unknown"),
            f"{case}: acked, or lost and not definite",
            id=slug("{}-acked-or-lost-and-not-definite", case),
        )
        if result.outcome == "acked":
            confirms = sent(broker, "HttpConfirm", since=mark)
            expect.equal(
                len(confirms), 1, f"{case}: acked only by a 201", id=slug("{}-acked-only-by-a-n", case)
            )
            expect.equal(
                len(stored(broker)) - before,
                1,
                f"{case}: exactly one message is stored",
                id=slug("{}-exactly-one-message-is-stored", case),
            )
        else:
            expect.failed(
                result,
                LOST,
                f"{case}: acked, or lost and not definite",
                id=slug("{}-acked-or-lost-and-not-definite", case),
            )


@scenario(
    "NARC-1.17",
    "SHOULD",
    "low",
    basis=["N16"],
    roles=HTTP,
    allows=(
        "ok-needs-answer",
        "refused-needs-answer",
    ),
)
async def redirect_or_401(broker: Narconi, client: Client, expect: Expect) -> None:
    """Redirect or 401.

    Fault: 307 to another path of the fake, then 301, then 401
    Pass: 401: `auth` or `refused` code 401. Redirects: error with the code, or followed with the same method
    and body; after the 301 also with GET (RFC 9110, 15.4.2), and the code of its answer; never more than one
    message stored for one op; no `acked` without a 201
    Profile: both (never sent by the server itself: gateway)
    """
    await ready(broker, client, QUEUE, "other")
    elsewhere = {"Location": f"/v2/{PROJECT}/queues/other/messages"}
    for status in (307, 301):
        broker.faults.clear()
        mark, before = broker.journal.last_seq, len(stored(broker, "other"))
        answer = HttpAnswer(status=status, headers=elsewhere)
        broker.faults.add(fault(answer, kind="HttpPublish", direction="in", nth=1, scope="run"))
        result = await post(client, b"message %d" % status)
        new = stored(broker, "other")[before:]
        expect.that(
            len(new) + len(stored(broker)) <= 1,
            f"{status}: not stored more than once",
            new,
            id=slug("{}-not-stored-more-than-once", status),
        )
        if result.ok:
            expect.that(
                sent(broker, "HttpConfirm", since=mark),
                f"{status}: not acked without a 201",
                id=slug("{}-not-acked-without-a-n", status),
            )
            expect.equal(
                new,
                [b"message %d" % status],
                f"{status}: followed with the same body",
                id=slug("{}-followed-with-the-same-body", status),
            )
        else:
            criterion = f"{status}: the code is reported, or it is followed"
            expect.failed(
                result, ("refused",), criterion, id=slug("{}-the-code-is-reported-or-it-is-followed", status)
            )
            if result.code is None:  # interfaces like a browser's hide it
                expect.tolerate(
                    False,
                    criterion,
                    str(result),
                    id=slug("{}-the-code-is-reported-or-it-is-followed", status),
                )
            else:
                codes = [status, *(followed_with_get(broker, mark) if status == 301 else ())]
                expect.that(
                    result.code in codes,
                    criterion,
                    f"expected {codes}, got {result.code!r}",
                    id=slug("{}-the-code-is-reported-or-it-is-followed", status),
                )
    broker.faults.clear()
    broker.faults.add(fault(HttpAnswer(status=401), kind="HttpPublish", direction="in"))
    refused(
        expect,
        await post(client),
        401,
        "401 ends as auth or refused",
        kinds=("auth", "refused"),
        id="n-ends-as-auth-or-refused",
    )


def followed_with_get(broker: Narconi, since: int) -> list[int | None]:
    """What was answered to requests with GET, as which a client may repeat a POST that has moved for good."""
    asked = received(broker, "OtherRequest", since=since)
    gets = {r.connection for r in asked if isinstance(r.frame, HttpRequest) and r.frame.method == "GET"}
    return [record.status for record in sent(broker, "HttpError", since=since) if record.connection in gets]


@scenario("NARC-1.18", "MUST", "critical", basis=["N4", "N17"], roles=(*ADMIN, *HTTP))
async def consume_not_repeated(broker: Narconi, client: Client, expect: Expect) -> None:
    """Consume is not repeated in silence.

    Fault: One request on a kept-alive connection, then take: the message is removed and the connection ends
    (fin, second run rst) before any byte of the answer; another message waits in the queue
    Pass: take ends with `connection`/`timeout`, not definite; no second DELETE within the op. A repeat whose
    result says that a message may be lost: non-strict
    Profile: both
    Seen: measured: aiohttp 3.14.5 and urllib3 2.8.0 by default, requests 2.34 with Retry: DELETE is sent
    again and the second message returned; plain requests, httpx 0.28 and Node's fetch report an error
    """
    await client.connected(project=PROJECT)
    for how in ("fin", "rst"):
        expect.prepared(await ensure(client))
        expect.exercised(exists(broker), "the queue was not made", id="the-queue-was-not-made")
        broker.faults.clear()
        broker.publish(PROJECT, QUEUE, b"this one is lost")
        broker.publish(PROJECT, QUEUE, b"this one stays")
        lost = lose_consume_response("fin" if how == "fin" else "rst", nth=1, scope="run")
        broker.faults.add(lost)
        mark = broker.journal.last_seq
        result = await take(client)
        asked = len(received(broker, "HttpConsume", since=mark))
        expect.equal(
            asked,
            1,
            f"{how}: no second DELETE within the op",
            id=slug("{}-no-second-delete-within-the-op", how),
        )
        kinds = (*LOST, "protocol")
        expect.failed(
            result,
            kinds,
            f"{how}: take ends with an error, not definite",
            definite=False,
            id=slug("{}-take-ends-with-an-error-not-definite", how),
        )
        broker.faults.clear()
        expect.prepared(await take(client))


@scenario("NARC-1.19", "MUST", "high", basis=["N16"], roles=(*HTTP, *PUBLISHER, *CONSUMER))
async def backend_down_then_up(broker: Narconi, client: Client, expect: Expect) -> None:
    """Backend down, then up.

    Fault: For 2 s every request gets 500 and every upgrade `500 Connection Not Upgraded`; then all works
    Pass: Ops in the outage end `refused` code 500 with the text (upgrade: see NARC-2.03), at most 10 requests
    per op; afterwards publish, take and subscribe work on the same client object
    Profile: both: {"code":"InternalError","message":"Cannot connect to the AMQP backend."} in `real`,
    {"message":...} in `seed`
    """
    await ready(broker, client)
    broker.lose_backend(down=True)
    for name in ("post", "take", "publish", "subscribe"):
        mark = broker.journal.last_seq
        if name in ("post", "take"):
            result = await (post(client) if name == "post" else take(client))
            refused(
                expect,
                result,
                500,
                f"{name} in the outage ends refused",
                id=slug("{}-in-the-outage-ends-refused", name),
            )
            assert result.error is not None
            reported = "Cannot connect to the AMQP backend." in result.error.text
            expect.that(
                reported,
                f"{name} in the outage reports the server's message",
                result.error.text,
                id=slug("{}-in-the-outage-reports-the-server-s-message", name),
            )
        else:
            heard = len(client.events)
            call = publish(client) if name == "publish" else client.subscribe(QUEUE)
            await subscription_refused(
                client,
                expect,
                await call,
                "c1",
                500,
                f"{name} in the outage is refused",
                since=heard,
                id=slug("{}-in-the-outage-is-refused", name),
            )
        kinds = ("HttpPublish", "HttpConsume", "WsUpgrade")
        count = sum(len(received(broker, kind, since=mark)) for kind in kinds)
        expect.that(
            count <= 10,
            f"{name} in the outage asks at most ten times",
            count,
            id=slug("{}-in-the-outage-asks-at-most-ten-times", name),
        )
    await asyncio.sleep(0.5)
    broker.restore_backend()
    expect.outcome(await post(client, b"1"), "acked", "post works afterwards", id="post-works-afterwards")
    value = expect.ok(await take(client), "take works afterwards", id="take-works-afterwards")
    expect.that(value["message"] is not None, "take works afterwards", value, id="take-works-afterwards")
    expect.outcome(
        await publish(client, b"2"), "acked", "publish works afterwards", id="publish-works-afterwards"
    )
    expect.ok(
        await client.subscribe(QUEUE, "c2"), "subscribe works afterwards", id="subscribe-works-afterwards"
    )
    came = await client.wait_messages(1, "c2")
    expect.equal(
        len(came),
        1,
        "a subscription after the outage gets messages",
        id="a-subscription-after-the-outage-gets-messages",
    )
