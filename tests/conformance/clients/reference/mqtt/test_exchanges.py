"""The sans-IO core of the MQTT client: packet ids, copies, and the four steps of QoS 2."""

from __future__ import annotations

import pytest

from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.mqtt.exchanges import MAX_ID, Exchanges
from conformance.clients.reference.mqtt.topics import fits, is_filter, is_name
from fakebrokers.mqtt.frames import Puback, Pubcomp, Publish, Pubrec, Pubrel


def published(exchanges: Exchanges, qos: int) -> Publish:
    return exchanges.publish("t", b"x", qos, retain=False)


def test_ids_in_use_are_passed_over_at_the_end_of_their_range() -> None:
    exchanges = Exchanges()
    assert published(exchanges, 1).packet_id == 1
    exchanges.asked.add(2)
    exchanges.last_id = MAX_ID - 1
    assert [published(exchanges, 1).packet_id for _ in range(2)] == [MAX_ID, 3]


def test_no_id_is_left() -> None:
    exchanges = Exchanges()
    exchanges.asked.update(range(1, MAX_ID + 1))
    with pytest.raises(ClientError, match="all packet ids are in use"):
        published(exchanges, 1)


def test_what_is_sent_again_is_what_was_not_acknowledged_in_order() -> None:
    exchanges = Exchanges()
    first, second, third = (published(exchanges, qos) for qos in (1, 2, 2))
    assert exchanges.on_pubrec(Pubrec(third.packet_id)) == Pubrel(third.packet_id)
    assert list(exchanges.again()) == [
        exchanges.copy(first),
        exchanges.copy(second),
        Pubrel(third.packet_id),
    ]
    assert exchanges.copy(first).dup and exchanges.copy(first).packet_id == first.packet_id


def test_only_the_last_step_ends_an_exchange() -> None:
    exchanges = Exchanges()
    once, twice = published(exchanges, 1), published(exchanges, 2)
    assert not exchanges.acknowledged(Pubcomp(once.packet_id))
    assert not exchanges.acknowledged(Puback(twice.packet_id))
    assert not exchanges.acknowledged(Pubcomp(twice.packet_id)), "no PUBREC has come"
    exchanges.on_pubrec(Pubrec(twice.packet_id))
    assert exchanges.acknowledged(Pubcomp(twice.packet_id))
    assert exchanges.acknowledged(Puback(once.packet_id))
    assert not exchanges.outgoing


def test_a_message_with_qos_2_is_delivered_once() -> None:
    exchanges, message = Exchanges(), Publish("t", b"x", 2, 7)
    for _ in range(2):
        assert exchanges.on_publish(message) == (None, Pubrec(7))
    assert exchanges.on_pubrel(Pubrel(7)) == (message, Pubcomp(7))
    assert exchanges.on_pubrel(Pubrel(7)) == (None, Pubcomp(7))


@pytest.mark.parametrize(
    ("name", "yes", "no"),
    [
        ("a/#", ["a", "a/b", "a/b/c", "a/"], ["ab", "b/a"]),
        ("a/+", ["a/b", "a/"], ["a", "a/b/c"]),
        ("+/b", ["a/b", "/b"], ["b", "$SYS/b"]),
        ("#", ["a", "a/b"], ["$SYS/a"]),
        ("$share/g/a/+", ["a/b"], ["g/a/b"]),
    ],
)
def test_filters(name: str, yes: list[str], no: list[str]) -> None:
    assert is_filter(name)
    assert [topic for topic in yes + no if fits(name, topic)] == yes


def test_what_is_no_topic_and_no_filter() -> None:
    assert not any(map(is_name, ("", "a/+", "#", "a\0", "\ud800", "x" * 65_536)))
    assert not any(map(is_filter, ("", "a+", "a/#/b", "a/b#", "+a/b")))
