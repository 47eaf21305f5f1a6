"""PZQ-2 Consumer: deliveries and what they look like."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from typing import Any

from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import PZQ
from fakebrokers.faults import fault, rewrite
from fakebrokers.journal import Tap
from fakebrokers.pzq.faults import ExtraHeaders, stale_delivery
from fakebrokers.pzq.frames import Delivery
from scenarios._common import until
from scenarios.pzq._steps import (
    CONSUMER,
    QUICK,
    acknowledged,
    acks,
    auto,
    consuming,
    delivered,
    deliveries,
    key_of,
    microseconds,
    parts_are,
    settle,
    shown,
    statuses,
    with_body,
    works_on,
)


@scenario("PZQ-2.01", "MUST", "critical", basis=["P5"], roles=CONSUMER)
@scenario("PZQ-2.01", variants=("seed",), roles=CONSUMER, server={"profile": "seed"})
async def delivery_layout(broker: PZQ, client: Client, expect: Expect) -> None:
    """Delivery layout.

    Fault: None; one delivery
    Pass: Socket type ROUTER (DEALER: non-strict, it works with one instance; REP = fail, its answer always
    counts as negative); body and key (`position`) delivered, in both profiles; `sent_us` and `timeout_us`
    equal the wire (missing: non-strict)
    Profile: `real`: the daemon sends [key][sent][timeout][empty][body], the first part that the client sees
    is made by its own ROUTER; `seed`: the fake's socket has an identity of its own, which then is that first
    part
    """
    await consuming(client, expect)
    key = broker.publish(b"hello")
    (message, *_) = await delivered(
        client, expect, b"hello", criterion="the body is delivered", id="the-body-is-surfaced"
    )
    expect.equal(key_of(message), key, "the key is delivered", id="the-key-is-surfaced")
    frame = deliveries(broker, key)[0].frame
    assert isinstance(frame, Delivery)
    for name, wanted in (("sent_us", frame.sent), ("timeout_us", frame.timeout)):
        value = microseconds(message, name)
        if expect.tolerate(value is not None, f"{name} is delivered", id=slug("{}-is-surfaced", name)):
            expect.equal(
                value, wanted, f"{name} is the wire's number", id=slug("{}-is-the-wire-s-number", name)
            )
    if broker.profile == "seed" and "pzq_id" in message.meta:
        identity = base64.b64decode(message.meta["pzq_id"])
        expect.equal(
            identity,
            b"pzq",
            "the first part is the instance's identity",
            id="the-first-part-is-the-instance-s-identity",
        )
    await settle(client, message)
    await acknowledged(broker, expect, key, "the message is acknowledged", id="the-message-is-acknowledged")
    kinds = _socket_types(broker, deliveries(broker, key)[0].connection)
    expect.that("REP" not in kinds, "the socket type is ROUTER", kinds, id="the-socket-type-is-router")
    expect.tolerate("ROUTER" in kinds, "the socket type is ROUTER", kinds, id="the-socket-type-is-router")


def _socket_types(broker: PZQ, connection: str) -> list[str]:
    states = broker.journal.select(tap=Tap.STATE, connection=connection)
    return [r.note.split()[0] for r in states if r.kind in ("accepted", "address") and r.note]


@scenario("PZQ-2.02", "MUST", "critical", basis=["P2", "P5"], roles=CONSUMER)
async def extra_headers(broker: PZQ, client: Client, expect: Expect) -> None:
    """Extra header parts are skipped.

    Fault: Two unknown parts between timeout and delimiter
    Pass: Body is what follows the first empty part; headers do not leak into the body
    Seen: PHP consumer slices at fixed index 5 (source)
    """
    broker.faults.add(fault(ExtraHeaders(headers=("h1", "h2")), role="deliver"))
    await consuming(client, expect)
    broker.publish(b"a", b"b")
    await _only_this(
        client,
        expect,
        (b"a", b"b"),
        "the body is what follows the first empty part",
        id="the-body-is-what-follows-the-first-empty-part",
    )


@scenario("PZQ-2.03", "MUST", "high", basis=["P5", "P11"], roles=CONSUMER)
async def multi_part_body(broker: PZQ, client: Client, expect: Expect) -> None:
    """Multi-part body with empty parts.

    Fault: Body parts "a","","b"
    Pass: Three parts delivered
    """
    await consuming(client, expect)
    broker.publish(b"a", b"", b"b")
    await _only_this(
        client, expect, (b"a", b"", b"b"), "all three parts are delivered", id="all-three-parts-are-surfaced"
    )


async def _only_this(
    client: Client, expect: Expect, body: Sequence[bytes], criterion: str, *, id: str
) -> None:
    messages = await client.wait_messages(1, within_s=3.0)
    expect.that(len(messages) == 1 and parts_are(messages[0], body), criterion, shown(client), id=id)


@scenario("PZQ-2.09", "MUST", "medium", basis=["P7"], roles=CONSUMER, server=QUICK, timeout_s=40)
async def expired_message(broker: PZQ, client: Client, expect: Expect) -> None:
    """Expired message.

    Fault: First copy carries sent = now - 2 × timeout; if it is not acknowledged, the regular redelivery
    brings a copy with a fresh time
    Pass: Either delivered and acknowledged like any other, or not delivered and no "1" for it before the
    fresh copy, which is then delivered and acknowledged. Dropped and acknowledged with "1" = fail (message
    lost). "0" for a dropped one: non-strict. With `filter_expired` declared both settings are run
    Profile: both; ack timeout 1 s, reaper 0.5 s
    """
    await client.connected()
    settings = (False, True) if client.can("filter_expired") else (False,)
    for on in settings:
        sub, body = f"c-{on}", f"stale, filter {on}".encode()
        expect.prepared(await _subscribe(client, sub, on))
        broker.faults.add(stale_delivery(2_000_000, nth=1, scope="run", name=sub))
        key = broker.publish(body)
        await until(lambda sub=sub, body=body: with_body(client, body, sub=sub), 4.0)  # type: ignore[misc]
        expect.exercised(
            broker.faults.fired(sub), "the stale copy was not sent", id="the-stale-copy-was-not-sent"
        )
        early = statuses(broker, key)
        expect.that(
            b"1" not in early,
            "what was dropped is not acknowledged",
            str(early),
            id="what-was-dropped-is-not-acknowledged",
        )
        expect.tolerate(
            not early, "what was dropped is not answered", str(early), id="what-was-dropped-is-not-answered"
        )
        copies = with_body(client, body, sub=sub)
        expect.that(
            copies,
            "the stale copy is delivered, or the fresh one",
            f"filter_expired {on}",
            id="the-stale-copy-is-surfaced-or-the-fresh-one",
        )
        await settle(client, copies[0])
        await acknowledged(
            broker, expect, key, "what was delivered is acknowledged", id="what-was-surfaced-is-acknowledged"
        )
        expect.prepared(await client.unsubscribe(sub))
        broker.faults.clear()


@scenario("PZQ-2.10", "SHOULD", "medium", basis=["P7"], roles=CONSUMER)
async def not_expired_at_the_edge(broker: PZQ, client: Client, expect: Expect) -> None:
    """Not expired at the edge.

    Fault: sent = now - 0.5 × timeout
    Pass: Delivered
    """
    broker.faults.add(stale_delivery(2_500_000))
    options = {"filter_expired": True} if client.can("filter_expired") else {}
    await consuming(client, expect, **options)
    broker.publish(b"half of its time is left")
    await delivered(
        client, expect, b"half of its time is left", criterion="it is delivered", id="it-is-surfaced"
    )


@scenario("PZQ-2.11", "MUST", "high", basis=["P5", "P7"], roles=CONSUMER, timeout_s=40)
async def microsecond_units(broker: PZQ, client: Client, expect: Expect) -> None:
    """Microsecond units.

    Fault: timeout 5 000 000; one message with sent = now - 3 s, one with sent = now - 11 s
    Pass: The 3 s old one is delivered; where the client delivers or judges times, `sent_us` and `timeout_us`
    are the wire's numbers and `expired` is false for the first, true for the second. Delivering the second:
    non-strict only if `filter_expired` is declared and on
    Profile: both
    """
    await client.connected()
    for on in (False, True) if client.can("filter_expired") else (False,):
        sub = f"c-{on}"
        young, old = f"3 s old, filter {on}".encode(), f"11 s old, filter {on}".encode()
        expect.prepared(await _subscribe(client, sub, on))
        for age_us, body in ((3_000_000, young), (11_000_000, old)):
            broker.faults.add(stale_delivery(age_us, scope="run", name="age"))
            key = broker.publish(body)
            within_s = 1.0 if body is young else 0.4
            await until(lambda sub=sub, body=body: with_body(client, body, sub=sub), within_s)  # type: ignore[misc]
            _judge_times(broker, client, expect, body, key, sub, expired=body is old, filtering=on)
            for message in with_body(client, body, sub=sub):
                await settle(client, message)
            broker.faults.remove("age")
        expect.prepared(await client.unsubscribe(sub))


async def _subscribe(client: Client, sub: str, filtering: bool) -> Result:
    options: dict[str, Any] = {"filter_expired": filtering} if client.can("filter_expired") else {}
    return await client.subscribe("", sub, **options)


def _judge_times(
    broker: PZQ,
    client: Client,
    expect: Expect,
    body: bytes,
    key: bytes,
    sub: str,
    *,
    expired: bool,
    filtering: bool,
) -> None:
    copies = with_body(client, body, sub=sub)
    if not expired:
        expect.that(
            copies,
            "the one that is 3 s old, of 5 s, is delivered",
            f"filter_expired {filtering}",
            id="the-one-that-is-n-s-old-of-n-s-is-surfaced",
        )
    elif filtering:
        expect.tolerate(
            not copies,
            "the one that is 11 s old is dropped",
            str(copies),
            id="the-one-that-is-n-s-old-is-dropped",
        )
    for message in copies[:1]:
        frame = deliveries(broker, key)[0].frame
        assert isinstance(frame, Delivery)
        for name, wanted in (("sent_us", frame.sent), ("timeout_us", frame.timeout)):
            value = microseconds(message, name)
            expect.that(
                value in (None, wanted),
                f"{name} is the wire's number",
                f"{value}, not {wanted!r}",
                id=slug("{}-is-the-wire-s-number", name),
            )
        judged = message.meta.get("expired")
        expect.that(
            judged in (None, expired),
            f"`expired` is {expired} for {body!r}",
            judged,
            id=slug("expired-is-{}-for-{}", expired, f"{body!r}"),
        )


@scenario("PZQ-2.12", "SHOULD", "medium", basis=["P5"], roles=CONSUMER, allows=("delivers-what-came",))
async def non_numeric_times(broker: PZQ, client: Client, expect: Expect) -> None:
    """Non-numeric times.

    Fault: sent = "abc", then "-1", then 40 digits; timeout = "x" (not empty: an empty part there would be the
    delimiter)
    Pass: Each delivered or reported as error event; no crash; a good message after them is delivered
    Profile: both
    """
    await consuming(client, expect, on_message=auto())
    cases = [("sent", b"abc"), ("sent", b"-1"), ("sent", b"4" * 40), ("timeout", b"x")]
    for field, value in cases:
        mark, body = len(client.events), field.encode() + b" " + value
        broker.faults.add(rewrite({field: value}, role="deliver", scope="run", name="time"))
        broker.publish(body)
        criterion = (
            f"a delivery with {field} {value[:8]!r} is given to the application, or reported as an error"
        )

        def known(body: bytes = body, mark: int = mark) -> bool:
            return bool(with_body(client, body)) or any(e.event == "error" for e in client.events[mark:])

        expect.that(
            await until(known, 2.0),
            criterion,
            "neither came",
            id=slug(
                "a-delivery-with-{}-{}-is-surfaced-or-reported-as-an-error-event", field, f"{value[:8]!r}"
            ),
        )
        broker.faults.clear()
    await works_on(broker, client, expect)


@scenario("PZQ-2.13", "SHOULD", "low", basis=["P5"], roles=CONSUMER)
async def large_times(broker: PZQ, client: Client, expect: Expect) -> None:
    """Large times.

    Fault: sent = 2^53 + 1 and sent = 2^63 - 1, timeout 5 000 000
    Pass: Both delivered (they lie in the future: not expired, no overflow in sent + timeout); `sent_us` exact
    if delivered
    Profile: both
    """
    options = {"filter_expired": True} if client.can("filter_expired") else {}
    await consuming(client, expect, on_message=auto(), **options)
    for sent in (2**53 + 1, 2**63 - 1):
        broker.faults.add(rewrite({"sent": sent}, role="deliver", scope="run", name="time"))
        body = b"sent %d" % sent
        broker.publish(body)
        criterion = f"a delivery from the far future (sent {sent}) is handed to the application"
        (message, *_) = await delivered(
            client,
            expect,
            body,
            criterion=criterion,
            id=slug("a-delivery-from-the-far-future-sent-{}-is-surfaced", sent),
        )
        value = microseconds(message, "sent_us")
        expect.that(value in (None, sent), "sent_us is exact", value, id="sent-us-is-exact")
        broker.faults.clear()


@scenario("PZQ-2.14", "MUST", "high", basis=["P5"], roles=CONSUMER)
async def malformed_delivery(broker: PZQ, client: Client, expect: Expect) -> None:
    """Malformed delivery.

    Fault: Parts after the routing part: [""]; [key]; [key][sent][timeout] without delimiter;
    [key][sent][timeout][""] without body; [key][""][body] without times. Then a good one
    Pass: None of the first three delivered as a message with a body; no "1" for a key that was not delivered;
    no crash; the good one delivered. Error event missing: non-strict
    Profile: both
    Seen: pzq source (handles malformed producers)
    """
    await consuming(client, expect, on_message=auto())
    key = broker.publish(b"before")
    await delivered(
        client, expect, b"before", criterion="a good message is delivered", id="a-good-message-is-surfaced"
    )
    connection = deliveries(broker, key)[0].connection
    malformed: dict[bytes, tuple[bytes, ...]] = {
        b"": (b"",),
        b"k2": (b"k2",),
        b"k3": (b"k3", b"1700000000000000", b"5000000"),
        b"k4": (b"k4", b"1700000000000000", b"5000000", b""),
        b"k5": (b"k5", b"", b"body"),
    }
    for position, (bad, parts) in enumerate(malformed.items()):
        mark = len(client.events)
        broker.say_raw(connection, parts)
        await until(lambda mark=mark: len(client.events) > mark, 0.3)  # type: ignore[misc]
        news = [event.event for event in client.events[mark:]]
        got = [m for m in client.messages("c1") if bad and key_of(m) == bad]
        if position < 3:
            made_up = [event for event in client.events[mark:] if event.event == "message"]
            expect.that(
                not made_up,
                f"{parts!r} is not delivered as a message",
                made_up[:1],
                id=slug("{}-is-not-surfaced-as-a-message", f"{parts!r}"),
            )
        if not got:
            expect.that(
                b"1" not in statuses(broker, bad),
                "what was not delivered is not acknowledged",
                parts,
                id="what-was-not-surfaced-is-not-acknowledged",
            )
            expect.tolerate(
                "error" in news,
                f"{len(parts)} parts are reported as an error event",
                news,
                id="n-parts-are-reported-as-an-error-event",
            )
    await works_on(broker, client, expect)


@scenario("PZQ-2.19", "SHOULD", "low", basis=["P2"], roles=CONSUMER)
async def huge_header(broker: PZQ, client: Client, expect: Expect) -> None:
    """Unsolicited parts on the socket.

    Fault: Header part of 1 MiB between timeout and delimiter
    Pass: Body delivered unchanged, header not in it, acknowledged with "1"
    Profile: both
    """
    broker.faults.add(fault(ExtraHeaders(headers=("x" * (1 << 20),)), role="deliver"))
    await consuming(client, expect, on_message=auto())
    key = broker.publish(b"hello")
    await _only_this(
        client,
        expect,
        (b"hello",),
        "the body is delivered unchanged, without the header",
        id="the-body-is-surfaced-unchanged-without-the-header",
    )
    await acknowledged(broker, expect, key, "it is acknowledged with 1", id="it-is-acknowledged-with-n")


@scenario("PZQ-2.20", "MUST", "high", basis=["P5", "P8"], roles=CONSUMER, server={"order": "skip"})
async def skipping_order(broker: PZQ, client: Client, expect: Expect) -> None:
    """Backlog in skipping order.

    Fault: 60 stored; delivered as 0 1 2 3 4 6 7 9 11 12 14 ..., then the skipped ones
    Pass: Each of the 60 delivered once with its own body and key and acknowledged with that key; no message
    dropped as old or duplicate because a later key was seen first
    Profile: both; order of the real daemon with a backlog and a new consumer in its skipping period
    Seen: recorded from the real daemon
    """
    keys = {b"%d" % n: broker.publish(b"%d" % n) for n in range(60)}
    await consuming(client, expect, on_message=auto())
    await until(lambda: len(client.messages("c1")) >= 60, 4.0)
    await until(lambda: len(acks(broker)) >= 60, 2.0)
    order = [record.keys[0] for record in deliveries(broker)]
    expect.exercised(
        order != sorted(order), "the deliveries came in order", id="the-deliveries-came-in-order"
    )
    for body, key in keys.items():
        copies = with_body(client, body)
        expect.equal(
            len(copies),
            1,
            f"message {body.decode()} of 60 is delivered once",
            id=slug("message-{}-of-n-is-surfaced-once", body.decode()),
        )
        expect.equal(key_of(copies[0]), key, "with its own key", id="with-its-own-key")
        expect.equal(
            statuses(broker, key),
            [b"1"],
            "and acknowledged with that key",
            id="and-acknowledged-with-that-key",
        )


@scenario("PZQ-2.21", "MUST", "critical", basis=["P6", "P8"], roles=CONSUMER)
@scenario("PZQ-2.21", variants=("seed",), roles=CONSUMER, server={"profile": "seed"})
async def opaque_keys(broker: PZQ, client: Client, expect: Expect) -> None:
    """The key is opaque.

    Fault: Keys: the real form; 1 byte 0x00; "1"; 255 bytes with NUL, `|`, 0xFF
    Pass: First frame of each ack bytewise equal to the key delivered; `position` distinct for each
    Profile: `real` form `<microseconds>|<uuid>`; `seed`: ids of any bytes
    """
    await consuming(client, expect, on_message=auto())
    odd = (b"\0", b"1", b"a\0b|\xff" * 51)
    keys = [broker.publish(b"0"), *(broker.publish(b"%d" % n, key=key) for n, key in enumerate(odd, 1))]
    for n, key in enumerate(keys):
        (message, *_) = await delivered(
            client,
            expect,
            b"%d" % n,
            criterion=f"the message {key[:8]!r} comes",
            id=slug("the-message-{}-comes", f"{key[:8]!r}"),
        )
        expect.equal(key_of(message), key, "the position is the key", id="the-position-is-the-key")
    await asyncio.sleep(0.1)
    for key in keys:
        await acknowledged(
            broker,
            expect,
            key,
            "the acknowledgement carries the key bytewise",
            id="the-acknowledgement-carries-the-key-bytewise",
        )
    expect.equal(
        len({str(m.position) for m in client.messages("c1")}),
        len(keys),
        "all positions are distinct",
        id="all-positions-are-distinct",
    )
