"""Nodes that are clients of the MQTT server."""

from __future__ import annotations

import pytest

from fakebrokers.core.frames import Malformed
from fakebrokers.errors import WireError
from fakebrokers.moleculer.mqtt import frames as f
from fakebrokers.moleculer.mqtt.codec import MqttCodec
from fakebrokers.moleculer.packets import Discover
from tests.marked import PASSWORD
from tests.moleculer.bench import Bench
from tests.moleculer.golden import Talk, talks

encode = MqttCodec().encode


@pytest.mark.parametrize("talk", talks("mqtt"), ids=str)
@pytest.mark.parametrize("direction", ["C>S", "S>C"])
def test_recordings_are_read_and_written_back(talk: Talk, direction: str) -> None:
    data = talk.side(direction)
    codec = MqttCodec()
    frames = [frame for frame, _ in codec.feed(data)]
    assert not [frame for frame in frames if isinstance(frame, Malformed)]
    assert b"".join(map(MqttCodec().encode, frames)) == data
    assert codec.partial == 0


def test_recordings_are_many() -> None:
    assert sum(len(talk.steps) for talk in talks("mqtt")) > 60


def test_a_packet_needs_a_message_around_it() -> None:
    with pytest.raises(WireError, match="expected a frame of MQTT, got Discover"):
        encode(Discover(sender="a"))


def test_a_client_of_mqtt_5_is_told_that_nobody_speaks_it_here() -> None:
    bench = Bench("mqtt")
    client = bench.connect()
    properties = bytes([5, 0x11, 0, 0, 0, 10])  # the session expires after 10 s
    body = (
        b"\0\4MQTT\5\xc2\0\x3c"
        + properties
        + b"\0\1c"
        + b"\0\1u"
        + b"\0"
        + bytes([len(PASSWORD)])
        + PASSWORD.encode()
    )
    assert client.say(b"\x10" + bytes([len(body)]) + body) == b"\x20\x03\x00\x84\x00"
    assert client.ended is not None
    bench.check()
    assert [frame for frame, _ in MqttCodec().feed(b"\x20\x03\x00\x84\x00")] == [f.Connack(0x84)]


@pytest.mark.parametrize("separator", [".", "/"])
def test_a_node_is_known_by_the_topic_of_its_answers(separator: str) -> None:
    bench = Bench("mqtt")
    client = bench.connect()
    client.say(encode(f.Connect("c")), encode(f.Subscribe(1, ((f"MOL{separator}RES{separator}n1", 0),))))
    assert client.connection.peer == "n1"
