"""What the MQTT broker answers; ``vectors/mosquitto-2.0.11.json`` has what mosquitto answered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fakebrokers import MQTT
from fakebrokers.mqtt import frames as f
from fakebrokers.mqtt.codec import MqttCodec
from fakebrokers.mqtt.topics import is_filter
from tests.bench import Bench
from tests.marked import PASSWORD, shown_in
from tests.mqtt.lines import enter, heard, say

FILE = Path(__file__).with_name("mosquitto-2.0.11.json")
MEASURED: dict[str, tuple[str, str, bool]] = json.loads(FILE.read_text("utf-8"))


@pytest.mark.parametrize("name", MEASURED)
@pytest.mark.parametrize("byte_by_byte", [False, True])
def test_measured_answers(name: str, byte_by_byte: bool) -> None:
    said, answer, ended = MEASURED[name]
    bench = Bench(MQTT())
    client = bench.connect()
    data = bytes.fromhex(said)
    found = client.say(*[data[at : at + 1] for at in range(len(data))] if byte_by_byte else [data])
    bench.check()
    assert (found.hex(), client.ended is not None) == (answer, ended)


@pytest.mark.parametrize(
    ("user", "password", "code"),
    [("u", PASSWORD.encode(), 0), ("u", b"x", 5), (None, None, 5)],
    ids=["right", "wrong", "none"],
)
def test_users_log_in(user: str | None, password: bytes | None, code: int) -> None:
    bench = Bench(MQTT(user="u", password=PASSWORD))
    client = bench.connect()
    assert say(client, f.Connect("c", user=user, password=password)) == [f.Connack(code)]
    assert (client.ended is not None) == bool(code)
    assert not shown_in(str(bench.fake.journal.records()))


def test_of_overlapping_filters_a_client_gets_one_copy_with_the_best_qos() -> None:
    bench = Bench(MQTT())
    ears, mouth = enter(bench, "ears"), enter(bench, "mouth")
    say(ears, f.Subscribe(1, (("o/a", 0), ("o/#", 1))))
    assert say(mouth, f.Publish("o/a", b"x", 1, 9)) == [f.Puback(9)]
    assert heard(ears) == [f.Publish("o/a", b"x", 1, 1)]


def test_a_message_with_qos_2_comes_once_and_when_it_is_released() -> None:
    bench = Bench(MQTT())
    client = enter(bench)
    say(client, f.Subscribe(1, (("a", 2),)))
    assert say(client, f.Publish("a", b"x", 2, 5), f.Publish("a", b"x", 2, 5, dup=True)) == [f.Pubrec(5)] * 2
    assert say(client, f.Pubrel(5)) == [f.Publish("a", b"x", 2, 1), f.Pubcomp(5)]
    assert say(client, f.Pubrec(1)) == [f.Pubrel(1)]
    assert client.session.client.messages
    assert say(client, f.Pubcomp(1)) == []
    assert not client.session.client.messages


def test_an_id_that_is_used_for_another_message_loses_the_first() -> None:
    bench = Bench(MQTT())
    client = enter(bench)
    say(client, f.Subscribe(1, (("a", 0),)))
    assert say(client, f.Publish("a", b"x", 2, 5), f.Publish("b", b"y", 1, 5)) == [f.Pubrec(5), f.Puback(5)]
    assert say(client, f.Pubrel(5)) == [f.Pubcomp(5)]


def test_ids_are_used_again_when_they_are_acknowledged() -> None:
    bench = Bench(MQTT())
    client = enter(bench)
    say(client, f.Subscribe(1, (("a", 1),)))
    for number in (1, 2):
        assert say(client, f.Publish("a", b"x", 1, 7))[0] == f.Publish("a", b"x", 1, number)
    say(client, f.Puback(1))
    assert list(client.session.client.messages) == [2]


def test_retained_messages_come_to_those_who_listen_later() -> None:
    bench = Bench(MQTT())
    mouth, ears = enter(bench, "mouth"), enter(bench, "ears")
    say(mouth, f.Publish("k/a", b"old", retain=True), f.Publish("k/a", b"new", retain=True))
    say(mouth, f.Publish("k/b", b"gone", retain=True), f.Publish("k/b", b"", retain=True))
    assert say(ears, f.Subscribe(3, (("k/+", 0),))) == [
        f.Suback(3, (0,)),
        f.Publish("k/a", b"new", retain=True),
    ]


@pytest.mark.parametrize(("kept", "asked", "qos"), [(1, 0, 0), (1, 2, 1), (2, 1, 1), (0, 2, 0)])
def test_a_retained_message_comes_with_the_lower_qos(kept: int, asked: int, qos: int) -> None:
    bench = Bench(MQTT())
    mouth, ears = enter(bench, "mouth"), enter(bench, "ears")
    say(mouth, f.Publish("k", b"x", kept, 1 if kept else 0, retain=True), f.Pubrel(1))
    _, message = say(ears, f.Subscribe(3, (("k", asked),)))
    assert message == f.Publish("k", b"x", qos, 1 if qos else 0, retain=True)


def test_a_will_is_said_unless_the_client_takes_its_leave() -> None:
    bench = Bench(MQTT())
    ears = enter(bench, "ears")
    say(ears, f.Subscribe(1, (("w", 0),)))
    enter(bench, "polite", will=f.Will("w", b"1")).say(MqttCodec().encode(f.Disconnect()))
    assert heard(ears) == []
    enter(bench, "dead", will=f.Will("w", b"2")).leave()
    assert heard(ears) == [f.Publish("w", b"2")]


def test_a_client_with_the_same_id_takes_over() -> None:
    bench = Bench(MQTT())
    first = enter(bench, "same")
    second = enter(bench, "same")
    assert (first.ended is not None, second.ended) == (True, None)


def test_who_was_taken_over_is_not_missed_when_it_has_gone() -> None:
    bench = Bench(MQTT())
    clients = []
    for _ in range(3):
        clients.append(enter(bench, "same"))
        if len(clients) > 1:
            clients[-2].leave()  # its socket is closed at last
    assert [client.ended is not None for client in clients] == [True, True, False]
    assert {each.session for each in bench.fake.broker.clients.values()} == {clients[-1].session}


def test_an_id_that_is_used_again_needs_a_pubrec_of_its_own() -> None:
    bench = Bench(MQTT())
    client = enter(bench)
    say(client, f.Subscribe(1, (("a", 2),)))
    for number in (1, 2):
        say(client, f.Publish("a", b"x", 2, 5), f.Pubrel(5))
        say(client, f.Pubrec(number), f.Pubcomp(number))
    client.session.client._last_id = 0
    say(client, f.Publish("a", b"x", 2, 5), f.Pubrel(5))
    assert list(client.session.client.messages) == [1]
    say(client, f.Pubcomp(1))  # a violation: nobody has received it yet
    assert client.ended is not None


def test_a_reset_forgets_retained_messages() -> None:
    bench = Bench(MQTT())
    say(enter(bench, "mouth"), f.Publish("k", b"old", retain=True))
    bench.fake.broker.reset()
    assert say(enter(bench, "ears"), f.Subscribe(3, (("k", 0),))) == [f.Suback(3, (0,))]


def test_keep_alive() -> None:
    bench = Bench(MQTT())
    client, forever = enter(bench, "a", keep_alive=2), enter(bench, "b", keep_alive=0)
    bench.advance(2.9)
    assert say(client, f.Pingreq()) == [f.Pingresp()]
    bench.advance(2.9)
    assert client.ended is None
    bench.advance(0.2)
    assert client.ended is not None
    bench.advance(10_000)
    assert forever.ended is None


def test_every_packet_keeps_a_client_alive() -> None:
    bench = Bench(MQTT())
    client = enter(bench, "a", keep_alive=2)
    for frame in (f.Subscribe(1, (("b", 0),)), f.Publish("a", b"x"), f.Puback(9), f.Pingreq()):
        bench.advance(2.9)
        say(client, frame)
        assert client.ended is None
    bench.advance(3.1)
    assert client.ended is not None


def test_who_says_nothing_is_cut_off() -> None:
    bench = Bench(MQTT())
    client = bench.connect()
    bench.advance(89.9)
    assert client.ended is None
    bench.advance(0.1)
    assert client.ended is not None


def test_filters() -> None:
    good = ["a", "#", "+", "a/+/b", "/", "a/#", "$SYS/#", "a//b"]
    bad = ["", "a#", "a/#/b", "a+", "+a/b", "#/a"]
    assert [name for name in (*good, *bad) if is_filter(name)] == good
