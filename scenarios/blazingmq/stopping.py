"""BMQ-6 Stop and resources."""

from __future__ import annotations

import asyncio

from conformance.clients.adapter.base import ProcessFacts
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import BlazingMQ
from fakebrokers.faults import drop, fin, hold, latency
from fakebrokers.journal import Record, Tap
from scenarios.blazingmq._steps import (
    BOTH,
    CONSUMER,
    DOMAIN,
    ENDED,
    GRACE,
    GRACE_S,
    PUBLISHER,
    READ,
    accepted,
    begin_open,
    configures,
    eventually,
    from_client,
    gone,
    losses,
    opened,
    push,
    quiet,
    ready,
    received,
    sent,
)

MIB = 1 << 20
GOODBYE = "disconnectResponse"


def ends(broker: BlazingMQ, connection: str) -> list[Record]:
    """The journal's records of the end of a connection."""
    records = broker.journal.select(connection=connection, tap=Tap.STATE)
    return [r for r in records if r.kind in ("closed", "fin", "rst")]


@scenario("BMQ-6.01", "MUST", "high", basis=["B18"], roles=BOTH, revision=2)
async def graceful_stop(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Graceful stop order.

    Fault: Two queues open (one reader, one writer)
    Pass: Every closeQueue (with draining configure for readers) is answered before disconnect is sent;
    disconnect is the last request; the client closes TCP after disconnectResponse, not before; op ok;
    non-strict: disconnect without closing the queues (the broker then releases them)
    Seen: measured: wheel 1.2.2 sends disconnect at once; Node SDK closes the queues first
    """
    await client.connected()
    await opened(client, expect, "r", flags=READ)
    await opened(client, expect, "w")
    expect.exercised(
        len(received(broker, "openQueue")) == 2, "two queues were not opened", id="two-queues-were-not-opened"
    )
    broker.faults.add(latency(0.2, kind=GOODBYE, direction="out"))
    mark = broker.journal.last_seq
    expect.ok(await client.close(), "stop ends ok", id="stop-ends-ok")
    asked = from_client(broker, since=mark)
    expect.equal(
        [r.kind for r in asked[-1:]],
        ["disconnect"],
        "disconnect is the last request",
        id="disconnect-is-the-last-request",
    )
    answers = sent(broker, GOODBYE)
    expect.that(
        answers, "the client waits for disconnectResponse", id="the-client-waits-for-disconnectresponse"
    )
    stop = answers[0]
    await eventually(lambda: ends(broker, stop.connection), 2.0)
    ended = ends(broker, stop.connection)
    expect.that(
        ended and ended[0].seq > stop.seq,
        "the client closes TCP after disconnectResponse",
        id="the-client-closes-tcp-after-disconnectresponse",
    )
    closed = [r for r in asked if r.kind == "closeQueue"]
    if expect.tolerate(
        len(closed) == 2,
        "the queues are closed first",
        [r.kind for r in asked],
        id="the-queues-are-closed-first",
    ):
        answered = [r for r in sent(broker, "closeQueueResponse") if r.seq < asked[-1].seq]
        expect.equal(
            len(answered),
            2,
            "each is answered before disconnect is sent",
            id="each-is-answered-before-disconnect-is-sent",
        )
        expect.that(
            configures(broker, since=mark),
            "the reader is drained before it is closed",
            id="the-reader-is-drained-before-it-is-closed",
        )


@scenario("BMQ-6.02", "MUST", "critical", basis=["B18"], roles=PUBLISHER)
async def stop_with_requests(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Stop with pending requests.

    Fault: Hold an openQueue answer (op timeout 3 s), answer disconnect, call stop
    Pass: Stop ends by its own deadline plus what was left of the open's timeout; the pending op ends exactly
    once with an error (`closed`, `cancelled`, `connection` or `timeout`) at the latest 1 s after stop ended;
    never ok; TCP closed
    Seen: nats.node#337; stream-java-client#812; measured: wheel 1.2.2 lets stop wait until the open has timed
    out
    """
    broker.faults.add(hold(kind="openQueue", direction="in"))
    await client.connected()
    call = begin_open(client, timeout=3.0)
    expect.exercised(
        await eventually(lambda: received(broker, "openQueue"), 3.0),
        "no openQueue came",
        id="no-openqueue-came",
    )
    stopped = await client.close(timeout=5.0)
    expect.ended(stopped, "stop ends by its deadline", id="stop-ends-by-its-deadline")
    limit_s = (client.deadline_s("close", 5.0) + 3.0) * GRACE + GRACE_S
    expect.within(
        stopped.elapsed_ms / 1000,
        limit_s,
        "and what was left of the open's time-out",
        id="and-what-was-left-of-the-open-s-time-out",
    )
    result = await call
    expect.failed(result, ENDED, "the pending op ends with an error", id="the-pending-op-ends-with-an-error")
    late = (result.ended_ns - stopped.ended_ns) / 1e9
    expect.within(
        late, 1.0 * GRACE + GRACE_S, "at the latest 1 s after stop", id="at-the-latest-n-s-after-stop"
    )
    await gone(broker, expect, "TCP is closed", id="tcp-is-closed")


@scenario("BMQ-6.03", "MUST", "high", basis=["B8", "B18"])
async def no_disconnect_answer(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """disconnect answer missing.

    Fault: Drop disconnectResponse
    Pass: stop ends within its deadline; socket closed
    Seen: rabbitmq-java-client#46; spring-amqp#1885
    """
    broker.faults.add(drop(kind=GOODBYE, direction="out"))
    await client.connected(timeouts={"disconnect": 2000})
    expect.ended(await client.close(timeout=2.0), "stop ends by its deadline", id="stop-ends-by-its-deadline")
    await gone(broker, expect, "the socket is closed", id="the-socket-is-closed")


@scenario("BMQ-6.04", "SHOULD", "medium", basis=["B18"])
async def stop_twice(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Stop is idempotent.

    Fault: stop twice, and two at once
    Pass: Both end; one disconnect on the wire
    Seen: blazingmq-sdk-java BrokerSessionTest.multipleStopAsync
    """
    await client.connected()
    expect.ok(await client.close(), "the first stop ends ok", id="the-first-stop-ends-ok")
    second = await client.close()
    expect.ended(second, "a second stop ends", id="a-second-stop-ends")
    if not second.ok:
        expect.failed(second, ("closed", "invalid"), "ok, or as closed", id="ok-or-as-closed")
    expect.equal(
        len(received(broker, "disconnect")), 1, "one disconnect on the wire", id="one-disconnect-on-the-wire"
    )
    await client.connected("s2")
    calls = [client.begin("close", session="s2"), client.begin("close", session="s2")]
    results = [await call for call in calls]
    for result in results:
        expect.ended(result, "two stops at once end", id="two-stops-at-once-end")
    expect.that(
        any(result.ok for result in results), "one of them ok", [str(r) for r in results], id="one-of-them-ok"
    )
    expect.equal(
        len(received(broker, "disconnect")),
        2,
        "one disconnect on the wire for both",
        id="one-disconnect-on-the-wire-for-both",
    )


@scenario("BMQ-6.05", "SHOULD", "high", basis=["B18", "B19"], needs=["stop_in_callback"], roles=CONSUMER)
async def stop_in_callback(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Stop inside a callback.

    Fault: Call stop from the message callback
    Pass: No deadlock; ends within 5 s
    Seen: blazingmq-sdk-python 1099a3c; blazingmq-sdk-python b73297d
    """
    await client.connected()
    await opened(client, expect, "q", flags=READ)
    stop = {"op": "close", "args": {"session": "s1"}, "timeout_ms": 4000}
    await client.subscribed("q", on_message={"mode": "event", "do": [stop]})
    push(broker, expect, b"the last one")
    done = await client.event("done", 5.0 + GRACE_S)
    expect.that(done is not None, "stop ends within 5 s", id="stop-ends-within-n-s")
    assert done is not None
    expect.that(done["ok"], "it ends ok", done.fields, id="it-ends-ok")
    await gone(broker, expect, "the socket is closed", id="the-socket-is-closed")


@scenario("BMQ-6.06", "SHOULD", "low", basis=["B1"], roles=PUBLISHER)
async def stop_before_start(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Stop before start, ops after stop.

    Fault: stop on a fresh session; post after stop
    Pass: `invalid`/`closed`, no wire traffic
    """
    fresh = await client.close("fresh")
    expect.failed(
        fresh,
        ("closed", "invalid"),
        "stop of a fresh session fails as closed or invalid",
        id="stop-of-a-fresh-session-fails-as-closed-or-invalid",
    )
    expect.that(not accepted(broker), "nothing is connected", id="nothing-is-connected")
    await ready(client, expect)
    expect.prepared(await client.close())
    mark = broker.journal.last_seq
    result = await client.publish("q", timeout=2.0)
    expect.failed(
        result,
        ("closed", "invalid", "connection"),
        "a post after stop fails as closed",
        id="a-post-after-stop-fails-as-closed",
    )
    await quiet(0.2)
    expect.that(not from_client(broker, since=mark), "no wire traffic", id="no-wire-traffic")


@scenario("BMQ-6.07", "SHOULD", "medium", basis=["B17"], process=True)
async def process_can_exit(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """Process can exit after stop.

    Fault: stop, shutdown adapter
    Pass: Adapter process exits within 2 s without force
    Seen: stream-js-client#272
    """
    await client.connected()
    expect.ok(await client.close(), "stop ends ok", id="stop-ends-ok")
    began = client.now
    code = await client.adapter.shutdown()
    expect.within(
        client.now - began,
        2.0 * GRACE + GRACE_S,
        "the process exits within 2 s",
        id="the-process-exits-within-n-s",
    )
    expect.equal(code, 0, "by itself", id="by-itself")
    await client.adapter.start()


CYCLES = 100


@scenario("BMQ-6.08", "SHOULD", "high", basis=["B18"], needs=["stats"], process=True, timeout_s=60.0)
async def cycles(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """100 start/stop cycles leak nothing.

    Fault: 100 cycles
    Pass: Open fds and threads return to base ±3; RSS growth under 30 MiB (reported)
    Seen: stream-dotnet-client#205; stream-rust-client#292; stream-dotnet-client#391
    """

    async def cycle(count: int) -> ProcessFacts | None:
        for _ in range(count):
            await client.connected()
            expect.ok(await client.close(), "each stop ends ok", id="each-stop-ends-ok")
        return client.facts()

    before = await cycle(5)
    expect.exercised(before, "the process cannot be seen", id="the-process-cannot-be-seen")
    await cycle(CYCLES)
    assert before is not None
    for name in ("fds", "threads"):
        old = getattr(before, name)

        def grown(name: str = name, old: int = old or 0) -> int:
            return (getattr(client.facts(), name, 0) or 0) - old

        if old is not None:
            await eventually(lambda grown=grown: grown() <= 3, 3.0)  # type: ignore[misc]
            expect.that(grown() <= 3, f"{name} return to base", f"{grown()} more", id=slug("{}-return", name))
    after = client.facts()
    if after is not None and before.rss_bytes and after.rss_bytes:
        mib = (after.rss_bytes - before.rss_bytes) / MIB
        expect.note(f"RSS growth {mib:.1f} MiB")
        expect.that(mib < 30, "RSS growth is under 30 MiB", f"{mib:.1f} MiB", id="rss-growth-is-under-n-mib")


@scenario("BMQ-6.09", "SHOULD", "medium", basis=["B18"], roles=PUBLISHER)
async def fin_with_the_answer(broker: BlazingMQ, client: Client, expect: Expect) -> None:
    """FIN with the disconnect answer is not a loss.

    Fault: disconnectResponse and FIN in one write
    Pass: stop ends ok; no `connection_lost` event, no new connection within 2 s
    Seen: measured: wheel 1.2.2 passes
    """
    broker.faults.add(fin(kind=GOODBYE, direction="out"))
    await ready(client, expect, uri=DOMAIN + "q")
    expect.ok(await client.close(), "stop ends ok", id="stop-ends-ok")
    await asyncio.sleep(2.0)
    expect.that(not losses(client), "no connection_lost", losses(client)[:1], id="no-connection-lost")
    expect.equal(len(accepted(broker)), 1, "no new connection within 2 s", id="no-new-connection-within-n-s")
