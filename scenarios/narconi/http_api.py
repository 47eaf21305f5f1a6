"""NARC-1 HTTP API: queues, publishing and consuming by request."""

from __future__ import annotations

from urllib.parse import unquote

from conformance.clients.adapter.messages import same_body
from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import Narconi
from fakebrokers.faults import fault, rewrite
from fakebrokers.journal import Tap
from fakebrokers.narconi.faults import HttpAnswer, WithLength
from fakebrokers.narconi.frames import HttpRequest
from scenarios._common import received
from scenarios.narconi._steps import (
    ADMIN,
    ALL_BYTES,
    HTTP,
    PROJECT,
    QUEUE,
    delete,
    ensure,
    exists,
    header,
    post,
    ready,
    refused,
    requests,
    stored,
    take,
    the_message,
)

FORMS = ("chunked", "with a length")


def use_form(broker: Narconi, form: str) -> None:
    """Answers come in this form from here on."""
    if form == "with a length":
        for role in ("response", "deliver"):
            broker.faults.add(fault(WithLength(), role=role, direction="out", name=f"{role} with a length"))


def asked(broker: Narconi, since: int) -> list[HttpRequest]:
    """All requests that the broker received since then."""
    found = broker.journal.select(tap=Tap.RECEIVED, since=since)
    return [record.frame for record in found if isinstance(record.frame, HttpRequest)]


@scenario("NARC-1.01", "MUST", "high", basis=["N1", "N19"], roles=ADMIN)
async def ensure_queue(broker: Narconi, client: Client, expect: Expect) -> None:
    """Ensure queue.

    Fault: None
    Pass: PUT /v2/{project}/queues/{queue}, no trailing slash (the real server answers 404 to one); ok on 201
    Profile: both; run with both forms of the empty 201: chunked without content type (real) and
    `Content-Length: 0`
    """
    expect.may_not_fire("deliver with a length", "nothing is consumed here")
    await client.connected(project=PROJECT)
    for form in FORMS:
        use_form(broker, form)
        mark = broker.journal.last_seq
        result = await ensure(client)
        targets = [(one.method, unquote(one.target)) for one in asked(broker, mark)]
        wanted = ("PUT", f"/v2/{PROJECT}/queues/{QUEUE}")
        expect.that(
            wanted in targets,
            f"PUT {wanted[1]}, without a slash at the end",
            targets,
            id=slug("put-{}-without-a-slash-at-the-end", wanted[1]),
        )
        expect.ok(result, f"{form}: 201 is ok", id=slug("{}-n-is-ok", form))


@scenario("NARC-1.02", "SHOULD", "medium", basis=["N1"], roles=(*ADMIN, *HTTP))
async def ensure_queue_twice(broker: Narconi, client: Client, expect: Expect) -> None:
    """Ensure queue twice.

    Fault: 201 again, chunked and empty, on the same kept-alive connection; then a publish on it
    Pass: ok twice, publish `acked`: the end of the empty chunked body is read before the next answer
    Profile: both
    """
    await client.connected(project=PROJECT)
    expect.ok(await ensure(client), "the first 201 is ok", id="the-first-n-is-ok")
    expect.ok(
        await ensure(client),
        "the second 201 is ok: the empty chunked body was read to its end",
        id="the-second-n-is-ok-the-empty-chunked-body-was-read-to-its",
    )
    expect.outcome(
        await post(client), "acked", "a publish after it is acked", id="a-publish-behind-it-is-acked"
    )
    expect.equal(stored(broker), [b"hello"], "one message is stored", id="one-message-is-stored")


@scenario("NARC-1.03", "MUST", "medium", basis=["N2"], roles=ADMIN, revision=2)
async def delete_queue(broker: Narconi, client: Client, expect: Expect) -> None:
    """Delete queue.

    Fault: 204 for an existing queue; 204 for a missing one (real with RabbitMQ 3.10); 404 with a JSON body
    for a missing one (older brokers, inferred)
    Pass: ok on both 204; 404 ends `refused` code 404, or ok (deleting what is not there: non-strict)
    Profile: both
    """
    await ready(broker, client)
    expect.ok(await delete(client), "204 for an existing queue is ok", id="n-for-an-existing-queue-is-ok")
    expect.that(
        not exists(broker),
        "204 for an existing queue is ok: it is gone",
        "it is still there",
        id="n-for-an-existing-queue-is-ok-it-is-gone",
    )
    expect.ok(await delete(client), "204 for a missing queue is ok", id="n-for-a-missing-queue-is-ok")
    answer = HttpAnswer(
        status=404,
        body='{"code":"ResourceNotFound","message":"Queue does not exist: gold_orders"}',
        content_type="application/json",
    )
    broker.faults.add(fault(answer, kind="DeleteQueue", direction="in"))
    result = await delete(client)
    expect.exercised(
        len(received(broker, "DeleteQueue")) >= 3,
        "the client does not ask each time",
        id="the-client-does-not-ask-each-time",
    )
    if not result.ok:
        refused(expect, result, 404, "404 ends refused", id="n-ends-refused")
    else:
        expect.tolerate(
            False, "404 ends refused", "it is ok: there is nothing left to delete", id="n-ends-refused"
        )


@scenario("NARC-1.04", "MUST", "critical", basis=["N3"], roles=HTTP)
async def publish_by_post(broker: Narconi, client: Client, expect: Expect) -> None:
    """Publish.

    Fault: 201
    Pass: Body byte-identical, Content-Type and x-msg-x-* headers sent
    """
    await ready(broker, client)
    result = await post(client, ALL_BYTES, content_type="image/png", color="red", size="large")
    expect.outcome(result, "acked", "201 is acked", id="n-is-acked")
    message = the_message(broker, expect)
    expect.that(
        message.payload == ALL_BYTES,
        "the body arrives byte by byte",
        message.payload[:40],
        id="the-body-arrives-byte-by-byte",
    )
    expect.equal(message.content_type, "image/png", "the Content-Type arrives", id="the-content-type-arrives")
    kept = {"x-msg-x-color": "red", "x-msg-x-size": "large"}
    expect.equal(message.headers, kept, "the x-msg-x- headers arrive", id="the-x-msg-x-headers-arrive")


@scenario("NARC-1.05", "MUST", "high", basis=["N1", "N16"], roles=HTTP)
async def publish_to_missing_queue(broker: Narconi, client: Client, expect: Expect) -> None:
    """Publish to a missing queue.

    Fault: 404
    Pass: `refused`, code 404 from the status line, text = message; one request only; never `acked`
    Profile: both: `real` body {"code":"ResourceNotFound","message":"Queue does not exist: gold_queues"} (the
    code is a word), `seed` body {"message":"..."}
    Seen: narconi lib/apis.js ensure_queue
    """
    await client.connected(project=PROJECT)
    result = await post(client)
    refused(expect, result, 404, "404 ends refused", id="n-ends-refused")
    assert result.error is not None
    text = "Queue does not exist: gold_orders"
    expect.that(
        text in result.error.text,
        "the server's message is reported",
        result.error.text,
        id="the-server-s-message-is-reported",
    )
    expect.equal(len(received(broker, "HttpPublish")), 1, "one request only", id="one-request-only")


@scenario("NARC-1.06", "MUST", "high", basis=["N16", "N19"], roles=HTTP, server={"body_limit": 100_000})
async def publish_too_large(broker: Narconi, client: Client, expect: Expect) -> None:
    """Publish too large.

    Fault: 65 536 bytes, then 65 537 bytes, sent with a length; the fake applies its limit: 201, then 429
    {"code":"RequestThrottled","message":"Message too large."}; a second run answers 413 as a gateway would
    Pass: First `acked`, body equal; second `refused` with code 429 (413) or `invalid` locally; at most 3
    requests for it although 429 usually means try later; nothing stored
    Profile: both
    Seen: narconi lib/apis.js buffer_body
    """
    await ready(broker, client)
    largest = ALL_BYTES * 256
    expect.outcome(await post(client, largest), "acked", "65536 bytes are acked", id="n-bytes-are-acked")
    expect.that(
        stored(broker) == [largest],
        "the largest body arrives whole",
        [*map(len, stored(broker))],
        id="the-largest-body-arrives-whole",
    )
    for code in (429, 413):
        mark = broker.journal.last_seq
        if code == 413:
            broker.faults.add(fault(HttpAnswer(status=413), kind="HttpPublish", direction="in"))
        result = await post(client, largest + b"!")
        refused(
            expect,
            result,
            code,
            f"65537 bytes end refused with {code}",
            kinds=("refused", "invalid"),
            id=slug("n-bytes-end-refused-with-{}", code),
        )
        count = len(received(broker, "HttpPublish", since=mark))
        expect.that(count <= 3, "it is sent at most three times", count, id="it-is-sent-at-most-three-times")
        expect.that(
            len(stored(broker)) == 1,
            "nothing more is stored",
            len(stored(broker)),
            id="nothing-more-is-stored",
        )


@scenario("NARC-1.07", "MUST", "medium", basis=["N16"], roles=ADMIN)
async def error_without_json(broker: Narconi, client: Client, expect: Expect) -> None:
    """Error without JSON body.

    Fault: On ensure: 500 with HTML, with an empty body, with broken JSON, with JSON that is no object; 404 as
    `text/plain` with the bare message (real, when Accept asks for it); 406 with an empty chunked body (real)
    Pass: Each `refused` with the code of the status line; no parse exception; the next request works
    Profile: both
    """
    await client.connected(project=PROJECT)
    cases = {
        "500 with HTML": HttpAnswer(status=500, body="<h1>Oops</h1>"),
        "500 with an empty body": HttpAnswer(status=500),
        "500 with broken JSON": HttpAnswer(status=500, body='{"message":', content_type="application/json"),
        "500 with JSON that is no object": HttpAnswer(
            status=500, body='["message"]', content_type="application/json"
        ),
        "404 as text": HttpAnswer(
            status=404, body="Queue does not exist: gold_orders", content_type="text/plain"
        ),
    }
    for case, answer in cases.items():
        broker.faults.clear()
        broker.faults.add(fault(answer, kind="EnsureQueue", direction="in"))
        refused(
            expect,
            await ensure(client),
            answer.status,
            f"{case} ends refused",
            id=slug("{}-ends-refused", case),
        )
    broker.faults.clear()
    broker.faults.add(rewrite(fields={"status": 406}, kind="QueueEnsured"))
    refused(
        expect,
        await ensure(client),
        406,
        "406 with an empty chunked body ends refused",
        id="n-with-an-empty-chunked-body-ends-refused",
    )
    broker.faults.clear()
    expect.ok(await ensure(client), "the next request works", id="the-next-request-works")


def message_of(expect: Expect, result: Result, criterion: str, *, id: str) -> dict[str, object]:
    """The message that a take brought."""
    value = expect.ok(result, criterion, id=id)
    expect.that(value["message"] is not None, criterion, "there is no message", id=id)
    found: dict[str, object] = value["message"]
    return found


@scenario("NARC-1.08", "MUST", "critical", basis=["N4", "N18"], roles=HTTP)
async def consume_one(broker: Narconi, client: Client, expect: Expect) -> None:
    """Consume one.

    Fault: 200 with `x-msg-timestamp` (milliseconds), `x-msg-redelivered`, `x-msg-x-...`, Content-Type; one
    with an empty body
    Pass: Body, content type, custom metadata reported, empty body as an empty message and not as `no
    message`; timestamp and redelivered reported (missing: non-strict)
    Profile: both; run chunked (real, node 0.10) and with Content-Length (node 20)
    """
    expect.may_not_fire("response with a length", "what is consumed is an answer of another role")
    await ready(broker, client)
    for form in FORMS:
        use_form(broker, form)
        for body in (ALL_BYTES, b""):
            what = f"{form}: a message of {len(body)} bytes"
            broker.publish(PROJECT, QUEUE, body, content_type="image/png", headers={"x-msg-x-color": "red"})
            [before] = broker.messages(PROJECT, QUEUE)
            message = message_of(
                expect,
                await take(client),
                f"{what} is delivered",
                id=slug("{}-a-message-of-n-bytes-is-surfaced", form),
            )
            shown: dict[str, str] = message["body"]  # type: ignore[assignment]
            headers: dict[str, str] = message["headers"]  # type: ignore[assignment]
            expect.that(
                same_body(shown, body),
                f"{what}: its body is whole",
                shown,
                id=slug("{}-a-message-of-n-bytes-its-body-is-whole", form),
            )
            expect.equal(
                header(headers, "Content-Type"),
                "image/png",
                f"{what}: its content type",
                id=slug("{}-a-message-of-n-bytes-its-content-type", form),
            )
            expect.equal(
                header(headers, "x-msg-x-color"),
                "red",
                f"{what}: its custom metadata",
                id=slug("{}-a-message-of-n-bytes-its-custom-metadata", form),
            )
            seen = (message["ts"], message["redelivered"])
            expect.tolerate(
                seen == (before.timestamp, False),
                "timestamp and redelivered reported",
                seen,
                id="timestamp-and-redelivered-surfaced",
            )


@scenario("NARC-1.09", "MUST", "high", basis=["N4"], roles=HTTP, revision=2)
async def empty_queue(broker: Narconi, client: Client, expect: Expect) -> None:
    """Empty queue.

    Fault: 204
    Pass: Result 'no message', not an error
    """
    await ready(broker, client)
    value = expect.ok(await take(client), "204 is no error", id="n-is-no-error")
    expect.that(
        received(broker, "HttpConsume"),
        "the queue is asked for a message",
        "no request came",
        id="the-queue-is-asked-for-a-message",
    )
    expect.equal(value["message"], None, "204 means: no message", id="n-means-no-message")


@scenario("NARC-1.10", "MUST", "high", basis=["N4"], roles=HTTP)
async def binary_body_and_charset(broker: Narconi, client: Client, expect: Expect) -> None:
    """Binary body and charset.

    Fault: All 256 byte values, type text/plain; charset=utf-8
    Pass: Byte-identical
    Seen: stream-dotnet-client#217
    """
    await ready(broker, client)
    broker.publish(PROJECT, QUEUE, ALL_BYTES, content_type="text/plain; charset=utf-8")
    message = message_of(expect, await take(client), "the message is delivered", id="the-message-is-surfaced")
    shown: dict[str, str] = message["body"]  # type: ignore[assignment]
    expect.that(
        same_body(shown, ALL_BYTES),
        "the body is byte-identical, whatever its charset",
        shown,
        id="the-body-is-byte-identical-whatever-its-charset",
    )


@scenario("NARC-1.11", "SHOULD", "medium", basis=["N18"], roles=HTTP)
async def redelivered_as_text(broker: Narconi, client: Client, expect: Expect) -> None:
    """redelivered as text.

    Fault: "true"/"false" in the header
    Pass: Boolean true/false (not truthy string "false")
    """
    await ready(broker, client)
    for flag in (True, False):
        broker.publish(PROJECT, QUEUE, b"hello", redelivered=flag)
        message = message_of(
            expect, await take(client), "the message is delivered", id="the-message-is-surfaced"
        )
        expect.equal(message["redelivered"], flag, "redelivered is a boolean", id="redelivered-is-a-boolean")


@scenario("NARC-1.12", "SHOULD", "medium", basis=["N4"], roles=HTTP)
async def header_case(broker: Narconi, client: Client, expect: Expect) -> None:
    """Header case.

    Fault: X-Msg-X-Name1
    Pass: Matched case-insensitively
    """
    await ready(broker, client)
    broker.publish(PROJECT, QUEUE, b"hello", headers={"X-Msg-X-Name1": "value"})
    message = message_of(expect, await take(client), "the message is delivered", id="the-message-is-surfaced")
    headers: dict[str, str] = message["headers"]  # type: ignore[assignment]
    expect.equal(
        header(headers, "x-msg-x-name1"),
        "value",
        "X-Msg-X-Name1 is custom metadata, too",
        id="x-msg-x-name1-is-custom-metadata-too",
    )


@scenario("NARC-1.16", "SHOULD", "medium", basis=["N19"], roles=ADMIN)
async def names_needing_escape(broker: Narconi, client: Client, expect: Expect) -> None:
    """Names needing escape.

    Fault: Queue names `a/b`, `a%b`, `a b`, `ü`; project `a_b`; the legal queue `a.b-c:d_e`
    Pass: Illegal ones: `invalid` locally, or percent-encoded in one path segment and `refused` code 409; no
    request to another path. The legal one works, plain or encoded
    Profile: both; the fake accepts projects [a-zA-Z0-9]+ and queues [a-zA-Z0-9.:_-]+ and answers 409 `Invalid
    queue name.` / `Invalid project ID.` to others
    Seen: stream-js-client#246
    """
    await client.connected(project=PROJECT)
    await client.connected("s2", project="a_b")
    for session, project, queue in [
        *(("s1", PROJECT, name) for name in ("a/b", "a%b", "a b", "ü", "a?b", "a#b")),
        ("s2", "a_b", QUEUE),
    ]:
        mark = broker.journal.last_seq
        what = f"project {project!r}, queue {queue!r}"
        result = await ensure(client, queue, session)
        for target in [request.target for request in asked(broker, mark)]:
            names = [unquote(part) for part in target.split("/")]
            expect.that(
                names == ["", "v2", project, "queues", queue],
                f"{what}: one segment of the path",
                target,
                id=slug("project-{}-queue-{}-one-segment-of-the-path", f"{project!r}", f"{queue!r}"),
            )
        refused(
            expect,
            result,
            409,
            f"{what} is refused",
            kinds=("refused", "invalid"),
            id=slug("project-{}-queue-{}-is-refused", f"{project!r}", f"{queue!r}"),
        )
    expect.ok(
        await ensure(client, "a.b-c:d_e"),
        "the legal name a.b-c:d_e works",
        id="the-legal-name-a-b-c-d-e-works",
    )
    asked_for = [r.project for r in requests(broker, "EnsureQueue") if r.queue == "a.b-c:d_e"]
    expect.equal(asked_for, [PROJECT], "the legal name a.b-c:d_e works", id="the-legal-name-a-b-c-d-e-works")
