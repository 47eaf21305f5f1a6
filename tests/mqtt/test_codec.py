"""MQTT on the wire: every frame, and bytes that nobody should send."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.errors import WireError
from fakebrokers.mqtt import frames as f
from fakebrokers.mqtt.codec import MqttCodec
from tests.marked import PASSWORD

ID = st.integers(1, 0xFFFF)
NAME = st.text(st.characters(exclude_categories=["C"]), max_size=20)
BODY = st.binary(max_size=200)
QOS = st.integers(0, 2)
WILL = st.builds(f.Will, NAME, BODY, QOS, st.booleans())
MESSAGE = st.builds(
    lambda topic, body, qos, number, retain, dup: f.Publish(
        topic, body, qos, number if qos else 0, retain, dup
    ),
    NAME,
    BODY,
    QOS,
    ID,
    st.booleans(),
    st.booleans(),
)
FRAMES = st.one_of(
    st.builds(
        f.Connect,
        NAME,
        st.integers(0, 0xFFFF),
        st.booleans(),
        st.none() | WILL,
        st.none() | NAME,
        st.none() | BODY,
    ),
    st.builds(f.Connack, st.integers(0, 5), st.booleans()),
    MESSAGE,
    *[st.builds(kind, ID) for kind in (f.Puback, f.Pubrec, f.Pubrel, f.Pubcomp, f.Unsuback)],
    st.builds(f.Subscribe, ID, st.lists(st.tuples(NAME, QOS), min_size=1, max_size=3).map(tuple)),
    st.builds(f.Suback, ID, st.lists(st.integers(0, 255), max_size=3).map(tuple)),
    st.builds(f.Unsubscribe, ID, st.lists(NAME, min_size=1, max_size=3).map(tuple)),
    st.sampled_from([f.Pingreq(), f.Pingresp(), f.Disconnect()]),
)


@given(st.lists(FRAMES, max_size=4), st.data())
def test_every_frame_comes_back_however_it_is_cut(said: list[Frame], data: st.DataObject) -> None:
    whole = b"".join(map(MqttCodec().encode, said))
    cut = data.draw(st.integers(0, len(whole)))
    codec = MqttCodec()
    found = [*codec.feed(whole[:cut]), *codec.feed(whole[cut:])]
    assert [frame for frame, _ in found] == said
    assert sum(size for _, size in found) == len(whole)
    assert codec.partial == 0


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_no_bytes_make_it_fail(segments: list[bytes]) -> None:
    codec = MqttCodec()
    for segment in segments:
        for frame, _ in codec.feed(segment):
            assert isinstance(frame, Frame)


def test_what_is_wrong_is_said() -> None:
    (found,) = [frame for frame, _ in MqttCodec().feed(bytes.fromhex("3603000161"))]
    assert isinstance(found, Malformed)
    assert found.problem == "expected a QoS from 0 to 2, got 3"
    (found,) = [frame for frame, _ in MqttCodec(max_size=10).feed(b"\x30\x0b" + b"x" * 11)]
    assert isinstance(found, Malformed)
    assert found.problem == "expected a packet of at most 10 bytes, got 11"


def test_passwords_are_not_shown_with_what_is_wrong() -> None:
    said = MqttCodec().encode(f.Connect("c", user="u", password=PASSWORD.encode()))
    (found,) = [frame for frame, _ in MqttCodec().feed(said[:1] + bytes([said[1] + 1]) + said[2:] + b"x")]
    assert isinstance(found, Malformed)
    assert PASSWORD.encode() not in found.data


def test_a_length_is_mended() -> None:
    said = MqttCodec().encode(f.Publish("a", b"x"))
    assert MqttCodec().mend(said[:1] + b"\x7f" + said[2:] + b"y" * 200) == MqttCodec().encode(
        f.Publish("a", b"x" + b"y" * 200)
    )


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(WireError, match="expected a Puback that fits the wire"):
        MqttCodec().encode(f.Puback(70_000))
