"""PZQ-1 Producer: ids, many messages at once, and a broker that goes away."""

from __future__ import annotations

import asyncio
import base64

from conformance.clients.adapter.base import Call
from conformance.clients.adapter.result import Result
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import PZQ
from fakebrokers.faults import drop, fault, stall
from fakebrokers.faults.effects import Drop
from fakebrokers.journal import Tap
from fakebrokers.pzq.faults import refuse_message
from fakebrokers.pzq.frames import ProduceAck, ProduceNack
from scenarios._common import limit_s, until
from scenarios.pzq._steps import (
    PUBLISHER,
    ROOMY,
    answer,
    begun,
    came,
    connected_again,
    goes_on,
    process_ends,
    produced,
    produced_bytes,
    publish,
)

LOST = "acknowledgements are lost"
UNKNOWN = ("timeout", "connection")


@scenario(
    "PZQ-1.13", "MUST", "high", basis=["P1", "P6"], roles=PUBLISHER, server=ROOMY, process=True, timeout_s=90
)
async def unique_ids(broker: PZQ, client: Client, expect: Expect) -> None:
    """Unique ids.

    Fault: 1000 produces from each of 2 adapter processes
    Pass: Ids distinct within each process. Equal ids in the two processes: non-strict (the daemon only echoes
    the id to the connection it came from; it makes its own key for the store)
    Profile: both; no `key` given by the runner
    """
    found: list[list[bytes]] = []
    for number in range(2):
        if number:
            await client.adapter.restart()
        since = broker.journal.last_seq
        await client.connected()
        together = 100 if client.can("concurrent") else 1
        for start in range(0, 1000, together):
            calls = [publish(client, b"%d" % n, timeout=20.0) for n in range(start, start + together)]
            for call in calls:
                await call
        ids = {frame.body: frame.id for frame in produced(broker, since)}
        expect.exercised(
            len(ids) == 1000, f"only {len(ids)} of 1000 messages came", id="only-n-of-n-messages-came"
        )
        found.append(list(ids.values()))
        expect.equal(
            len(set(found[-1])),
            1000,
            f"the ids of process {number + 1} are distinct",
            id="the-ids-of-process-n-are-distinct",
        )
    shared = set(found[0]) & set(found[1])
    expect.tolerate(
        not shared,
        "the ids of two processes are distinct",
        f"{len(shared)} are the same",
        id="the-ids-of-two-processes-are-distinct",
    )


@scenario("PZQ-1.14", "SHOULD", "medium", basis=["P1"], needs=["caller_key"], roles=PUBLISHER)
async def binary_and_long_ids(broker: PZQ, client: Client, expect: Expect) -> None:
    """Binary and long ids.

    Fault: Caller-given ids (as `{"b64"}`): 1 B, 255 B, one with NUL, one not UTF-8; two that differ in the
    last byte only, one answered "1", the other "0"
    Pass: Bytes on the wire equal; each op ends with its own status; local refusal `invalid`: non-strict
    Profile: both
    """
    await client.connected()
    broker.faults.add(refuse_message("no", where={"id": b"pair-b"}))
    for id in (b"x", bytes(range(1, 256)), b"nul\0inside", b"\xff\xfe\x80"):
        since = broker.journal.last_seq
        result = await publish(client, b"hello", key=_b64(id))
        if _refused_here(result):
            expect.tolerate(
                False, f"an id of {len(id)} bytes can be used", str(result), id="an-id-of-n-bytes-can-be-used"
            )
            continue
        ids = {frame.id for frame in produced(broker, since)}
        expect.equal(
            ids,
            {id},
            "the id on the wire is the caller's, bytewise",
            id="the-id-on-the-wire-is-the-caller-s-bytewise",
        )
        expect.outcome(
            result,
            "acked",
            f"the produce with the id {id[:12]!r} is acked",
            id=slug("the-produce-with-the-id-{}-is-acked", f"{id[:12]!r}"),
        )
    calls = [publish(client, b"hello", key=_b64(id)) for id in (b"pair-a", b"pair-b")]
    expect.outcome(
        await calls[0],
        "acked",
        "of two ids that differ in the last byte, the first is acked",
        id="of-two-ids-that-differ-in-the-last-byte-the-first-is-acked",
    )
    expect.outcome(await calls[1], "nacked", "and the second refused", id="and-the-second-refused")


def _b64(id: bytes) -> dict[str, str]:
    return {"b64": base64.b64encode(id).decode()}


def _refused_here(result: Result) -> bool:
    return result.error is not None and result.error.kind == "invalid"


@scenario("PZQ-1.16", "MUST", "critical", basis=["P4"], roles=PUBLISHER, timeout_s=40, revision=2)
async def restart_between_produces(broker: PZQ, client: Client, expect: Expect) -> None:
    """Broker restart between produces.

    Fault: Read one produce, store it, do not answer; close listener and connections, bind again after 2 s
    with the store
    Pass: The one in flight ends `timeout`/`connection`, or `acked` only if a "1" for its id is in the journal
    (repeat by the client); a produce sent after the restart is `acked` within 5 s on the same session (a
    client without `auto_reconnect` is connected anew by the script)
    Profile: both
    Seen: jeromq#335; libzmq#1890
    """
    await client.connected()
    broker.faults.add(drop(role="confirm", nth=1, name=LOST))
    call = publish(client, b"in flight", timeout=4.0)
    (message,) = await came(broker, expect)
    broker.crash()
    await asyncio.sleep(2.0)
    broker.faults.remove(LOST)
    broker.restart()
    result = await call
    if result.ok:
        sent = broker.journal.select(kind="ProduceAck", tap=Tap.SENT)
        confirmed = any(message.id in record.keys for record in sent)
        expect.that(
            confirmed,
            "acked only after an acknowledgement for its id",
            str(result),
            id="acked-only-after-an-acknowledgement-for-its-id",
        )
    else:
        expect.failed(
            result,
            UNKNOWN,
            "the one in flight ends timeout or connection",
            id="the-one-in-flight-ends-timeout-or-connection",
        )
    if not client.reconnects("producer"):
        await connected_again(client, expect)
    after = await publish(client, b"after the restart", timeout=5.0)
    expect.outcome(
        after,
        "acked",
        "a produce after the restart is acked on the same session",
        id="a-produce-after-the-restart-is-acked-on-the-same-session",
    )
    expect.that(
        produced_bytes(broker, b"after the restart"),
        "acked only after it came",
        "it did not come",
        id="acked-only-after-it-came",
    )
    expect.within(after.elapsed_ms / 1000, limit_s(5.0), "within 5 s", id="within-n-s")


@scenario("PZQ-1.17", "MUST", "high", basis=["P4"], roles=PUBLISHER, timeout_s=90, revision=2)
async def broker_unreachable(broker: PZQ, client: Client, expect: Expect) -> None:
    """Broker unreachable.

    Fault: (a) nothing listens; one produce with a deadline of 1 s, then `close` (deadline 3 s); (b) the same,
    but a listener appears 1 s after the op ended and before `close`
    Pass: produce ends `timeout`/`connection` at its deadline, or the connect does, where it waits for the
    daemon; in b the message may arrive late, unless the op said `definite: true`; `close` and `shutdown` end
    in their deadlines (bounded linger)
    Profile: both
    Seen: libzmq#1890; measured: libzmq sends the queued message when the listener appears, pyzmq's default
    linger is unlimited
    """
    await client.connected("before")
    expect.prepared(await publish(client, b"while somebody listens", session="before"))
    expect.ended(await client.close("before"), "before: close ends", id="before-close-ends")
    broker.crash()
    for session, comes_back in (("a", False), ("b", True)):
        body = f"while nobody listens, {session}".encode()
        result = await client.connect(session, timeout=1.0)
        if begun(client, expect, result, UNKNOWN, timeout=1.0):
            result = await publish(client, body, timeout=1.0, session=session)
            expect.failed(
                result,
                UNKNOWN,
                f"{session}: the produce ends timeout or connection",
                id=slug("{}-the-produce-ends-timeout-or-connection", session),
            )
            expect.within(
                result.elapsed_ms / 1000,
                limit_s(client.deadline_s("publish", 1.0)),
                f"{session}: at its deadline",
                id=slug("{}-at-its-deadline", session),
            )
        if comes_back:
            await asyncio.sleep(1.0)
            broker.restart()
            await until(lambda body=body: produced_bytes(broker, body), 1.0)  # type: ignore[misc]
        came_late = produced_bytes(broker, body)
        definite = result.error is not None and result.error.definite
        expect.that(
            not (came_late and definite),
            "what comes late was not called definite",
            str(result),
            id="what-comes-late-was-not-called-definite",
        )
        closing = await client.close(session, 3.0)
        expect.ended(closing, f"{session}: close ends", id=slug("{}-close-ends", session))
        expect.within(
            closing.elapsed_ms / 1000,
            limit_s(3.0),
            f"{session}: close ends in its deadline",
            id=slug("{}-close-ends-in-its-deadline", session),
        )
    await process_ends(client, expect)


@scenario("PZQ-1.18", "SHOULD", "medium", basis=["P4", "P6"], needs=["retry"], roles=PUBLISHER)
async def retry_keeps_the_id(broker: PZQ, client: Client, expect: Expect) -> None:
    """Retry keeps the id.

    Fault: Drop the first acknowledgement; client retries
    Pass: Same id on the wire; a new id: non-strict (the daemon does not compare ids: both ways give two
    stored messages)
    Profile: both
    Seen: rstream#276
    """
    await client.connected()
    broker.faults.add(drop(role="confirm", nth=1, name=LOST))
    result = await publish(client, b"once more", timeout=3.0)
    expect.ended(result, "the produce ends", id="the-produce-ends")
    ids = [frame.id for frame in produced_bytes(broker, b"once more")]
    expect.that(
        len(ids) > 1, "the message is sent again", f"it came {len(ids)} times", id="the-message-is-sent-again"
    )
    expect.tolerate(len(set(ids)) == 1, "it keeps its id", str(ids), id="it-keeps-its-id")
    expect.outcome(
        result, "acked", "the answer to the repeat settles it", id="the-answer-to-the-repeat-settles-it"
    )


@scenario(
    "PZQ-1.19", "SHOULD", "low", basis=["P1"], roles=PUBLISHER, needs=("concurrent",), allows=("ids-differ",)
)
async def two_producers(broker: PZQ, client: Client, expect: Expect) -> None:
    """Two producers, one connection each.

    Fault: Two sessions produce at the same time; answer the second first with "0", then the first with "1"
    Pass: First `acked`, second `refused`, also when the client numbers both from the same start
    Profile: both
    """
    await client.connected("s1")
    await client.connected("s2")
    broker.faults.add(drop(role="confirm", name=LOST))
    calls = [publish(client, name.encode(), session=name, timeout=6.0) for name in ("s1", "s2")]
    await came_bodies(broker, expect, b"s1", b"s2")
    records = {
        record.frame.body: (record.connection, record.frame.id)  # type: ignore[union-attr]
        for record in broker.journal.select(kind="Produce", tap=Tap.RECEIVED)
    }
    (first, first_id), (second, second_id) = records[(b"s1",)], records[(b"s2",)]
    expect.that(
        first != second,
        "each session has a connection of its own",
        first,
        id="each-session-has-a-connection-of-its-own",
    )
    answer(broker, ProduceNack(second_id, texts=(b"no",)), second)
    await asyncio.sleep(0.2)
    answer(broker, ProduceAck(first_id), first)
    expect.outcome(
        await calls[0],
        "acked",
        "the first is acked by the answer on its connection",
        id="the-first-is-acked-by-the-answer-on-its-connection",
    )
    expect.outcome(
        await calls[1],
        "nacked",
        "the second is refused by the answer on its connection",
        id="the-second-is-refused-by-the-answer-on-its-connection",
    )


async def came_bodies(broker: PZQ, expect: Expect, *bodies: bytes) -> None:
    """Messages with these bodies came."""
    await until(lambda: all(produced_bytes(broker, body) for body in bodies), 4.0)
    expect.exercised(
        all(produced_bytes(broker, body) for body in bodies),
        "not all messages came in 4 s",
        id="not-all-messages-came-in-n-s",
    )


@scenario("PZQ-1.20", "MUST", "high", basis=["P4"], roles=PUBLISHER, timeout_s=60)
async def close_with_pending(broker: PZQ, client: Client, expect: Expect) -> None:
    """Close with pending.

    Fault: (a) 3 messages read, none acknowledged, then `close`; (b) the fake stops reading, 3 messages of 8
    MiB, then `close`; deadline of `close` 3 s
    Pass: `close` ends in its deadline; each produce ends with a non-`acked` outcome that is not `refused`;
    process ends within 2 s of `shutdown`
    Profile: both; clients with `concurrent: false` use 1 message
    Seen: libzmq#2224
    """
    count = 3 if client.can("concurrent") else 1
    await client.connected("a")
    broker.faults.add(drop(role="confirm", name=LOST))
    calls = [publish(client, b"%d" % n, session="a", timeout=20.0) for n in range(count)]
    await came(broker, expect, count)
    await _close(client, expect, "a", calls)
    await client.connected("b")
    broker.faults.add(fault(Drop(), kind="Produce", scope="run"), stall(kind="Produce", scope="run"))
    body = {"gen": "zero", "len": 8 << 20}
    calls = [client.begin_publish("", body, session="b", timeout=20.0) for _ in range(count)]
    await asyncio.sleep(0.3)
    await _close(client, expect, "b", calls)
    await process_ends(client, expect)


async def _close(client: Client, expect: Expect, session: str, calls: list[Call]) -> None:
    closing = await client.close(session, 3.0)
    expect.ended(closing, f"{session}: close ends", id=slug("{}-close-ends", session))
    expect.within(
        closing.elapsed_ms / 1000,
        limit_s(3.0),
        f"{session}: close ends in its deadline",
        id=slug("{}-close-ends-in-its-deadline", session),
    )
    for call in calls:
        criterion = f"{session}: each produce ends with the close, neither acked nor refused"
        await until(lambda call=call: call.done, 1.0)  # type: ignore[misc]
        expect.that(
            call.done,
            criterion,
            "it did not end",
            id=slug("{}-each-produce-ends-with-the-close-neither-acked-nor-refused", session),
        )
        expect.outcome(
            await call,
            "unknown",
            criterion,
            id=slug("{}-each-produce-ends-with-the-close-neither-acked-nor-refused", session),
        )


@scenario(
    "PZQ-1.21",
    "MUST",
    "critical",
    basis=["P3", "P4"],
    roles=PUBLISHER,
    needs=("concurrent",),
    server=ROOMY,
    alone=True,
    timeout_s=60,
)
async def burst_with_gaps(broker: PZQ, client: Client, expect: Expect) -> None:
    """Burst with acknowledgements missing in between.

    Fault: 1000 produces as fast as the client sends; acknowledgements 270, 271 and every 97th are dropped
    Pass: Each op whose "1" is in the journal ends `acked`, each other one `timeout`/`unknown` by its own
    deadline; nothing `refused`, no op ends by a neighbour's answer; resent messages are settled by their own
    id; a later produce is `acked`
    Profile: both (the daemon drops them by itself: its pipe to a producer holds 10). Clients with
    `concurrent: false` are skipped
    Seen: measured on the real daemon: first gap at message 270 of 20 000
    """
    await client.connected()
    lost = [drop(role="confirm", nth=n, name=f"{LOST}: {n}") for n in (270, 271)]
    broker.faults.add(*lost, drop(role="confirm", every=97, name=LOST))
    deadline = client.deadline_s("publish", 5.0)
    calls = [publish(client, b"%d" % n, timeout=5.0) for n in range(1000)]
    results = [await call for call in calls]
    confirmed = {key for r in broker.journal.select(kind="ProduceAck", tap=Tap.SENT) for key in r.keys}
    ids: dict[bytes, set[bytes]] = {}
    for frame in produced(broker):
        if frame.body:
            ids.setdefault(frame.body[0], set()).add(frame.id)
    expect.exercised(
        len(ids) == 1000, f"only {len(ids)} of 1000 messages came", id="only-n-of-n-messages-came"
    )
    for n, result in enumerate(results):
        if ids[b"%d" % n] & confirmed:
            expect.outcome(
                result,
                "acked",
                f"message {n}, which was acknowledged, is acked",
                id="message-n-which-was-acknowledged-is-acked",
            )
        else:
            expect.outcome(
                result,
                "unknown",
                f"message {n}, whose acknowledgement was lost, is unknown",
                id="message-n-whose-acknowledgement-was-lost-is-unknown",
            )
            expect.within(
                result.elapsed_ms / 1000,
                limit_s(deadline),
                f"message {n} ends at its deadline",
                id="message-n-ends-at-its-deadline",
            )
    broker.faults.clear()
    await goes_on(client, expect, "a later produce is acked", id="a-later-produce-is-acked")


@scenario(
    "PZQ-1.22",
    "MAY",
    "low",
    basis=["P3", "P4"],
    variants=("seed-words",),
    roles=PUBLISHER,
    server={"profile": "seed-words"},
)
async def words_for_numbers(broker: PZQ, client: Client, expect: Expect) -> None:
    """Status words OK and NO.

    Fault: Three produces answered "OK", two answered "NO"
    Pass: "NO" never `acked`; "OK" gives the same outcome three times, `acked` or not; no crash
    Profile: `seed` with the switch for the words (the daemon used them before 2011; both profiles send
    `1`/`0` otherwise)
    """
    await client.connected()
    first = [(await publish(client, b"stored", timeout=1.0)).outcome for _ in range(3)]
    expect.that(
        len(set(first)) == 1,
        "OK gives the same outcome three times",
        first,
        id="ok-gives-the-same-outcome-three-times",
    )
    broker.faults.add(refuse_message("disk full"))
    for _ in range(2):
        result = await publish(client, b"refused", timeout=1.0)
        expect.ended(result, "a produce that is answered NO ends", id="a-produce-that-is-answered-no-ends")
        expect.that(
            not result.ok,
            "NO is never taken for an acknowledgement",
            str(result),
            id="no-is-never-taken-for-an-acknowledgement",
        )


@scenario("PZQ-1.23", "SHOULD", "high", basis=["P4"], roles=PUBLISHER)
async def store_full(broker: PZQ, client: Client, expect: Expect) -> None:
    """Store full.

    Fault: Every produce refused with "0" and a store error text for 3 s, then stored again
    Pass: Refused ones end `refused` with the text or, for clients that retry, `acked` only after a "1"; at
    most 30 sends of one id in the 3 s; a new produce afterwards is `acked`
    Profile: both
    """
    await client.connected()
    broker.faults.add(refuse_message("no space left on device", name="full"))
    calls = [publish(client, b"%d" % n, timeout=5.0) for n in range(3 if client.can("concurrent") else 1)]
    await asyncio.sleep(3.0)
    sends: dict[bytes, int] = {}
    for frame in produced(broker):
        sends[frame.id] = sends.get(frame.id, 0) + 1
    expect.exercised(sends, "nothing was sent", id="nothing-was-sent")
    expect.that(
        max(sends.values()) <= 30,
        "at most 30 sends of one id in 3 s",
        max(sends.values()),
        id="at-most-n-sends-of-one-id-in-n-s",
    )
    broker.faults.remove("full")
    for call in calls:
        result = await call
        if result.ok:
            stored = broker.journal.select(kind="ProduceAck", tap=Tap.SENT)
            expect.that(
                stored,
                "acked only after an acknowledgement",
                str(result),
                id="acked-only-after-an-acknowledgement",
            )
        else:
            expect.outcome(
                result,
                "nacked",
                "what the full store refused is refused",
                id="what-the-full-store-refused-is-refused",
            )
            text = result.error.text if result.error else ""
            expect.that("no space left" in text, "with the broker's text", text, id="with-the-broker-s-text")
    await goes_on(client, expect, "a new produce afterwards is acked", id="a-new-produce-afterwards-is-acked")
