"""NARC-2 WebSocket publish: the upgrade, the forms of a message, metadata."""

from __future__ import annotations

from urllib.parse import unquote

from conformance.suite import Client, Expect, scenario
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


@scenario("NARC-2.01", roles=PUBLISHER)
async def handshake(broker: Narconi, client: Client, expect: Expect) -> None:
    await ready(broker, client)
    result = await publish(client)
    upgrades = requests(broker, "WsUpgrade")
    expect.that(upgrades, "an upgrade is asked for", str(result))
    for upgrade in upgrades:
        path = unquote(upgrade.target.partition("?")[0])
        expect.equal(path, f"/v2/{PROJECT}/queues/{QUEUE}/messages", "the path ends in /messages")
        expect.equal(upgrade.header("sec-websocket-version"), "13", "version 13")
        protocols = [value for name, value in upgrade.headers if name.lower() == "sec-websocket-protocol"]
        expect.equal(protocols, ["publish"], "the sub-protocol is exactly publish")
    expect.outcome(result, "acked", "the message is acked")


@scenario("NARC-2.02", roles=PUBLISHER, revision=2)
async def subprotocol_not_confirmed(broker: Narconi, client: Client, expect: Expect) -> None:
    await ready(broker, client)
    without = WithoutHeader(header="Sec-WebSocket-Protocol")
    broker.faults.add(fault(without, kind="WsAccept", direction="out"))
    result = await publish(client, timeout=3.0)
    criterion = "the opening fails, or the session is open and its publish is acked"
    if result.ok:
        expect.outcome(result, "acked", criterion)
    else:
        expect.failed(result, ("protocol", "refused", "connection"), criterion)
    await expect.reached(broker, "no upgrade was accepted", kind="WsAccept")
    if result.ok:
        expect.equal(stored(broker), [b"hello"], f"{criterion}: the broker has the message")


@scenario("NARC-2.03", roles=PUBLISHER)
async def handshake_refused(broker: Narconi, client: Client, expect: Expect) -> None:
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
        upgrade_refused(expect, await publish(client), code or 404, f"{what} fails the opening, definite")
        count = len(received(broker, "WsUpgrade", since=mark))
        expect.that(0 < count <= 10, f"{what} is not repeated forever", count)


@scenario("NARC-2.04", roles=PUBLISHER)
async def handshake_silent(broker: Narconi, client: Client, expect: Expect) -> None:
    await ready(broker, client)
    broker.faults.add(silent(on="accept"))
    result = await publish(client, timeout=2.0)
    expect.failed(result, ("timeout",), "the opening fails as a timeout")
    limit = client.deadline_s("publish", 2.0)
    expect.within(result.elapsed_ms / 1000, limit_s(limit), "at its deadline")


@scenario("NARC-2.05", roles=PUBLISHER)
async def two_message_form(broker: Narconi, client: Client, expect: Expect) -> None:
    await ready(broker, client)
    result = await publish(client, ALL_BYTES, content_type="image/png", color="red")
    came = published(broker)
    expect.that(not malformed(broker), "nothing without meaning is sent", malformed(broker)[:1])
    forms = [(frame.form, frame.payload == ALL_BYTES) for frame in came]
    expect.equal(forms, [("pair", True)], "one text message with an object, then one with the body")
    message = the_message(broker, expect)
    kept = (message.content_type, message.headers)
    expect.equal(kept, ("image/png", {"x-msg-x-color": "red"}), "the metadata arrives")
    expect.outcome(result, "acked", "the message is acked")


@scenario("NARC-2.06", roles=PUBLISHER, server={"profile": "seed"})
async def no_metadata(broker: Narconi, client: Client, expect: Expect) -> None:
    await ready(broker, client)
    result = await publish(client, b"hello")
    expect.equal(stored(broker), [b"hello"], "one message is stored, with that body")
    expect.equal(len(sent(broker, "WsConfirm")), 1, "one confirm")
    expect.outcome(result, "acked", "the message is acked")


@scenario("NARC-2.07", roles=PUBLISHER)
async def single_message_form(broker: Narconi, client: Client, expect: Expect) -> None:
    await ready(broker, client)
    text = 'a "quote", a\nnewline, \\ and 😀'
    result = await publish(client, text, color="red")
    expect.that(
        not malformed(broker), "JSON with message as a string, or two messages", malformed(broker)[:1]
    )
    expect.equal(stored(broker), [text.encode()], "the stored body is equal")
    expect.equal(len(sent(broker, "WsConfirm")), 1, "one confirm")
    expect.outcome(result, "acked", "the message is acked")


@scenario("NARC-2.15", roles=PUBLISHER, needs=("concurrent",))
async def concurrent_publishes(broker: Narconi, client: Client, expect: Expect) -> None:
    await ready(broker, client)
    broker.faults.add(throttle(100_000, direction="in", role="publish"))
    bodies = [bytes([n]) + ALL_BYTES for n in range(50)]
    calls = [publish(client, body, timeout=10.0, n=str(n)) for n, body in enumerate(bodies)]
    results = [await call for call in calls]
    pairs = [
        (message.headers.get("x-msg-x-n"), message.payload[0]) for message in broker.messages(PROJECT, QUEUE)
    ]
    torn = [pair for pair in pairs if pair[0] != str(pair[1])]
    expect.that(not torn, "each stored message has the metadata that belongs to its body", torn[:3])
    expect.equal(sorted(body for _, body in pairs), list(range(50)), "50 messages are stored")
    expect.equal(len(sent(broker, "WsConfirm")), 50, "50 confirms")
    for number, result in enumerate(results):
        expect.outcome(result, "acked", f"50 are acked (message {number + 1})")


@scenario("NARC-2.18", roles=PUBLISHER)
async def text_and_binary(broker: Narconi, client: Client, expect: Expect) -> None:
    await ready(broker, client)
    text, binary = "grüße, 世界 😀", b"\xff\xfe\x00" + ALL_BYTES
    first = await publish(client, text, content_type="text/plain")
    second = await publish(client, binary, content_type="image/png")
    expect.equal(stored(broker), [text.encode(), binary], "the stored bytes are equal")
    as_text = [frame for frame in published(broker)[1:] if frame.text or frame.form == "single"]
    expect.that(not as_text, "the binary body is never in a text frame or in `message`", as_text)
    for result in (first, second):
        expect.outcome(result, "acked", "both are acked")


@scenario("NARC-2.20", roles=PUBLISHER)
async def no_metadata_real(broker: Narconi, client: Client, expect: Expect) -> None:
    await ready(broker, client)
    results = [await publish(client, body) for body in (b"first", b"second")]
    expect.that(not malformed(broker), "no empty text message in place of {}", malformed(broker)[:1])
    expect.equal(stored(broker), [b"first", b"second"], "two messages are stored")
    expect.equal(len(sent(broker, "WsConfirm")), 2, "two confirms")
    for result in results:
        expect.outcome(result, "acked", "both are acked")


@scenario("NARC-2.21", roles=PUBLISHER)
async def metadata_no_strings(broker: Narconi, client: Client, expect: Expect) -> None:
    await ready(broker, client)
    for value in (5, None, {"k": 1}):
        before = len(stored(broker))
        result = await publish(client, b"hello", n=value)
        criterion = f"x-msg-x-n: {value!r} is sent as it is, as text, or refused locally"
        if not result.ok:
            expect.failed(result, ("invalid",), criterion)
            continue
        message = the_message(broker, expect, before)
        there = message.headers.get("x-msg-x-n")
        same = "x-msg-x-n" in message.headers and there == value
        expect.that(same or isinstance(there, str), criterion, message.headers)
    result = await publish(client, b"hello", content_type=5)
    criterion = "Content-Type: 5 is text on the wire, or refused locally"
    fatal = [bad for bad in malformed(broker) if bad.code == "crash"]
    expect.that(not fatal, criterion, "a number there ends the real server for everybody")
    if not result.ok:
        expect.failed(result, ("invalid",), criterion)


@scenario("NARC-2.24", roles=PUBLISHER, server={"profile": "0.2.0-pre"})
async def confirms_on_request(broker: Narconi, client: Client, expect: Expect) -> None:
    await ready(broker, client)
    result = await publish(client, b"hello", timeout=1.5)
    upgrades = requests(broker, "WsUpgrade")
    expect.exercised(upgrades, "no WebSocket was opened")
    if "ack" in upgrades[0].target.partition("?")[2]:
        expect.outcome(result, "acked", "with `ack` in the URL the publish is acked")
    elif not result.ok:
        expect.failed(result, ("timeout",), "without it the publish ends at its deadline, or ok")
        limit = client.deadline_s("publish", 1.5)
        expect.within(result.elapsed_ms / 1000, limit_s(limit), "at its deadline")
    expect.ok(await client.close(), "close works")


@scenario("NARC-2.25", roles=PUBLISHER, variants=("",), revision=2)
@scenario("NARC-2.25", roles=PUBLISHER, variants=("seed",), server={"profile": "seed"}, revision=2)
async def discovery(broker: Narconi, client: Client, expect: Expect) -> None:
    await ready(broker, client)
    criterion = "the client goes on, whatever OPTIONS says"
    expect.outcome(await publish(client), "acked", criterion)
    expect.equal(stored(broker), [b"hello"], f"{criterion}: its message is stored")


@scenario("NARC-2.26", roles=(*PUBLISHER, *HTTP))
async def custom_names(broker: Narconi, client: Client, expect: Expect) -> None:
    await ready(broker, client)
    for way in ("publish", "post"):
        before = len(stored(broker))
        result = await (publish(client, a="1") if way == "publish" else post(client, a="1"))
        expect.outcome(result, "acked", f"{way}: x-msg-x-a is taken")
        message = the_message(broker, expect, before)
        expect.equal(message.headers, {"x-msg-x-a": "1"}, f"{way}: x-msg-x-a arrives")
        mark = len(client.events)
        op = "publish" if way == "publish" else "narc.post"
        body = {"text": "hello"}
        result = await client.op(op, session="s1", target=QUEUE, body=body, headers={"b": "2"}, wait=True)
        criterion = f"{way}: a name without prefix is refused locally, gets it, or an event tells"
        if not result.ok:
            expect.failed(result, ("invalid",), criterion)
            continue
        kept = the_message(broker, expect, before + 1).headers
        told = any(event.event == "error" for event in client.events[mark:])
        expect.that(told or "2" in kept.values(), criterion, "it is silently lost")
