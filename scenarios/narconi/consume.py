"""NARC-3 WebSocket consume: deliveries, encodings, what the server sends besides."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any
from urllib.parse import parse_qs, unquote

from conformance.adapter.messages import Message
from conformance.suite import Client, Expect, scenario
from fakebrokers import Narconi
from fakebrokers.faults import drop, fault, rewrite
from fakebrokers.journal import Tap
from fakebrokers.narconi.faults import SplitDelivery, cut_between_frames
from fakebrokers.narconi.frames import WsClose, WsDeliver, WsError, WsFrame, WsPing
from fakebrokers.session import HangUp
from scenarios.narconi._steps import (
    ALL_BYTES,
    CONSUMER,
    PROJECT,
    QUEUE,
    acks,
    bodies_are,
    header,
    malformed,
    newest,
    ready,
    received,
    requests,
    settle,
    upgrade_refused,
)


async def surfaced(client: Client, expect: Expect, count: int, sub: str = "c1") -> list[Message]:
    """The messages as soon as there are `count`; fewer count as a failed preparation of what follows."""
    found = await client.wait_messages(count, sub)
    expect.that(len(found) == count, f"{count} messages are surfaced", f"{len(found)} are")
    return found


def query_of(broker: Narconi) -> dict[str, list[str]]:
    """The parameters of the newest upgrade."""
    return parse_qs(requests(broker, "WsUpgrade")[-1].target.partition("?")[2], keep_blank_values=True)


@scenario("NARC-3.01", roles=CONSUMER)
async def consume_with_ack(broker: Narconi, client: Client, expect: Expect) -> None:
    await ready(broker, client)
    result = await client.subscribe(QUEUE, ack=True, limit=2)
    upgrades = requests(broker, "WsUpgrade")
    expect.that(upgrades, "an upgrade is asked for", str(result))
    path = unquote(upgrades[-1].target.partition("?")[0])
    expect.equal(path, f"/v2/{PROJECT}/queues/{QUEUE}/messages", "the path ends in /messages")
    protocols = [v for name, v in upgrades[-1].headers if name.lower() == "sec-websocket-protocol"]
    expect.equal(protocols, ["consume"], "the sub-protocol is exactly consume")
    query = query_of(broker)
    expect.that("ack" in query and query.get("limit") == ["2"], "the query has ack and limit=2", query)
    expect.ok(result, "subscribe ends well")
    for body in (b"1", b"2"):
        broker.put(PROJECT, QUEUE, body)
    messages = await surfaced(client, expect, 2)
    bodies_are(expect, messages, [b"1", b"2"], "both messages are surfaced")
    expect.equal([m.position for m in messages], ["1", "2"], "with their ackId as position")
    await asyncio.sleep(0.2)
    expect.that(not acks(broker), "no ack frame before the settle", acks(broker))
    for message in messages:
        expect.ok(await settle(client, message), "settle ends well")
    await expect.wire(
        broker, "each settle sends its ack", kind="WsAck", tap=Tap.RECEIVED, count=2, within_s=2
    )


@scenario("NARC-3.02", roles=CONSUMER, variants=("real",))
@scenario("NARC-3.02", roles=CONSUMER, variants=("seed",), server={"profile": "seed"})
async def two_frames(broker: Narconi, client: Client, expect: Expect) -> None:
    await ready(broker, client)
    if broker.profile == "seed":
        broker.faults.add(rewrite(fields={"text": True}, kind="WsDeliver", every=3))
    broker.faults.add(fault(SplitDelivery(gap_s=0.02, pings=2), kind="WsDeliver", direction="out", every=10))
    bodies = [b"message %d" % n for n in range(100)]
    for number, body in enumerate(bodies):
        broker.put(PROJECT, QUEUE, body, headers={"x-msg-x-n": str(number)})
    await client.subscribed(QUEUE)
    messages = await client.wait_messages(100, within_s=8.0)
    bodies_are(expect, messages, bodies, "each body is surfaced once, in order")
    numbers = [header(message.headers, "x-msg-x-n") for message in messages]
    expect.equal(numbers, [str(n) for n in range(100)], "each body with its own metadata")


@scenario("NARC-3.03", roles=CONSUMER)
async def encoding(broker: Narconi, client: Client, expect: Expect) -> None:
    await client.connected(project=PROJECT)
    for name, first in (("base64", ALL_BYTES), ("hex", ALL_BYTES), ("utf8", "grüße 😀".encode())):
        broker.ensure(PROJECT, name)
        expect.ok(await client.subscribe(name, name, encoding=name), f"{name}: subscribe ends well")
        expect.equal(query_of(broker).get("encoding"), [name], f"{name}: encoding is in the query")
        for body in (first, b"second"):
            broker.put(PROJECT, name, body)
        messages = await client.wait_messages(2, name)
        bodies_are(expect, messages, [first, b"second"], f"{name}: both bodies are the original bytes")


@scenario("NARC-3.04", roles=CONSUMER)
async def empty_payload(broker: Narconi, client: Client, expect: Expect) -> None:
    await ready(broker, client)
    await client.subscribed(QUEUE)
    for body in (b"", b"second"):
        broker.put(PROJECT, QUEUE, body)
    messages = await client.wait_messages(2)
    bodies_are(expect, messages, [b"", b"second"], "an empty payload is surfaced as an empty body")


@scenario("NARC-3.05", roles=CONSUMER)
async def payload_delayed(broker: Narconi, client: Client, expect: Expect) -> None:
    await ready(broker, client)
    await client.subscribed(QUEUE)
    broker.faults.add(fault(SplitDelivery(gap_s=3.0, pings=2), kind="WsDeliver", direction="out"))
    broker.put(PROJECT, QUEUE, b"late")
    messages = await client.wait_messages(1, within_s=5.0)
    bodies_are(expect, messages, [b"late"], "one message: its payload is waited for")


@scenario("NARC-3.06", roles=CONSUMER)
async def lost_between_frames(broker: Narconi, client: Client, expect: Expect) -> None:
    await ready(broker, client)
    await client.subscribed(QUEUE, ack=True)
    broker.faults.add(cut_between_frames("rst", nth=1, scope="run"))
    broker.put(PROJECT, QUEUE, b"torn")
    await expect.reached(broker, "the connection was not cut", kind="rst")
    await asyncio.sleep(0.5)
    first_hand = [message for message in client.messages() if message.redelivered is not True]
    expect.that(not first_hand, "metadata without payload is not surfaced", first_hand[:1])
    expect.that(not acks(broker), "it is not acknowledged", acks(broker))


@scenario("NARC-3.12", roles=CONSUMER)
async def server_overruns_limit(broker: Narconi, client: Client, expect: Expect) -> None:
    await ready(broker, client)
    await client.subscribed(QUEUE, ack=True, limit=2)
    broker.faults.add(drop(kind="WsAck", direction="in"))
    for number in range(1, 6):
        broker.say(newest(broker), WsDeliver(b"%d" % number, ack_id=str(number)))
    messages = await client.wait_messages(5, within_s=2.0)
    if len(messages) < 5:
        told = await client.event("error", 1.0)
        fits = told is not None and told.error.kind.value == "protocol"
        expect.that(fits, "all 5 are surfaced, or a protocol error is reported", f"{len(messages)} are")
        return
    for message in messages:
        expect.ok(await settle(client, message), "each is settled")
    await asyncio.sleep(0.2)
    ids = [ack.key for ack in acks(broker)]
    expect.equal(ids, ["1", "2", "3", "4", "5"], "all 5 are acknowledged once")


@scenario("NARC-3.14", roles=CONSUMER, variants=("real",))
@scenario("NARC-3.14", roles=CONSUMER, variants=("seed",), server={"profile": "seed"})
async def error_from_server(broker: Narconi, client: Client, expect: Expect) -> None:
    texts = ["AMQP channel unexpectedly closed. Details: Channel closed by server", "queue deleted"]
    if broker.profile == "seed":
        texts = ["Unrecognized acknowledgment ID"]
    await client.connected(project=PROJECT)
    for number, text in enumerate(texts):
        sub = queue = f"queue{number}"
        broker.ensure(PROJECT, queue)
        await client.subscribed(queue, sub, ack=True)
        connection, mark = newest(broker), len(client.events)
        broker.put(PROJECT, queue, b"hello")
        [message] = await surfaced(client, expect, 1, sub)
        if text == "queue deleted":
            text = "Unable to send message to client."
            broker.delete(PROJECT, queue)
        else:
            broker.say(connection, WsError(text, 500))
            broker.say(connection, WsClose())
            broker.kill(connection, HangUp.FIN)
        told = await client.event("error", 2.0, mark)
        expect.that(told, f"{text}: the error is surfaced, although the close code is 1000", "no event")
        assert told is not None
        shown = (told.error.code, text in told.error.text)
        expect.equal(shown, (500, True), f"{text}: with its code and text")
        expect.equal(len(client.messages(sub)), 1, f"{text}: it is not delivered as a message")
        since = broker.journal.last_seq
        late = await settle(client, message, sub=sub)
        expect.ended(late, f"{text}: a settle afterwards ends")
        expect.that(not acks(broker, since=since), f"{text}: it sends nothing", acks(broker, since=since))


@scenario("NARC-3.16", roles=CONSUMER)
async def unknown_metadata(broker: Narconi, client: Client, expect: Expect) -> None:
    await ready(broker, client)
    await client.subscribed(QUEUE, ack=True)
    cases: list[dict[str, Any]] = [
        {"unheard-of": [1, {"a": None}]},
        {"x-msg-x-n": 5},
        {"x-msg-x-n": None},
        {"x-msg-x-n": {"k": [1]}},
        {"timestamp": None},
    ]
    broker.faults.add(rewrite(fields={"content_type": None}, kind="WsDeliver", nth=len(cases) + 1))
    for number, headers in enumerate([*cases, {}]):
        broker.put(PROJECT, QUEUE, b"%d" % number, headers=headers)
    messages = await client.wait_messages(len(cases) + 1, within_s=2.0)
    bodies = [b"%d" % number for number in range(len(cases) + 1)]
    bodies_are(expect, messages, bodies, "each message is surfaced, with its body")
    for message in messages:
        expect.ok(await settle(client, message), "each is acknowledged")
    expect.that(client.alive, "no crash")


@scenario("NARC-3.17", roles=CONSUMER)
async def ping_unanswered(broker: Narconi, client: Client, expect: Expect) -> None:
    await ready(broker, client, keepalive_s=1)
    await client.subscribed(QUEUE, ack=True)
    await asyncio.sleep(1.5)
    expect.exercised(received(broker, "WsPing"), "the client sends no pings")
    mark, before = len(client.events), client.adapter.now_ns()
    broker.kill(newest(broker), HangUp.HALF_OPEN)
    told = await client.event("session", 6.0, mark, what="connection_lost")
    seconds = (client.adapter.now_ns() - before) / 1e9
    expect.that(told, "connection_lost within 3 s of the first unanswered ping", "no event in 6 s")
    expect.within(seconds, 1.0 + 3.0 * 1.2 + 0.25, "connection_lost within 3 s of the first unanswered ping")


@scenario("NARC-3.18", roles=CONSUMER)
async def ping_from_server(broker: Narconi, client: Client, expect: Expect) -> None:
    await ready(broker, client)
    expect.prepared(await client.subscribe(QUEUE, on_message={"mode": "event", "sleep_ms": 3000}))
    broker.put(PROJECT, QUEUE, b"hello")
    await surfaced(client, expect, 1)
    for number in range(3):
        payload = b"ping %d" % number
        mark = broker.journal.last_seq
        broker.say(newest(broker), WsPing(payload))
        await expect.wire(
            broker,
            "a pong within 1 s of each ping, with its payload",
            within_s=1.0,
            since=mark,
            kind="WsPong",
            tap=Tap.RECEIVED,
            where=lambda record, payload=payload: getattr(record.frame, "payload", None) == payload,  # type: ignore[misc]
        )
        await asyncio.sleep(0.8)


async def ends_it(broker: Narconi, client: Client, expect: Expect, case: str, mark: int) -> None:
    """The client ends the newest connection and tells of it; nothing was surfaced."""
    await expect.socket_closed(
        broker, newest(broker), f"{case}: the client ends the connection", within_s=2.0
    )
    told = await client.event("session", 1.0, mark) or await client.event("error", 0.1, mark)
    expect.that(told, f"{case}: a loss or a protocol error is reported", "no event")


@scenario("NARC-3.19", roles=CONSUMER)
async def bad_frames(broker: Narconi, client: Client, expect: Expect) -> None:
    await ready(broker, client)
    for number, case in enumerate(("masked", "RSV1")):
        sub = f"c{number}"
        await client.subscribed(QUEUE, sub)
        mark, is_masked = len(client.events), case == "masked"
        for opcode, payload in ((1, b'{"redelivered":false}'), (2, b"hello")):
            if any(c["name"] == newest(broker) for c in broker.connections):
                broker.say(
                    newest(broker), WsFrame(opcode, payload, masked=is_masked, rsv=0 if is_masked else 4)
                )
        await ends_it(broker, client, expect, case, mark)
        expect.that(not client.messages(sub), f"{case}: the frame is not surfaced", client.messages(sub))


@scenario("NARC-3.20", roles=CONSUMER, process=True, alone=True, timeout_s=60)
async def oversize_message(broker: Narconi, client: Client, expect: Expect) -> None:
    await ready(broker, client)
    await client.subscribed(QUEUE)
    facts = client.facts()
    before = facts.rss_bytes or 0 if facts else 0
    body = bytes(64 << 20)
    mark = len(client.events)
    broker.put(PROJECT, QUEUE, body)
    messages = await client.wait_messages(1, within_s=20.0) if not await _ended(client, mark) else []
    facts = client.facts()
    grown = ((facts.rss_bytes or 0) if facts else 0) - before
    expect.note(f"resident memory grew by {grown >> 20} MiB")
    expect.that(client.alive, "no crash")
    if messages:
        digest = {"sha256": hashlib.sha256(body).hexdigest(), "len": len(body)}
        expect.equal(messages[0].body, digest, "delivered with equal SHA-256")
        expect.that(grown < 384 << 20, "memory grows by less than 384 MiB", f"{grown >> 20} MiB")
        return
    await ends_it(broker, client, expect, "64 MiB", mark)
    expect.that(grown < 128 << 20, "memory grows by less than 128 MiB", f"{grown >> 20} MiB")


async def _ended(client: Client, mark: int) -> bool:
    """Whether the connection is reported lost before a message comes."""
    for _ in range(400):
        if client.messages():
            return False
        if any(event.event in ("session", "error") for event in client.events[mark:]):
            return True
        await asyncio.sleep(0.05)
    return True


@scenario("NARC-3.21", roles=CONSUMER)
async def invalid_utf8(broker: Narconi, client: Client, expect: Expect) -> None:
    await ready(broker, client)
    await client.subscribed(QUEUE)
    mark, connection = len(client.events), newest(broker)
    broker.say(connection, WsFrame(1, b'{"redelivered":false,"x-msg-x-n":"\xff\xfe"}'))
    await asyncio.sleep(0.3)
    codes = [record.status for record in received(broker, "WsClose", connection=connection)]
    errors = [event for event in client.events[mark:] if event.event == "error"]
    is_protocol = any(event.error.kind.value == "protocol" for event in errors)
    held = broker.client_holds(connection)
    fits = codes == [1007] or is_protocol or (not codes and not held)
    expect.that(fits, "closed with 1007, or a protocol error", codes)
    await ends_it(broker, client, expect, "bad UTF-8", mark)


@scenario("NARC-3.24", roles=CONSUMER, alone=True, timeout_s=60)
async def flood_without_ack(broker: Narconi, client: Client, expect: Expect) -> None:
    await ready(broker, client)
    await client.subscribed(QUEUE)
    mark = broker.journal.last_seq
    for number in range(10_000):
        broker.put(PROJECT, QUEUE, b"%-100d" % number)
    messages = await client.wait_messages(10_000, within_s=30.0)
    bodies_are(expect, messages, [b"%-100d" % n for n in range(10_000)], "all surfaced once and in order")
    frames = [*received(broker, "WsAck", since=mark), *received(broker, "WsStop", since=mark)]
    expect.that(not frames and not malformed(broker), "the client sends no data frame", frames[:1])
    facts = client.facts()
    if facts is not None and facts.rss_bytes is not None:
        expect.note(f"resident memory at the end: {facts.rss_bytes >> 20} MiB")


@scenario("NARC-3.25", roles=CONSUMER)
async def limit_out_of_range(broker: Narconi, client: Client, expect: Expect) -> None:
    await ready(broker, client)
    for number, limit in enumerate((0, -1, 1.5, 70000)):
        sub = f"c{number}"
        buffered = {"mode": "buffer"}
        result = await client.subscribe(QUEUE, sub, ack=True, limit=limit, on_message=buffered)
        what = f"limit {limit}"
        if result.word == "invalid":
            continue
        if not result.ok:
            upgrade_refused(expect, result, 409, f"{what} is refused")
            continue
        expect.that(limit in (1.5, 70000), f"{what} is refused", "it is accepted")
        taken = await client.op("next", sub=sub, max=1, wait_ms=500)
        expect.ok(taken, f"{what}: next returns empty at its wait")
        expect.ended(await client.unsubscribe(sub), f"{what}: unsubscribe ends")
        expect.tolerate(False, f"{what} is refused", "it is accepted, and nothing arrives")
