"""Faults that only MQTT has, and what a test can do to a fake MQTT server."""

from __future__ import annotations

import pytest

from fakebrokers import MQTT
from fakebrokers.errors import UsageError
from fakebrokers.faults import Fault, drop
from fakebrokers.mqtt import frames as f
from fakebrokers.mqtt.build import lose_session, redeliver
from tests.bench import Bench
from tests.mqtt.lines import come_back, enter, heard, publish, say


def test_what_is_not_acknowledged_is_sent_once_more_after_what_was_being_sent() -> None:
    bench = Bench(MQTT(faults=[redeliver(role="deliver", where={"topic": "o/b"})]))
    mouth, client = enter(bench, "mouth"), enter(bench, "shop")
    say(client, f.Subscribe(1, (("o/#", 1),)))
    publish(mouth, "o/a", b"x")
    publish(mouth, "o/b", b"y")
    assert heard(client) == [
        f.Publish("o/a", b"x", 1, 1),
        f.Publish("o/b", b"y", 1, 2),
        f.Publish("o/a", b"x", 1, 1, dup=True),
        f.Publish("o/b", b"y", 1, 2, dup=True),  # which does not set it off again
    ]
    assert say(client, f.Puback(1), f.Puback(2)) == []
    bench.fake.redeliver("shop")
    assert heard(client) == []
    assert [record.kind for record in bench.fake.journal.records() if record.kind == "redelivery"]


def test_faults_go_by_the_client_also_when_it_comes_back() -> None:
    bench = Bench(MQTT(faults=[drop(role="deliver", peer="shop", nth=2, scope="peer")]))
    mouth, other = enter(bench, "mouth"), enter(bench, "other")
    say(other, f.Subscribe(1, (("o", 0),)))
    client = enter(bench, "shop", clean=False)
    say(client, f.Subscribe(1, (("o", 0),)))
    publish(mouth, "o", b"1", 0)
    assert heard(client) == [f.Publish("o", b"1")]
    client.leave()
    client, _ = come_back(bench, "shop", clean=False)
    for body in (b"2", b"3"):
        publish(mouth, "o", body, 0)
    assert heard(client) == [f.Publish("o", b"3")]
    assert len(heard(other)) == 3


@pytest.mark.parametrize("fault", [lose_session("shop", kind="Connect"), lose_session(kind="Connect", nth=1)])
def test_a_client_that_comes_back_is_not_remembered(fault: Fault) -> None:
    bench = Bench(MQTT())
    say(enter(bench, "shop", clean=False), f.Subscribe(1, (("o", 1),)))
    bench.engine.connections["c1"].lost(bench.now)
    bench.fake.faults.add(fault)
    assert come_back(bench, "shop", clean=False)[1] == [f.Connack(0)]
    assert bench.fake.subscriptions == []


def test_a_client_that_is_there_is_forgotten_when_it_goes() -> None:
    bench = Bench(MQTT())
    client = enter(bench, "shop", clean=False)
    say(client, f.Subscribe(1, (("o", 1),)))
    bench.fake.lose_session("shop")
    assert bench.fake.publish("o", "x", qos=1) == 1
    client.leave()
    assert bench.fake.clients == {}
    bench.fake.lose_session("shop")
    bench.fake.redeliver("shop")  # nobody is there: nothing happens


def test_a_client_that_is_away_is_forgotten_at_once() -> None:
    bench = Bench(MQTT())
    client = enter(bench, "shop", clean=False)
    say(client, f.Subscribe(1, (("o", 1),)))
    client.leave()
    bench.fake.lose_session("shop")
    assert (bench.fake.clients, bench.fake.publish("o", "x", qos=1)) == ({}, 0)


def test_what_a_test_cannot_ask_for() -> None:
    bench = Bench(MQTT())
    with pytest.raises(UsageError, match="expected a topic without wildcards, got 'o/#'"):
        bench.fake.publish("o/#", "x")
    with pytest.raises(UsageError, match="expected a QoS from 0 to 2, got 3"):
        bench.fake.publish("o", "x", qos=3)
    with pytest.raises(UsageError, match="there is no client 'shop'; there are: none"):
        bench.fake.unacknowledged("shop")
    with pytest.raises(UsageError, match=r"switches\.max_inflight"):
        MQTT(switches={"max_inflight": -1})
