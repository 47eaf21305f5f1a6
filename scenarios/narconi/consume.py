"""NARC-3 WebSocket consume: deliveries, encodings, what the server sends besides."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import parse_qs, unquote

from conformance.clients.adapter.messages import Message
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import Inconclusive, slug
from fakebrokers import Narconi
from fakebrokers.core.session import HangUp
from fakebrokers.faults import drop, fault, rewrite
from fakebrokers.journal import Tap
from fakebrokers.narconi.faults import SplitDelivery, cut_between_frames
from fakebrokers.narconi.frames import WsClose, WsDeliver, WsError
from scenarios._common import LOSSES, sent, until
from scenarios.narconi._steps import (
    ALL_BYTES,
    CONSUMER,
    PROJECT,
    QUEUE,
    acks,
    bodies_are,
    end,
    header,
    newest,
    ready,
    requests,
    say,
    settle,
    subscribed,
    subscription_refused,
)


async def delivered(client: Client, expect: Expect, count: int, sub: str = "c1") -> list[Message]:
    """The messages as soon as there are `count`; fewer count as a failed preparation of what follows."""
    found = await client.wait_messages(count, sub)
    expect.that(
        len(found) == count,
        f"{count} messages are delivered",
        f"{len(found)} are",
        id="n-messages-are-surfaced",
    )
    return found


def query_of(broker: Narconi) -> dict[str, list[str]]:
    """The parameters of the newest upgrade. Raises `Inconclusive`: there was none."""
    found = requests(broker, "WsUpgrade")
    if not found:
        raise Inconclusive("no upgrade was asked for", id="no-upgrade-was-asked-for")
    return parse_qs(found[-1].target.partition("?")[2], keep_blank_values=True)


@scenario("NARC-3.01", "MUST", "critical", basis=["N10", "N11"], roles=CONSUMER)
async def consume_with_ack(broker: Narconi, client: Client, expect: Expect) -> None:
    """Consume with ack.

    Fault: Subscribe with ack and limit 2; deliver 2
    Pass: Sec-WebSocket-Protocol exactly `consume`; query has `ack` (any value) and limit=2; both messages
    delivered with their ackId as `position`; no ack frame before the settle op or the return of the callback
    Profile: both
    """
    await ready(broker, client)
    result = await client.subscribe(QUEUE, ack=True, limit=2)
    await until(lambda: requests(broker, "WsUpgrade"), 1.0)
    upgrades = requests(broker, "WsUpgrade")
    expect.that(upgrades, "an upgrade is asked for", str(result), id="an-upgrade-is-asked-for")
    path = unquote(upgrades[-1].target.partition("?")[0])
    expect.equal(
        path,
        f"/v2/{PROJECT}/queues/{QUEUE}/messages",
        "the path ends in /messages",
        id="the-path-ends-in-messages",
    )
    protocols = [v for name, v in upgrades[-1].headers if name.lower() == "sec-websocket-protocol"]
    expect.equal(
        protocols,
        ["consume"],
        "the sub-protocol is exactly consume",
        id="the-sub-protocol-is-exactly-consume",
    )
    query = query_of(broker)
    expect.that(
        "ack" in query and query.get("limit") == ["2"],
        "the query has ack and limit=2",
        query,
        id="the-query-has-ack-and-limit-n",
    )
    expect.ok(result, "subscribe ends well", id="subscribe-ends-well")
    for body in (b"1", b"2"):
        broker.publish(PROJECT, QUEUE, body)
    messages = await delivered(client, expect, 2)
    bodies_are(expect, messages, [b"1", b"2"], "both messages are delivered", id="both-messages-are-surfaced")
    expect.equal(
        [m.position for m in messages],
        ["1", "2"],
        "with their ackId as position",
        id="with-their-ackid-as-position",
    )
    await asyncio.sleep(0.2)
    expect.that(
        not acks(broker), "no ack frame before the settle", acks(broker), id="no-ack-frame-before-the-settle"
    )
    for message in messages:
        expect.ok(await settle(client, message), "settle ends well", id="settle-ends-well")
    await expect.wire(
        broker,
        "each settle sends its ack",
        kind="WsAck",
        tap=Tap.RECEIVED,
        count=2,
        within_s=2,
        id="each-settle-sends-its-ack",
    )


@scenario("NARC-3.02", "MUST", "critical", basis=["N10"], roles=CONSUMER, variants=("real",))
@scenario("NARC-3.02", roles=CONSUMER, variants=("seed",), server={"profile": "seed"})
async def two_frames(broker: Narconi, client: Client, expect: Expect) -> None:
    """Two frames per message.

    Fault: 100 messages, metadata then payload, own metadata each; every tenth payload with pings in front
    Pass: Each body delivered with its own metadata, in order; body equal in both forms. A client that
    complains of a payload in a text frame, which no server sends: non-strict; what it has delivered is right
    Profile: `real`: payload always in a binary frame; `seed`: also in a text frame (native format)
    """
    await ready(broker, client)
    in_text = broker.profile == "seed"
    if in_text:
        broker.faults.add(rewrite(fields={"text": True}, kind="WsDeliver", every=3))
    broker.faults.add(fault(SplitDelivery(gap_s=0.02, pings=2), kind="WsDeliver", direction="out", every=10))
    bodies = [b"message %d" % n for n in range(100)]
    for number, body in enumerate(bodies):
        broker.publish(PROJECT, QUEUE, body, headers={"x-msg-x-n": str(number)})
    mark = len(client.events)
    await subscribed(broker, client, QUEUE)
    messages = await client.wait_messages(100, within_s=8.0)
    numbers = [header(message.headers, "x-msg-x-n") for message in messages]
    wanted = list(range(100))
    reported = [event for event in client.events[mark:] if event.event in ("session", "error")]
    reads_text = bool({str(n) for n in wanted[2::3]} & {str(number) for number in numbers})
    if in_text and reported and not reads_text:
        expect.tolerate(
            False, "a payload in a text frame is read", reported[0], id="a-payload-in-a-text-frame-is-read"
        )
        wanted = [n for n in wanted if str(n) in numbers]
    bodies_are(
        expect,
        messages,
        [bodies[n] for n in wanted],
        "each body is delivered once, in order",
        id="each-body-is-surfaced-once-in-order",
    )
    expect.equal(
        numbers,
        [str(n) for n in wanted],
        "each body with its own metadata",
        id="each-body-with-its-own-metadata",
    )


@scenario("NARC-3.03", "MUST", "high", basis=["N12"], needs=["encoding"], roles=CONSUMER)
async def encoding(broker: Narconi, client: Client, expect: Expect) -> None:
    """Encoding parameter.

    Fault: base64 and hex with all byte values, utf8 with valid text; two messages each, payload in `message`
    Pass: `encoding` in the query; body delivered equals the original bytes; second message delivered too
    (client does not wait for a payload frame)
    Profile: both
    """
    await client.connected(project=PROJECT)
    for name, first in (("base64", ALL_BYTES), ("hex", ALL_BYTES), ("utf8", "grüße 😀".encode())):
        broker.create_queue(PROJECT, name)
        mark = broker.journal.last_seq
        expect.ok(
            await client.subscribe(name, name, encoding=name),
            f"{name}: subscribe ends well",
            id=slug("{}-subscribe-ends-well", name),
        )
        await until(lambda mark=mark: requests(broker, "WsUpgrade", since=mark), 1.0)  # type: ignore[misc]
        expect.equal(
            query_of(broker).get("encoding"),
            [name],
            f"{name}: encoding is in the query",
            id=slug("{}-encoding-is-in-the-query", name),
        )
        for body in (first, b"second"):
            broker.publish(PROJECT, name, body)
        messages = await client.wait_messages(2, name)
        bodies_are(
            expect,
            messages,
            [first, b"second"],
            f"{name}: both bodies are the original bytes",
            id=slug("{}-both-bodies-are-the-original-bytes", name),
        )


@scenario("NARC-3.04", "MUST", "high", basis=["N10"], roles=CONSUMER)
async def empty_payload(broker: Narconi, client: Client, expect: Expect) -> None:
    """Empty payload.

    Fault: Payload message of length 0
    Pass: Delivered as empty body
    """
    await ready(broker, client)
    await subscribed(broker, client, QUEUE)
    for body in (b"", b"second"):
        broker.publish(PROJECT, QUEUE, body)
    messages = await client.wait_messages(2)
    bodies_are(
        expect,
        messages,
        [b"", b"second"],
        "an empty payload is delivered as an empty body",
        id="an-empty-payload-is-surfaced-as-an-empty-body",
    )


@scenario("NARC-3.05", "MUST", "high", basis=["N10"], roles=CONSUMER)
async def payload_delayed(broker: Narconi, client: Client, expect: Expect) -> None:
    """Payload delayed.

    Fault: Metadata, 3 s pause with pings, payload
    Pass: One message; no timeout inside the keep-alive
    """
    await ready(broker, client)
    await subscribed(broker, client, QUEUE)
    broker.faults.add(fault(SplitDelivery(gap_s=3.0, pings=2), kind="WsDeliver", direction="out"))
    broker.publish(PROJECT, QUEUE, b"late")
    messages = await client.wait_messages(1, within_s=5.0)
    bodies_are(
        expect,
        messages,
        [b"late"],
        "one message: its payload is waited for",
        id="one-message-its-payload-is-waited-for",
    )


@scenario("NARC-3.06", "MUST", "critical", basis=["N10"], roles=CONSUMER)
async def lost_between_frames(broker: Narconi, client: Client, expect: Expect) -> None:
    """Connection lost between metadata and payload.

    Fault: RST after the metadata
    Pass: Not delivered; not acknowledged
    """
    await ready(broker, client)
    await subscribed(broker, client, QUEUE, ack=True)
    broker.faults.add(cut_between_frames("rst", nth=1, scope="run"))
    broker.publish(PROJECT, QUEUE, b"torn")
    await expect.reached(broker, "the connection was not cut", kind="rst", id="the-connection-was-not-cut")
    await asyncio.sleep(0.5)
    first_hand = [message for message in client.messages() if message.redelivered is not True]
    expect.that(
        not first_hand,
        "metadata without payload is not delivered",
        first_hand[:1],
        id="metadata-without-payload-is-not-surfaced",
    )
    expect.that(not acks(broker), "it is not acknowledged", acks(broker), id="it-is-not-acknowledged")


@scenario("NARC-3.12", "SHOULD", "high", basis=["N11"], roles=CONSUMER)
async def server_overruns_limit(broker: Narconi, client: Client, expect: Expect) -> None:
    """limit is honoured.

    Fault: limit=2, deliver 5 without waiting
    Pass: No crash; all 5 delivered and acknowledged once, or a `protocol` error and a clean close
    Profile: both (fault: the server overruns the limit; the real flow is NARC-3.22)
    """
    await ready(broker, client)
    await subscribed(broker, client, QUEUE, ack=True, limit=2)
    broker.faults.add(drop(kind="WsAck", direction="in"))
    for number in range(1, 6):
        say(broker, newest(broker), WsDeliver(b"%d" % number, ack_id=str(number)))
    messages = await client.wait_messages(5, within_s=2.0)
    if len(messages) < 5:
        reported = await client.event("error", 1.0)
        fits = reported is not None and reported.error.kind.value == "protocol"
        expect.that(
            fits,
            "all 5 are delivered, or a protocol error is reported",
            f"{len(messages)} are",
            id="all-n-are-surfaced-or-a-protocol-error-is-reported",
        )
        return
    for message in messages:
        expect.ok(await settle(client, message), "each is settled", id="each-is-settled")
    await until(lambda: len(acks(broker)) >= 5, 1.0)
    await asyncio.sleep(0.2)
    ids = sorted(str(ack.key) for ack in acks(broker))
    expect.equal(
        ids, ["1", "2", "3", "4", "5"], "all 5 are acknowledged once", id="all-n-are-acknowledged-once"
    )


@scenario("NARC-3.14", "MUST", "high", basis=["N14"], roles=CONSUMER, variants=("real",))
@scenario("NARC-3.14", roles=CONSUMER, variants=("seed",), server={"profile": "seed"})
async def error_from_server(broker: Narconi, client: Client, expect: Expect) -> None:
    """Error message from the server.

    Fault: One delivery, then the error, close frame 1000, fin
    Pass: Error delivered with code 500 and text although the close code is 1000; subscription ends (or is
    renewed with `auto_reconnect`); not delivered as a message; later settle sends nothing on a closed
    connection
    Profile: run in each: `seed` {"code":500,"error":"Unrecognized acknowledgment ID"}; `real` {"error":"AMQP
    channel unexpectedly closed. Details: ...","code":500} and {"error":"Unable to send message to
    client.","code":500} (queue deleted)
    """
    texts = ["AMQP channel unexpectedly closed. Details: Channel closed by server", "queue deleted"]
    if broker.profile == "seed":
        texts = ["Unrecognized acknowledgment ID"]
    await client.connected(project=PROJECT)
    for number, text in enumerate(texts):
        sub = queue = f"queue{number}"
        broker.create_queue(PROJECT, queue)
        await subscribed(broker, client, queue, sub, ack=True)
        connection, mark = newest(broker), len(client.events)
        broker.publish(PROJECT, queue, b"hello")
        [message] = await delivered(client, expect, 1, sub)
        if text == "queue deleted":
            text = "Unable to send message to client."
            broker.delete_queue(PROJECT, queue)
        else:
            say(broker, connection, WsError(text, 500), WsClose())
            end(broker, connection, HangUp.FIN)
        reported = await client.event("error", 2.0, mark)
        shown = [(reported.error.code, text in reported.error.text)] if reported is not None else []
        for event in client.events[mark:]:  # or as the reason of the loss
            if event.event == "session" and event["what"] in LOSSES:
                shown.append((event["code"], text in str(event["text"])))
        expect.that(
            shown,
            f"{text}: the error is reported, although the close code is 1000",
            "no event",
            id=slug("{}-the-error-is-surfaced-although-the-close-code-is-n", text),
        )
        expect.that(
            (500, True) in shown,
            f"{text}: with its code and text",
            shown,
            id=slug("{}-with-its-code-and-text", text),
        )
        expect.equal(
            len(client.messages(sub)),
            1,
            f"{text}: it is not delivered as a message",
            id=slug("{}-it-is-not-delivered-as-a-message", text),
        )
        since = broker.journal.last_seq
        late = await settle(client, message, sub=sub)
        expect.ended(late, f"{text}: a settle afterwards ends", id=slug("{}-a-settle-afterwards-ends", text))
        expect.that(
            not acks(broker, since=since),
            f"{text}: it sends nothing",
            acks(broker, since=since),
            id=slug("{}-it-sends-nothing", text),
        )


@scenario("NARC-3.16", "MUST", "medium", basis=["N10"], roles=CONSUMER)
async def unknown_metadata(broker: Narconi, client: Client, expect: Expect) -> None:
    """Unknown metadata properties.

    Fault: Extra keys; `x-msg-x-n` as number, null, nested object; null timestamp; no Content-Type
    Pass: Message delivered, body right, acknowledged; values kept or ignored; no crash
    Profile: both (publishers over WebSocket can store any JSON value under x- names)
    Seen: stream-java-client#1005
    """
    await ready(broker, client)
    await subscribed(broker, client, QUEUE, ack=True)
    cases: list[dict[str, Any]] = [
        {"unheard-of": [1, {"a": None}]},
        {"x-msg-x-n": 5},
        {"x-msg-x-n": None},
        {"x-msg-x-n": {"k": [1]}},
        {"timestamp": None},
    ]
    broker.faults.add(rewrite(fields={"content_type": None}, kind="WsDeliver", nth=len(cases) + 1))
    for number, headers in enumerate([*cases, {}]):
        broker.publish(PROJECT, QUEUE, b"%d" % number, headers=headers)
    messages = await client.wait_messages(len(cases) + 1, within_s=2.0)
    bodies = [b"%d" % number for number in range(len(cases) + 1)]
    bodies_are(
        expect,
        messages,
        bodies,
        "each message is delivered, with its body",
        id="each-message-is-surfaced-with-its-body",
    )
    for message in messages:
        expect.ok(await settle(client, message), "each is acknowledged", id="each-is-acknowledged")
    expect.that(client.alive, "no crash", id="no-crash")


@scenario("NARC-3.25", "SHOULD", "low", basis=["N11"], roles=CONSUMER)
async def limit_out_of_range(broker: Narconi, client: Client, expect: Expect) -> None:
    """Limit out of range.

    Fault: Subscribe with limit 0, -1, 1.5, 70000
    Pass: `invalid` locally, or `refused` (code as in NARC-2.03). If 1.5 or 70000 is sent and accepted: `next`
    returns empty at its wait and `unsubscribe` ends: non-strict. No hang
    Profile: both: 0 and -1 are refused with 409 at the upgrade; in `real` 1.5 and 70000 give a connection on
    which nothing arrives
    """
    await ready(broker, client)
    for number, limit in enumerate((0, -1, 1.5, 70000)):
        sub = f"c{number}"
        buffered, heard, mark = {"mode": "buffer"}, len(client.events), broker.journal.last_seq
        result = await client.subscribe(QUEUE, sub, ack=True, limit=limit, on_message=buffered)
        what = f"limit {limit}"
        if result.word == "invalid":
            continue
        if not result.ok or (client.can("lazy_subscribe") and limit < 1):
            await subscription_refused(
                client,
                expect,
                result,
                sub,
                409,
                f"{what} is refused",
                since=heard,
                id=slug("limit-{}-is-refused", limit),
            )
            continue
        expect.that(
            limit in (1.5, 70000),
            f"{what} is refused",
            "it is accepted",
            id=slug("limit-{}-is-refused", limit),
        )
        await until(lambda mark=mark: sent(broker, "WsAccept", since=mark), 1.0)  # type: ignore[misc]
        taken = await client.op("next", sub=sub, max=1, wait_ms=500)
        expect.ok(
            taken,
            f"{what}: next returns empty at its wait",
            id=slug("limit-{}-next-returns-empty-at-its-wait", limit),
        )
        expect.ended(
            await client.unsubscribe(sub),
            f"{what}: unsubscribe ends",
            id=slug("limit-{}-unsubscribe-ends", limit),
        )
        expect.tolerate(
            False,
            f"{what} is refused",
            "it is accepted, and nothing arrives",
            id=slug("limit-{}-is-refused", limit),
        )
