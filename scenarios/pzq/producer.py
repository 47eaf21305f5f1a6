"""PZQ-1 Producer: messages and their acknowledgements."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import PZQ
from fakebrokers.faults import Fault, drop, duplicate, fault, inject, rewrite
from fakebrokers.journal import Tap
from fakebrokers.pzq.faults import ExtraHeaders, WithoutDelimiter, refuse_message
from fakebrokers.pzq.frames import ProduceAck, ProduceNack
from scenarios._common import limit_s
from scenarios.pzq._steps import (
    PUBLISHER,
    ROOMY,
    answer,
    came,
    goes_on,
    produced,
    produced_bytes,
    publish,
    unhandled,
)

LOST = "acknowledgements are lost"


def refusal(*texts: bytes, **match: Any) -> Fault:
    """The broker's answer says that the message is not stored, with these texts."""
    return rewrite({"status": b"0", "texts": texts}, role="confirm", **match)


@scenario("PZQ-1.01", "MUST", "critical", basis=["P1"], roles=PUBLISHER)
async def message_layout(broker: PZQ, client: Client, expect: Expect) -> None:
    """Message layout.

    Fault: None; capture one produce. The peer's socket type comes from the ZMTP metadata of the received
    frames
    Pass: Socket type DEALER; frames [id][headers...][empty][body...]; id not empty; header parts, if any, not
    empty and none begins with `REPLICA:` (the daemon takes that for a cluster copy). A REQ peer or a leading
    empty part fails
    Profile: both
    """
    await client.connected()
    call = publish(client, b"hello")
    await expect.reached(broker, "nothing came", tap=Tap.RECEIVED, id="nothing-came")
    first = broker.journal.select(tap=Tap.RECEIVED)[0]
    peer = broker.journal.select(kind="accepted", connection=first.connection)[-1].note
    expect.equal(peer.split()[0], "DEALER", "the socket type is DEALER", id="the-socket-type-is-dealer")
    expect.equal(
        first.kind,
        "Produce",
        "the message has the parts [id][headers...][][body...]",
        id="the-message-has-the-parts-id-headers-body",
    )
    (message,) = produced(broker)[:1]
    expect.that(message.id, "the id is not empty", repr(message), id="the-id-is-not-empty")
    expect.that(
        not any(part.startswith(b"REPLICA:") for part in message.headers),
        "no header begins with REPLICA:",
        message.headers,
        id="no-header-begins-with-replica",
    )
    expect.equal(
        message.body,
        (b"hello",),
        "the body comes after the first empty part",
        id="the-body-stands-behind-the-first-empty-part",
    )
    expect.outcome(await call, "acked", "the produce is acked", id="the-produce-is-acked")


@scenario("PZQ-1.02", "MUST", "high", basis=["P1", "P11"], roles=PUBLISHER)
async def multi_part_body(broker: PZQ, client: Client, expect: Expect) -> None:
    """Multi-part body.

    Fault: Body of 3 parts: "", "a", "" (empty ones first and last)
    Pass: On the wire the parts after the first empty frame after frame 0 are exactly these three, in order;
    produce ends `acked`
    Profile: both
    """
    await client.connected()
    call = publish(client, b"", b"a", b"")
    (message, *_) = await came(broker, expect)
    expect.equal(
        message.body,
        (b"", b"a", b""),
        "the parts after the delimiter are these three, in order",
        id="the-parts-behind-the-delimiter-are-these-three-in-order",
    )
    expect.outcome(await call, "acked", "the produce is acked", id="the-produce-is-acked")


@scenario("PZQ-1.03", "MUST", "critical", basis=["P3", "P4"], roles=PUBLISHER, revision=2)
async def positive_acknowledgement(broker: PZQ, client: Client, expect: Expect) -> None:
    """Positive acknowledgement.

    Fault: Answer [id]["1"][empty]
    Pass: produce ends `acked`
    """
    await client.connected()
    for number in range(20):
        result = await publish(client, b"%d" % number)
        expect.outcome(result, "acked", f"produce {number + 1} of 20 is acked", id="produce-n-of-n-is-acked")
    kept = [message.body for message in broker.messages()]
    expect.equal(
        kept,
        [(b"%d" % number,) for number in range(20)],
        "what was acked is in the store",
        id="what-was-acked-is-in-the-store",
    )


@scenario("PZQ-1.04", "MUST", "critical", basis=["P3", "P4"], roles=PUBLISHER)
async def negative_acknowledgement(broker: PZQ, client: Client, expect: Expect) -> None:
    """Negative acknowledgement.

    Fault: Answer [id]["0"][empty]["disk full"]
    Pass: produce ends `refused` (= nacked), not sent again by itself more than once; text `disk full` in the
    error (text missing: non-strict); the next produce works
    Profile: both
    """
    await client.connected()
    broker.faults.add(refuse_message("disk full", name="full"))
    result = await publish(client, b"hello", timeout=2.0)
    expect.outcome(result, "nacked", "the produce is refused", id="the-produce-is-refused")
    expect.that(
        len(produced(broker)) <= 2,
        "it is sent again by itself once at most",
        len(produced(broker)),
        id="it-is-sent-again-by-itself-once-at-most",
    )
    text = result.error.text if result.error else ""
    expect.tolerate(
        "disk full" in text,
        "the text `disk full` is in the error",
        text,
        id="the-text-disk-full-is-in-the-error",
    )
    broker.faults.remove("full")
    await goes_on(client, expect)


@scenario("PZQ-1.05", "MUST", "high", basis=["P4"], roles=PUBLISHER)
async def unknown_status(broker: PZQ, client: Client, expect: Expect) -> None:
    """Unknown status value.

    Fault: One produce each, answered with status "NO", "2", "11", byte 0x01, and with no status at all
    ([id][empty][empty]); "OK" is not part of this scenario (PZQ-1.22)
    Pass: None ends `acked`; `refused`, `protocol` or `timeout` are all right; the next produce with status
    "1" ends `acked`
    Profile: both
    """
    await client.connected()
    for status in (b"NO", b"2", b"11", b"\x01", b""):
        broker.faults.add(rewrite({"status": status}, role="confirm", scope="run", name="status"))
        result = await publish(client, b"hello", timeout=1.0)
        expect.failed(
            result,
            ("refused", "protocol", "timeout"),
            f"status {status!r} is not taken for an acknowledgement",
            id=slug("status-{}-is-not-taken-for-an-acknowledgement", f"{status!r}"),
        )
        broker.faults.remove("status")
    await goes_on(
        client,
        expect,
        "the next produce with status 1 is acked",
        id="the-next-produce-with-status-n-is-acked",
    )


@scenario("PZQ-1.06", "MUST", "high", basis=["P2", "P3"], roles=PUBLISHER)
async def extra_headers(broker: PZQ, client: Client, expect: Expect) -> None:
    """Extra header parts in the acknowledgement.

    Fault: First produce: [id]["1"][h1][h2][empty]["text"]; second: [id]["0"][h1][h2][empty]["disk full"]
    Pass: First `acked`; second `refused` with the text `disk full` and not `h1`, `h2` or nothing
    Profile: both (the daemon of today sends none; the seed announces them)
    Seen: mkoppanen/pzq ca31f83; PHP client reads fixed index 3 (source)
    """
    await client.connected()
    broker.faults.add(fault(ExtraHeaders(headers=("h1", "h2")), role="confirm"))
    broker.faults.add(rewrite({"texts": (b"text",)}, role="confirm", nth=1))
    expect.outcome(
        await publish(client, b"first"),
        "acked",
        "headers before the delimiter are ignored",
        id="headers-before-the-delimiter-are-ignored",
    )
    broker.faults.add(refusal(b"disk full"))
    result = await publish(client, b"second")
    expect.outcome(result, "nacked", "the second one is refused", id="the-second-one-is-refused")
    text = result.error.text if result.error else ""
    expect.that(
        "disk full" in text and "h1" not in text,
        "its text is `disk full`, and no header is in it",
        text,
        id="its-text-is-disk-full-and-no-header-is-in-it",
    )


@scenario("PZQ-1.07", "SHOULD", "medium", basis=["P3"], roles=PUBLISHER, revision=2)
async def success_with_text(broker: PZQ, client: Client, expect: Expect) -> None:
    """Success with a status message.

    Fault: [id]["1"][empty]["REPLICATION_FAILED"]
    Pass: `acked`; no error event; text in `meta` (missing: non-strict)
    Profile: both (the daemon of today ends a positive answer with the delimiter)
    Seen: pzq README (replication note)
    """
    await client.connected()
    broker.faults.add(rewrite({"texts": (b"REPLICATION_FAILED",)}, role="confirm"))
    result = await publish(client, b"hello")
    expect.outcome(
        result,
        "acked",
        "a text after the delimiter changes nothing",
        id="a-text-behind-the-delimiter-changes-nothing",
    )
    expect.that(
        produced_bytes(broker, b"hello"),
        "acked only after the message came",
        "it did not come",
        id="acked-only-after-the-message-came",
    )
    expect.that(
        not unhandled(client), "there is no error event", unhandled(client), id="there-is-no-error-event"
    )
    meta = (result.value or {}).get("meta")
    expect.tolerate(
        "REPLICATION_FAILED" in str(meta),
        "the text is in the meta data",
        str(meta),
        id="the-text-is-in-the-meta-data",
    )


@scenario("PZQ-1.08", "SHOULD", "medium", basis=["P3"], roles=PUBLISHER)
async def acknowledgement_without_delimiter(broker: PZQ, client: Client, expect: Expect) -> None:
    """Acknowledgement without delimiter.

    Fault: [id]["1"], then for the next produce [id] alone
    Pass: First ends `acked`, `protocol` or `timeout`; second ends `protocol` or `timeout`; no unhandled
    error; a third produce with a good answer ends `acked`
    Profile: both
    """
    await client.connected()
    broker.faults.add(fault(WithoutDelimiter(), role="confirm", scope="run", name="cut"))
    result = await publish(client, b"first", timeout=1.0)
    expect.ended(result, "the first one ends", id="the-first-one-ends")
    if not result.ok:
        expect.failed(
            result,
            ("protocol", "timeout"),
            "the first one ends acked, protocol or timeout",
            id="the-first-one-ends-acked-protocol-or-timeout",
        )
    broker.faults.add(rewrite({"status": None}, role="confirm", scope="run", name="bare"))
    second = await publish(client, b"second", timeout=1.0)
    expect.failed(
        second,
        ("protocol", "timeout"),
        "an id without a status is no acknowledgement",
        id="an-id-without-a-status-is-no-acknowledgement",
    )
    broker.faults.clear()
    await goes_on(
        client,
        expect,
        "a third produce with a good answer is acked",
        id="a-third-produce-with-a-good-answer-is-acked",
    )


@scenario("PZQ-1.09", "MUST", "critical", basis=["P4"], roles=PUBLISHER, revision=3)
async def acknowledgement_lost(broker: PZQ, client: Client, expect: Expect) -> None:
    """Acknowledgement lost.

    Fault: Message of three parts is stored, every acknowledgement for it is dropped, also those of repeats
    Pass: produce ends `timeout` (not definite) at its deadline, no `acked`, no `refused`; each repeat is the
    whole message; `state.pending` is 0 or null afterwards; the next produce ends `acked`
    Profile: both (the daemon loses acknowledgements by itself when a producer pipelines)
    Seen: netmq#675; lost acknowledgements measured on the real daemon (19 885 of 20 000)
    """
    await client.connected()
    broker.faults.add(drop(role="confirm", name=LOST))
    deadline = client.deadline_s("publish", 1.0)
    parts = (b"hello", b"", b"world")
    result = await publish(client, *parts, timeout=1.0)
    expect.equal(
        {message.body for message in produced(broker)},
        {parts},
        "each repeat is the whole message",
        id="each-repeat-is-the-whole-message",
    )
    expect.failed(
        result,
        ("timeout",),
        "the produce ends timeout, not definite",
        definite=False,
        id="the-produce-ends-timeout-not-definite",
    )
    seconds = result.elapsed_ms / 1000
    expect.within(seconds, limit_s(deadline), "at its deadline", id="at-its-deadline")
    # what the library fixes itself is how long it takes at most: where it looks now and then, it may be half
    least = 1.0 if "publish_timeout_ms" not in client.limits else min(1.0, deadline / 2)
    expect.not_before(seconds, 0.9 * least, "at its deadline", id="at-its-deadline")
    pending = (await client.state())["pending"]
    expect.that(
        pending in (0, None), "nothing is pending any more", pending, id="nothing-is-pending-any-more"
    )
    broker.faults.remove(LOST)
    await goes_on(client, expect)


@scenario(
    "PZQ-1.10", "MUST", "critical", basis=["P3", "P4"], roles=PUBLISHER, needs=("concurrent",), server=ROOMY
)
async def acknowledgements_out_of_order(broker: PZQ, client: Client, expect: Expect) -> None:
    """Acknowledgements out of order.

    Fault: Produce 5 at once; hold the answers until all 5 arrived or nothing new came for 500 ms; answer in
    the order 5,3,1,2,4 with "0" for 2 and 4, "1" for the rest
    Pass: 1, 3, 5 `acked`; 2, 4 `refused`. Fewer than 2 outstanding at once: inconclusive
    Profile: both (legal by the id; the daemon itself answers in order). Clients with `concurrent: false` are
    skipped
    """
    await client.connected()
    broker.faults.add(drop(role="confirm", name=LOST))
    calls = [publish(client, b"%d" % n, timeout=8.0) for n in range(1, 6)]
    known = 0
    for _ in range(8):
        await asyncio.sleep(0.5)
        here = len(produced(broker))
        if here == 5 or 0 < here == known:  # the first one may take a client longer than all others
            break
        known = here
    ids = {int(m.body[0]): m.id for m in produced(broker) if m.body}
    expect.exercised(
        len(ids) == 5,
        f"only {len(ids)} of 5 were outstanding at once",
        id="only-n-of-n-were-outstanding-at-once",
    )
    for n in (5, 3, 1, 2, 4):
        answer(broker, ProduceNack(ids[n], texts=(b"no",)) if n in (2, 4) else ProduceAck(ids[n]))
        await asyncio.sleep(0.01)
    for n, call in enumerate(calls, 1):
        wanted = "nacked" if n in (2, 4) else "acked"
        expect.outcome(
            await call,
            wanted,
            f"message {n} ends {wanted}, by its id",
            id=slug("message-n-ends-{}-by-its-id", wanted),
        )


@scenario("PZQ-1.11", "MUST", "high", basis=["P4"], roles=PUBLISHER, revision=2)
async def duplicate_acknowledgement(broker: PZQ, client: Client, expect: Expect) -> None:
    """Duplicate acknowledgement.

    Fault: Produce A, answer "1" twice; then produce B, answer "0"
    Pass: A `acked` once, B `refused`; no unhandled error: the second answer is ignored, or a `note` or an
    `error` event of the kind `protocol`
    Profile: both
    """
    await client.connected()
    broker.faults.add(duplicate(role="confirm", name="twice"))
    broker.faults.add(drop(kind="Produce", nth=2))
    first = publish(client, b"A")
    expect.outcome(await first, "acked", "A is acked", id="a-is-acked")
    second = publish(client, b"B", timeout=4.0)
    (_, message) = await came(broker, expect, 2)
    answer(broker, ProduceNack(message.id, texts=(b"no",)))
    expect.outcome(
        await second,
        "nacked",
        "B is refused, not settled by A's second answer",
        id="b-is-refused-not-settled-by-a-s-second-answer",
    )
    others = [event for event in unhandled(client) if event["error"]["kind"] != "protocol"]
    expect.that(not others, "no unhandled error", others, id="no-unhandled-error")
    expect.exercised(broker.faults.fired("twice"), "A was answered once only", id="a-was-answered-once-only")


@scenario("PZQ-1.12", "MUST", "high", basis=["P4"], roles=PUBLISHER)
async def acknowledgement_for_unknown_id(broker: PZQ, client: Client, expect: Expect) -> None:
    """Acknowledgement for unknown id.

    Fault: While A is in flight: [foreign id]["1"][empty], then [A]["0"][empty]["x"]
    Pass: A ends `refused`; the foreign one is ignored or a `note`/`error` event; no exception for A; next
    produce works
    Profile: both
    Seen: PHP client throws on any foreign id (source); MQTT.jl#13
    """
    await client.connected()
    foreign = inject(kind="ProduceAck", fields={"id": "foreign"}, place="before", role="confirm", nth=1)
    broker.faults.add(foreign, refusal(b"x", nth=1))
    result = await publish(client, b"A")
    expect.outcome(
        result, "nacked", "A ends by its own answer: refused", id="a-ends-by-its-own-answer-refused"
    )
    await goes_on(client, expect)


@scenario("PZQ-1.15", "SHOULD", "medium", basis=["P1"], roles=PUBLISHER)
async def empty_body(broker: PZQ, client: Client, expect: Expect) -> None:
    """Empty body.

    Fault: Body of one part of length 0 (the fake refuses [id][empty] alone with `Trying to save empty
    message`, as the daemon does)
    Pass: Sent as [id][empty][empty], `acked`, delivered as one empty part; local refusal `invalid`:
    non-strict
    Profile: both
    """
    await client.connected()
    result = await publish(client, b"")
    if result.error is not None and result.error.kind == "invalid":
        expect.tolerate(
            False,
            "an empty body can be sent",
            "the client refuses it locally",
            id="an-empty-body-can-be-sent",
        )
        return
    expect.that(
        produced_bytes(broker, b""), "it is sent as [id][][]", produced(broker), id="it-is-sent-as-id"
    )
    expect.outcome(result, "acked", "it is acked", id="it-is-acked")
    expect.equal(
        [m.body for m in broker.messages()][:1],
        [(b"",)],
        "it is stored as one empty part",
        id="it-is-stored-as-one-empty-part",
    )


@scenario(
    "PZQ-1.24",
    "SHOULD",
    "medium",
    basis=["P1"],
    roles=PUBLISHER,
    unconnected="what cannot be sent may be refused before it is",
    allows=("uses-what-it-has",),
)
async def nothing_to_send(broker: PZQ, client: Client, expect: Expect) -> None:
    """Nothing to send.

    Fault: publish with an empty list of body parts
    Pass: `invalid` locally, or one empty body part on the wire, or [id][empty] and `refused`. [id] alone on
    the wire = fail (the daemon drops it without an answer)
    Profile: both
    """
    await client.connected()
    result = await publish(client, timeout=1.0)
    single = broker.journal.select(kind="Malformed", tap=Tap.RECEIVED)
    expect.that(
        not single,
        "no message without a delimiter is sent",
        single,
        id="no-message-without-a-delimiter-is-sent",
    )
    if result.error is not None and result.error.kind == "invalid":
        expect.that(
            not produced(broker),
            "nothing is sent where it is refused locally",
            produced(broker),
            id="nothing-is-sent-where-it-is-refused-locally",
        )
    elif result.ok:
        expect.that(
            produced_bytes(broker, b""),
            "acked only as one empty part",
            produced(broker),
            id="acked-only-as-one-empty-part",
        )
    else:
        expect.outcome(
            result, "nacked", "it is refused, here or by the broker", id="it-is-refused-here-or-by-the-broker"
        )


@scenario("PZQ-1.25", "SHOULD", "low", basis=["P3"], roles=PUBLISHER)
async def several_texts(broker: PZQ, client: Client, expect: Expect) -> None:
    """Several status texts, not UTF-8.

    Fault: [id]["0"][empty]["disk"][0xFF 0xFE]
    Pass: `refused`; first text reported; no decoding error that hides the outcome
    Profile: both
    """
    await client.connected()
    broker.faults.add(refusal(b"disk", b"\xff\xfe", nth=1))
    result = await publish(client, b"hello")
    expect.outcome(result, "nacked", "it is refused", id="it-is-refused")
    text = result.error.text if result.error else ""
    expect.that("disk" in text, "the first text is reported", text, id="the-first-text-is-surfaced")
    await goes_on(client, expect)
