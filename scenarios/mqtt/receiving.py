"""MQTT-3 Messages for the client: once, acknowledged when they were processed, to the right callback."""

from __future__ import annotations

import asyncio
from functools import partial

from conformance.suite import Client, Expect, scenario
from conformance.suite.expect import slug
from fakebrokers import MQTT
from fakebrokers.faults import drop
from fakebrokers.journal import Tap
from scenarios._common import LOSSES, until
from scenarios.mqtt._steps import CONSUMER, LASTING, LASTS, ROLES, T, bodies, came, heard, lost

SLEEP = ("callback_sleep",)


@scenario("MQTT-3.01", "MUST", "critical", basis=["Q5"], roles=CONSUMER, needs=LASTS, timeout_s=75)
async def delivered_once(broker: MQTT, client: Client, expect: Expect) -> None:
    """QoS 2 is delivered once.

    Fault: A session that lasts listens with QoS 2; the server does not hear (a) PUBREC, (b) PUBCOMP, the
    connection is reset, and the server sends (a) PUBLISH with DUP, (b) PUBREL again
    Pass: The client answers again; the message is delivered once
    Seen: fusesource/mqtt-client#121; mosquitto#1751; rmqtt#456
    """
    await client.connected(**LASTING)
    await client.subscribed(T, qos=2)
    for number, kind in enumerate(("Pubrec", "Pubcomp"), 1):
        body = f"{kind} unheard".encode()
        name = broker.faults.add(drop(kind=kind, direction="in", name=kind))
        broker.publish(T, body, qos=2)
        fired = await until(partial(broker.faults.fired, kind), 3.0)
        expect.exercised(fired, f"no {kind.upper()} came", id=slug("no-{}-came", kind))
        broker.faults.remove(name)
        mark = await lost(broker, expect)
        await until(partial(heard, broker, "Pubcomp", mark), 5.0)
        answers = heard(broker, kind, mark)
        expect.that(answers, f"{kind.upper()} is said again", "it is not", id=slug("{}-is-said-again", kind))
        await came(client, [b""] * number)
        count = bodies(client).count(body)
        expect.equal(count, 1, f"{kind.upper()} lost: delivered once", id=slug("{}-delivered-once", kind))


@scenario("MQTT-3.02", "SHOULD", "high", basis=["Q10"], roles=CONSUMER, needs=SLEEP)
async def acknowledged_when_processed(broker: MQTT, client: Client, expect: Expect) -> None:
    """PUBACK after the callback.

    Fault: A callback takes 600 ms for a message with QoS 1
    Pass: PUBACK comes when the callback has ended, and not before: who crashes in it gets the message again
    Seen: mosquitto#2884; rumqtt#94; gomqtt#1; mqtt_client#154
    """
    await client.connected()
    await client.subscribed(T, on_message={"mode": "event", "sleep_ms": 600})
    mark = broker.journal.last_seq
    broker.publish(T, b"slow", qos=1)
    await client.wait_messages(1)
    expect.exercised(client.messages(), "the message did not come", id="the-message-did-not-come")
    await asyncio.sleep(0.3)
    early = heard(broker, "Puback", mark)
    expect.that(not early, "no PUBACK while the callback runs", early, id="no-puback-while-the-callback-runs")
    await expect.wire(
        broker,
        "PUBACK comes after it",
        within_s=2.0,
        kind="Puback",
        tap=Tap.RECEIVED,
        id="puback-comes-after-it",
    )


@scenario("MQTT-3.03", "MUST", "medium", basis=["Q9"], roles=ROLES)
async def retained(broker: MQTT, client: Client, expect: Expect) -> None:
    """Retained messages.

    Fault: None; a message is retained before the subscribe, another one comes after it; then the client
    retains one, and removes it
    Pass: The first is delivered with RETAIN, the second without; the server keeps the client's, until an
    empty one comes
    """
    broker.publish(T, b"kept", qos=1, retain=True)
    await client.connected()
    await client.subscribed(T)
    await came(client, [b"kept"])
    broker.publish(T, b"new", qos=1, retain=True)
    got = await came(client, [b"kept", b"new"])
    flags = [message.meta.get("retain") for message in client.messages()]
    expect.equal(got, [b"kept", b"new"], "both are delivered once", id="both-are-delivered-once")
    expect.equal(flags, [True, False], "RETAIN is as it came", id="retain-is-as-it-came")
    for body, kept in ((b"mine", b"mine"), (b"", None)):
        result = await client.begin_publish("orders/b", body, retain=True)
        expect.outcome(result, "acked", "the client's own is acked", id="the-client-s-own-is-acked")
        there = broker.retained.get("orders/b")
        expect.equal(there, kept, "the server keeps what it should", id="the-server-keeps-what-it-should")


TOPICS = {
    "sport/#": ("sport", "sport/tennis", "sport/tennis/1"),
    "news/+": ("news/", "news/today"),
    "a/+/c": ("a/b/c", "a//c"),
    "/": ("/",),
}


@scenario("MQTT-3.04", "MUST", "high", basis=["Q12"], roles=CONSUMER)
async def filters(broker: MQTT, client: Client, expect: Expect) -> None:
    """Filters with wildcards.

    Fault: None; subscriptions of `sport/#`, `news/+`, `a/+/c` and `/`, and a message for each of their
    topics, the level above the `#` and empty levels among them
    Pass: Each message is delivered to the callback of its filter, once, with its topic, and to no other
    Seen: paho.mqtt.python#950; paho.mqtt.golang#728; ngx-mqtt#219
    """
    await client.connected()
    subs = {name: f"c{number}" for number, name in enumerate(TOPICS)}
    for name, sub in subs.items():
        await client.subscribed(name, sub)
    for topics in TOPICS.values():
        for topic in topics:
            broker.publish(topic, topic.encode(), qos=1)
    for name, topics in TOPICS.items():
        wanted = [topic.encode() for topic in topics]
        got = await came(client, wanted, subs[name], 2.0)
        expect.equal(got, wanted, f"{name}: its messages are delivered", id=slug("{}-its-messages", name))
        shown = [message.meta.get("topic") for message in client.messages(subs[name])]
        expect.equal(shown, list(topics), f"{name}: with their topics", id=slug("{}-their-topics", name))


@scenario("MQTT-3.05", "MUST", "high", basis=["Q10"], roles=CONSUMER, needs=SLEEP, timeout_s=75)
async def slow_consumer(broker: MQTT, client: Client, expect: Expect) -> None:
    """A slow consumer.

    Fault: 60 messages with QoS 1 at once, of which each takes the callback 100 ms; keep alive 2 s
    Pass: All are delivered, in order, once; each is acknowledged; no loss is reported, and no reconnect
    Seen: mosquitto#1751; hivemq-mqtt-client#557
    """
    await client.connected(keep_alive_s=2)
    await client.subscribed(T, on_message={"mode": "event", "sleep_ms": 100})
    seen = len(client.events)
    sent = [b"%03d" % number for number in range(60)]
    for body in sent:
        broker.publish(T, body, qos=1)
    got = await came(client, sent, within_s=20.0)
    expect.equal(got, sent, "all are delivered, once, in order", id="all-are-delivered-once-in-order")
    await until(lambda: len(heard(broker, "Puback")) >= len(sent), 3.0)
    acked = [frame.packet_id for frame in heard(broker, "Puback")]
    expect.equal(len(set(acked)), len(sent), "each is acknowledged", id="each-is-acknowledged")
    trouble = [e for e in client.events[seen:] if e.event == "session" and e["what"] in LOSSES]
    expect.that(not trouble, "no loss is reported", trouble[:2], id="no-loss-is-reported")


@scenario("MQTT-3.06", "MUST", "critical", basis=["Q3", "Q7"], roles=CONSUMER, needs=LASTS, timeout_s=75)
async def missed_messages(broker: MQTT, client: Client, expect: Expect) -> None:
    """What came while the client was away.

    Fault: A session that lasts; RST, no server for 1 s, and 5 messages with QoS 1 meanwhile
    Pass: The client asks for the same session again; all 5 are delivered, once, in order, and acknowledged
    Seen: mosca#730; smallrye-reactive-messaging#1935
    """
    await client.connected(**LASTING)
    await client.subscribed(T)
    mark = broker.journal.last_seq
    broker.refuse()
    broker.kill(how="rst")
    await asyncio.sleep(1.0)
    sent = [b"%d" % number for number in range(5)]
    for body in sent:
        broker.publish(T, body, qos=1)
    broker.restart()
    got = await came(client, sent, within_s=20.0)
    asked = heard(broker, "Connect", mark)
    same = asked and all(f.client_id == "lasting" and not f.clean for f in asked)
    expect.that(same, "the client asks for the same session", asked[:1], id="the-client-asks-for-its-session")
    expect.equal(got, sent, "all are delivered, once, in order", id="all-are-delivered-once-in-order")
    await until(lambda: not broker.unacknowledged("lasting"), 3.0)
    expect.equal(broker.unacknowledged("lasting"), [], "all are acknowledged", id="all-are-acknowledged")
