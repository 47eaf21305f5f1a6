"""MQTT-2 Messages of the client: sent again, sent once, and what is reported of them."""

from __future__ import annotations

import asyncio
from functools import partial

from conformance.clients.adapter.base import Call
from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import MQTT
from fakebrokers.faults import Fault, delay, drop, hold
from fakebrokers.journal import Tap
from scenarios._common import until
from scenarios.mqtt._steps import LASTING, LASTS, PUBLISHER, ROLES, T, bodies, copies, heard, lost

SOME = 10


@scenario("MQTT-2.01", "MUST", "critical", basis=["Q3", "Q4"], roles=PUBLISHER, needs=LASTS, timeout_s=75)
async def sent_again(broker: MQTT, client: Client, expect: Expect) -> None:
    """Unacknowledged messages are sent again.

    Fault: A session that lasts, 3 messages with QoS 1; their PUBACKs are lost, and the connection is reset
    Pass: Once the client is back each is sent again, in the old order, with DUP and its packet id; each ends
    `acked` or `unknown`; the first copies had no DUP
    Seen: paho.mqtt.golang#487; esp-mqtt#151; paho.mqtt.java#85; wolfMQTT#500
    """
    await client.connected(**LASTING)
    name = broker.faults.add(drop(kind="Puback", direction="out", name="lost"))
    sent = [b"m%d" % number for number in range(3)]
    calls = [client.begin_publish(T, body, timeout=30.0) for body in sent]
    await expect.reached(broker, "not all came", kind="Publish", tap=Tap.RECEIVED, count=3, id="not-all-came")
    first = heard(broker, "Publish")
    expect.that(not any(f.dup for f in first), "the first has no DUP", first, id="the-first-has-no-dup")
    broker.faults.remove(name)
    mark = await lost(broker, expect)
    await until(lambda: len(heard(broker, "Publish", mark)) >= len(sent), 5.0)
    again = heard(broker, "Publish", mark)
    expect.equal(
        [f.payload for f in again],
        [f.payload for f in first],
        "each is sent again, in order",
        id="sent-again",
    )
    ids = [f.packet_id for f in first]
    expect.equal([f.packet_id for f in again], ids, "with its packet id", id="with-its-packet-id")
    expect.that(all(f.dup for f in again), "with DUP", again, id="with-dup")
    for call in calls:
        expect.outcome(await call, ("acked", "unknown"), "each ends acked or unknown", id="each-ends")


def _times(client: Client, body: bytes) -> int:
    """How often a message was delivered."""
    return bodies(client).count(body)


STEPS: dict[str, tuple[Fault, str]] = {
    "PUBREC lost": (drop(kind="Pubrec", direction="out", name="lost"), "Publish"),
    "PUBREL lost": (drop(kind="Pubrel", direction="in", name="lost"), "Pubrel"),
    "PUBCOMP lost": (drop(kind="Pubcomp", direction="out", name="lost"), "Pubrel"),
}


@scenario("MQTT-2.02", "MUST", "critical", basis=["Q3", "Q5"], roles=ROLES, needs=LASTS, timeout_s=120)
async def steps_of_qos_2(broker: MQTT, client: Client, expect: Expect) -> None:
    """QoS 2 broken at each step.

    Fault: A session that lasts publishes with QoS 2; PUBREC, PUBREL or PUBCOMP is lost, and the connection is
    reset
    Pass: Once the client is back it goes on where it was: PUBLISH with DUP if there was no PUBREC, PUBREL and
    no PUBLISH if there was one, with the packet id; the message reaches a subscriber once
    Seen: paho.mqtt.golang#788; fusesource/mqtt-client#120; at-wat/mqtt-go#152
    """
    await client.connected("ear")
    await client.subscribed(T, session="ear")
    for number, (what, (fault, kind)) in enumerate(STEPS.items(), 1):
        session, body = f"s{number}", what.encode()
        await client.connected(session, **{**LASTING, "client_id": session})
        name = broker.faults.add(fault)
        call = client.begin_publish(T, body, session=session, timeout=30.0, qos=2)
        fired = await until(lambda: broker.faults.fired("lost"), 3.0)
        expect.exercised(fired, f"{what}: it never came to that", id=slug("{}-never", what))
        await asyncio.sleep(0.1)
        [first] = copies(broker, body)
        broker.faults.remove(name)
        connection = next(c["name"] for c in broker.connections if broker.client_of(c["name"]) == session)
        mark = broker.journal.last_seq
        broker.kill(connection, how="rst")
        await until(partial(heard, broker, "Pubrel", mark), 20.0)
        goes_on = [
            r for r in broker.journal.select(tap=Tap.RECEIVED, since=mark) if r.kind in ("Publish", "Pubrel")
        ]
        expect.that(
            goes_on and goes_on[0].kind == kind and goes_on[0].keys == (first.packet_id,),
            f"{what}: the client goes on with {kind.upper()} {first.packet_id}",
            [str(record) for record in goes_on[:2]],
            id=slug("{}-the-client-goes-on", what),
        )
        again = copies(broker, body, mark)
        expect.that(all(f.dup for f in again), f"{what}: with DUP", again, id=slug("{}-with-dup", what))
        expect.outcome(await call, ("acked", "unknown"), f"{what}: the publish ends", id="the-publish-ends")
        await until(partial(_times, client, body), 3.0)
        await asyncio.sleep(0.2)
        expect.equal(
            _times(client, body), 1, f"{what}: it reaches a subscriber once", id=slug("{}-once", what)
        )


@scenario(
    "MQTT-2.03", "MUST", "critical", basis=["Q10"], roles=PUBLISHER, needs=["auto_reconnect"], timeout_s=90
)
async def published_offline(broker: MQTT, client: Client, expect: Expect) -> None:
    """Published while the server is away.

    Fault: RST, and no server for 3 s; 5 messages with QoS 1 meanwhile, with 15 s each; then it is back
    Pass: Each ends by its deadline; what was acked is at the server, and what surely failed is not; a new
    message is acked within 20 s
    Seen: mosquitto#2187; MQTT.js#1478; qmqtt#265; paho.mqtt.python#796
    """
    await client.connected(auto_reconnect=True)
    expect.prepared(await client.publish(T, b"first"))
    broker.refuse()
    broker.kill(how="rst")
    calls: dict[bytes, Call] = {}
    for number in range(5):
        body = b"away %d" % number
        calls[body] = client.begin_publish(T, body, timeout=15.0)
        await asyncio.sleep(0.6)
    broker.restart()
    works = False
    end = client.now + 20.0
    while client.now < end and not works:
        works = (await client.publish(T, b"again", timeout=3.0)).ok
        await asyncio.sleep(0.2)
    expect.that(works, "a new message is acked within 20 s", "none was", id="a-new-message-is-acked")
    for body, call in calls.items():
        result = await call
        if client.can("ack_timeout"):
            expect.ended(result, "each ends by its deadline", id="each-ends-by-its-deadline")
        there = bool(copies(broker, body))
        if result.ok:
            expect.that(there, "what was acked is there", body, id="what-was-acked-is-there")
        elif result.error is not None and result.error.definite:
            expect.that(not there, "what surely failed is not there", body, id="what-surely-failed-is-not")


@scenario("MQTT-2.04", "MUST", "high", basis=["Q10"], roles=PUBLISHER)
async def close_with_messages_under_way(broker: MQTT, client: Client, expect: Expect) -> None:
    """Close with messages under way.

    Fault: PUBACKs are late by 500 ms; close as soon as 5 messages with QoS 1 have come
    Pass: close ends well, and each message has an outcome 1 s later; `acked` only after its PUBACK;
    DISCONNECT is the last packet
    Seen: paho.mqtt.python#196; mqtt_client#582; arduino-mqtt#172
    """
    await client.connected()
    expect.prepared(await client.publish(T, b"first"))
    broker.faults.add(delay(0.5, kind="Puback", direction="out", name="late"))
    mark = broker.journal.last_seq
    calls = [client.begin_publish(T, b"m%d" % number, timeout=5.0) for number in range(5)]
    await expect.reached(broker, "not all came", kind="Publish", since=mark, count=5, id="not-all-came")
    closing = await client.close(timeout=5.0)
    expect.ok(closing, "close ends well", id="close-ends-well")
    for call in calls:
        result = await call
        expect.ended(result, "each message has an outcome", id="each-message-has-an-outcome")
        late = (result.ended_ns - closing.ended_ns) / 1e9
        expect.within(late, 1.45, "1 s after the close at the latest", id="soon-after-the-close")
    acked = sum([(await call).ok for call in calls])
    confirmed = len(heard(broker, "Puback", mark, Tap.SENT))
    expect.that(
        acked <= confirmed, "acked only after PUBACK", f"{acked} of {confirmed}", id="acked-only-after-puback"
    )
    await until(lambda: heard(broker, "Disconnect", mark), 1.0)
    last = broker.journal.select(tap=Tap.RECEIVED, since=mark)[-1].kind
    expect.equal(last, "Disconnect", "DISCONNECT is the last packet", id="disconnect-is-the-last-packet")


@scenario(
    "MQTT-2.05",
    "MUST",
    "high",
    basis=["Q6"],
    roles=PUBLISHER,
    needs=["counter_seed"],
    ops=("set_counter",),
)
async def ids_in_use(broker: MQTT, client: Client, expect: Expect) -> None:
    """Packet ids that are in use.

    Fault: The PUBACK of the first message is withheld, and the counter of packet ids has gone once round
    Pass: No other message gets the id of the first (it may be refused instead); the first is acked when its
    PUBACK comes, and no other one by it
    Seen: qmqtt#262; mosquitto#3601; MQTT.js#1372; esp-mqtt#176
    """
    await client.connected()
    broker.faults.add(hold(kind="Puback", direction="out", nth=1, scope="run", name="withheld"))
    mark = broker.journal.last_seq
    first = client.begin_publish(T, b"first", timeout=200.0)
    await expect.reached(broker, "nothing came", kind="Publish", since=mark, id="nothing-came")
    [frame] = heard(broker, "Publish")
    await client.prepare("set_counter", session="s1", which="publishing", value=frame.packet_id)
    calls = [client.begin_publish(T, b"other", timeout=5.0) for _ in range(SOME)]
    for call in calls:
        await call
    same = [f for f in heard(broker, "Publish", mark) if f.packet_id == frame.packet_id and not f.dup]
    expect.that(len(same) == 1, "no other message gets the id in use", same[1:3], id="no-other-gets-the-id")
    early = first.done and (await first).ok
    expect.that(not early, "the first is not acked by another's PUBACK", "it is", id="not-by-another-s")
    broker.faults.remove("withheld")
    expect.outcome(await first, "acked", "the first is acked by its own", id="the-first-is-acked")
