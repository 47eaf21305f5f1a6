"""NARC-2 WebSocket publish: the upgrade, the forms of a message, metadata."""

from __future__ import annotations

from urllib.parse import unquote

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import Narconi
from fakebrokers.faults import effects, fault, silent, throttle
from fakebrokers.narconi.faults import HttpAnswer, WithoutHeader
from scenarios._common import limit_s, received, sent
from scenarios.narconi._steps import (
    ALL_BYTES,
    HTTP,
    PROJECT,
    PUBLISHER,
    QUEUE,
    malformed,
    post,
    publish,
    published,
    ready,
    requests,
    stored,
    the_message,
    upgrade_refused,
)


@scenario("NARC-2.01", "MUST", "high", basis=["N5", "N19"], roles=PUBLISHER)
async def handshake(broker: Narconi, client: Client, expect: Expect) -> None:
    """Handshake.

    Fault: None
    Pass: GET .../queues/{queue}/messages, version 13, Sec-WebSocket-Protocol exactly `publish` (lower case,
    no list: the real server refuses both with 400). The path without `/messages` works in `seed` only:
    non-strict there, refused with 405 in `real`
    Profile: both
    """
    await ready(broker, client)
    result = await publish(client)
    upgrades = requests(broker, "WsUpgrade")
    expect.that(upgrades, "an upgrade is asked for", str(result), id="an-upgrade-is-asked-for")
    for upgrade in upgrades:
        path = unquote(upgrade.target.partition("?")[0])
        expect.equal(
            path,
            f"/v2/{PROJECT}/queues/{QUEUE}/messages",
            "the path ends in /messages",
            id="the-path-ends-in-messages",
        )
        expect.equal(upgrade.header("sec-websocket-version"), "13", "version 13", id="version-n")
        protocols = [value for name, value in upgrade.headers if name.lower() == "sec-websocket-protocol"]
        expect.equal(
            protocols,
            ["publish"],
            "the sub-protocol is exactly publish",
            id="the-sub-protocol-is-exactly-publish",
        )
    expect.outcome(result, "acked", "the message is acked", id="the-message-is-acked")


@scenario("NARC-2.02", "SHOULD", "medium", basis=["N5"], roles=PUBLISHER, revision=2)
async def subprotocol_not_confirmed(broker: Narconi, client: Client, expect: Expect) -> None:
    """Sub-protocol not confirmed.

    Fault: 101 without the protocol header
    Pass: Opening fails (`protocol`, `refused` or `connection`), or the session is open and a publish ends
    `acked`; one of the two within the deadline
    Profile: both (fault; the real server always confirms)
    Seen: measured: ws 8.23 and undici refuse, websockets 17 and aiohttp 3.14 go on
    """
    await ready(broker, client)
    without = WithoutHeader(header="Sec-WebSocket-Protocol")
    broker.faults.add(fault(without, kind="WsAccept", direction="out"))
    result = await publish(client, timeout=3.0)
    criterion = "the opening fails, or the session is open and its publish is acked"
    if result.ok:
        expect.outcome(
            result, "acked", criterion, id="the-opening-fails-or-the-session-is-open-and-its-publish-is"
        )
    else:
        expect.failed(
            result,
            ("protocol", "refused", "connection"),
            criterion,
            id="the-opening-fails-or-the-session-is-open-and-its-publish-is",
        )
    await expect.reached(broker, "no upgrade was accepted", kind="WsAccept", id="no-upgrade-was-accepted")
    if result.ok:
        expect.equal(
            stored(broker),
            [b"hello"],
            f"{criterion}: the broker has the message",
            id="the-opening-fails-or-the-session-is-open-and-its-publish-is",
        )


@scenario("NARC-2.03", "MUST", "high", basis=["N5", "N16"], roles=PUBLISHER)
async def handshake_refused(broker: Narconi, client: Client, expect: Expect) -> None:
    """Handshake refused.

    Fault: 404 (no queue), 400, 409 (name or limit), 405, 500 (broker down) instead of 101; once with a JSON
    body and a length
    Pass: Opening fails `refused` with the code, definite. Without a code (`connection`; browser-like APIs
    hide it): non-strict. No endless repeat on 404
    Profile: both; form of the real server: status line `HTTP/1.1 <code> Connection Not Upgraded`, headers
    Connection: close and Date, no length, no body, TCP closed
    """
    await ready(broker, client)
    with_body = HttpAnswer(
        status=404, body='{"message":"Queue does not exist"}', content_type="application/json", close=True
    )
    for code in (404, 400, 409, 405, 500, 0):
        broker.faults.clear()
        mark = broker.journal.last_seq
        if code:
            refusal = (effects.Reply(code=code), effects.Fin())
            broker.faults.add(fault(*refusal, kind="WsUpgrade", direction="in"))
        else:
            broker.faults.add(fault(with_body, kind="WsUpgrade", direction="in"))
        what = f"a refusal with {code}" if code else "a refusal with 404, a body and a length"
        upgrade_refused(
            expect,
            await publish(client),
            code or 404,
            f"{what} fails the opening, definite",
            id=slug("{}-fails-the-opening-definite", what),
        )
        count = len(received(broker, "WsUpgrade", since=mark))
        expect.that(
            0 < count <= 10,
            f"{what} is not repeated forever",
            count,
            id=slug("{}-is-not-repeated-forever", what),
        )


@scenario("NARC-2.04", "MUST", "critical", basis=["N5"], roles=PUBLISHER)
async def handshake_silent(broker: Narconi, client: Client, expect: Expect) -> None:
    """Handshake silent.

    Fault: Accept, nothing
    Pass: open fails `timeout`
    Seen: nv-websocket-client#64; autobahn-python#50
    """
    await ready(broker, client)
    broker.faults.add(silent(on="accept"))
    result = await publish(client, timeout=2.0)
    expect.failed(result, ("timeout",), "the opening fails as a timeout", id="the-opening-fails-as-a-timeout")
    limit = client.deadline_s("publish", 2.0)
    expect.within(result.elapsed_ms / 1000, limit_s(limit), "at its deadline", id="at-its-deadline")


@scenario("NARC-2.05", "MUST", "critical", basis=["N5"], roles=PUBLISHER)
async def two_message_form(broker: Narconi, client: Client, expect: Expect) -> None:
    """Two-message form.

    Fault: Publish with metadata and a binary body (all 256 byte values)
    Pass: One text message with a JSON object, then one message with exactly the body; no other data message
    between (control frames and fragments are allowed). Metadata in a binary frame = fail: the real server
    stores it as a message of its own
    Profile: both
    """
    await ready(broker, client)
    result = await publish(client, ALL_BYTES, content_type="image/png", color="red")
    came = published(broker)
    expect.that(
        not malformed(broker),
        "nothing without meaning is sent",
        malformed(broker)[:1],
        id="nothing-without-meaning-is-sent",
    )
    forms = [(frame.form, frame.payload == ALL_BYTES) for frame in came]
    expect.equal(
        forms,
        [("pair", True)],
        "one text message with an object, then one with the body",
        id="one-text-message-with-an-object-then-one-with-the-body",
    )
    message = the_message(broker, expect)
    kept = (message.content_type, message.headers)
    expect.equal(
        kept, ("image/png", {"x-msg-x-color": "red"}), "the metadata arrives", id="the-metadata-arrives"
    )
    expect.outcome(result, "acked", "the message is acked", id="the-message-is-acked")


@scenario("NARC-2.06", "MUST", "high", basis=["N5"], roles=PUBLISHER, server={"profile": "seed"})
async def no_metadata(broker: Narconi, client: Client, expect: Expect) -> None:
    """No metadata.

    Fault: Publish a non-empty body without metadata
    Pass: `{}` or an empty message before the payload, or the single-message form; one message stored with
    that body, one confirm, `acked`
    Profile: `seed` (the real server's rule is NARC-2.20)
    Seen: narconi source rejects the empty form
    """
    await ready(broker, client)
    result = await publish(client, b"hello")
    expect.equal(
        stored(broker),
        [b"hello"],
        "one message is stored, with that body",
        id="one-message-is-stored-with-that-body",
    )
    expect.equal(len(sent(broker, "WsConfirm")), 1, "one confirm", id="one-confirm")
    expect.outcome(result, "acked", "the message is acked", id="the-message-is-acked")


@scenario("NARC-2.07", "MAY", "medium", basis=["N6"], roles=PUBLISHER)
async def single_message_form(broker: Narconi, client: Client, expect: Expect) -> None:
    """Single-message form.

    Fault: Publish non-empty text with metadata
    Pass: Either the two-message form, or JSON with `message` as a string and no second message; stored body
    equal (text with quotes, newline, characters outside the BMP); one confirm
    Profile: both
    """
    await ready(broker, client)
    text = 'a "quote", a\nnewline, \\ and 😀'
    result = await publish(client, text, color="red")
    expect.that(
        not malformed(broker),
        "JSON with message as a string, or two messages",
        malformed(broker)[:1],
        id="json-with-message-as-a-string-or-two-messages",
    )
    expect.equal(stored(broker), [text.encode()], "the stored body is equal", id="the-stored-body-is-equal")
    expect.equal(len(sent(broker, "WsConfirm")), 1, "one confirm", id="one-confirm")
    expect.outcome(result, "acked", "the message is acked", id="the-message-is-acked")


@scenario("NARC-2.15", "MUST", "critical", basis=["N5", "N7"], roles=PUBLISHER, needs=("concurrent",))
async def concurrent_publishes(broker: Narconi, client: Client, expect: Expect) -> None:
    """Concurrent publishes keep pairs together.

    Fault: 50 publishes at once, each with own metadata (`x-msg-x-n`) and own binary body; the fake reads
    slowly
    Pass: Each stored message has the metadata that belongs to its body; 50 confirms, 50 `acked`
    Profile: both. Clients with `concurrent: false` are skipped
    Seen: aioamqp#205; deno-amqp#38
    """
    await ready(broker, client)
    broker.faults.add(throttle(100_000, direction="in", role="publish"))
    bodies = [bytes([n]) + ALL_BYTES for n in range(50)]
    calls = [publish(client, body, timeout=10.0, n=str(n)) for n, body in enumerate(bodies)]
    results = [await call for call in calls]
    pairs = [
        (message.headers.get("x-msg-x-n"), message.payload[0]) for message in broker.messages(PROJECT, QUEUE)
    ]
    torn = [pair for pair in pairs if pair[0] != str(pair[1])]
    expect.that(
        not torn,
        "each stored message has the metadata that belongs to its body",
        torn[:3],
        id="each-stored-message-has-the-metadata-that-belongs-to-its",
    )
    expect.equal(
        sorted(body for _, body in pairs),
        list(range(50)),
        "50 messages are stored",
        id="n-messages-are-stored",
    )
    expect.equal(len(sent(broker, "WsConfirm")), 50, "50 confirms", id="n-confirms")
    for number, result in enumerate(results):
        expect.outcome(result, "acked", f"50 are acked (message {number + 1})", id="n-are-acked-message-n")


@scenario("NARC-2.18", "MUST", "high", basis=["N5"], roles=PUBLISHER)
async def text_and_binary(broker: Narconi, client: Client, expect: Expect) -> None:
    """Text payload stays text, binary stays binary.

    Fault: Text body with non-ASCII characters; binary body that is not UTF-8
    Pass: Stored bytes equal in both cases; the binary body never in a text frame or in `message`. Text in a
    binary frame is allowed
    Profile: both
    """
    await ready(broker, client)
    text, binary = "grüße, 世界 😀", b"\xff\xfe\x00" + ALL_BYTES
    first = await publish(client, text, content_type="text/plain")
    second = await publish(client, binary, content_type="image/png")
    expect.equal(
        stored(broker), [text.encode(), binary], "the stored bytes are equal", id="the-stored-bytes-are-equal"
    )
    as_text = [frame for frame in published(broker)[1:] if frame.text or frame.form == "single"]
    expect.that(
        not as_text,
        "the binary body is never in a text frame or in `message`",
        as_text,
        id="the-binary-body-is-never-in-a-text-frame-or-in-message",
    )
    for result in (first, second):
        expect.outcome(result, "acked", "both are acked", id="both-are-acked")


@scenario("NARC-2.20", "SHOULD", "high", basis=["N5"], roles=PUBLISHER)
async def no_metadata_real(broker: Narconi, client: Client, expect: Expect) -> None:
    """No metadata against the real server.

    Fault: Publish a non-empty body without metadata, twice
    Pass: `{}` before the payload, or one binary frame alone, or the single-message form: two messages stored,
    two confirms, both `acked`. An empty text frame gets {"error":"Payload must be binary or a JSON
    object.","code":400} and a close: fail. An empty binary frame counts as a message of its own (4 confirms):
    fail
    Profile: `real`
    """
    await ready(broker, client)
    results = [await publish(client, body) for body in (b"first", b"second")]
    expect.that(
        not malformed(broker),
        "no empty text message in place of {}",
        malformed(broker)[:1],
        id="no-empty-text-message-in-place-of",
    )
    expect.equal(
        stored(broker), [b"first", b"second"], "two messages are stored", id="two-messages-are-stored"
    )
    expect.equal(len(sent(broker, "WsConfirm")), 2, "two confirms", id="two-confirms")
    for result in results:
        expect.outcome(result, "acked", "both are acked", id="both-are-acked")


@scenario("NARC-2.21", "SHOULD", "high", basis=["N5"], roles=PUBLISHER)
async def metadata_no_strings(broker: Narconi, client: Client, expect: Expect) -> None:
    """Metadata values that are not strings.

    Fault: publish with headers `x-msg-x-n`: 5, null, {"k": 1}; then with Content-Type: 5; then with "5"
    Pass: x- values: sent as they are, as text, or `invalid` locally. Content-Type: text on the wire or
    `invalid`; a number there ends the real server for every client (the fake ends this connection): fail.
    Text: acked
    Profile: both
    """
    await ready(broker, client)
    for value in (5, None, {"k": 1}):
        before = len(stored(broker))
        result = await publish(client, b"hello", n=value)
        criterion = f"x-msg-x-n: {value!r} is sent as it is, as text, or refused locally"
        if not result.ok:
            expect.failed(
                result,
                ("invalid",),
                criterion,
                id=slug("x-msg-x-n-{}-is-sent-as-it-is-as-text-or-refused-locally", f"{value!r}"),
            )
            continue
        message = the_message(broker, expect, before)
        there = message.headers.get("x-msg-x-n")
        same = "x-msg-x-n" in message.headers and there == value
        expect.that(
            same or isinstance(there, str),
            criterion,
            message.headers,
            id=slug("x-msg-x-n-{}-is-sent-as-it-is-as-text-or-refused-locally", f"{value!r}"),
        )
    result = await publish(client, b"hello", content_type=5)
    criterion = "Content-Type: 5 is text on the wire, or refused locally"
    fatal = [bad for bad in malformed(broker) if bad.code == "crash"]
    expect.that(
        not fatal,
        criterion,
        "a number there ends the real server for everybody",
        id="content-type-n-is-text-on-the-wire-or-refused-locally",
    )
    if not result.ok:
        expect.failed(
            result, ("invalid",), criterion, id="content-type-n-is-text-on-the-wire-or-refused-locally"
        )
    criterion = "metadata that is text is sent: the message is acked"
    expect.outcome(await publish(client, b"hello", n="5"), "acked", criterion, id="metadata-of-text-is-acked")


@scenario("NARC-2.24", "MAY", "medium", basis=["N7"], roles=PUBLISHER, server={"profile": "0.2.0-pre"})
async def confirms_on_request(broker: Narconi, client: Client, expect: Expect) -> None:
    """Server that confirms on request only.

    Fault: Confirms only if the upgrade URL has `ack`; errors always
    Pass: URL with `ack`: publishes end `acked`. Without: each publish ends at its deadline `timeout`, or `ok`
    if the client does not promise a confirm; no hang; close works
    Profile: `real`, version switch 0.2.0-pre
    """
    await ready(broker, client)
    result = await publish(client, b"hello", timeout=1.5)
    upgrades = requests(broker, "WsUpgrade")
    expect.exercised(upgrades, "no WebSocket was opened", id="no-websocket-was-opened")
    if "ack" in upgrades[0].target.partition("?")[2]:
        expect.outcome(
            result,
            "acked",
            "with `ack` in the URL the publish is acked",
            id="with-ack-in-the-url-the-publish-is-acked",
        )
    elif not result.ok:
        expect.failed(
            result,
            ("timeout",),
            "without it the publish ends at its deadline, or ok",
            id="without-it-the-publish-ends-at-its-deadline-or-ok",
        )
        limit = client.deadline_s("publish", 1.5)
        expect.within(result.elapsed_ms / 1000, limit_s(limit), "at its deadline", id="at-its-deadline")
    expect.ok(await client.close(), "close works", id="close-works")


@scenario("NARC-2.25", "SHOULD", "low", basis=["N19"], roles=PUBLISHER, variants=("",), revision=2)
@scenario("NARC-2.25", roles=PUBLISHER, variants=("seed",), server={"profile": "seed"}, revision=2)
async def discovery(broker: Narconi, client: Client, expect: Expect) -> None:
    """Discovery by OPTIONS.

    Fault: As above
    Pass: Client that asks: goes on with the queue's own URL after 405/404, uses Location after 200. Client
    that never asks: pass
    Profile: `real`: 405; `seed`: 405, 404, or 200 with Location (the seed calls it not implemented)
    """
    await ready(broker, client)
    criterion = "the client goes on, whatever OPTIONS says"
    expect.outcome(await publish(client), "acked", criterion, id="the-client-goes-on-whatever-options-says")
    expect.equal(
        stored(broker),
        [b"hello"],
        f"{criterion}: its message is stored",
        id="the-client-goes-on-whatever-options-says-its-message-is",
    )


def _goes_as_it_is(broker: Narconi, way: str) -> bool:
    """Whether the name without prefix is in the last message that came."""
    if way == "publish":
        return "b" in published(broker)[-1].metadata
    return requests(broker, "HttpPublish")[-1].header("b") is not None


@scenario("NARC-2.26", "SHOULD", "medium", basis=["N3", "N5"], roles=(*PUBLISHER, *HTTP), revision=2)
async def custom_names(broker: Narconi, client: Client, expect: Expect) -> None:
    """Custom names carry the prefix.

    Fault: publish (WebSocket) and post (HTTP) with metadata `x-msg-x-a` and with `b`, a name without prefix
    Pass: `x-msg-x-a` arrives on both ways; `b` is refused locally, or gets the prefix, or is documented as
    dropped by an error event. Sent as it is, so that the server drops it: non-strict. Dropped by the client:
    fail
    Profile: both
    """
    await ready(broker, client)
    for way in ("publish", "post"):
        before = len(stored(broker))
        result = await (publish(client, a="1") if way == "publish" else post(client, a="1"))
        expect.outcome(result, "acked", f"{way}: x-msg-x-a is taken", id=slug("{}-x-msg-x-a-is-taken", way))
        message = the_message(broker, expect, before)
        expect.equal(
            message.headers,
            {"x-msg-x-a": "1"},
            f"{way}: x-msg-x-a arrives",
            id=slug("{}-x-msg-x-a-arrives", way),
        )
        mark = len(client.events)
        op = "publish" if way == "publish" else "narc.post"
        body = {"text": "hello"}
        more = {"wait": True} if op == "publish" else {}
        result = await client.op(op, session="s1", target=QUEUE, body=body, headers={"b": "2"}, **more)
        criterion = f"{way}: a name without prefix is refused locally, gets it, or an event tells"
        if not result.ok:
            expect.failed(
                result,
                ("invalid",),
                criterion,
                id=slug("{}-a-name-without-prefix-is-refused-locally-gets-it-or-an-event-tells", way),
            )
            continue
        kept = the_message(broker, expect, before + 1).headers
        reported = any(event.event == "error" for event in client.events[mark:])
        demand = expect.tolerate if _goes_as_it_is(broker, way) else expect.that
        demand(
            reported or "2" in kept.values(),
            criterion,
            "it is silently lost",
            id=slug("{}-a-name-without-prefix-is-refused-locally-gets-it-or-an-event-tells", way),
        )
