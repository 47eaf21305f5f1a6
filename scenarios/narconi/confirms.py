"""NARC-2 WebSocket publish: confirms, errors in their place, lost connections, the end."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import Narconi
from fakebrokers.core.session import HangUp
from fakebrokers.errors import UsageError
from fakebrokers.faults import delay, drop, fault
from fakebrokers.journal import Tap
from fakebrokers.narconi.faults import FailInstead, error_instead_of_confirm
from fakebrokers.narconi.frames import WsClose, WsConfirm, WsFrame, WsPing
from scenarios._common import limit_s, received, sent
from scenarios.narconi._steps import (
    ALL_BYTES,
    PUBLISHER,
    WITHHELD,
    came,
    confirm,
    connected_again,
    end,
    malformed,
    never_acked,
    newest,
    publish,
    published,
    published_again,
    ready,
    refused,
    say,
    withheld,
    withhold_confirms,
)

CONCURRENT = ("concurrent",)
EITHER = ("connection", "closed")


@scenario("NARC-2.08", "MUST", "critical", basis=["N7"], roles=PUBLISHER, needs=CONCURRENT)
async def confirm_in_order(broker: Narconi, client: Client, expect: Expect) -> None:
    """Confirm in order.

    Fault: Publish 5; hold the confirms until all 5 arrived or nothing new came for 500 ms; then one confirm
    each 200 ms
    Pass: Op k ends `acked` after confirm k was written and not before, within 1 s, in sending order
    Profile: both. Clients with `concurrent: false` publish one after the other
    """
    await ready(broker, client)
    withhold_confirms(broker)
    calls = [publish(client, b"message %d" % n, timeout=8.0) for n in range(5)]
    await came(broker, 5)
    expect.that(
        not any(call.done for call in calls),
        "no op ends before its confirm",
        "one did",
        id="no-op-ends-before-its-confirm",
    )
    for number, call in enumerate(calls):
        expect.exercised(
            await came(broker, number + 1) > number,
            f"message {number + 1} never came",
            id="message-n-never-came",
        )
        confirm(broker)
        await asyncio.sleep(0.2)
        done = [other + 1 for other, one in enumerate(calls) if one.done]
        expect.that(
            set(done) <= set(range(1, number + 2)),
            f"{number + 1} confirms end that many ops",
            done,
            id="n-confirms-end-that-many-ops",
        )
        result = await call
        criterion = f"op {number + 1} ends acked after confirm {number + 1}, in sending order"
        expect.outcome(result, "acked", criterion, id="op-n-ends-acked-after-confirm-n-in-sending-order")
    order = [frame.payload for frame in published(broker)]
    expect.equal(
        order,
        [b"message %d" % n for n in range(5)],
        "messages are sent in order, once each",
        id="messages-are-sent-in-order-once-each",
    )


@scenario("NARC-2.09", "MUST", "high", basis=["N7"], roles=PUBLISHER, needs=CONCURRENT)
async def confirms_coalesced(broker: Narconi, client: Client, expect: Expect) -> None:
    """Confirms delayed and coalesced.

    Fault: Hold the confirms of 20 publishes, release them in one segment
    Pass: All 20 end `acked`; a 21st, confirmed alone, as well
    Profile: both. Clients with `concurrent: false` are skipped
    """
    await ready(broker, client)
    calls = await withheld(broker, client, expect, 20)
    with suppress(UsageError):
        broker.say_raw(newest(broker, "WsPublish"), b"\x81\x00" * 20)
    for number, call in enumerate(calls):
        expect.outcome(
            await call, "acked", f"all 20 end acked (message {number + 1})", id="all-n-end-acked-message-n"
        )
    broker.faults.remove(WITHHELD)
    expect.outcome(
        await publish(client),
        "acked",
        "the 21st, confirmed alone, is acked as well",
        id="the-21st-confirmed-alone-is-acked-as-well",
    )


@scenario("NARC-2.10", "MUST", "critical", basis=["N7", "N8"], roles=PUBLISHER, needs=CONCURRENT)
async def fewer_confirms(broker: Narconi, client: Client, expect: Expect) -> None:
    """Fewer confirms than messages.

    Fault: Publish 5 at once, confirm 3, close frame 1000, fin
    Pass: First 3 `acked`; last 2 end within their deadline and are not `acked` (`connection`, `closed` or
    `timeout`; a definite refusal is the letter of N8 but wrong in `real`, where they may be stored:
    non-strict there). A client that resends them may end `acked` on a new confirm; only those 2 are sent
    again
    Profile: both. Clients with `concurrent: false` are skipped
    Seen: aio-pika#46
    """
    await ready(broker, client)
    calls = await withheld(broker, client, expect, 5)
    connection, mark = newest(broker, "WsPublish"), broker.journal.last_seq
    say(broker, connection, WsConfirm(), WsConfirm(), WsConfirm(), WsClose())
    end(broker, connection, HangUp.FIN)
    for number, call in enumerate(calls):
        result = await call
        if number < 3:
            expect.outcome(
                result,
                "acked",
                f"message {number + 1}, which was confirmed, is acked",
                id="message-n-which-was-confirmed-is-acked",
            )
        else:
            never_acked(
                expect,
                result,
                f"message {number + 1}, without a confirm, ends and is not acked",
                id="message-n-without-a-confirm-ends-and-is-not-acked",
            )
    again = {frame.payload for frame in published(broker, since=mark)}
    expect.that(
        again <= {b"message 3", b"message 4"},
        "only those two are ever sent again",
        again,
        id="only-those-two-are-ever-sent-again",
    )


@scenario("NARC-2.11", "MUST", "critical", basis=["N9"], roles=PUBLISHER, variants=("real",))
@scenario("NARC-2.11", roles=PUBLISHER, variants=("seed",), server={"profile": "seed"})
async def error_for_one(broker: Narconi, client: Client, expect: Expect) -> None:
    """Error for one message.

    Fault: Message 1 confirmed before message 2 is sent; the error answers message 2; message 3 follows
    Pass: 1 `acked`; 2 `refused` with code and text; 3 `acked` in `seed`; in `real` 3 is `acked` only by a
    confirm on a new connection, else `connection`/`closed`. Key order does not matter
    Profile: run in each. `seed`: {"code":400,"error":"TTL value too large"}, the connection goes on and the
    next messages are confirmed. `real`: {"error":"...","code":400}, then close 1000 and TCP end
    """
    await ready(broker, client)
    is_seed = broker.profile == "seed"
    text = "TTL value too large" if is_seed else "Payload must be binary or a JSON object."
    broker.faults.add(error_instead_of_confirm(text, 400, close=not is_seed, nth=2, scope="run"))
    expect.outcome(await publish(client, b"1"), "acked", "message 1 is acked", id="first-is-acked")
    result = await publish(client, b"2")
    refused(
        expect, result, 400, "message 2 is refused with the code", id="message-n-is-refused-with-the-code"
    )
    assert result.error is not None
    expect.that(
        text in result.error.text,
        "message 2 is refused with the text",
        result.error.text,
        id="message-n-is-refused-with-the-text",
    )
    mark, connection = broker.journal.last_seq, newest(broker, "WsPublish")
    third = await publish(client, b"3")
    if is_seed and third.word in EITHER and not client.reconnects("producer"):
        await connected_again(client)  # it has given the connection up, though the server goes on
        third = await publish(client, b"3")
    if is_seed:
        expect.outcome(third, "acked", "message 3 is acked", id="third-is-acked")
    elif third.ok:
        confirms = sent(broker, "WsConfirm", since=mark)
        other = [record for record in confirms if record.connection != connection]
        expect.that(
            other,
            "message 3 is acked only by a confirm on a new connection",
            confirms,
            id="message-n-is-acked-only-by-a-confirm-on-a-new-connection",
        )
    else:
        expect.failed(
            third,
            EITHER,
            "message 3 is acked on a new connection, or ends as lost",
            id="message-n-is-acked-on-a-new-connection-or-ends-as-lost",
        )


@scenario("NARC-2.12", "MUST", "medium", basis=["N9"], roles=PUBLISHER)
async def error_without_text(broker: Narconi, client: Client, expect: Expect) -> None:
    """Error without text.

    Fault: {"code":500}
    Pass: `nacked` code 500
    """
    await ready(broker, client)
    broker.faults.add(fault(FailInstead(error="", code=500), kind="WsConfirm", direction="out"))
    result = await publish(client)
    expect.outcome(result, "nacked", "the message is nacked", id="the-message-is-nacked")
    expect.equal(result.code, 500, "with the code 500", id="with-the-code-n")


@scenario("NARC-2.13", "SHOULD", "medium", basis=["N9"], roles=PUBLISHER, revision=2)
async def unparsable_error(broker: Narconi, client: Client, expect: Expect) -> None:
    """Unparsable error.

    Fault: Text "oops"
    Pass: Protocol error; pending end
    """
    await ready(broker, client)
    (call,) = await withheld(broker, client, expect, 1)
    mark = len(client.events)
    say(broker, newest(broker, "WsPublish"), WsFrame(1, b"oops"))
    result = await call
    expect.failed(result, ("protocol", *EITHER), "what is pending ends", id="what-is-pending-ends")
    if result.word != "protocol":  # then the application has to hear of it otherwise
        reported = await client.event("error", 1.0, mark)
        is_named = reported is not None and reported.error.kind.value == "protocol"
        expect.that(
            is_named,
            "a protocol error is reported, not only a lost connection",
            str(result),
            id="a-protocol-error-is-reported-not-only-a-lost-connection",
        )


@scenario("NARC-2.14", "MUST", "critical", basis=["N8"], roles=PUBLISHER, revision=2)
async def connection_drops(broker: Narconi, client: Client, expect: Expect) -> None:
    """Connection drops with unconfirmed.

    Fault: 3 unconfirmed (1 for clients with `concurrent: false`); rst; in a second run fin without a close
    frame (that is how a dying real server looks)
    Pass: None `acked` unless a later confirm for its repeat is in the journal; each ends within 1 s of the
    drop or at its deadline, with `connection`/`closed`/`timeout` (definite refusal: see NARC-2.10); none
    hangs
    Profile: both
    Seen: rstream#276; ws#2207
    """
    await ready(broker, client)
    for how in (HangUp.RST, HangUp.FIN):
        most = client.limits.get("unconfirmed", 3) if client.can("concurrent") else 1
        calls = await withheld(broker, client, expect, int(min(3, most)))
        end(broker, newest(broker, "WsPublish"), how)
        dropped_ns = client.adapter.now_ns()
        for number, call in enumerate(calls):
            result = await call
            what = f"{how.value}: message {number + 1}"
            never_acked(
                expect,
                result,
                f"{what} ends, and not acked",
                id=slug("{}-message-n-ends-and-not-acked", how.value),
            )
            if result.word != "timeout":
                late_s = (result.ended_ns - dropped_ns) / 1e9
                expect.within(
                    late_s,
                    1.0,
                    f"{what} ends within 1 s of the drop, or at its deadline",
                    id=slug("{}-message-n-ends-within-n-s-of-the-drop-or-at-its-deadline", how.value),
                )
        broker.faults.clear()
        await connected_again(client)
        expect.prepared(await published_again(broker, client, b"afterwards"))


@scenario("NARC-2.16", "MUST", "medium", basis=["N7"], roles=PUBLISHER)
async def close_after_confirms(broker: Narconi, client: Client, expect: Expect) -> None:
    """Close after confirms.

    Fault: publish, confirm after 300 ms, close at once after the publish
    Pass: Close frame after the last confirm, or the op ends not `acked`; close code 1000 or none (`close()`
    without arguments sends an empty close frame in browsers, ws and undici); TCP closed
    Profile: both
    Seen: measured: ws 8.23, undici
    """
    await ready(broker, client)
    broker.faults.add(delay(0.3, kind="WsConfirm"))
    call = publish(client)
    await came(broker, 1)
    connection = newest(broker, "WsUpgrade")
    closing = await client.close()
    expect.ended(closing, "close ends", id="close-ends")
    result = await call
    if result.ok:
        confirms = sent(broker, "WsConfirm")
        closes = received(broker, "WsClose")
        early = closes and confirms and closes[0].seq < confirms[-1].seq
        expect.that(confirms, "acked only by a confirm", "there was none", id="acked-only-by-a-confirm")
        expect.that(
            not early,
            "the close frame comes after the last confirm",
            "it came before",
            id="the-close-frame-comes-after-the-last-confirm",
        )
    codes = [record.status for record in received(broker, "WsClose")]
    expect.that(
        set(codes) <= {1000, None},
        "the close code is 1000, or there is none",
        codes,
        id="the-close-code-is-n-or-there-is-none",
    )
    expect.that(codes, "a close frame is sent", "there was none", id="a-close-frame-is-sent")
    await expect.socket_closed(
        broker, connection, "the TCP connection is closed", within_s=1.25, id="the-tcp-connection-is-closed"
    )


@scenario("NARC-2.17", "MUST", "high", basis=["N7"], roles=PUBLISHER, timeout_s=60)
async def close_ends(broker: Narconi, client: Client, expect: Expect) -> None:
    """Close does not wait for ever.

    Fault: Server confirms nothing and does not answer the close frame, TCP stays open; `close` with a
    deadline of 5 s
    Pass: Ends in its deadline; between that and 35 s: non-strict (fixed close timeouts: websockets 10 s, ws
    30 s); later or never = fail. Pending publishes end, not `acked`
    Profile: both
    Seen: ws#1125; ws#2207; measured: websockets 17 takes 10.0 s
    """
    await ready(broker, client)
    # the publish has more time than the close, so that its own deadline does not end the connection
    calls = await withheld(broker, client, expect, 1, timeout=45.0)
    broker.faults.add(drop(kind="WsClose", direction="in", name="no close"))
    result = await client.close(timeout=5.0)
    expect.ended(result, "close ends", id="close-ends")
    seconds = result.elapsed_ms / 1000
    expect.tolerate(
        seconds <= limit_s(5),
        "close ends at its deadline of 5 s",
        f"{seconds:.1f} s",
        id="close-ends-at-its-deadline-of-n-s",
    )
    expect.within(seconds, 35.0, "close ends within 35 s", id="close-ends-within-n-s")
    never_acked(
        expect,
        await calls[0],
        "the pending publish ends, and not acked",
        id="the-pending-publish-ends-and-not-acked",
    )


@scenario("NARC-2.19", "SHOULD", "medium", basis=["N7"], roles=PUBLISHER, needs=CONCURRENT)
async def fragmented_confirm(broker: Narconi, client: Client, expect: Expect) -> None:
    """Fragmented confirm.

    Fault: Empty message as two fragments; ping between
    Pass: One confirm
    """
    await ready(broker, client)
    first, second = await withheld(broker, client, expect, 2)
    connection = newest(broker, "WsPublish")
    say(broker, connection, WsFrame(1, b"", fin=False), WsPing(b"between"), WsFrame(0, b""))
    expect.outcome(
        await first,
        "acked",
        "two empty fragments confirm the first message",
        id="two-empty-fragments-confirm-the-first-message",
    )
    await asyncio.sleep(0.3)
    expect.that(
        not second.done,
        "they are one confirm, not two",
        "the second message ended, too",
        id="they-are-one-confirm-not-two",
    )
    confirm(broker)
    expect.outcome(
        await second, "acked", "the next confirm is for the second", id="the-next-confirm-is-for-the-second"
    )


@scenario("NARC-2.22", "MUST", "high", basis=["N9", "N19"], roles=PUBLISHER, server={"body_limit": 100_000})
async def too_large(broker: Narconi, client: Client, expect: Expect) -> None:
    """Too large over WebSocket.

    Fault: Message 1 small and confirmed; message 2 of 65 537 bytes: {"error":"Message too
    large.","code":429}, then close 1000 (`real`) or the connection goes on (`seed`); message 3 small
    Pass: 1 stays `acked`; 2 `refused` code 429 or `invalid` locally, sent at most once; 3 `acked` by its own
    confirm (on a new connection in `real`) or `connection`/`closed`
    Profile: both
    """
    await ready(broker, client)
    expect.outcome(await publish(client, b"1"), "acked", "message 1 is acked", id="first-is-acked")
    result = await publish(client, ALL_BYTES * 256 + b"!")
    refused(
        expect,
        result,
        429,
        "message 2 is refused with 429, or invalid",
        kinds=("refused", "invalid"),
        id="message-n-is-refused-with-n-or-invalid",
    )
    count = sum(bad.code == "too-large" for bad in malformed(broker))
    expect.that(count <= 1, "message 2 is sent at most once", count, id="message-n-is-sent-at-most-once")
    mark = broker.journal.last_seq
    third = await publish(client, b"3")
    if third.ok:
        expect.that(
            sent(broker, "WsConfirm", since=mark),
            "message 3 is acked by its own confirm",
            "none",
            id="message-n-is-acked-by-its-own-confirm",
        )
    else:
        expect.failed(
            third, EITHER, "message 3 is acked, or ends as lost", id="message-n-is-acked-or-ends-as-lost"
        )


@scenario("NARC-2.23", "SHOULD", "high", basis=["N9", "N14"], roles=PUBLISHER)
async def error_without_cause(broker: Narconi, client: Client, expect: Expect) -> None:
    """Error while nothing is pending.

    Fault: Idle publisher gets {"error":"AMQP channel was closed.","code":500}, close 1000; then two publishes
    Pass: Error or loss reported; the error frame is no answer to a later publish: each later op is `acked` by
    its own confirm on a new connection, or ends `connection`/`closed`
    Profile: both (real: broker connection lost, or another client's bad `limit`)
    Seen: recorded: bystander publisher closed by another consumer's limit
    """
    await ready(broker, client)
    expect.prepared(await publish(client, b"0"))
    mark = len(client.events)
    broker.lose_backend()
    await expect.reached(broker, "no error was sent", kind="WsError", tap=Tap.SENT, id="no-error-was-sent")
    reported: object = await client.event("session", 1.0, mark) or await client.event("error", 0.1, mark)
    for number in (1, 2):
        since = broker.journal.last_seq
        result = await publish(client, b"%d" % number)
        reported = reported or not result.ok  # who reads only while it publishes learns of it there
        expect.that(
            reported, "the error or the loss is reported", "no event", id="the-error-or-the-loss-is-reported"
        )
        if result.ok:
            confirms = sent(broker, "WsConfirm", since=since)
            expect.that(
                confirms,
                f"publish {number} is acked by its own confirm",
                "there was none",
                id="publish-n-is-acked-by-its-own-confirm",
            )
        else:
            criterion = f"publish {number} is acked, or ends as lost: the error is no answer to it"
            expect.failed(
                result, EITHER, criterion, id="publish-n-is-acked-or-ends-as-lost-the-error-is-no-answer"
            )
