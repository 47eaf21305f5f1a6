"""MQTT-1 Connections and subscriptions: who is let in, what is granted, and what a reconnect restores."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import MQTT
from fakebrokers.faults import drop, reply
from fakebrokers.journal import Tap
from fakebrokers.mqtt.faults import refuse_login, refuse_subscription
from scenarios._common import limit_s, until
from scenarios.mqtt._steps import CONSUMER, LASTING, LASTS, PUBLISHER, ROLES, T, bodies, came, heard, lost

RESERVED = 99
CODES = (1, 2, 3, 4, 5, RESERVED)
REFUSED = 0x80


@scenario("MQTT-1.01", "MUST", "critical", basis=["Q1"], timeout_s=75)
async def refused_clients(broker: MQTT, client: Client, expect: Expect) -> None:
    """CONNACK codes.

    Fault: CONNACK says 1, 2, 3, 4, 5, and 99, which is reserved; then it says 0
    Pass: connect fails by its deadline as `refused` or `auth`, with the code unless that is
    reserved; nothing but CONNECT is sent.
    Non-strict: `timeout`, of a client that goes on trying, or `connection`. The next connect works
    Seen: mqtt_client#172; mosquitto#228; sskaje/mqtt#14
    """
    await client.connected("rehearsal")
    expect.prepared(await client.close("rehearsal"))
    for code in CODES:
        name = broker.faults.add(refuse_login(code, name=f"code {code}"))
        mark = broker.journal.last_seq
        result = await client.connect(f"s{code}", timeout=3.0)
        what = f"code {code}: connect fails as refused or auth, with the code"
        expect.exercised(broker.faults.fired(f"code {code}"), "nobody connected", id="nobody-connected")
        if result.word in ("timeout", "connection"):
            expect.tolerate(False, what, str(result), id=slug("code-{}-connect-fails", code))
        else:
            expect.failed(result, ("refused", "auth"), what, id=slug("code-{}-connect-fails", code))
            shown = str(result.code) == str(code) or code == RESERVED
            expect.that(shown, what, str(result), id=slug("code-{}-the-code", code))
        kinds = {r.kind for r in broker.journal.select(tap=Tap.RECEIVED, since=mark)}
        expect.that(
            kinds <= {"Connect", "Disconnect"},
            f"code {code}: nothing but CONNECT is sent",
            kinds,
            id=slug("code-{}-nothing-but-connect", code),
        )
        broker.faults.remove(name)
        expect.ended(await client.close(f"s{code}"), "close ends", id="close-ends")
    expect.ok(await client.connect("at last"), "the next connect works", id="the-next-connect-works")


@scenario("MQTT-1.02", "MUST", "critical", basis=["Q2"], roles=CONSUMER)
async def refused_filter(broker: MQTT, client: Client, expect: Expect) -> None:
    """A filter is refused.

    Fault: SUBACK says 0x80 for the first filter, and 1 for the next one
    Pass: The first subscribe fails as `refused` (non-strict: in whatever way); the second works, and gets its
    message; the first gets none
    Seen: MQTT.js#855; paho.mqtt.golang#292; fusesource/mqtt-client#103; pubsubclient#997
    """
    await client.connected()
    broker.faults.add(refuse_subscription(nth=1, scope="run", name="refused"))
    result = await client.subscribe("secret/a", "c1")
    expect.exercised(broker.faults.fired("refused"), "nobody subscribed", id="nobody-subscribed")
    expect.that(not result.ok, "a refused subscribe fails", str(result), id="a-refused-subscribe-fails")
    expect.tolerate(result.word == "refused", "it fails as refused", str(result), id="it-fails-as-refused")
    expect.ok(await client.subscribe(T, "c2"), "the next subscribe works", id="the-next-subscribe-works")
    broker.publish("secret/a", b"secret", qos=1)
    broker.publish(T, b"open", qos=1)
    expect.equal(await came(client, [b"open"], "c2"), [b"open"], "its message comes", id="its-message-comes")
    expect.equal(bodies(client), [], "the refused one gets nothing", id="the-refused-one-gets-nothing")


@scenario("MQTT-1.03", "SHOULD", "critical", basis=["Q7"], roles=CONSUMER, needs=LASTS, timeout_s=75)
async def session_is_gone(broker: MQTT, client: Client, expect: Expect) -> None:
    """The server has lost the session.

    Fault: A session that lasts, with a subscription; the server forgets it, and resets the connection:
    CONNACK says that no session is present; then one message
    Pass: The filter is subscribed again, once, and the message comes; or the application is notified that the
    subscription is gone
    Seen: MQTT.js#895; paho.mqtt.c#221; smallrye-reactive-messaging#1935
    """
    await client.connected(**LASTING)
    await client.subscribed(T)
    broker.lose_session("lasting")
    seen = len(client.events)
    mark = await lost(broker, expect)
    await until(lambda: heard(broker, "Subscribe", mark), 5.0)
    await asyncio.sleep(0.3)
    broker.publish(T, b"after", qos=1)
    got = await came(client, [b"after"])
    gone = [e for e in client.events[seen:] if e.event == "error" or e.fields.get("what") == "target_closed"]
    expect.that(
        got == [b"after"] or gone,
        "the subscription is made again, or reported as gone",
        f"{got}; {len(heard(broker, 'Subscribe', mark))} SUBSCRIBE packets",
        id="the-subscription-is-made-again",
    )


@scenario("MQTT-1.04", "SHOULD", "high", basis=["Q8"], timeout_s=60)
async def pings_without_an_answer(broker: MQTT, client: Client, expect: Expect) -> None:
    """No PINGRESP.

    Fault: Keep alive 2 s; the server answers no PINGREQ, and says nothing else
    Pass: PINGREQ comes within 1.5 keep alives; the client closes the connection within two more, and reports
    the loss
    Seen: MQTT.js#144; MQTTnet#2248; hivemq-mqtt-client-dotnet#357; paho.mqtt.c#92
    """
    await client.connected(keep_alive_s=2)
    broker.faults.add(drop(kind="Pingresp", direction="out", name="no answer"))
    seen = len(client.events)
    [asked, *_] = await expect.wire(
        broker,
        "PINGREQ comes within 1.5 keep alives",
        within_s=limit_s(3.0),
        kind="Pingreq",
        tap=Tap.RECEIVED,
        id="pingreq-comes",
    )
    await expect.socket_closed(
        broker,
        asked.connection,
        "a server that does not answer is given up",
        within_s=limit_s(4.0),
        id="a-server-that-does-not-answer-is-given-up",
    )
    reported = await client.event("session", 1.0, seen)
    expect.that(reported, "the loss is reported", "no session event", id="the-loss-is-reported")


@scenario("MQTT-1.05", "MUST", "critical", basis=["Q7"], roles=ROLES, needs=["auto_reconnect"], timeout_s=120)
async def nothing_doubled(broker: MQTT, client: Client, expect: Expect) -> None:
    """Nothing doubled by a reconnect.

    Fault: A clean session with two subscriptions; 3 × RST, each after the client is back; then 5 messages
    for each
    Pass: Each filter is subscribed once on each connection; each message is delivered once, in order; a
    publish is acked
    Seen: paho.mqtt.c#221; hbmqtt#103; MQTTnet#1813
    """
    await client.connected(auto_reconnect=True)
    await client.subscribed("a/1", "c1")
    await client.subscribed("a/2", "c2")
    for number in range(3):
        mark = await lost(broker, expect)
        await until(partial(_has_both, broker, mark), 10.0)
        await asyncio.sleep(0.5)
        expect.equal(
            sorted(_filters(broker, mark)),
            ["a/1", "a/2"],
            f"loss {number + 1}: each filter is subscribed again, once",
            id="each-filter-is-subscribed-again-once",
        )
    sent = [b"%d" % number for number in range(5)]
    for body in sent:
        broker.publish("a/1", body, qos=1)
        broker.publish("a/2", body, qos=1)
    for sub in ("c1", "c2"):
        got = await came(client, sent, sub)
        expect.equal(got, sent, "each message is delivered once", id="each-message-is-delivered-once")
    result = await client.publish(T, b"at last")
    expect.outcome(result, "acked", "a publish is acked", id="a-publish-is-acked")


def _filters(broker: MQTT, mark: int) -> list[str]:
    """Those that were subscribed to since that record."""
    return [name for frame in heard(broker, "Subscribe", mark) for name, _ in frame.filters]


def _has_both(broker: MQTT, mark: int) -> bool:
    return {"a/1", "a/2"} <= set(_filters(broker, mark))


@scenario("MQTT-1.06", "MUST", "high", basis=["Q11"], needs=["will", "auto_reconnect"], roles=PUBLISHER)
async def wills(broker: MQTT, client: Client, expect: Expect) -> None:
    """The will.

    Fault: A will that is to be retained; RST, and after the client is back a close
    Pass: Each CONNECT has the will as it was ordered; close says DISCONNECT, so that the server does not
    publish it
    Seen: amqtt#199; qmqtt#213; paho.mqtt.c#1131
    """
    will: dict[str, Any] = {"target": "gone", "body": {"text": "gone"}, "qos": 1, "retain": True}
    await client.connected(will=will, auto_reconnect=True)
    await lost(broker, expect)
    for frame in heard(broker, "Connect"):
        found = frame.will
        shown = None if found is None else (found.topic, found.payload, found.qos, found.retain)
        wanted = ("gone", b"gone", 1, True)
        expect.equal(shown, wanted, "CONNECT has the will as ordered", id="connect-has-the-will")
    expect.exercised(broker.retained.get("gone"), "the RST published no will", id="no-will-was-published")
    broker.publish("gone", b"", retain=True)
    expect.ok(await client.close(), "close works", id="close-works")
    await until(lambda: not broker.connections, 2.0)
    said = heard(broker, "Disconnect")
    expect.that(said, "close says DISCONNECT", "it does not", id="close-says-disconnect")
    expect.equal(broker.retained.get("gone"), None, "no will is published", id="no-will-is-published")


@scenario("MQTT-1.07", "SHOULD", "medium", basis=["Q2"], roles=CONSUMER)
async def reserved_grant(broker: MQTT, client: Client, expect: Expect) -> None:
    """A reserved code in SUBACK.

    Fault: SUBACK says 3, which is reserved
    Pass: The subscribe fails, by its deadline; a new one works on this connection or on a new one
    """
    await client.connected()
    broker.faults.add(reply(3, kind="Subscribe", nth=1, scope="run", name="reserved"))
    result = await client.subscribe(T, "c1", timeout=2.0)
    expect.exercised(broker.faults.fired("reserved"), "nobody subscribed", id="nobody-subscribed")
    expect.ended(result, "subscribe ends by its deadline", id="subscribe-ends-by-its-deadline")
    expect.that(not result.ok, "3 is no grant", str(result), id="a-reserved-code-is-no-grant")
    results = []
    for number in range(20):
        results.append(await client.subscribe(T, f"again{number}", timeout=2.0))
        if results[-1].ok:
            return
        if not (client.can("auto_reconnect") or (await client.state())["open"]):
            await client.connected()
        await asyncio.sleep(0.5)
    expect.ok(results[-1], "a new subscribe works", id="a-new-subscribe-works")
