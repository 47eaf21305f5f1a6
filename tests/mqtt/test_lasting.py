"""What an MQTT server remembers of a client that is gone, as Mosquitto 2.0.11 was measured to do."""

from __future__ import annotations

from typing import Any

import pytest

from fakebrokers import MQTT
from fakebrokers.core.frames import Frame
from fakebrokers.core.session import HangUp
from fakebrokers.faults import drop
from fakebrokers.mqtt import frames as f
from fakebrokers.mqtt import session
from fakebrokers.mqtt.client import MAX_ID
from tests.bench import Bench, Client
from tests.mqtt.lines import come_back, enter, heard, publish, say

A, B = "o/a", "o/b"


def shop(bench: Bench, qos: int = 2, **options: Any) -> Client:
    """One that is remembered, and listens."""
    client = enter(bench, "shop", clean=False, **options)
    assert say(client, f.Subscribe(1, (("o/#", qos),))) == [f.Suback(1, (qos,))]
    return client


def back(bench: Bench) -> tuple[Client, list[Frame]]:
    """The shop again, which is remembered, and what comes behind CONNACK."""
    client, (first, *rest) = come_back(bench, "shop", clean=False)
    assert first == f.Connack(0, True)
    return client, rest


def test_messages_with_qos_wait_for_a_client_that_is_away() -> None:
    bench = Bench(MQTT())
    client, mouth = shop(bench), enter(bench, "mouth")
    client.leave()
    for qos in (0, 1, 2):
        publish(mouth, A, b"%d" % qos, qos)
    _, found = back(bench)
    assert found == [f.Publish(A, b"1", 1, 1), f.Publish(A, b"2", 2, 2)]


def test_what_is_not_acknowledged_comes_again_with_dup_and_its_id() -> None:
    bench = Bench(MQTT())
    client, mouth = shop(bench), enter(bench, "mouth")
    for qos in (1, 2, 1, 2):
        publish(mouth, A, b"%d" % qos, qos)
    say(client, f.Puback(1), f.Pubrec(4))
    client.leave()
    publish(mouth, B, b"new")
    client, found = back(bench)
    assert found == [
        f.Publish(A, b"2", 2, 2, dup=True),
        f.Publish(A, b"1", 1, 3, dup=True),
        f.Pubrel(4),  # the client has it: only the id is left
        f.Publish(B, b"new", 1, 5),
    ]
    assert say(client, f.Pubrec(2), f.Pubcomp(2), f.Puback(3), f.Pubcomp(4), f.Puback(5)) == [f.Pubrel(2)]
    client.leave()
    assert back(bench)[1] == []


def test_a_message_with_qos_2_that_was_released_on_another_connection_is_published_once() -> None:
    bench = Bench(MQTT())
    ears, client = enter(bench, "ears"), shop(bench)
    say(ears, f.Subscribe(1, (("p", 0),)))
    assert say(client, f.Publish("p", b"x", 2, 7)) == [f.Pubrec(7)]
    client.leave()
    client, _ = back(bench)
    assert say(client, f.Publish("p", b"x", 2, 7, dup=True), f.Pubrel(7), f.Pubrel(7)) == [
        f.Pubrec(7),
        f.Pubcomp(7),
        f.Pubcomp(7),
    ]
    assert heard(ears) == [f.Publish("p", b"x")]


def test_a_message_with_qos_2_may_come_twice_on_a_connection_and_no_more() -> None:
    bench = Bench(MQTT())
    client, message = shop(bench), f.Publish("p", b"x", 2, 7)
    for _ in range(2):
        assert say(client, message, message, f.Pubrel(7)) == [f.Pubrec(7), f.Pubrec(7), f.Pubcomp(7)]
    assert say(client, message) == [f.Pubrec(7)]
    client.leave()
    client, _ = back(bench)
    assert say(client, message) == [f.Pubrec(7)]
    assert say(client, message) == []
    assert client.ended is not None


def test_a_clean_client_is_forgotten_and_forgets_what_there_was() -> None:
    bench = Bench(MQTT())
    mouth = enter(bench, "mouth")
    shop(bench).leave()
    publish(mouth, A, b"waits")
    client = enter(bench, "shop")
    publish(mouth, A, b"lost")
    assert heard(client) == []
    client.leave()
    assert enter(bench, "shop", clean=False).ended is None  # and not remembered
    publish(mouth, A, b"lost")
    assert bench.fake.unacknowledged("shop") == []


def test_mqtt_3_1_does_not_tell_that_a_client_is_remembered() -> None:
    bench = Bench(MQTT())
    old = {"clean": False, "protocol": "MQIsdp", "level": 3}
    shop(bench, protocol="MQIsdp", level=3).leave()
    publish(enter(bench, "mouth"), A, b"x")
    assert come_back(bench, "shop", **old)[1] == [f.Connack(0), f.Publish(A, b"x", 1, 1)]


def test_ids_go_on_where_they_were() -> None:
    bench = Bench(MQTT())
    mouth, client = enter(bench, "mouth"), shop(bench)
    publish(mouth, A, b"x")
    say(client, f.Puback(1))
    client.leave()
    client, _ = back(bench)
    publish(mouth, A, b"y")
    assert heard(client) == [f.Publish(A, b"y", 1, 2)]


def test_no_more_than_so_many_are_on_their_way() -> None:
    bench = Bench(MQTT(switches={"max_inflight": 2}))
    mouth, client = enter(bench, "mouth"), shop(bench)
    for number in range(5):
        publish(mouth, A, b"%d" % number, 1 + number % 2)
    assert heard(client) == [f.Publish(A, b"0", 1, 1), f.Publish(A, b"1", 2, 2)]
    assert say(client, f.Puback(3)) == []  # it has not had that one
    assert say(client, f.Puback(1)) == [f.Publish(A, b"2", 1, 3)]
    assert say(client, f.Pubrec(2)) == [f.Pubrel(2)]
    assert say(client, f.Pubcomp(2)) == [f.Publish(A, b"3", 2, 4)]
    client.leave()
    assert back(bench)[1] == [f.Publish(A, b"2", 1, 3, dup=True), f.Publish(A, b"3", 2, 4, dup=True)]


def test_the_usual_limit_is_that_of_mosquitto() -> None:
    bench = Bench(MQTT())
    mouth, client = enter(bench, "mouth"), shop(bench)
    for number in range(21):
        publish(mouth, A, b"%d" % number)
    assert len(heard(client)) == 20


@pytest.mark.parametrize("away", [True, False])
def test_more_than_so_many_are_dropped(away: bool) -> None:
    bench = Bench(MQTT(switches={"max_inflight": 1, "max_queued": 2}))
    mouth, client = enter(bench, "mouth"), shop(bench)
    publish(mouth, A, b"0")
    if away:
        client.leave()
    for number in range(1, 5):
        publish(mouth, A, b"%d" % number)
    assert bench.fake.unacknowledged("shop") == [b"0", b"1", *([] if away else [b"2"])]


def test_another_connection_takes_over_what_was_on_its_way() -> None:
    bench = Bench(MQTT())
    mouth, first = enter(bench, "mouth"), shop(bench)
    publish(mouth, A, b"x")
    second, found = back(bench)
    assert (first.ended, second.ended) == (HangUp.FIN, None)
    assert found == [f.Publish(A, b"x", 1, 1, dup=True)]
    first.leave()  # its socket is closed at last
    publish(mouth, A, b"y")
    assert heard(second) == [f.Publish(A, b"y", 1, 2)]


WILL = f.Will("w", b"gone", 1, retain=True)


@pytest.mark.parametrize(
    ("lasts", "clean", "said"), [(True, False, False), (True, True, True), (False, True, True)]
)
def test_the_will_of_one_that_is_taken_over(lasts: bool, clean: bool, said: bool) -> None:
    bench = Bench(MQTT())
    enter(bench, "shop", clean=not lasts, will=WILL)
    come_back(bench, "shop", clean=clean)
    assert bench.fake.retained == ({"w": b"gone"} if said else {})


def test_a_will_goes_to_the_member_of_a_group_whose_turn_it_is_though_that_is_who_dies() -> None:
    bench = Bench(MQTT())
    dying, other = enter(bench, "dying", will=f.Will("o/w", b"will")), enter(bench, "other")
    for member in (dying, other):
        say(member, f.Subscribe(1, (("$share/g/o/#", 0),)))
    dying.leave()
    assert heard(other) == []
    assert bench.fake.publish(A, "x") == 1
    assert heard(other) == [f.Publish(A, b"x")]


def test_a_clean_one_hears_its_own_will_if_the_next_one_is_not() -> None:
    bench = Bench(MQTT())
    first = enter(bench, "shop", will=WILL)
    say(first, f.Subscribe(1, (("w", 0),)))
    enter(bench, "shop", clean=False)
    assert heard(first) == [f.Publish("w", b"gone")]
    assert first.ended is not None


def test_a_will_is_said_at_once_when_the_server_hangs_up_and_comes_to_the_client_itself() -> None:
    bench = Bench(MQTT())
    client = enter(bench, "shop", clean=False, will=f.Will("w", b"bad", 1))
    say(client, f.Subscribe(1, (("w", 1),)))
    say(client, f.Publish("a/+", b"x"))  # nobody may publish there
    assert client.ended is not None
    assert back(bench)[1] == [f.Publish("w", b"bad", 1, 1)]


def test_who_stops_listening_still_gets_what_waits() -> None:
    bench = Bench(MQTT())
    mouth, client = enter(bench, "mouth"), shop(bench)
    publish(mouth, A, b"x")
    assert say(client, f.Unsubscribe(2, ("o/#",)))[-1] == f.Unsuback(2)
    publish(mouth, A, b"y")
    client.leave()
    assert back(bench)[1] == [f.Publish(A, b"x", 1, 1, dup=True)]


@pytest.mark.parametrize("wrong", [f.Puback(1), f.Pubcomp(1)])
def test_a_wrong_answer_ends_the_connection_and_the_message_comes_again(wrong: Frame) -> None:
    bench = Bench(MQTT())
    mouth, client = enter(bench, "mouth"), shop(bench)
    publish(mouth, A, b"x", 2)
    say(client, wrong)
    assert client.ended is not None
    assert back(bench)[1] == [f.Publish(A, b"x", 2, 1, dup=True)]


def test_for_each_filter_that_fits_an_id_is_used_up() -> None:
    bench = Bench(MQTT())
    mouth, client = enter(bench, "mouth"), shop(bench)
    say(client, f.Subscribe(1, ((A, 2), ("o/+", 0))))
    publish(mouth, A, b"x")
    publish(mouth, A, b"y")
    assert heard(client) == [f.Publish(A, b"x", 1, 1), f.Publish(A, b"y", 1, 3)]


def test_members_of_a_group_take_turns() -> None:
    bench = Bench(MQTT())
    mouth = enter(bench, "mouth")
    members = [enter(bench, name) for name in ("one", "two")]
    for member in members:
        assert say(member, f.Subscribe(1, (("$share/g/o/#", 0),))) == [f.Suback(1, (0,))]
    for number in range(3):
        publish(mouth, A, b"%d" % number)
    assert [[each.payload for each in heard(member)] for member in members] == [[b"0", b"2"], [b"1"]]  # type: ignore[attr-defined]
    say(members[1], f.Subscribe(2, (("o/+", 0),)))
    publish(mouth, A, b"one copy")
    assert [len(heard(member)) for member in members] == [0, 1]
    say(members[0], f.Unsubscribe(2, ("$share/g/o/#",)))
    publish(mouth, A, b"3")
    assert len(heard(members[1])) == 1


def test_another_filter_is_another_group_though_its_name_is_the_same() -> None:
    bench = Bench(MQTT())
    members = {name: enter(bench, name) for name in ("o/#", "o/+")}
    for name, member in members.items():
        say(member, f.Subscribe(1, ((f"$share/g/{name}", 0),)))
    assert bench.fake.publish(A, "x") == 2


def test_members_of_a_group_get_what_is_retained() -> None:
    bench = Bench(MQTT())
    bench.fake.publish(A, b"kept", retain=True)
    found = say(enter(bench), f.Subscribe(1, (("$share/g/o/#", 1),)))
    assert found == [f.Suback(1, (1,)), f.Publish(A, b"kept", retain=True)]


def test_a_filter_that_is_repeated_has_the_last_qos_and_gets_what_is_retained_again() -> None:
    bench = Bench(MQTT())
    bench.fake.publish(A, b"kept", qos=1, retain=True)
    client = enter(bench)
    assert say(client, f.Subscribe(1, (("o/#", 0),)))[1:] == [f.Publish(A, b"kept", retain=True)]
    found = say(client, f.Subscribe(2, (("o/#", 1),)))
    assert found == [f.Suback(2, (1,)), f.Publish(A, b"kept", 1, 1, retain=True)]
    publish(enter(bench, "mouth"), A, b"x")
    assert heard(client) == [f.Publish(A, b"x", 1, 2)]


def test_an_id_that_is_in_use_is_passed_over() -> None:
    bench = Bench(MQTT())
    mouth, client = enter(bench, "mouth"), shop(bench)
    publish(mouth, A, b"x")
    client.session.client._last_id = MAX_ID
    publish(mouth, A, b"y")
    assert [each.packet_id for each in heard(client)] == [1, 2]  # type: ignore[attr-defined]


def test_a_client_that_does_not_read_is_cut_off_and_gets_it_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "MAX_PENDING", 150)
    bench = Bench(MQTT())
    mouth, client = enter(bench, "mouth"), shop(bench)
    bench.engine.set_writable(client.connection, False, bench.now)
    publish(mouth, A, b"x" * 100)
    assert client.ended is None
    bench.engine.set_writable(client.connection, True, bench.now)
    bench.engine.set_writable(client.connection, False, bench.now)
    publish(mouth, A, b"y" * 100)
    assert client.ended is None
    publish(mouth, A, b"z" * 100)
    assert client.ended is not None
    assert [each.payload[:1] for each in back(bench)[1]] == [b"x", b"y", b"z"]  # type: ignore[attr-defined]


def test_topics_of_the_server_are_not_for_clients() -> None:
    bench = Bench(MQTT())
    client = enter(bench)
    say(client, f.Subscribe(1, (("$SYS/#", 0), ("$other/#", 0), ("#", 0))))
    assert say(client, f.Publish("$SYS/x", b"x", 1, 5)) == [f.Puback(5)]
    assert say(client, f.Publish("p", b"x", 2, 5), f.Publish("$SYS/x", b"x", 2, 5)) == [f.Pubrec(5)] * 2
    assert say(client, f.Pubrel(5)) == [
        f.Publish("p", b"x"),
        f.Pubcomp(5),
    ]  # which has not replaced the first
    enter(bench, "dying", will=f.Will("$SYS/x", b"x")).leave()
    assert heard(client) == []
    assert say(client, f.Publish("$other/x", b"x")) == [f.Publish("$other/x", b"x")]
    assert bench.fake.publish("$SYS/x", b"x") == 1  # but for the fake's own


def test_a_crash_keeps_what_lasts_or_loses_all() -> None:
    for keep_state in (True, False):
        bench = Bench(MQTT())
        shop(bench)
        publish(enter(bench, "mouth"), A, b"x")
        bench.engine.crash(HangUp.RST, keep_state, bench.now)
        bench.engine.flush(bench.now)
        _, found = come_back(bench, "shop", clean=False)
        again = [f.Connack(0, True), f.Publish(A, b"x", 1, 1, dup=True)]
        assert found == (again if keep_state else [f.Connack(0)])
        assert "mouth" not in bench.fake.clients


def test_a_message_that_a_fault_took_comes_again() -> None:
    bench = Bench(MQTT(faults=[drop(role="deliver", nth=1, scope="run")]))
    mouth, client = enter(bench, "mouth"), shop(bench)
    publish(mouth, A, b"x")
    assert heard(client) == []
    client.leave()
    assert back(bench)[1] == [f.Publish(A, b"x", 1, 1, dup=True)]


def test_a_client_of_mqtt_5_is_refused_in_the_words_of_3_1_1() -> None:
    bench = Bench(MQTT())
    client = bench.connect()
    assert client.say(bytes.fromhex("101100044d51545405020000051100000e1000000163")) == b"\x20\x02\x00\x01"
    assert client.ended is HangUp.FIN
    bench.check()
