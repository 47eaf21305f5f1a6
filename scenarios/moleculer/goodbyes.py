"""MOL-2 The end of a node: that of a peer, and its own."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from conformance.suite import Client, Expect, scenario
from fakebrokers import Moleculer
from fakebrokers.journal import Tap
from scenarios.moleculer._steps import (
    CALLER,
    MQTT,
    NATS,
    OFFER,
    REDIS,
    SERVICE,
    a_service,
    asked,
    begin_call,
    introduce,
    joined,
    limit,
    met,
    now,
    peer,
    respond,
    until,
    withheld,
)
from scenarios.moleculer._wire import (
    came,
    fails_unsent,
    is_broadcast,
    mark,
    said,
    services_in,
)


@scenario(
    "MOL-2.07",
    "MUST",
    "critical",
    basis=["M8"],
    variants=("mqtt",),
    roles=CALLER,
    server=MQTT,
    needs=("concurrent",),
)
@scenario("MOL-2.07", variants=("redis",), roles=CALLER, server=REDIS, needs=("concurrent",))
@scenario("MOL-2.07", variants=("nats",), roles=CALLER, server=NATS, needs=("concurrent",))
async def disconnect_of_a_peer(broker: Moleculer, client: Client, expect: Expect) -> None:
    """DISCONNECT of a peer.

    Fault: Three calls pending on peer P (call timeout 30 s), one on peer Q; P sends DISCONNECT; then a new
    call to P's action
    Pass: The three end with an error within 1 s (never with a result); the new call fails without a REQUEST
    to P; the call to Q completes normally
    Seen: moleculer#41; moleculer#1306; measured: RequestRejectedError 503 at once
    """
    gone = peer(broker, services=OFFER)
    other = peer(broker, "other", {"q": {"wait": withheld}})
    await joined(broker, client, calls_s=30.0)
    introduce(broker, gone, other)
    pending = [begin_call(client, "p.wait", {"n": n}, 30.0) for n in range(3)]
    kept = begin_call(client, "q.wait", timeout_s=30.0)
    await asked(gone, 3)
    (wanted,) = await asked(other)
    gone.stop_heartbeats()
    gone.send("DISCONNECT")
    begun = now()
    for each in pending:
        ended = await until(lambda each=each: each.done, limit(1.0))  # type: ignore[misc]
        expect.that(
            ended,
            "pending calls to the peer end within 1 s",
            f"still open after {now() - begun:.1f} s",
            id="pending-calls-to-the-peer-end-within-n-s",
        )
        result = await each
        expect.that(
            not result.ok,
            "pending calls to the peer end with an error",
            str(result),
            id="pending-calls-to-the-peer-end-with-an-error",
        )
    await fails_unsent(broker, client, expect, gone, "a new call to the peer")
    respond(other, wanted, data="kept")
    expect.equal(
        expect.ok(await kept, "the call to another peer completes", id="the-call-to-another-peer-completes")[
            "data"
        ],
        "kept",
        "normally",
        id="normally",
    )


@scenario("MOL-2.08", "MUST", "high", basis=["M8", "M12"], variants=("mqtt",), roles=SERVICE, server=MQTT)
@scenario("MOL-2.08", variants=("redis",), roles=SERVICE, server=REDIS)
@scenario("MOL-2.08", variants=("nats",), roles=SERVICE, server=NATS)
async def own_stop(broker: Moleculer, client: Client, expect: Expect) -> None:
    """Own stop.

    Fault: `close` on an idle client that serves one service (NATS, Redis, MQTT)
    Pass: On the wire in this order: INFO broadcast with an empty service list and a higher `seq`; DISCONNECT
    broadcast; end of the transport connection (NATS and Redis: plain close; MQTT: DISCONNECT packet). Nothing
    after DISCONNECT; all within 5 s; `close` completes. Non-strict: `$node` left in the list
    Seen: moleculer#1101; moleculer#1186; measured: 100 ms between INFO and DISCONNECT
    """
    node = peer(broker)
    await joined(broker, client, offers=[a_service({"echo": "echo"})])
    await met(broker, node, "s.echo")
    before: Any = said(broker, "Info")[-1][1]
    since, begun = mark(broker), now()
    expect.ok(await client.close(timeout=6.0), "close completes", id="close-completes")
    expect.within(now() - begun, 5.0 * 1.2 + 0.25, "within 5 s", id="within-n-s")
    await came(broker, "Disconnect", since=since)  # what was sent may be on its way yet
    infos = [each for each in said(broker, "Info", since) if is_broadcast(each)]
    expect.that(infos, "an INFO broadcast comes first", "none", id="an-info-broadcast-comes-first")
    last: Any = infos[-1][1]
    expect.equal(services_in(last), [], "its list of services is empty", id="its-list-of-services-is-empty")
    expect.tolerate(
        last.services == [],
        "not even the node's own services",
        last.services,
        id="not-even-the-node-s-own-services",
    )
    if before.seq is not UNSET:
        expect.that(
            last.seq > before.seq, "its seq is higher", (before.seq, last.seq), id="its-seq-is-higher"
        )
    closes = [each for each in said(broker, "Disconnect", since) if is_broadcast(each)]
    expect.equal(len(closes), 1, "then a DISCONNECT broadcast", id="then-a-disconnect-broadcast")
    expect.that(
        closes[0][0].seq > infos[-1][0].seq,
        "DISCONNECT comes after INFO",
        id="disconnect-comes-behind-info",
    )
    end = closes[0][0]
    await expect.socket_closed(
        broker, end.connection, "then the connection ends", within_s=2.0, id="then-the-connection-ends"
    )
    later = [r.kind for r, _ in broker.packets(since=end.seq) if r.tap & Tap.RECEIVED]
    expect.that(not later, "nothing after DISCONNECT", later, id="nothing-behind-disconnect")
    if broker.transporter == "mqtt":
        said_so = broker.journal.select(kind="MqttDisconnect", tap=Tap.RECEIVED)
        expect.that(
            said_so,
            "the connection ends with MQTT's own DISCONNECT",
            "none",
            id="the-connection-ends-with-mqtt-s-own-disconnect",
        )
